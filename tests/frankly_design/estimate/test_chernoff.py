# SPDX-License-Identifier: Apache-2.0
"""Chernoff bounds, compared with linear programmes, closed forms and the enumeration of all outcomes."""

import random
from fractions import Fraction
from functools import reduce
from itertools import product
from math import comb, exp, inf, log, sqrt
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate import chernoff, estimate
from frankly_design.estimate.estimator import evidence_of
from frankly_design.estimate.pooling import kl_ends
from frankly_design.kinds.decoder import Targets, decoder, shares
from frankly_design.kinds.scores import Score, ScoreLaw, TwoValues
from frankly_protocol.mechanisms import DenseMechanism
from scipy import optimize, special, stats

from tests.frankly_design.estimate.published import ORDINARY, SKEWED, tallies
from tests.frankly_design.maths import random_mechanism

TABLES = (SKEWED, ORDINARY)


def law_by_hand(mechanism: DenseMechanism, targets: Targets) -> tuple[np.ndarray, np.ndarray]:
    """Return (Q, V) from the exact decoder."""
    rows = [
        [float(v) for v in row] for row in decoder(mechanism, targets, None).rows if row is not None
    ]
    return np.array(mechanism.weights) / mechanism.denominator, np.array(rows)


def worst_moment(moments: np.ndarray, w: np.ndarray, theta: float) -> float:
    """Return max Σ p M over shares with Σ p w = θ, as a linear programme; −inf if there are none."""
    solution = optimize.linprog(
        -moments, A_eq=np.vstack([np.ones_like(w), w]), b_eq=[1, theta], bounds=(0, 1)
    )
    return -solution.fun if solution.status == 0 else -inf


def worst_by_pairs(moments: np.ndarray, w: np.ndarray, theta: float) -> np.ndarray:
    """Return the same for each row of `moments` (one per λ), using that at most two shares are positive."""
    best = np.where(np.isclose(w, theta), moments, -inf).max(axis=1)
    for i, j in product(range(len(w)), repeat=2):
        if w[i] < theta < w[j]:
            t = (theta - w[i]) / (w[j] - w[i])
            best = np.maximum(best, (1 - t) * moments[:, i] + t * moments[:, j])
    return np.asarray(best)


def weights(rng: random.Random, answers: int) -> Targets:
    return (*shares(answers), tuple(Fraction(rng.randrange(-3, 4)) for _ in range(answers)))


def test_the_envelope_is_the_linear_programme() -> None:
    rng = random.Random(1)
    for answers in (2, 3, 5):
        mechanism = random_mechanism(rng, answers, rng.randrange(answers + 1, 8))
        targets = weights(rng, answers)
        Q, V = law_by_hand(mechanism, targets)
        evidence = evidence_of(mechanism, [3] * mechanism.reports, targets, None)
        for w, v, score in zip(evidence.W, V, evidence.scores(), strict=True):
            if score.law is None or np.ptp(v) == 0:
                continue
            tilts = np.array([-3.0, 0.1, 2.0]) / np.ptp(v)
            envelope = chernoff.MixedMoments.of(score.law, w, score.mean, tilts)
            for theta in rng.uniform(w.min(), w.max()), float(w.max()):
                for tilt, row, shift in zip(tilts, envelope.envelope, envelope.shift, strict=True):
                    expected = worst_moment(Q @ np.exp(tilt * v), w, theta)
                    interpolated = np.interp(theta, envelope.knots, row) * exp(
                        tilt * score.mean + shift
                    )
                    assert interpolated == pytest.approx(expected, rel=1e-7)


def excluded(
    Q: np.ndarray, v: np.ndarray, w: np.ndarray, mean: float, n: int, level: float, theta: float
) -> bool:
    """Return True if some λ of a dense grid excludes a value, by the definition."""
    tilts = np.geomspace(1e-3, 1e4, 4000) / np.ptp(v) * (1 if mean > theta else -1)
    moments = np.exp(np.clip(np.outer(tilts, v - mean), -700, 700)) @ Q.T
    return bool(worst_by_pairs(moments, w, theta).min() < ((1 - level) / 2) ** (1 / n))


@pytest.mark.parametrize("n", [5, 200])
def test_ends_agree_with_the_definition(n: int) -> None:
    rng, level = random.Random(n), 0.95
    compared = 0
    for mechanism in (*TABLES, random_mechanism(rng, 3, 5), random_mechanism(rng, 4, 6)):
        targets = weights(rng, mechanism.answers)
        Q, V = law_by_hand(mechanism, targets)
        counts = [int(c) for c in np.random.default_rng(n).multinomial(n, Q[0])]
        result = estimate(mechanism, counts, targets=targets, level=level, methods=("kl",))
        for row, v, ends in zip(targets, V, result.margins.kl, strict=True):
            w, mean = np.array([float(x) for x in row]), float(v @ counts / n)
            assert ends is not None
            if np.ptp(w) == 0:
                continue
            step = 1e-3 * (ends[1] - ends[0])
            for inside, outside in (
                (ends[0] + step, ends[0] - step),
                (ends[1] - step, ends[1] + step),
            ):
                assert not excluded(Q, v, w, mean, n, level, inside), (
                    "a value inside must not be excluded"
                )
                if w.min() < outside < w.max():
                    assert excluded(Q, v, w, mean, n, level, outside), (
                        "a value outside must be excluded"
                    )
                    compared += 1
    assert compared >= 5


def test_two_values_have_the_ends_of_the_divergence() -> None:
    w = np.array([0.0, 1.0])
    for n, count in ((20, 5), (20, 9), (400, 299), (400, 300)):
        score = Score(-0.5 + 2 * count / n, (-0.5, 1.5), TwoValues((-0.5, -0.5), (1.5, 1.5), count))
        limit, q = log(2 / 0.1) / n, count / n

        def excess(rate: float, q: float = q, limit: float = limit) -> float:
            return float(special.rel_entr(q, rate) + special.rel_entr(1 - q, 1 - rate)) - limit

        low = 0.0 if q == 0 else optimize.brentq(excess, 1e-12, q)
        high = 1.0 if q == 1 else optimize.brentq(excess, q, 1 - 1e-12)
        expected = max(0.0, -0.5 + 2 * low), min(1.0, -0.5 + 2 * high)
        assert chernoff.kl(score, w, n, 0.9) == pytest.approx(expected, abs=1e-9)
        # The mechanism-aware bound, from the law as a list, is the same, because G is linear.
        law = ScoreLaw(
            np.array([-0.5, 1.5]), np.array([-0.5, 1.5]), np.array([[0.75, 0.25], [0.25, 0.75]])
        )
        aware = chernoff.kl(Score(score.mean, score.reach, None, law), w, n, 0.9)
        assert aware == pytest.approx(expected, abs=1e-4)
        assert aware[0] <= expected[0] + 1e-9
        assert expected[1] - 1e-9 <= aware[1]


def test_never_wider_than_hoeffdings_bounds() -> None:
    rng = random.Random(7)
    for _ in range(20):
        mechanism = random_mechanism(rng, 3, 5)
        counts = [rng.randrange(20) + 1 for _ in range(5)]
        evidence, n = evidence_of(mechanism, counts, shares(3), None), sum(counts)
        for w, score in zip(evidence.W, evidence.scores(), strict=True):
            aware = chernoff.kl(score, w, n, 0.95)
            range_only = chernoff.kl(Score(score.mean, score.reach), w, n, 0.95)
            half = (score.reach[1] - score.reach[0]) * sqrt(
                log(2 / 0.05) / (2 * n)
            )  # Hoeffding 1963, Thm 2
            assert range_only[0] <= aware[0] <= aware[1] <= range_only[1]
            assert (
                max(0.0, score.mean - half)
                <= range_only[0]
                <= range_only[1]
                <= min(1.0, score.mean + half)
            )


@pytest.mark.parametrize("n", [10**6, 10**9, 10**12, 10**15])
def test_many_reports_give_narrow_ends_despite_rounding(n: int) -> None:
    result = estimate(ORDINARY, [n // 4] * 4, methods=("kl",))
    for value, se, ends in zip(result.unbiased, result.se, result.margins.kl, strict=True):
        assert ends is not None
        assert value is not None
        assert se is not None
        assert ends[0] < value < ends[1]
        assert ends[1] - ends[0] < 20 * se


def ends_of_all(
    mechanism: DenseMechanism, n: int, level: float, method: str, **options: Any
) -> np.ndarray:
    """Return the interval of every share at all counts, shape (counts, answers, 2)."""
    estimates = [
        getattr(
            estimate(mechanism, counts, level=level, methods=(method,), **options).margins, method
        )
        for counts in tallies(n, mechanism.reports)
    ]
    return np.array(estimates)


def held(ends: np.ndarray, chances: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the probability that each interval contains the truth."""
    inside = (ends[..., 0] <= truth + 1e-12) & (truth - 1e-12 <= ends[..., 1])
    return np.asarray(chances @ inside)


def of_people(mechanism: DenseMechanism, people: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """Return the law of the counts if people[x] respondents have answer x, independently."""
    law = {(0,) * mechanism.reports: 1.0}
    for x, n in enumerate(people):
        for _ in range(n):
            following: dict[tuple[int, ...], float] = {}
            for counts, chance in law.items():
                for y, weight in enumerate(mechanism.weights[x]):
                    if weight:
                        key = (*counts[:y], counts[y] + 1, *counts[y + 1 :])
                        following[key] = (
                            following.get(key, 0.0) + chance * weight / mechanism.denominator
                        )
            law = following
    return law


@pytest.mark.parametrize("mechanism", TABLES)
def test_identical_draws_are_covered_at_every_truth_by_enumeration(
    mechanism: DenseMechanism,
) -> None:
    n, level = 6, 0.8
    ends, every = ends_of_all(mechanism, n, level, "kl"), list(tallies(n, mechanism.reports))
    Q = np.array(mechanism.weights) / mechanism.denominator
    for counts_of_truth in tallies(8, 3):
        p = np.array(counts_of_truth) / 8
        chances = stats.multinomial.pmf(every, n, p @ Q)
        assert held(ends, chances, p).min() >= level


@pytest.mark.parametrize("mechanism", TABLES)
def test_a_census_is_covered_for_all_people_by_enumeration(mechanism: DenseMechanism) -> None:
    n, level = 6, 0.8
    ends, every = (
        ends_of_all(mechanism, n, level, "kl", census=True),
        list(tallies(n, mechanism.reports)),
    )
    for people in tallies(n, 3):
        law = of_people(mechanism, people)
        chances = np.array([law.get(counts, 0.0) for counts in every])
        assert chances.sum() == pytest.approx(1)
        assert held(ends, chances, np.array(people) / n).min() >= level


@pytest.mark.parametrize("mechanism", TABLES)
def test_draws_without_replacement_are_covered_by_enumeration(mechanism: DenseMechanism) -> None:
    n, population, level = 4, 6, 0.8
    ends = ends_of_all(mechanism, n, level, "kl", population=population)
    every = list(tallies(n, mechanism.reports))
    laws = {people: of_people(mechanism, people) for people in tallies(n, 3)}
    for population_counts in tallies(population, 3):
        chances = np.zeros(len(every))
        for people, law in laws.items():
            drawn = reduce(
                int.__mul__, (comb(N, m) for N, m in zip(population_counts, people, strict=True))
            ) / comb(population, n)
            chances += drawn * np.array([law.get(counts, 0.0) for counts in every])
        assert chances.sum() == pytest.approx(1)
        assert held(ends, chances, np.array(population_counts) / population).min() >= level


def mixture_by_hand(
    Q: np.ndarray, v: np.ndarray, w: np.ndarray, total: float, n: int, theta: float
) -> float:
    """Return Σ_λ weight·exp(λ·total)/G(λ, θ)^n from the definition."""
    sizes = np.geomspace(2.0**-13, 2.0**6, 39)
    weight = 1 / (1 + (np.log2(sizes / 0.5) / 3) ** 2)
    tilts = np.concatenate([-sizes, sizes]) / np.ptp(v)
    worst = worst_by_pairs(np.exp(np.outer(tilts, v)) @ Q.T, w, theta)
    return float(np.tile(weight / weight.sum() / 2, 2) @ np.exp(tilts * total - n * np.log(worst)))


@pytest.mark.parametrize("mechanism", TABLES)
def test_each_end_of_a_sequence_is_where_the_mixture_reaches_its_limit(
    mechanism: DenseMechanism,
) -> None:
    counts = [40, 60, 30, 20]
    Q, V = law_by_hand(mechanism, shares(3))
    result = estimate(mechanism, counts, methods=("sequence",))
    reached = 0
    for x, (value, ends) in enumerate(zip(result.unbiased, result.margins.sequence, strict=True)):
        assert ends is not None
        assert value is not None
        assert ends[0] < value < ends[1]
        for end in ends:
            if 0 < end < 1:
                limit = mixture_by_hand(Q, V[x], np.eye(3)[x], float(V[x] @ counts), 150, end)
                assert limit == pytest.approx(20, rel=1e-4)
                reached += 1
            else:
                assert mixture_by_hand(Q, V[x], np.eye(3)[x], float(V[x] @ counts), 150, end) <= 20
    assert reached >= 4


@pytest.mark.parametrize("mechanism", TABLES)
def test_the_mixture_of_a_target_of_three_weights_equals_that_of_the_definition(
    mechanism: DenseMechanism,
) -> None:
    """The test uses values at and between the target's weights, for 1 and for 20 reports."""
    targets = (tuple(Fraction(w) for w in (0, 1, 3)),)
    Q, (v,) = law_by_hand(mechanism, targets)
    counts, w = [40, 60, 30, 20], np.array([0.0, 1.0, 3.0])
    (score,) = evidence_of(mechanism, counts, targets, None).scores()
    assert score.law is not None
    sizes = np.geomspace(2.0**-13, 2.0**6, 39)
    tilts = np.concatenate([-sizes, sizes]) / np.ptp(v)
    envelope = chernoff.MixedMoments.of(score.law, w, score.mean, tilts)
    points = np.array([0.0, 0.4, 1.0, 1.7, 2.9, 3.0])
    for n in (1, 20):
        total = score.mean * n
        expected = [log(mixture_by_hand(Q, v, w, total, n, point)) for point in points]
        assert envelope.mixture(points, n) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("mechanism", TABLES)
def test_the_mixture_is_worth_at_most_one_at_every_truth_by_enumeration(
    mechanism: DenseMechanism,
) -> None:
    """The test checks Ville's condition E[mixture] ≤ 1 for one report and for three reports."""
    Q, V = law_by_hand(mechanism, shares(3))
    for eighths, x in product(tallies(4, 3), range(3)):
        p, w, v = np.array(eighths) / 4, np.eye(3)[x], V[x]
        chances = p @ Q
        for n in (1, 3):
            mean = 0.0
            for symbols in product(range(4), repeat=n):
                total = float(v[list(symbols)].sum())
                mean += float(np.prod(chances[list(symbols)])) * mixture_by_hand(
                    Q, v, w, total, n, float(p[x])
                )
            assert mean <= 1 + 1e-9


def test_a_sequence_from_the_range_alone_contains_the_sequence_from_the_law() -> None:
    evidence = evidence_of(ORDINARY, [40, 60, 30, 20], shares(3), None)
    for w, score in zip(evidence.W, evidence.scores(), strict=True):
        aware = chernoff.sequence(score, w, 150, 0.95)
        range_only = chernoff.sequence(Score(score.mean, score.reach), w, 150, 0.95)
        assert range_only[0] <= aware[0] < aware[1] <= range_only[1]
        # The interval for a single look is narrower than that for any number of looks.
        alone = chernoff.kl(score, w, 150, 0.95)
        assert aware[0] < alone[0] < alone[1] < aware[1]


def test_reports_that_no_truth_explains_have_ends_outside_the_possible_range() -> None:
    result = estimate(ORDINARY, [0, 0, 0, 500])
    assert any(value is not None and value > 1.2 for value in result.unbiased)
    for method in ("kl", "sequence"):
        last = getattr(result.margins, method)[2]
        assert last[0] > 1
        assert last[0] < result.unbiased[2] <= last[1]


@pytest.mark.parametrize(
    "second_table", [ORDINARY, DenseMechanism(4, ((9, 4, 3, 0), (2, 13, 1, 0), (1, 3, 4, 8)))]
)
def test_a_pooled_sum_is_covered_for_all_truths_by_enumeration(
    second_table: DenseMechanism,
) -> None:
    """Two versions of 2 and 3 reports have different truths; the target is the mean over all 5
    respondents."""
    level, tables, sizes = 0.8, (SKEWED, second_table), (2, 3)
    every = [list(tallies(n, 4)) for n in sizes]
    scaled = [
        tuple(tuple(w * n / 5 for w in row) for row in shares(3)) for n in map(Fraction, sizes)
    ]
    evidence = [
        [evidence_of(table, list(counts), targets, None) for counts in scores]
        for table, targets, scores in zip(tables, scaled, every, strict=True)
    ]
    ends = np.array(
        [[kl_ends([first, second], level) for second in evidence[1]] for first in evidence[0]]
    )
    truths = [np.array(halves) / 2 for halves in tallies(2, 3)]
    for p, q in product(truths, truths):
        chances = [
            stats.multinomial.pmf(scores, n, shares_of @ (np.array(table.weights) / 16))
            for scores, n, shares_of, table in zip(every, sizes, (p, q), tables, strict=True)
        ]
        truth = (2 * p + 3 * q) / 5
        inside = (ends[..., 0] <= truth + 1e-12) & (truth - 1e-12 <= ends[..., 1])
        assert np.einsum("i,j,ijx->x", *chances, inside).min() >= level


def test_one_part_or_two_equal_halves_have_the_ends_of_all_reports() -> None:
    counts = [40, 60, 30, 20]
    doubled = evidence_of(ORDINARY, [2 * c for c in counts], shares(3), None)
    half = tuple(tuple(w / 2 for w in row) for row in shares(3))
    halves = [evidence_of(ORDINARY, counts, half, None)] * 2
    for single, two, w, score in zip(
        kl_ends([doubled], 0.95), kl_ends(halves, 0.95), doubled.W, doubled.scores(), strict=True
    ):
        assert single is not None
        alone = chernoff.kl(score, w, 300, 0.95)
        assert single == pytest.approx(alone, abs=2e-3 * (alone[1] - alone[0]))
        assert two == pytest.approx(single, abs=1e-9)


def test_distances_from_cut_intervals_would_not_cover_a_sum() -> None:
    """`combined_ends` is not used for `kl`, because at a share of 0 its coverage would be below 90%."""
    n = 40
    warner = DenseMechanism(4, ((10, 6), (6, 10)))
    estimates = [estimate(warner, [n - k, k], methods=("kl",)) for k in range(n + 1)]
    values = np.array([estimated.unbiased[1] for estimated in estimates], dtype=float)
    low = np.array(
        [ends[0] for estimated in estimates if (ends := estimated.margins.kl[1]) is not None]
    )
    chances = stats.binom.pmf(range(n + 1), n, 6 / 16)
    total = (values[:, None] + values) / 2
    reach = np.hypot(np.maximum(0, values - low)[:, None], np.maximum(0, values - low)) / 2
    assert np.einsum("i,j,ij->", chances, chances, total - reach <= 0) < 0.9


def test_the_value_with_the_largest_moment_represents_its_group() -> None:
    law = ScoreLaw(
        np.array([0.0, 1.0, 3.0]),
        np.array([0.25, 1.0, 3.5]),
        np.array([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6]]),
    )
    for tilt, worse in ((-2.0, law.low), (2.0, law.high)):
        envelope = chernoff.MixedMoments.of(law, np.array([0.0, 1.0]), 1.0, np.array([tilt]))
        expected = law.chances @ np.exp(tilt * (worse - 1.0))
        assert envelope.envelope[0] * np.exp(envelope.shift[0]) == pytest.approx(expected)


def test_negated_scores_have_negated_ends_for_all_groups() -> None:
    """The lower group scores −0.2 to 0.1, the upper group 0.8 to 1.3; each end uses the outer values."""
    low, high, n, count = (-0.2, 0.1), (0.8, 1.3), 40, 13
    minus_low, minus_high = (-high[1], -high[0]), (-low[1], -low[0])
    w, second_weights = np.array([low[0], high[1]]), np.array([0.0, 1.0])
    two_valued = (Score(0.25, (0, 1), TwoValues((0, 0), (1, 1), 15)), second_weights, 60)
    turned = (Score(-0.25, (-1, 0), TwoValues((-1, -1), (0, 0), 45)), -second_weights, 60)
    ends = chernoff.kl_of_sum(
        [(Score(0.4, (low[0], high[1]), TwoValues(low, high, count)), w, n), two_valued], 0.9
    )
    negative = TwoValues(minus_low, minus_high, n - count)
    mirrored = chernoff.kl_of_sum(
        [(Score(-0.4, (-high[1], -low[0]), negative), -w, n), turned], 0.9
    )
    assert ends == pytest.approx((-mirrored[1], -mirrored[0]), abs=1e-9)
    # The groups' outer values differ by 0.3 and 0.5, so the interval is wider than with the middle
    # values alone.
    middles = TwoValues((-0.05, -0.05), (1.05, 1.05), count)
    narrower = chernoff.kl_of_sum([(Score(0.4, (low[0], high[1]), middles), w, n), two_valued], 0.9)
    assert ends[0] < narrower[0] - 0.05
    assert ends[1] > narrower[1] + 0.05


@pytest.mark.parametrize(
    ("ends", "mean", "expected"),
    [
        ((0.2, 0.4), 0.3, (0.2, 0.4)),
        ((0.2, 0.4), 0.7, (0.2, 0.7)),
        ((0.2, 0.4), 0.1, (0.1, 0.4)),
        ((-0.3, 0.4), 1.2, (0.0, 1.0)),  # interval and estimate are clipped to the possible values
        ((1.1, 1.3), 1.4, (1.1, 1.4)),  # no value in the interval is possible
    ],
)
def test_an_interval_from_a_single_bit_contains_the_displayed_estimate(
    ends: tuple[float, float], mean: float, expected: tuple[float, float]
) -> None:
    w = np.array([0.0, 1.0, 0.0])
    of_bit, unrestricted = (Score(mean, (-2.0, 3.0), of_bit=flag) for flag in (True, False))
    assert chernoff.displayed(ends, [(of_bit, w)]) == expected
    assert chernoff.displayed(ends, [(unrestricted, w)]) == (max(ends[0], 0.0), ends[1])


@pytest.mark.slow
def test_ends_of_a_sum_agree_with_the_linear_programme() -> None:
    """A linear programme over the shares of both parts gives the largest mean moment at each λ and sum."""
    sizes, tables, level = (30, 90), (SKEWED, ORDINARY), 0.9
    tallied = ([12, 9, 8, 1], [20, 31, 22, 17])
    targets = [
        tuple(tuple(w * n / 120 for w in row) for row in shares(3)) for n in map(Fraction, sizes)
    ]
    laws = [law_by_hand(table, target) for table, target in zip(tables, targets, strict=True)]
    evidence = [evidence_of(*survey, None) for survey in zip(tables, tallied, targets, strict=True)]
    one_each = np.kron(np.eye(2), np.ones(3))
    for t, ends in enumerate(kl_ends(evidence, level)):
        assert ends is not None
        means = [
            float(V[t] @ counts / sum(counts)) for (_, V), counts in zip(laws, tallied, strict=True)
        ]
        w = np.concatenate([np.eye(3)[t] * n / 120 for n in sizes])

        def is_excluded(
            theta: float, t: int = t, w: np.ndarray = w, means: list[float] = means
        ) -> bool:
            for tilt in np.geomspace(0.02, 20, 60) * (1 if sum(means) > theta else -1):
                moments = np.concatenate([
                    n / 120 * (Q @ np.exp(tilt * 120 / n * (V[t] - mean)))
                    for (Q, V), n, mean in zip(laws, sizes, means, strict=True)
                ])  # fmt: skip
                worst = optimize.linprog(
                    -moments, A_eq=np.vstack([one_each, w]), b_eq=[1, 1, theta], bounds=(0, 1)
                )
                if -worst.fun < (0.1 / 2) ** (1 / 120):
                    return True
            return False

        step = 0.01 * (ends[1] - ends[0])
        assert not is_excluded(ends[0] + step)
        assert not is_excluded(ends[1] - step)
        assert ends[0] < step or is_excluded(ends[0] - step)
        assert ends[1] > 1 - step or is_excluded(ends[1] + step)


def test_a_score_that_is_the_same_for_every_report_has_a_law_of_one_value() -> None:
    """The same holds for a constant target; no share is divided by a range of zero."""
    score = Score(mean=1.0, reach=(1.0, 1.0), two=None, law=None)
    law = chernoff._law_of(score, np.array([1.0, 1.0]))
    assert law.chances.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert law.low.tolist() == law.high.tolist() == [1.0, 1.0]
