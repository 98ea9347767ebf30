# SPDX-License-Identifier: Apache-2.0
"""Unary, subset and product mechanisms: exactly unbiased, with moments checked by enumerating all symbols."""

import random
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate import SetCounts, estimate
from frankly_design.estimate.estimator import evidence_of, nothing_yet
from frankly_design.kinds.decoder import shares
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import (
    DenseMechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)

from tests.frankly_design.maths import random_shares
from tests.refusals import code_and_field, refusal

TRIALS = {True: 200, False: 60}
Sets = UnaryMechanism | SubsetMechanism


def row(rng: random.Random, total: int, columns: int) -> tuple[int, ...]:
    cuts = sorted(rng.randint(1, total - 1) for _ in range(columns - 1))
    return tuple(b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True))


def table(rng: random.Random, answers: int, reports: int) -> DenseMechanism:
    while True:
        weights = tuple(row(rng, 1 << 16, reports) for _ in range(answers))
        if all(any(column) for column in zip(*weights, strict=True)):
            return DenseMechanism(16, weights)


def random_set(rng: random.Random, kind: str) -> Sets:
    answers = rng.randint(2, 5)
    while True:
        if kind == "unary":
            keep, flip = rng.sample(range(1, 1 << 10), 2)
            return UnaryMechanism(10, answers, keep, flip)
        size = rng.randint(1, answers - 1)
        inside = rng.randint(0, 1 << 10)
        if Fraction(inside, 1 << 10) != Fraction(size, answers):
            return SubsetMechanism(10, answers, size, inside)


def law(mechanism: Any, p: list[Fraction]) -> dict[Any, Fraction]:
    return {
        y: sum((p[x] * mechanism.probability(y, x) for x in range(mechanism.answers)), Fraction(0))
        for y in mechanism.symbols()
    }


@pytest.mark.parametrize("kind", ["unary", "subset"])
def test_200_random_mechanisms_of_sets_are_exactly_unbiased(kind: str, full: bool) -> None:
    """The mean estimate from one report, over all symbols, equals the truth in exact fractions."""
    rng = random.Random(401)
    for _ in range(TRIALS[full]):
        mechanism = random_set(rng, kind)
        p = random_shares(rng, mechanism.answers)
        mean = [Fraction(0)] * mechanism.answers
        for mask, chance in law(mechanism, p).items():
            moments = evidence_of(
                mechanism, SetCounts.of_symbols(mechanism.answers, {mask: 1}), shares(len(p)), None
            )
            mean = [
                m + chance * v for m, v in zip(mean, moments.exact, strict=True) if v is not None
            ]
        assert mean == p


def test_200_random_products_are_exactly_unbiased(full: bool) -> None:
    rng = random.Random(402)
    for _ in range(TRIALS[full]):
        factors = tuple(table(rng, a := rng.randint(2, 3), a + rng.randint(0, 2)) for _ in range(2))
        mechanism = ProductMechanism(factors)
        p = random_shares(rng, mechanism.answers)
        chances = list(law(mechanism, p).values())
        common = np.lcm.reduce(np.array([c.denominator for c in chances], dtype=object))
        moments = evidence_of(mechanism, [int(c * common) for c in chances], shares(len(p)), None)
        assert list(moments.exact) == p


@pytest.mark.parametrize("kind", ["unary", "subset"])
def test_moments_equal_those_of_every_symbol(kind: str) -> None:
    rng = random.Random(403)
    for _ in range(30):
        mechanism = random_set(rng, kind)
        a = mechanism.answers
        targets = (*shares(a), tuple(Fraction(rng.randint(-2, 3)) for _ in range(a)))
        nothing = nothing_yet(mechanism, targets, None)
        second = np.zeros((a + 1, a + 1))
        p = random_shares(rng, a)
        per_answer = np.zeros((a + 1, a))
        values = []
        for mask in mechanism.symbols():
            moments = evidence_of(mechanism, SetCounts.of_symbols(a, {mask: 1}), targets, None)
            d = np.array([float(v or 0) for v in moments.exact])
            np.testing.assert_allclose(moments.moment(), np.outer(d, d), rtol=1e-9, atol=1e-9)
            for x in range(a):
                chance = float(mechanism.probability(mask, x))
                per_answer[:, x] += chance * d**2
                second += float(p[x]) * chance * np.outer(d, d)
            values.append(d)
        np.testing.assert_allclose(nothing.truth_moments(), per_answer, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(
            nothing.moment_at(np.array([float(v) for v in p])), second, rtol=1e-8, atol=1e-8
        )
        ends = np.array([[float(low), float(high)] for low, high in nothing.ends()])
        np.testing.assert_allclose(ends[:, 0], np.min(values, axis=0), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(ends[:, 1], np.max(values, axis=0), rtol=1e-9, atol=1e-9)


def test_the_covariance_of_sets_is_unbiased_by_enumeration() -> None:
    """Over all outcomes of two unary reports, E[T] is the covariance of the estimate."""
    mechanism = UnaryMechanism(4, 2, 9, 3)
    p = [Fraction(3, 4), Fraction(1, 4)]
    chances = law(mechanism, p)
    mean, second, covariance = np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2))
    for outcome in product(chances, repeat=2):
        chance = float(prod((chances[y] for y in outcome), start=Fraction(1)))
        symbols = {y: outcome.count(y) for y in outcome}
        result = estimate(mechanism, SetCounts.of_symbols(2, symbols))
        value = np.array(result.unbiased, dtype=float)
        mean += chance * value
        second += chance * np.outer(value, value)
        covariance += chance * np.array(result.covariance, dtype=float)
    np.testing.assert_allclose(mean, [0.75, 0.25], atol=1e-12)
    np.testing.assert_allclose(covariance, second - np.outer(mean, mean), rtol=1e-9)


def test_a_product_agrees_with_its_factors_one_by_one() -> None:
    """Margins of the joint table are the one-way estimates up to rounding (64-bit weights)."""
    rng = random.Random(404)
    for sizes in ((2, 3), (2, 2, 2)):
        factors = tuple(table(rng, a, a + 1) for a in sizes)
        mechanism = ProductMechanism(factors)
        counts = [rng.randrange(50) for _ in range(mechanism.reports)]
        joint = np.array(estimate(mechanism, counts).unbiased, dtype=float).reshape(sizes)
        cube = np.array(counts).reshape([f.reports for f in factors])
        for j, factor in enumerate(factors):
            other_axes = tuple(i for i in range(len(sizes)) if i != j)
            alone = estimate(factor, [int(v) for v in cube.sum(axis=other_axes)]).unbiased
            np.testing.assert_allclose(
                joint.sum(axis=other_axes), np.array(alone, dtype=float), rtol=1e-9, atol=1e-9
            )


def test_a_deficient_product_estimates_its_identifiable_targets() -> None:
    deficient = DenseMechanism(4, ((12, 4), (4, 12), (4, 12)))
    mechanism = ProductMechanism((deficient, DenseMechanism(4, ((12, 4), (4, 12)))))
    targets = [[1, 0, 0, 0, 0, 0], [0, 0, 1, 0, 1, 0], [0, 0, 1, 0, 0, 0]]
    result = estimate(mechanism, [300, 100, 200, 400], targets=targets)
    assert result.rank == 4
    # By hand, rows are decoded by [1.5, −.5; −.5, 1.5] on both sides.
    first = (2.25 * 300 - 0.75 * 100 - 0.75 * 200 + 0.25 * 400) / 1000
    second = (-0.75 * 300 + 0.25 * 100 + 2.25 * 200 - 0.75 * 400) / 1000
    assert result.unbiased[:2] == pytest.approx((first, second))
    assert result.unbiased[2] is None


def test_counts_of_sets_merge_by_addition() -> None:
    first, second = SetCounts.of_symbols(3, {0b101: 2}), SetCounts.of_symbols(3, {0b011: 1, 0: 4})
    assert first + second == SetCounts.of_symbols(3, {0b101: 2, 0b011: 1, 0: 4})
    assert (first + second).pairs == ((3, 1, 2), (1, 1, 0), (2, 0, 2))


def test_vectors_are_counted_as_their_masks_are() -> None:
    vectors = np.random.default_rng(6).integers(0, 2, (1000, 5), dtype=np.uint8)
    masks: dict[int, int] = {}
    for row in vectors:
        mask = sum(1 << x for x, bit in enumerate(row) if bit)
        masks[mask] = masks.get(mask, 0) + 1
    counted, expected = SetCounts.of_vectors(vectors), SetCounts.of_symbols(5, masks)
    assert (counted.n, counted.pairs) == (expected.n, expected.pairs)


def test_an_impossible_sum_of_bits_is_flagged() -> None:
    mechanism = UnaryMechanism(10, 4, 512, 200)
    honest = SetCounts(
        1000,
        tuple(
            tuple(
                500 if x == z == 0 else 195 if x == z else 98 if 0 in (x, z) else 38
                for z in range(4)
            )
            for x in range(4)
        ),
    )
    stuffed = SetCounts(1000, ((600,) * 4,) * 4)
    assert (estimate(mechanism, honest).fit_p or 0) > 0.01
    assert "reports_do_not_fit" in estimate(mechanism, stuffed).flags


BAD: dict[str, tuple[Any, Any, str]] = {
    "not square": (5, ((1, 2), (2,)), "counts.pairs[0]"),
    "more than n": (5, ((6, 0), (0, 0)), "counts.pairs[0]"),
    "negative": (5, ((1, -1), (-1, 0)), "counts.pairs[0]"),
    "not symmetric": (5, ((3, 1), (2, 3)), "counts.pairs[0]"),
    "a pair more often than its member": (5, ((1, 2), (2, 3)), "counts.pairs[0]"),
    "n a float": (5.0, ((1, 0), (0, 1)), "counts.n"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_counts_of_sets(name: str) -> None:
    n, pairs, field = BAD[name]
    assert code_and_field(InvalidInput, SetCounts, n, pairs) == ("counts_invalid", field)


def test_counts_belong_to_their_kind() -> None:
    unary = UnaryMechanism(4, 3, 8, 4)
    for mechanism, counts in ((unary, [1, 2]), (unary, SetCounts(1, ((1, 0), (0, 0)))),
                              (table(random.Random(1), 2, 2), SetCounts(0, ((0, 0), (0, 0))))):  # fmt: skip
        assert refusal(InvalidInput, estimate, mechanism, counts).code == "counts_invalid"
