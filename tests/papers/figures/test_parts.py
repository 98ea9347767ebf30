# SPDX-License-Identifier: Apache-2.0
"""Functions behind the figures, compared with independent computations."""

import hashlib
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from frankly_design.notions.prior import Prior
from frankly_design.tables import objectives

from papers import channel
from papers.draws import jeffreys, normalised, sample, uniforms
from papers.figure import Check, Row, Rows, average, quartiles
from papers.lift_common import Measures
from papers.robust_common import IR, POLYOPT, POLYOPT_PRINTED, SRR, Estimate
from papers.thesis import largest_variance, least_delta, open_threshold, printed_threshold

RNG = np.random.default_rng(4)


def variance_66(p00: float, p11: float, pi: float) -> float:
    """Return (6.6) as printed in the thesis, for n = 1."""
    k = p00 + p11 - 1
    return (0.25 - (p00 - 0.5 - pi * k) ** 2) / k**2


@pytest.mark.parametrize("values", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("k", [-3.0, -0.5, 0.0, 1.1, 4.0])
def test_the_least_delta_by_all_sets_of_reports(values: int, epsilon: float, k: float) -> None:
    odds, E = Fraction(math.exp(k)), Fraction(math.exp(epsilon))
    rows = [
        [(odds if x == y else Fraction(1)) / (odds + values - 1) for y in range(values)]
        for x in range(values)
    ]
    worst = max(
        sum((rows[x][y] - E * rows[z][y] for y in range(values) if chosen[y]), Fraction(0))
        for chosen in product((False, True), repeat=values) for x, z in product(range(values), repeat=2)
    )  # fmt: skip
    assert least_delta(math.exp(k), epsilon, values) == pytest.approx(float(worst), abs=1e-12)


@pytest.mark.parametrize(
    ("p00", "p11"), [(0.9, 0.9), (1.0, 0.3), (1.0, 0.8), (0.6, 0.95), (0.75, 0.5)]
)
def test_the_largest_variance_equals_that_of_a_grid(p00: float, p11: float) -> None:
    grid = [variance_66(p00, p11, pi) for pi in np.linspace(0, 1, 20_001)]
    assert largest_variance(p00, p11, 1.0) == pytest.approx(max(grid), rel=1e-6)
    # Without sampling, given the truths, only the noise of each report remains.
    k = p00 + p11 - 1
    noise = [p00 * (1 - p00) / k**2, p11 * (1 - p11) / k**2]
    assert largest_variance(p00, p11, 0.0) == pytest.approx(max(noise), abs=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.2), (1.0, 0.4), (0.5, 0.3), (1.5, 0.45)])
def test_the_thresholds_are_where_the_variances_cross(epsilon: float, delta: float) -> None:
    E = math.exp(epsilon)
    even = (E + delta) / (E + 1)
    for threshold, uneven in (
        (printed_threshold(epsilon, delta), (1 + (delta - 0.5) / E, 0.5)),
        (open_threshold(epsilon, delta), (1.0, delta)),
    ):
        below, above = (
            variance_66(*uneven, v) - variance_66(even, even, v)
            for v in (threshold - 1e-3, threshold + 1e-3)
        )
        assert below < 0 < above


def test_information_of_a_table_and_of_a_unary_encoding() -> None:
    keep, flip = 0.5, 0.2
    p = np.array([0.1, 0.2, 0.3, 0.4])
    reports = list(product((0, 1), repeat=4))
    chances = [[keep if i == x else flip for i in range(4)] for x in range(4)]
    Q = np.array([[math.prod(c if b else 1 - c for c, b in zip(row, bits, strict=True)) for bits in reports]
                  for row in chances])  # fmt: skip
    joint = p[:, None] * Q
    expected = float((joint * np.log(joint / np.outer(p, joint.sum(axis=0)))).sum())
    assert channel.information(Q, p) == pytest.approx(expected, abs=1e-14)
    assert channel.unary_information(keep, flip, p) == pytest.approx(expected, abs=1e-12)
    weights = [[3, 1, 0], [0, 2, 2], [1, 1, 2]]
    counts = (5, 0, 7)
    exact = objectives.information(weights, counts)
    assert channel.information(np.array(weights) / 4, np.array(counts) / 12) == pytest.approx(
        exact, abs=1e-14
    )


def test_uniforms_are_the_bits_of_the_hash() -> None:
    raw = hashlib.shake_256(b"a seed").digest(24)
    expected = [
        ((int.from_bytes(raw[i : i + 8], "little") >> 11) + 0.5) / 2**53 for i in (0, 8, 16)
    ]
    assert uniforms("a seed", 3).tolist() == expected
    assert uniforms("a seed", 3).tolist() != uniforms("another", 3).tolist()


def test_draws_have_the_distributions_they_are_named_after() -> None:
    drawn = np.array([cells.ravel() for cells in jeffreys(2, 3, "test", 3000)])
    assert np.allclose(drawn.sum(axis=1), 1)
    # Dirichlet(½ … ½) over k cells has mean 1/k and variance (1/k)(1 − 1/k)/(k/2 + 1).
    assert np.allclose(drawn.mean(axis=0), 1 / 6, atol=5 * math.sqrt(5 / 144 / 3000))
    assert np.allclose(drawn.var(axis=0), 5 / 36 / 4, rtol=0.15)
    priors = list(normalised(2, 3, "test", 50))
    cells = np.array([np.array(prior.joint) / np.max(prior.joint) for prior in priors])
    assert len({prior.joint for prior in priors}) == 50
    assert 0.4 < cells.mean() < 0.8
    truth = np.array([[0.5, 0.25], [0.25, 0.0]])
    counts = np.array(sample(truth, 40_000, "people"))
    assert counts.sum() == 40_000
    assert counts[1, 1] == 0
    assert np.allclose(counts / 40_000, truth, atol=5 * 0.5 / 200)


def test_lift_figures_of_a_mechanism() -> None:
    joint, weights = [[30, 10, 5], [5, 20, 30]], [[3, 1], [1, 3], [2, 2]]
    figures = Measures.of(weights, Prior.from_rows(joint))
    P, Q = np.array(joint) / 100, np.array(weights) / 4
    lift = (P @ Q) / P.sum(axis=1, keepdims=True) / (P.sum(axis=0) @ Q)
    both = P.sum(axis=0)[:, None] * Q
    p, sent = P.sum(axis=0), both.sum(axis=0)
    information = float((both * np.log(both / np.outer(p, sent))).sum())
    assert figures.largest == pytest.approx(math.log(lift.max()))
    assert figures.least == pytest.approx(math.log(lift.min()))
    assert figures.utility == pytest.approx(information / -float(p @ np.log(p)))


def test_summaries_of_draws() -> None:
    values = RNG.normal(size=37).tolist()
    mean = average("a", "c", 1.0, [*values, math.inf])
    assert mean.y == pytest.approx(np.mean(values))
    assert mean.high is not None
    assert mean.high - mean.y == pytest.approx(np.std(values, ddof=1))
    assert (mean.least, mean.most) == (min(values), max(values))
    box = quartiles("a", "c", 1.0, values)
    assert [box.low, box.y, box.high] == pytest.approx(list(np.quantile(values, [0.25, 0.5, 0.75])))
    assert quartiles("a", "c", 1.0, [2.0]).y == 2.0


def test_robust_mechanisms_of_an_estimate() -> None:
    estimate = Estimate(((300, 200), (150, 350)))
    E = 2.0
    level = Fraction(math.log(E)).limit_denominator(10**6)
    row = estimate.table(SRR, level, 10)[0]
    total = E + 1 / E + 2
    assert row == pytest.approx([E / total, 1 / E / total, 1 / total, 1 / total], rel=1e-5)
    best, printed, split = (
        estimate.utility(estimate.table(name, level, 500))
        for name in (POLYOPT, POLYOPT_PRINTED, IR)
    )
    assert best >= printed - 1e-3
    assert best >= split - 1e-3
    assert 0 < split < 1


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (Check.near("x", 0.51, 0.5, 0.02), "paper 0.5 (± 0.02), here 0.51: agrees"),
        (Check.near("x", 0.53, 0.5, 0.02), "here 0.53: differs"),
        (Check.near("x", 0.53, 0.5, 0.02, expected=False), "differs (as the errata say)"),
        (Check.near("x", 0.5, 0.5, 0.02, expected=False), "agrees (the errata say it should not)"),
        (Check("x", 0.5), "here 0.5: not decided"),
    ],
)
def test_the_text_of_a_check(check: Check, words: str) -> None:
    assert words in check.line()


def test_one_curve_below_another() -> None:
    rows = Rows(
        [Row("a", "low", x, y) for x, y in ((1, 1.0), (2, 3.0), (3, 0.0))]
        + [Row("a", "high", x, 2) for x in (1, 2)]
    )
    check = rows.ordered("low is below high", "a", "low", "high")
    assert (check.ours, check.holds) == (0.5, False)
    assert rows.ordered("with slack", "a", "low", "high", slack=1).holds
    assert math.isnan(rows.y("a", "high", 3))


def test_the_error_of_a_mean() -> None:
    values = RNG.normal(size=25).tolist()
    rows = Rows([average("a", "mean", 1.0, values), Row("a", "alone", 1.0, 2.0)], draws=25)
    assert rows.error("a", "mean", 1.0) == pytest.approx(np.std(values, ddof=1) / 5)
    assert rows.error("a", "alone", 1.0) == rows.error("a", "nothing", 1.0) == 0.0
