# SPDX-License-Identifier: Apache-2.0
"""Reports that are sets: likeliest shares, efficiency and fit, checked by enumeration and simulation."""

from fractions import Fraction
from itertools import combinations, pairwise
from math import exp, lgamma
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate import Joint, SetCounts, estimate
from frankly_design.estimate.estimator import evidence_of, nothing_yet
from frankly_design.estimate.pooling import kl_ends
from frankly_design.kinds.decoder import shares
from frankly_design.kinds.registry import kind_of
from frankly_design.kinds.set_fit import _covariance
from frankly_protocol.mechanisms import SubsetMechanism, UnaryMechanism

from tests.frankly_design.maths import grid
from tests.narrowing import present

BITS = 16
OUE = UnaryMechanism(BITS, 4, 1 << (BITS - 1), round(2**BITS / (exp(1) + 1)))
HALF = SubsetMechanism(BITS, 4, 2, round(2**BITS * exp(1) / (exp(1) + 1)))
WIDE = SubsetMechanism(BITS, 6, 2, round(2**BITS * 0.7))
KINDS: dict[str, Any] = {"unary": OUE, "subset": HALF, "subset of six": WIDE}
P = {4: np.array([0.6, 0.25, 0.15, 0.0]), 6: np.array([0.4, 0.3, 0.1, 0.1, 0.1, 0.0])}


def law(mechanism: Any) -> tuple[list[int], np.ndarray]:
    symbols = list(mechanism.symbols())
    Q = np.array(
        [[float(mechanism.probability(y, x)) for y in symbols] for x in range(mechanism.answers)]
    )
    return symbols, Q / Q.sum(axis=1, keepdims=True)


def drawn(
    mechanism: Any, p: np.ndarray, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, SetCounts]:
    symbols, Q = law(mechanism)
    counts = rng.multinomial(n, p @ Q)
    symbol_counts = {y: int(c) for y, c in zip(symbols, counts, strict=True) if c}
    return counts, SetCounts.of_symbols(mechanism.answers, symbol_counts)


def fit_of(mechanism: Any, tally: SetCounts) -> float | None:
    return evidence_of(mechanism, tally, shares(mechanism.answers), None).fit(None)


@pytest.mark.parametrize("name", ["unary", "subset"])
def test_no_grid_point_is_likelier(name: str) -> None:
    mechanism, rng, points = KINDS[name], np.random.default_rng(1), grid(4, 20)
    _, Q = law(mechanism)
    for n in (30, 3000):
        counts, tally = drawn(mechanism, P[4], n, rng)
        result = estimate(mechanism, tally)
        assert result.mle_gap is not None
        best = np.array(result.mle, dtype=float)
        assert best.sum() == pytest.approx(1)
        assert best.min() >= 0

        def mean_log(p: np.ndarray, counts: np.ndarray = counts, n: int = n) -> np.ndarray:
            return np.asarray(np.log(p @ Q) @ counts / n)

        assert mean_log(points).max() <= mean_log(best) + result.mle_gap / n + 1e-12


def test_sets_without_information_do_not_change_the_estimate() -> None:
    """With flip = 0, every answer sends the empty set with the same probability, one half."""
    mechanism = UnaryMechanism(4, 3, 8, 0)
    result = estimate(mechanism, SetCounts.of_symbols(3, {0: 40, 1: 20, 2: 15, 4: 5}))
    assert result.mle == pytest.approx((0.5, 0.375, 0.125), abs=1e-6)


@pytest.mark.parametrize("name", KINDS)
def test_efficiency_is_the_fisher_bound_of_all_symbols(name: str) -> None:
    mechanism, rng = KINDS[name], np.random.default_rng(2)
    _, Q = law(mechanism)
    result = estimate(mechanism, drawn(mechanism, P[mechanism.answers], 5000, rng)[1])
    p = np.array(result.projected, dtype=float)
    # The information is in the free coordinates of shares that sum to one; the last share is 1
    # minus the others.
    free = Q[:-1] - Q[-1]
    bound = np.linalg.inv((free / (p @ Q)) @ free.T)
    symbols = np.array(law(mechanism)[0])
    q = np.array([[float(mechanism.probability(y, x)) for y in symbols] for x in range(len(p))])
    held = (symbols >> 0) & 1
    q1, q0 = q[0] @ held, q[1] @ held
    score = (held - q0) / (q1 - q0)
    sizes = np.array([int(y).bit_count() for y in symbols])
    score += (1 - (sizes - len(p) * q0) / (q1 - q0)) / len(p)
    variance = (p @ q) @ score**2 - p[0] ** 2
    assert result.efficiency[0] == pytest.approx(bound[0, 0] / variance, rel=1e-6)


@pytest.mark.parametrize("name", KINDS)
def test_the_covariance_of_pairs_equals_that_of_all_symbols(name: str) -> None:
    mechanism = KINDS[name]
    a, p = mechanism.answers, P[mechanism.answers]
    symbols, Q = law(mechanism)
    groups = [(x,) for x in range(a)] + [(x, z) for x in range(a) for z in range(x + 1, a)]
    held = np.array(
        [[all(y >> x & 1 for x in group) for y in symbols] for group in groups], dtype=float
    )
    mean = held @ (p @ Q)
    expected = (held * (p @ Q)) @ held.T - np.outer(mean, mean)
    members = np.array([[float(x in group) for x in range(a)] for group in groups])
    np.testing.assert_allclose(_covariance(kind_of(mechanism), members, p), expected, atol=1e-12)


@pytest.mark.parametrize("name", KINDS)
def test_honest_sets_rarely_raise_an_alarm_and_attacks_do(name: str, full: bool) -> None:
    """At most 1% of honest surveys are flagged, and at least 95% if 5% of reports are the same fake set."""
    mechanism, rng, n = KINDS[name], np.random.default_rng(3), 20_000
    p, runs, symbols = P[mechanism.answers], 2000 if full else 100, law(mechanism)[0]
    best = 0b0001 if name == "unary" else 0b0011  # all sets with answer 0 raise this share equally
    alarms, detected, uniform, counts = 0, 0, [], SetCounts.of_symbols(mechanism.answers, {})
    for _ in range(runs):
        fit = fit_of(mechanism, drawn(mechanism, p, n, rng)[1])
        assert fit is not None
        uniform.append(fit)
        alarms += fit < 0.001
        attacked = drawn(mechanism, p, n - n // 20, rng)[0]
        attacked[symbols.index(best)] += n // 20
        counts = SetCounts.of_symbols(
            mechanism.answers, dict(zip(symbols, map(int, attacked), strict=True))
        )
        detected += (fit_of(mechanism, counts) or 0) < 0.001
    assert "reports_do_not_fit" in estimate(mechanism, counts).flags
    assert alarms / runs <= 0.01
    assert detected / runs >= 0.95
    # A p-value is below ½ in half of the surveys; twice the smaller of two p-values (unary) is
    # below ½ in 1 − (¾)².
    below_half = 1 - 0.75**2 if name == "unary" else 0.5
    assert np.mean(np.array(uniform) < 0.5) == pytest.approx(below_half, abs=4 * 0.5 / runs**0.5)


@pytest.mark.parametrize(
    ("mechanism", "testable"),
    [
        (
            SubsetMechanism(BITS, 4, 1, 50000),
            False,
        ),  # randomised response has as many reports as answers
        (SubsetMechanism(BITS, 3, 2, 60000), False),
        (HALF, True),
        (OUE, True),
        (SubsetMechanism(BITS, 40, 20, 45000), True),  # pairs among the 24 most frequent answers
    ],
)
def test_mechanisms_without_spare_degrees_of_freedom_have_no_fit(
    mechanism: Any, testable: bool
) -> None:
    rng = np.random.default_rng(4)
    truths = rng.integers(0, mechanism.answers, 400)
    draws: dict[int, int] = {}
    for truth in truths:
        y = mechanism.sample(
            int(truth), lambda k: int.from_bytes(rng.bytes(k // 8 + 1), "big") & ((1 << k) - 1)
        )
        draws[y] = draws.get(y, 0) + 1
    fit = estimate(mechanism, SetCounts.of_symbols(mechanism.answers, draws)).fit_p
    assert (fit is not None) == testable
    assert fit is None or fit > 1e-4


def test_sets_that_cannot_differ_in_size_fit_only_if_they_do_not() -> None:
    """Every honest report is a set of one answer, so 200 sets must contain 200 answers."""
    mechanism = UnaryMechanism(4, 3, 16, 0)
    assert fit_of(mechanism, SetCounts.of_symbols(3, {0b001: 150, 0b010: 50})) == 1
    assert fit_of(mechanism, SetCounts.of_symbols(3, {0b001: 150, 0b011: 50})) == 0


def test_pairs_with_few_expected_differences_are_not_tested() -> None:
    """Each set contains 8 of 10 answers, so a pair is incomplete in about four of 10 sets, which is
    below five."""
    mechanism, rng = SubsetMechanism(BITS, 10, 8, 60_000), np.random.default_rng(10)
    for n, testable in ((10, False), (200, True)):
        vectors = np.ones((n, 10), dtype=np.uint8)
        for vector in vectors:
            vector[rng.choice(10, 2, replace=False)] = 0
        assert (fit_of(mechanism, SetCounts.of_vectors(vectors)) is not None) is testable


def test_counts_of_pairs_suffice_for_all_but_the_likeliest_shares() -> None:
    _, tally = drawn(OUE, P[4], 2000, np.random.default_rng(5))
    from_symbols, from_pairs = estimate(OUE, tally), estimate(OUE, SetCounts(tally.n, tally.pairs))
    assert from_pairs.unbiased == from_symbols.unbiased
    assert from_pairs.se == from_symbols.se
    assert from_symbols.mle[0] is not None
    assert from_pairs.mle == (None,) * 4
    assert from_pairs.mle_gap is None
    assert (from_pairs.fit_p or 0) == pytest.approx(from_symbols.fit_p, abs=0.05)


@pytest.mark.parametrize("answers", [2, 3, 5])
def test_one_way_estimates_equal_those_of_the_block_in_a_joint_table(answers: int) -> None:
    """The exact figures of one block are the same from its own evidence and from a joint table of
    this block alone."""
    mechanism = UnaryMechanism(BITS, answers, 1 << (BITS - 1), 20_000)
    rng = np.random.default_rng(8)
    symbols = {int(y): int(rng.integers(1, 40)) for y in mechanism.symbols()}
    targets = (*shares(answers), tuple(Fraction(x % 3 - 1, 2) for x in range(answers)))
    alone = evidence_of(mechanism, SetCounts.of_symbols(answers, symbols), targets, None)
    table = evidence_of(Joint((mechanism,)), {(y,): n for y, n in symbols.items()}, targets, None)
    assert alone.exact == table.exact
    assert sum(present(share) for share in alone.exact[:answers]) == 1
    p = np.arange(1.0, answers + 1) / (answers * (answers + 1) / 2)
    for ours, theirs in (
        (alone.moment(), table.moment()),
        (alone.spread(), table.spread()),
        (alone.truth_moments(), table.truth_moments()),
        (alone.moment_at(p), table.moment_at(p)),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert alone.ends()[:answers] == table.ends()[:answers]


@pytest.mark.parametrize(
    ("answers", "of_bits", "of_all"), [(2, 8.865, 4.683), (4, 16.48, 12.55), (16, 60.86, 57.12)]
)
def test_knowing_that_one_answer_is_true_saves_variance(
    answers: int, of_bits: float, of_all: float
) -> None:
    """With n = 1 and even shares, the saving is the variance of Σb − 1, divided by the number of answers."""
    mechanism = UnaryMechanism(48, answers, 1 << 47, round(2**48 / (exp(1) + 1)))
    nothing = nothing_yet(mechanism, shares(answers), None)
    p = np.full(answers, 1 / answers)
    q1, q0 = 0.5, 1 / (exp(1) + 1)
    rate = q0 + (q1 - q0) / answers
    bits = answers * rate * (1 - rate) / (q1 - q0) ** 2
    lacking = (q1 * (1 - q1) + (answers - 1) * q0 * (1 - q0)) / (q1 - q0) ** 2
    assert bits == pytest.approx(of_bits, rel=2e-3)
    total = float(np.trace(nothing.moment_at(p)) - p @ p)
    assert total == pytest.approx(bits - lacking / answers)
    assert total == pytest.approx(of_all, rel=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 4])
def test_guaranteed_intervals_of_a_bit_cover_the_truth_and_contain_the_estimate(
    epsilon: int,
) -> None:
    """The intervals of all outcomes of 12 reports cover the truth and contain the estimate."""
    n, mechanism = 12, UnaryMechanism(BITS, 2, 1 << (BITS - 1), round(2**BITS / (exp(epsilon) + 1)))
    _, Q = law(mechanism)
    truths, covered = (
        np.linspace(0, 1, 41),
        dict.fromkeys(("exact", "kl", "sequence"), np.zeros(41)),
    )
    widened = 0
    for cuts in combinations(range(n + 3), 3):
        places = (-1, *cuts, n + 3)
        counts = [b - a - 1 for a, b in pairwise(places)]
        result = estimate(mechanism, SetCounts.of_symbols(2, dict(enumerate(counts))))
        ways = exp(lgamma(n + 1) - sum(lgamma(c + 1) for c in counts))
        chance = ways * np.prod([(p * Q[0] + (1 - p) * Q[1]) ** counts for p in truths], axis=1)
        estimate_shown = result.unbiased[0] or 0.0
        for method in covered:
            low, high = getattr(result.margins, method)[0]
            # The estimate is clipped to [0, 1], unless the interval contains only impossible
            # values.
            value = min(max(estimate_shown, 0.0), 1.0) if low <= 1 and high >= 0 else estimate_shown
            assert low <= value <= high
            widened += value in (low, high) and 0 < value < 1
            covered[method] = covered[method] + chance * ((low <= truths) & (truths <= high))
    assert widened, "some outcome must need a widened interval"
    for method, shares_covered in covered.items():
        assert shares_covered.min() >= 0.95 - 1e-9, method


def test_a_sum_of_single_bits_is_widened_to_the_sum_of_the_estimates() -> None:
    """Half of the reports contain all answers: one bit suggests a share far above 1, all bits
    suggest equal shares."""
    quarter = tuple(tuple(w / 2 for w in row) for row in shares(4))
    versions = [
        evidence_of(OUE, SetCounts.of_symbols(4, {mask: 400}), quarter, None)
        for mask in (0b1111, 0b0001)
    ]
    total = [
        float(a or 0) + float(b or 0)
        for a, b in zip(*(part.exact for part in versions), strict=True)
    ]
    for value, pair in zip(total, kl_ends(versions, 0.95), strict=True):
        assert pair is not None
        low, high = pair
        assert low <= (min(max(value, 0.0), 1.0) if low <= 1 and high >= 0 else value) <= high


def test_sets_without_noise_have_one_size_and_any_other_does_not_fit() -> None:
    """Every report contains all answers except the true one: two of three."""
    complement = UnaryMechanism(4, 3, 0, 16)
    for symbols, fits in (({0b011: 5, 0b101: 3}, True), ({0b011: 5, 0b100: 3}, False)):
        fit_p = estimate(complement, SetCounts.of_symbols(3, symbols)).fit_p
        assert fit_p is not None
        assert (fit_p > 0.01) is fits


def test_the_least_of_several_p_values_never_counts_more_than_one() -> None:
    """Expected counts fit in every test, so their p-value times the number of tests would exceed 1."""
    mechanism, truth = UnaryMechanism(4, 3, 12, 4), (1 / 2, 1 / 4, 1 / 4)
    symbols = {
        y: round(2**20 * sum(p * float(mechanism.probability(y, x)) for x, p in enumerate(truth)))
        for y in range(8)
    }
    assert estimate(mechanism, SetCounts.of_symbols(3, symbols)).fit_p == 1.0
