# SPDX-License-Identifier: Apache-2.0
"""Joint tables of several blocks, with every figure checked by listing all joint symbols."""

from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate import Joint, SetCounts, estimate
from frankly_design.estimate.estimator import evidence_of, nothing_yet
from frankly_design.kinds.decoder import shares
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import (
    DenseMechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)

from tests.refusals import code_and_field, refusal

UNARY = UnaryMechanism(4, 2, 11, 4)
SUBSET = SubsetMechanism(4, 3, 1, 13)
PAIRS = SubsetMechanism(4, 4, 2, 13)
TABLE = DenseMechanism(4, ((10, 4, 2), (3, 6, 7)))
JOINTS = {
    "unary, table": Joint((UNARY, TABLE)),
    "table, subset": Joint((TABLE, PAIRS)),
    "two unary": Joint((UNARY, UNARY)),
    "all three": Joint((UNARY, TABLE, SUBSET)),
}


def law(joint: Joint) -> dict[tuple[int, ...], list[Fraction]]:
    """Return Q of every joint symbol, by joint answer."""
    answers = list(product(*(range(block.answers) for block in joint.blocks)))
    return {
        symbol: [
            prod(
                (b.probability(y, x) for b, y, x in zip(joint.blocks, symbol, cell, strict=True)),
                start=Fraction(1),
            )
            for cell in answers
        ]
        for symbol in product(*(block.symbols() for block in joint.blocks))
    }


def truth(answers: int) -> list[Fraction]:
    weights = [1 + 3 * x * x % 7 for x in range(answers)]
    return [Fraction(w, sum(weights)) for w in weights]


@pytest.mark.parametrize("name", JOINTS)
def test_the_table_is_exactly_unbiased(name: str) -> None:
    joint = JOINTS[name]
    p, listed = truth(joint.answers), law(joint)
    common = 16 ** len(joint.blocks) * 16**6 * sum(v.denominator for v in p)
    chances = {
        symbol: sum((a * b for a, b in zip(p, row, strict=True)), Fraction(0))
        for symbol, row in listed.items()
    }
    scale = np.lcm.reduce(np.array([c.denominator for c in chances.values()], dtype=object))
    assert 0 < scale < max(common, 2**52)
    counts = {symbol: int(chance * scale) for symbol, chance in chances.items()}
    assert list(evidence_of(joint, counts, shares(joint.answers), None).exact) == p
    prior = tuple(range(1, joint.answers + 1))
    assert list(evidence_of(joint, counts, shares(joint.answers), prior).exact) == p


@pytest.mark.parametrize("name", JOINTS)
def test_moments_equal_those_of_every_symbol(name: str) -> None:
    joint = JOINTS[name]
    a, listed = joint.answers, law(joint)
    targets = (*shares(a), tuple(Fraction(x % 3 - 1) for x in range(a)))
    nothing = nothing_yet(joint, targets, None)
    per_answer, second, values = np.zeros((a + 1, a)), np.zeros((a + 1, a + 1)), []
    p = np.array([float(v) for v in truth(a)])
    for symbol, row in listed.items():
        chance = np.array([float(v) for v in row])
        moments = evidence_of(joint, {symbol: 1}, targets, None)
        d = np.array([float(v or 0) for v in moments.exact])
        np.testing.assert_allclose(moments.moment(), np.outer(d, d), rtol=1e-9, atol=1e-9)
        per_answer += d[:, None] ** 2 * chance
        second += (chance @ p) * np.outer(d, d)
        if chance.any():
            values.append(d)
    np.testing.assert_allclose(nothing.truth_moments(), per_answer, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(nothing.moment_at(p), second, rtol=1e-8, atol=1e-8)
    ends = np.array([[float(low), float(high)] for low, high in nothing.ends()])
    np.testing.assert_allclose(ends[:a, 0], np.min(values, axis=0)[:a], rtol=1e-9)
    np.testing.assert_allclose(ends[:a, 1], np.max(values, axis=0)[:a], rtol=1e-9)
    assert ends[a, 0] <= np.min(values, axis=0)[a]
    assert np.max(values, axis=0)[a] <= ends[a, 1]
    # The law is listed in the order of the answers and of the symbols.
    expected = np.array([[float(v) for v in row] for row in listed.values()]).T
    total_law = nothing.law()
    assert total_law is not None
    np.testing.assert_allclose(total_law, expected, rtol=1e-12)


@pytest.mark.parametrize("name", JOINTS)
def test_the_covariance_is_unbiased_by_simulation_and_margins_agree(name: str) -> None:
    """Mean estimated variances match those of the estimates within 4 standard errors; margins equal
    one-way estimates."""
    joint, rng, n, runs = JOINTS[name], np.random.default_rng(9), 200, 150
    listed = law(joint)
    symbols, Q = list(listed), np.array([[float(v) for v in row] for row in listed.values()]).T
    p = np.array([float(v) for v in truth(joint.answers)])
    values, variances, tally = [], [], dict.fromkeys(symbols, 0)
    for counts in rng.multinomial(n, p @ Q / (p @ Q).sum(), size=runs):
        tally = {symbol: int(c) for symbol, c in zip(symbols, counts, strict=True) if c}
        moments = evidence_of(joint, tally, shares(joint.answers), None)
        values.append([float(v or 0) for v in moments.exact])
        variances.append(np.diagonal(moments.spread()) / (n - 1))
    terms = (np.array(values) - np.mean(values, axis=0)) ** 2 * runs / (runs - 1) - np.array(
        variances
    )
    assert np.max(np.abs(terms.mean(axis=0)) / terms.std(axis=0) * runs**0.5) < 4
    cube = np.array(values[-1]).reshape([block.answers for block in joint.blocks])
    for j, block in enumerate(joint.blocks):
        alone: dict[int, int] = {}
        for symbol, c in tally.items():
            alone[symbol[j]] = alone.get(symbol[j], 0) + c
        counts_alone: Any = (
            [alone.get(y, 0) for y in range(block.reports)]
            if isinstance(block, DenseMechanism)
            else SetCounts.of_symbols(block.answers, alone)
        )
        other_axes = tuple(i for i in range(len(joint.blocks)) if i != j)
        one_way = np.array(estimate(block, counts_alone).unbiased, dtype=float)
        assert one_way.sum() == pytest.approx(1)
        np.testing.assert_allclose(cube.sum(axis=other_axes), one_way, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", JOINTS)
def test_moments_and_spread_of_a_tally_are_means_over_its_reports(name: str) -> None:
    joint = JOINTS[name]
    tally = {symbol: 1 + i % 3 for i, symbol in enumerate(law(joint))}
    single = [
        evidence_of(joint, {symbol: 1}, shares(joint.answers), None).exact for symbol in tally
    ]
    d, counts = np.array(single, dtype=float), np.array(list(tally.values()))
    moments = evidence_of(joint, tally, shares(joint.answers), None)
    np.testing.assert_allclose(
        moments.spread(), np.cov(d.T, fweights=counts, ddof=0), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(
        moments.moment(), (d.T * counts) @ d / counts.sum(), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("axis", [0, 1])
def test_a_block_is_decoded_for_its_own_margin_of_the_design_prior(axis: int) -> None:
    """V = (QᵀD₀⁻¹Q)⁻¹QᵀD₀⁻¹ with p₀ = (5, 6)/11; with more reports than answers, V depends on p₀."""
    prior = np.array([[1, 4], [3, 3]])
    blocks, table = (TABLE, UNARY), prior
    if axis == 1:
        blocks, table = (UNARY, TABLE), prior.T  # type: ignore[assignment]
    tally: dict[tuple[int, ...], int] = {
        (y, mask): 5 + 3 * y + 2 * mask * (1 + y) for y in range(3) for mask in range(4)
    }
    by_report = np.array(
        [sum(n for (y, _), n in tally.items() if y == report) for report in range(3)]
    )
    Q = np.array(TABLE.weights) / 16
    D = np.diag(1 / (np.array([5, 6]) / 11 @ Q))
    expected = np.linalg.solve(Q @ D @ Q.T, Q @ D) @ by_report / by_report.sum()
    counts: dict[tuple[int, ...], int] = {
        symbols if axis == 0 else symbols[::-1]: n for symbols, n in tally.items()
    }
    estimates = evidence_of(
        Joint(blocks), counts, shares(4), tuple(map(int, table.reshape(-1)))
    ).exact
    cells = np.array([float(v or 0) for v in estimates]).reshape(2, 2)
    np.testing.assert_allclose(cells.sum(axis=1 - axis), expected, rtol=1e-9)


def test_the_whole_estimate_has_every_figure() -> None:
    joint = JOINTS["unary, table"]
    listed = law(joint)
    counts = {symbol: 50 + 7 * i for i, symbol in enumerate(listed)}
    result = estimate(joint, counts, level=0.9)
    Q = np.array([[float(v) for v in row] for row in listed.values()]).T
    rates = np.array(list(counts.values())) / sum(counts.values())
    best = np.array(result.mle, dtype=float)
    rng = np.random.default_rng(3)
    alternatives = rng.dirichlet(np.ones(4), size=4000)
    assert (
        np.max(np.log(alternatives @ Q) @ rates)
        <= np.log(best @ Q) @ rates + (result.mle_gap or 0) / result.n + 1e-12
    )
    assert result.fit_p is not None
    assert result.efficiency[0] is not None
    assert result.margins.exact is None
    assert result.identifiable
    assert result.rank == 4


def test_tables_together_fit_as_their_product_does() -> None:
    second_table = DenseMechanism(4, ((9, 4, 2, 1), (2, 9, 4, 1), (1, 3, 4, 8)))
    tally: dict[tuple[int, ...], int] = {
        (y, z): 20 + (7 * y + 5 * z) % 9 for y in range(3) for z in range(4)
    }
    joint, both = (
        estimate(source, tally)
        for source in (Joint((TABLE, second_table)), ProductMechanism((TABLE, second_table)))
    )
    assert joint.fit_p is not None
    assert 1e-6 < joint.fit_p < 0.999
    assert joint.fit_p == pytest.approx(both.fit_p, rel=1e-3)


BAD: dict[str, tuple[Any, str, str]] = {
    "a list": ([1, 2], "counts_invalid", "counts"),
    "a negative count": ({(1, 0): -1}, "counts_invalid", "counts"),
    "one symbol for two": ({(1,): 4}, "counts_invalid", "counts"),
    "a set beyond the answers": ({(4, 0): 4}, "counts_invalid", "counts"),
    "a report beyond the table": ({(1, 3): 4}, "counts_invalid", "counts"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_counts(name: str) -> None:
    counts, code, field = BAD[name]
    assert code_and_field(InvalidInput, estimate, JOINTS["unary, table"], counts) == (code, field)


def test_unidentifiable_or_too_large_tables_are_refused() -> None:
    by_chance = SubsetMechanism(4, 4, 2, 8)
    error = refusal(InvalidInput, estimate, Joint((UNARY, by_chance)), {})
    assert (error.code, error.field) == ("not_identifiable", "targets")
    for blocks in (
        (UnaryMechanism(4, 161, 8, 4),),
        (UnaryMechanism(4, 64, 8, 4), UnaryMechanism(4, 64, 8, 4)),
    ):
        assert code_and_field(InvalidInput, Joint, blocks) == ("unsupported", "targets")
