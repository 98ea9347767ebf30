# SPDX-License-Identifier: Apache-2.0
"""Correction for random answers (docs/maths/validity.md), against every possible set of reports."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import comb, factorial, inf, prod, sqrt

import numpy as np
import pytest
from frankly_design.estimate import estimate
from frankly_design.estimate.margins import normal_quantile
from frankly_design.estimate.validity import (
    BY_GROUP,
    SHOWN,
    Item,
    Observed,
    corrected,
    law_test,
    moments_of,
    same_share,
    without_noise_of,
)
from frankly_design.kinds.decoder import shares
from frankly_design.kinds.registry import kind_of
from frankly_server.analysis.versions import covariance_at
from scipy import optimize, stats

from tests.frankly_server.analysis.samples import LIP, grr
from tests.frankly_server.analysis.samples import law as law_of

Z = normal_quantile(0.95)
SCORES = (Fraction(-1), Fraction(2), Fraction(5, 2))
"""Score of a report by its symbol: an unbiased decoder of some mechanism with three symbols."""
OTHER_SCORES = (Fraction(3), Fraction(1, 2), Fraction(1))
ATTENTIVE = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
"""Law of the symbol of a person who reads the questions."""
AT_RANDOM = (Fraction(1, 5), Fraction(2, 5), Fraction(2, 5))
ONES = (Fraction(1),) * 3
RATIOS = pytest.mark.parametrize("below", [ONES, OTHER_SCORES], ids=["share", "ratio"])
ITEMS = pytest.mark.parametrize(
    ("choices", "random"), [(2, Fraction(1, 2)), (3, Fraction(3, 8)), (4, Fraction(1, 3))]
)
"""Items that a quarter of all people fail, so that one of four reports is the true share."""


def mean(scores: Sequence[Fraction], law: Sequence[Fraction]) -> Fraction:
    return sum((s * p for s, p in zip(scores, law, strict=True)), Fraction(0))


@dataclass(frozen=True)
class World:
    """The exact law of a report (symbol, passed), and the true values of a figure a/b."""

    choices: int
    random: Fraction
    below: tuple[Fraction, ...]

    @property
    def law(self) -> dict[tuple[int, bool], Fraction]:
        kept = 1 - self.random
        chances = {}
        for y, (read, guess) in enumerate(zip(ATTENTIVE, AT_RANDOM, strict=True)):
            lucky = self.random / self.choices
            chances[y, True] = kept * read + lucky * guess
            chances[y, False] = (self.random - lucky) * guess
        return chances

    @property
    def truth(self) -> Fraction:
        return mean(SCORES, ATTENTIVE) / mean(self.below, ATTENTIVE)

    @property
    def at_random(self) -> tuple[Fraction, Fraction]:
        return mean(SCORES, AT_RANDOM), mean(self.below, AT_RANDOM)

    @property
    def expected(self) -> tuple[Fraction, Fraction]:
        return tuple(
            sum((p * scores[y] for (y, _), p in self.law.items()), Fraction(0))
            for scores in (SCORES, self.below)
        )  # type: ignore[return-value]


def surveys(
    chances: dict[tuple[int, bool], Fraction], n: int
) -> Iterator[tuple[dict[tuple[int, bool], int], Fraction]]:
    """Yield the counts of every possible set of n reports, with their probability."""
    kinds = list(chances)
    for numbers in product(range(n + 1), repeat=len(kinds)):
        if sum(numbers) == n:
            ways = factorial(n) // prod(map(factorial, numbers))
            chance = prod((chances[k] ** m for k, m in zip(kinds, numbers, strict=True)), start=1)
            yield dict(zip(kinds, numbers, strict=True)), Fraction(ways) * chance


def means_of(
    counts: dict[tuple[int, bool], int], below: Sequence[Fraction]
) -> tuple[Fraction, Fraction, int]:
    """Return the estimates (a, b) of a survey and its number of failures."""
    n = sum(counts.values())
    a, b = (
        sum((m * scores[y] for (y, _), m in counts.items()), Fraction(0)) / n
        for scores in (SCORES, below)
    )
    return a, b, sum(m for (_, passed), m in counts.items() if not passed)


def observed(
    a: Fraction, b: Fraction, world: World, item: Item, covariance: np.ndarray | None = None
) -> Observed:
    return Observed(
        np.array([a, b], dtype=float),
        np.zeros((2, 2)) if covariance is None else covariance,
        np.array(world.at_random, dtype=float),
        item,
    )


def spread(rows: Sequence[tuple[np.ndarray, Fraction]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the covariance of vectors with these probabilities."""
    center = sum((float(p) * x for x, p in rows), np.zeros_like(rows[0][0]))
    return center, sum(
        (float(p) * np.outer(x - center, x - center) for x, p in rows),
        np.zeros((len(center), len(center))),
    )


# Unbiased


@pytest.mark.parametrize("choices", [2, 3, 5])
@pytest.mark.parametrize("random", [Fraction(0), Fraction(1, 7), Fraction(1)])
def test_the_share_of_attentive_people_is_unbiased(choices: int, random: Fraction) -> None:
    n = 5
    fails = random * (1 - Fraction(1, choices))
    chances = [comb(n, m) * fails**m * (1 - fails) ** (n - m) for m in range(n + 1)]
    items = [Item(n, m, choices) for m in range(n + 1)]
    expected = sum(float(p) * item.attentive for p, item in zip(chances, items, strict=True))
    assert expected == pytest.approx(float(1 - random), abs=1e-13)
    # n/(n − 1) times the estimated variance is unbiased.
    _, exact = spread([(np.array([i.attentive]), p) for p, i in zip(chances, items, strict=True)])
    estimated = sum(float(p) * item.variance for p, item in zip(chances, items, strict=True))
    assert estimated * n / (n - 1) == pytest.approx(exact[0, 0], abs=1e-13)


def test_results_of_an_item() -> None:
    item = Item(200, 30, 4)
    passed = 1 - 30 / 200
    assert item.attentive == pytest.approx((passed - 1 / 4) / (1 - 1 / 4))
    assert item.random + item.attentive == pytest.approx(1)
    assert Item(10, 9, 2).random == pytest.approx(1.8)
    assert Item(10, 0, 3).variance == 0


@RATIOS
@ITEMS
def test_the_corrected_difference_has_the_mean_0_at_the_truth(
    choices: int, random: Fraction, below: tuple[Fraction, ...]
) -> None:
    world = World(choices, random, below)
    rows = []
    for counts, chance in surveys(world.law, 3):
        a, b, failed = means_of(counts, below)
        # The exact computation has nothing in common with the code but the model.
        lam = Fraction(failed, 3) * Fraction(choices, choices - 1)
        exact = [v - lam * r for v, r in zip((a, b), world.at_random, strict=True)]
        center, _ = moments_of([observed(a, b, world, Item(3, failed, choices))])
        assert center == pytest.approx([float(v) for v in exact], abs=1e-12)
        rows.append((exact, chance))
    assert sum(p for _, p in rows) == 1
    assert sum(p * (a - world.truth * b) for (a, b), p in rows) == 0
    assert sum(p * b for (_, b), p in rows) == (1 - random) * mean(below, ATTENTIVE)


def test_estimates_of_a_mechanism_have_the_law_of_the_model() -> None:
    """E t = κθ + λρ for the server's own estimates, and the corrected share is the true one."""
    mechanism, random, choices, n = LIP, 0.3, 3, 1000
    p, r = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.4, 0.3, 0.2, 0.1])
    # Counts that are exactly the expected ones: weights of the mechanism are over 2^8.
    expected = ((1 - random) * p + random * r) @ law_of(mechanism) * 256 * 100
    counts = [round(c) for c in expected]
    assert counts == pytest.approx(expected, abs=1e-6)
    result = estimate(mechanism, counts)
    C = np.array(result.covariance, dtype=float)
    for x in range(4):
        assert result.unbiased[x] is not None
        part = Observed(
            np.array([result.unbiased[x], 1.0], dtype=float),
            np.diag([C[x, x], 0]),
            np.array([r[x], 1]),
            Item(n, round(n * random * (1 - 1 / choices)), choices),
        )
        figure = corrected([part], Z)
        assert figure is not None
        assert figure.value == pytest.approx(p[x], abs=1e-12)


@pytest.mark.parametrize("random", [Fraction(1, 10), Fraction(1, 3)])
def test_the_bias_of_another_law_of_random_answers(random: Fraction) -> None:
    """The ratio of the means is off by λ(ρ* − ρ)/κ; the uncorrected mean by λ(ρ* − θ)."""
    world, assumed = World(3, random, ONES), Fraction(1, 3)
    rows = []
    for counts, chance in surveys(world.law, 3):
        a, _, failed = means_of(counts, ONES)
        rows.append((a, Fraction(failed, 3) * Fraction(3, 2), chance))
    mean_a, mean_lam = (sum(p * row[i] for *row, p in rows) for i in (0, 1))
    kept, actual, theta = 1 - random, world.at_random[0], world.truth
    value = (mean_a - mean_lam * assumed) / (1 - mean_lam)
    assert value - theta == random * (actual - assumed) / kept
    assert mean_a - theta == random * (actual - theta)


@pytest.mark.parametrize("at_item", [Fraction(1, 20), Fraction(3, 20)])
def test_the_bias_of_another_share_at_the_item(at_item: Fraction) -> None:
    """It is (λ − λ_A)(ρ − θ)/(1 − λ_A), whoever the people are who answer only one at random."""
    random, theta, rho = Fraction(1, 10), Fraction(3, 100), Fraction(1, 2)
    mean_a = (1 - random) * theta + random * rho
    value = (mean_a - at_item * rho) / (1 - at_item)
    assert value - theta == (random - at_item) * (rho - theta) / (1 - at_item)
    part = Observed(
        np.array([mean_a, 1], dtype=float),
        np.zeros((2, 2)),
        np.array([0.5, 1]),
        Item(10_000, int(at_item * 10_000 / 2), 2),
    )
    figure = corrected([part], Z)
    assert figure is not None
    assert figure.value == pytest.approx(float(value))


def test_the_correction_is_worse_than_none_where_the_page_says_so() -> None:
    """3 %, λ = 0.1, a uniform law assumed for two choices."""
    theta, rho, random = Fraction(3, 100), Fraction(1, 2), Fraction(1, 10)

    def is_worse(actual: Fraction, at_item: Fraction = random) -> bool:
        mean_a = (1 - random) * theta + random * actual
        value = (mean_a - at_item * rho) / (1 - at_item)
        return abs(value - theta) > abs(mean_a - theta)

    assert [is_worse(Fraction(x, 100)) for x in (27, 28, 50, 100)] == [True, False, False, False]
    assert [is_worse(rho, Fraction(x, 100)) for x in (0, 5, 18, 19)] == [False, False, False, True]


# Covariances


@RATIOS
@ITEMS
def test_the_covariance_is_that_of_every_survey(
    choices: int, random: Fraction, below: tuple[Fraction, ...]
) -> None:
    """With the covariance of (a, b), the values and the share of failures at their true values."""
    world, n = World(choices, random, below), 4
    plain, corrected_rows = [], []
    for counts, chance in surveys(world.law, n):
        a, b, failed = means_of(counts, below)
        plain.append((np.array([a, b], dtype=float), chance))
        corrected_rows.append(
            (moments_of([observed(a, b, world, Item(n, failed, choices))])[0], chance)
        )
    _, covariance = spread(plain)
    _, exact = spread(corrected_rows)
    a, b = world.expected
    _, formula = moments_of([observed(a, b, world, Item(n, 1, choices), covariance)])
    assert formula == pytest.approx(exact, abs=1e-12)


@RATIOS
@ITEMS
def test_the_covariance_of_a_part_of_a_form_is_that_of_every_survey(
    choices: int, random: Fraction, below: tuple[Fraction, ...]
) -> None:
    """All of n reports have the item's result, but only some show the question."""
    world, n, shown = World(choices, random, below), 4, 2
    fails = random * (1 - Fraction(1, choices))
    hidden = {(0, True): 1 - fails, (0, False): fails}
    plain, corrected_rows = [], []
    for seen, chance in surveys(world.law, shown):
        a, b, failed_seen = means_of(seen, below)
        plain.append((np.array([a, b], dtype=float), chance))
        for others, its_chance in surveys(hidden, n - shown):
            item = Item(n, failed_seen + others[0, False], choices)
            center, _ = moments_of([observed(a, b, world, item)])
            corrected_rows.append((center, chance * its_chance))
    _, covariance = spread(plain)
    center, exact = spread(corrected_rows)
    assert center[0] - float(world.truth) * center[1] == pytest.approx(0, abs=1e-12)
    a, b = world.expected
    _, formula = moments_of([observed(a, b, world, Item(n, 1, choices), covariance)])
    assert formula == pytest.approx(exact, abs=1e-12)


def test_the_covariance_needs_the_term_of_scores_and_results() -> None:
    """Without it the exact covariance is missed, so the tests above can fail."""
    world, n = World(2, Fraction(1, 2), ONES), 4
    rows = []
    for counts, chance in surveys(world.law, n):
        a, _, failed = means_of(counts, ONES)
        rows.append((np.array([a, Item(n, failed, 2).attentive], dtype=float), chance))
    _, exact = spread(rows)
    s = float(world.expected[0])
    rho = float(world.at_random[0])
    kappa, lam = 0.5, 0.5
    theta = (s - lam * rho) / kappa
    assert exact[0, 1] == pytest.approx(lam * (s - rho) / n)
    assert exact[0, 1] == pytest.approx(lam * kappa * (theta - rho) / n)
    assert abs(exact[0, 1]) > 0.01


# Intervals


def part_of(seed: int, *, choices: int = 4, failed: int = 40) -> Observed:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(2, 2)) * 0.03
    return Observed(
        np.array([rng.uniform(0.1, 0.5), rng.uniform(0.6, 1)]),
        root @ root.T,
        rng.uniform(0.2, 0.5, 2),
        Item(400, failed, choices),
        float(rng.uniform(0.5, 2)),
    )


def excess(parts: Sequence[Observed]) -> Callable[[float], float]:
    """Return θ ↦ (a − θb)² − z²·variance, from per-document variances of one number each."""

    def of(theta: float) -> float:
        total, variance = 0.0, 0.0
        for one in parts:
            u = np.array([1, -theta])
            assert isinstance(one.item, Item)
            share = one.item.failed / one.item.n
            factor = one.item.choices / (one.item.choices - 1)
            gap, guess = float(u @ one.values), float(u @ one.random)
            # Var(t − guess·λ̂) = Var t + guess²·Var λ̂ − 2·guess·Cov(t, λ̂), where the covariance of
            # a report's score and its failure is share·(mean of those who failed − mean of all).
            fails = share * (1 - share) / one.item.n * factor**2
            both = factor * share * (guess - gap) / one.item.n
            total += one.weight * (gap - guess * factor * share)
            variance += one.weight**2 * (
                float(u @ one.covariance @ u) + guess**2 * fails - 2 * guess * both
            )
        return total**2 - Z**2 * variance

    return of


@pytest.mark.parametrize("documents", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_ends_are_where_the_difference_is_z_standard_errors_from_0(
    seed: int, documents: int
) -> None:
    parts = [part_of(10 * seed + i, choices=2 + i) for i in range(documents)]
    figure = corrected(parts, Z)
    assert figure is not None
    assert figure.ends is not None
    of = excess(parts)
    assert of(figure.value) < 0
    roots = []
    for direction in (-1, 1):
        step = 0.01
        while of(figure.value + direction * step) < 0:
            step *= 1.5
        roots.append(optimize.brentq(of, figure.value, figure.value + direction * step, xtol=1e-14))
    assert figure.ends == pytest.approx(roots, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_interval_is_unbounded_iff_far_values_are_inside(seed: int) -> None:
    outcomes = set()
    for noise in np.geomspace(0.1, 1e6, 40):
        one = part_of(seed)
        one = replace(one, covariance=one.covariance * noise)
        figure = corrected([one], Z)
        assert figure is not None
        far = [excess([one])(sign * 1e9) > 0 for sign in (-1, 1)]
        assert far == [figure.ends is not None] * 2
        outcomes.add(figure.ends is None)
    assert outcomes == {True, False}


@pytest.mark.parametrize("level", [0.9, 0.95, 0.999])
def test_the_interval_of_a_share_is_bounded_if_the_item_allows_it(level: float) -> None:
    """It is bounded iff the relative standard error of κ̂ is below 1/z, so always where it is shown."""
    z, outcomes = normal_quantile(level), set()
    for n, failed in product((10, 40, 200), range(200)):
        item = Item(n, failed, 4)
        if failed <= n and item.attentive:
            part = Observed(np.array([0.3, 1.0]), np.diag([0.01, 0]), np.array([0.5, 1]), item)
            figure = corrected([part], z)
            assert figure is not None
            assert (figure.ends is not None) == (z * sqrt(item.variance) < abs(item.attentive))
            assert figure.ends is not None or not item.within(SHOWN)
            outcomes.add(figure.ends is None)
    assert outcomes == {True, False}


def test_the_standard_error_is_that_of_the_delta_method() -> None:
    """The gradient is taken numerically, in the estimates of every document and its λ̂."""
    parts = [part_of(1), part_of(2, choices=2)]

    def value(shifts: np.ndarray) -> float:
        sums = np.zeros(2)
        for one, (da, db, dl) in zip(parts, shifts.reshape(2, 3), strict=True):
            sums += one.weight * (
                one.values + np.array([da, db]) - (one.item.random + dl) * one.random
            )
        return float(sums[0] / sums[1])

    slope = np.array([(value(h) - value(-h)) / 2e-6 for h in np.eye(6) * 1e-6]).reshape(2, 3)
    variance = 0.0
    for one, g in zip(parts, slope, strict=True):
        beside = one.item.random * (one.random - one.values) / one.item.n
        joint = np.block(
            [[one.covariance, beside[:, None]], [beside[None], np.array([[one.item.variance]])]]
        )
        variance += float(g @ joint @ g)
    figure = corrected(parts, Z)
    assert figure is not None
    assert figure.value == pytest.approx(value(np.zeros(6)))
    assert figure.se == pytest.approx(sqrt(variance), rel=1e-6)


def test_without_failures_the_figure_and_its_interval_are_the_usual_ones() -> None:
    counts = [300, 500, 200]
    result = estimate(grr(3, 2), counts)
    value, se, half = result.unbiased[2], result.se[2], result.margins.clt[2]
    assert value is not None
    assert se is not None
    assert half is not None
    part = Observed(
        np.array([value, 1.0]), np.diag([se**2, 0]), np.array([1 / 3, 1]), Item(1000, 0, 4)
    )
    figure = corrected([part], Z)
    assert figure is not None
    assert figure.ends is not None
    assert (figure.value, figure.se) == pytest.approx((value, se))
    assert figure.ends == pytest.approx((value - half, value + half))


def test_more_failures_than_random_answers_explain() -> None:
    item = Item(100, 90, 2)
    assert item.random == pytest.approx(1.8)
    assert not item.within(inf)
    part = Observed(np.array([0.4, 1.0]), np.diag([1e-4, 0]), np.array([0.5, 1]), item)
    figure = corrected([part], Z)
    assert figure is not None
    assert figure.value == pytest.approx(0.5 + (0.4 - 0.5) / (1 - 1.8))
    assert figure.se > 0


def test_an_interval_that_is_a_half_line_is_unbounded() -> None:
    """κ̂ is exactly two standard errors from 0, so the quadratic has no square."""
    part = Observed(np.array([0.3, 1.0]), np.diag([0.01, 0]), np.array([0.5, 1]), Item(36, 18, 3))
    figure = corrected([part], 2.0)
    assert figure is not None
    assert figure.ends is None


def test_no_figure_if_nobody_seems_attentive() -> None:
    part = Observed(np.array([0.4, 1.0]), np.diag([1e-4, 0]), np.array([0.5, 1]), Item(100, 50, 2))
    assert corrected([part], Z) is None


def test_a_weight_that_all_documents_share_changes_nothing() -> None:
    parts = [part_of(1), part_of(2)]
    one, other = (
        corrected([replace(p, weight=f * p.weight) for p in parts], Z) for f in (1.0, 7.0)
    )
    assert one is not None
    assert other is not None
    assert one.ends is not None
    assert other.ends == pytest.approx(one.ends)
    assert (other.value, other.se) == pytest.approx((one.value, one.se))


@RATIOS
def test_documents_of_different_people_are_pooled_without_bias(below: tuple[Fraction, ...]) -> None:
    """Two documents with items of 2 and 3 choices and different shares of random answers."""
    worlds = World(2, Fraction(1, 2), below), World(3, Fraction(1, 5), below)
    sides = [[(counts, p) for counts, p in surveys(world.law, 2)] for world in worlds]
    weights, total = (0.25, 0.75), 0.0
    for draws in product(*sides):
        parts = []
        for (counts, _), world, weight in zip(draws, worlds, weights, strict=True):
            a, b, failed = means_of(counts, below)
            one = observed(a, b, world, Item(2, failed, world.choices))
            parts.append(replace(one, weight=weight))
        a, b = sum((moments_of([part])[0] for part in parts), np.zeros(2))
        figure = corrected(parts, Z)
        assert (figure is None) == (b == 0)
        if figure is not None:
            assert figure.value == pytest.approx(a / b)
        total += float(prod((p for _, p in draws), start=1)) * (a - float(worlds[0].truth) * b)
    assert total == pytest.approx(0, abs=1e-12)


# Limits and ends of an item


@pytest.mark.parametrize("limit", [SHOWN, BY_GROUP])
def test_a_relative_standard_error_is_within_its_limit(limit: float) -> None:
    verdicts = set()
    for n, choices in product((20, 60, 400), (2, 4)):
        for failed in range(n + 1):
            passed = 1 - failed / n
            kappa = (passed - 1 / choices) / (1 - 1 / choices)
            error = sqrt(passed * (1 - passed) / n) / (1 - 1 / choices)
            # rounding: a relative error of exactly the limit would be decided by the last bit.
            wanted = kappa > 1e-12 and error / kappa <= limit
            assert Item(n, failed, choices).within(limit) == wanted, (n, failed, choices)
            verdicts.add(wanted)
    assert verdicts == {True, False}


def test_the_limits_are_those_of_the_page() -> None:
    """Stated in docs/maths/validity.md; the numbers of this item are exact in binary."""
    assert (SHOWN, BY_GROUP) == (0.25, 0.12)
    assert Item(4, 2, 3).within(1.5)
    assert not Item(4, 2, 3).within(1.4999)


def test_missing_reports_are_the_fewest_with_the_same_share_of_failures() -> None:
    for n, failed, choices in (
        (4, 2, 3),
        (36, 18, 3),
        (20, 9, 4),
        (30, 11, 2),
        (30, 1, 2),
        (143, 72, 3),
    ):
        passed = 1 - failed / n
        kappa = (passed - 1 / choices) / (1 - 1 / choices)
        one = passed * (1 - passed) / (1 - 1 / choices) ** 2
        enough = next(m for m in range(1, 10_000) if one / m <= (kappa / 4) ** 2 * (1 + 1e-12))
        assert Item(n, failed, choices).missing == max(0, enough - n), (n, failed, choices)
    assert Item(36, 18, 3).missing == 108
    assert Item(150, 75, 3).missing == 0
    assert Item(20, 0, 2).missing == 0


@pytest.mark.parametrize("failed", [20, 29])
def test_no_number_of_reports_is_missing_if_nobody_seems_attentive(failed: int) -> None:
    assert Item(40, failed, 2).missing is None


@pytest.mark.parametrize(("n", "failed", "choices"), [(50, 0, 4), (200, 30, 3), (80, 40, 2)])
def test_ends_of_random_answers_are_wilsons(n: int, failed: int, choices: int) -> None:
    wilson = stats.binomtest(failed, n).proportion_ci(0.95, "wilson")
    ends = Item(n, failed, choices).ends(Z)
    factor = choices / (choices - 1)
    assert ends == pytest.approx((wilson.low * factor, wilson.high * factor), abs=1e-12)


# Tests of the model


@pytest.mark.parametrize("choices", [2, 3, 5])
def test_the_test_of_the_law_is_pearsons_of_the_symbols(choices: int) -> None:
    """The decoder of a square table is one-to-one, so both statistics are the same number."""
    rng = np.random.default_rng(choices)
    mechanism, law = grr(choices, 2), rng.dirichlet(np.full(choices, 3))
    counts = [int(c) for c in rng.multinomial(150, law @ law_of(mechanism))]
    targets = shares(choices)
    evidence = kind_of(mechanism).evidence(counts, targets, None)
    values = np.array([float(v) for v in evidence.exact if v is not None]) - law
    tested = law_test(values, covariance_at(evidence, law))
    assert tested is not None
    statistic, freedom, p = tested
    reference = stats.chisquare(counts, 150 * law @ law_of(mechanism))
    assert freedom == choices - 1
    assert statistic == pytest.approx(reference.statistic, rel=1e-8)
    assert p == pytest.approx(reference.pvalue, rel=1e-7)


def test_the_size_of_the_test_of_the_law_at_one_number_of_failures() -> None:
    """For two equally likely symbols all counts are listed; few are possible, so sizes vary."""
    sizes = []
    for n in range(30, 60):
        rejected = 0
        for count in range(n + 1):
            tested = law_test(np.array([count / n - 0.5]), np.array([[0.25 / n]]))
            assert tested is not None
            rejected += comb(n, count) * (tested[2] < 0.05)
        sizes.append(100 * rejected / 2**n)
    assert min(sizes) == pytest.approx(3.36, abs=0.01)
    assert max(sizes) == pytest.approx(7.08, abs=0.01)
    assert np.mean(sizes) == pytest.approx(5, abs=0.3)


def test_the_test_of_the_law_counts_only_what_can_vary() -> None:
    assert law_test(np.zeros(2), np.zeros((2, 2))) is None
    root = np.array([[1.0], [-1.0]])
    tested = law_test(np.array([3.0, -3.0]), 4 * root @ root.T)
    assert tested is not None
    assert tested[:2] == pytest.approx((9 / 4, 1))
    assert tested[2] == pytest.approx(stats.chi2.sf(9 / 4, 1))


def test_the_test_of_the_law_does_not_depend_on_units() -> None:
    rng = np.random.default_rng(3)
    root, values, units = rng.normal(size=(3, 3)), rng.normal(size=3), np.array([1, 1e-7, 1e6])
    C = root @ root.T
    one, other = law_test(values, C), law_test(units * values, C * np.outer(units, units))
    assert one is not None
    assert other is not None
    assert one[1] == other[1] == 3
    assert one[0] == pytest.approx(values @ np.linalg.inv(C) @ values)
    assert other[0] == pytest.approx(one[0])


@pytest.mark.parametrize(
    "numbers", [[(200, 1), (150, 0)], [(200, 20), (150, 30)], [(90, 9), (300, 60), (40, 1)]]
)
def test_groups_that_fail_equally_often_are_tested_by_pearson(
    numbers: list[tuple[int, int]],
) -> None:
    table = [[failed, n - failed] for n, failed in numbers]
    reference = stats.chi2_contingency(table, correction=False)
    p = same_share([Item(n, failed, 4) for n, failed in numbers])
    assert p == pytest.approx(reference.pvalue)


def test_nothing_can_be_tested_in_one_group_or_without_failures() -> None:
    assert same_share([Item(100, 10, 4)]) is None
    assert same_share([Item(100, 0, 4), Item(50, 0, 4)]) is None
    assert same_share([Item(100, 100, 4), Item(50, 50, 4)]) is None
    assert same_share([]) is None


# Release


def mean_share_of_failures(rule: Callable[[int, int], tuple[int, int]]) -> dict[int, Fraction]:
    """Return the mean share of failures in the released reports, by their number.

    Four reports in two cells of public answers, which a third and two thirds of all people belong
    to; a quarter of the people fail. rule : numbers of a cell that passed and failed ↦ those of
    them that are released.
    """
    groups, fails = (Fraction(1, 3), Fraction(2, 3)), Fraction(1, 4)
    law = {
        (g, ok): groups[g] * (1 - fails if ok else fails) for g in (0, 1) for ok in (True, False)
    }
    sums: dict[int, Fraction] = {}
    chances: dict[int, Fraction] = {}
    for counts, chance in surveys(law, 4):
        passed, failed = map(
            sum, zip(*(rule(counts[g, True], counts[g, False]) for g in (0, 1)), strict=True)
        )
        if n := passed + failed:
            sums[n] = sums.get(n, Fraction(0)) + chance * Fraction(failed, n)
            chances[n] = chances.get(n, Fraction(0)) + chance
    return {n: sums[n] / chances[n] for n in sums}


def test_cells_released_as_a_whole_leave_the_share_of_failures_unbiased() -> None:
    step = 2
    whole = mean_share_of_failures(lambda p, f: (p, f) if p + f >= step else (0, 0))
    assert whole == {3: Fraction(1, 4), 4: Fraction(1, 4)}
    apart = mean_share_of_failures(lambda p, f: (p if p >= step else 0, f if f >= step else 0))
    assert all(value != Fraction(1, 4) for value in apart.values())


@ITEMS
@RATIOS
def test_known_failures_leave_the_mean_and_take_noise_away(
    choices: int, random: Fraction, below: tuple[Fraction, ...]
) -> None:
    """Over all sets of three reports: A − θB has the mean 0 whichever of the failures are known."""
    world = World(choices, random, below)
    variances = {}
    for known in (0, 1, 3):
        differences = []
        for counts, chance in surveys(world.law, 3):
            # The first failures, in the order of their symbols, are not chosen by what they say ...
            failures = [y for (y, passed), m in counts.items() if not passed for _ in range(m)]
            share = Fraction(min(known, len(failures)), len(failures)) if failures else Fraction(0)
            # ... if each is known with the same chance; the mean over these is this mixture.
            a, b, failed = means_of(counts, below)
            of_failures = [
                sum((scores[y] for y in failures), Fraction(0)) for scores in (SCORES, below)
            ]
            guess = world.at_random
            a, b = (
                value - share * (total - failed * r) / 3
                for value, total, r in zip((a, b), of_failures, guess, strict=True)
            )
            lam = Fraction(failed * choices, 3 * (choices - 1))
            difference = (a - lam * guess[0]) - world.truth * (b - lam * guess[1])
            differences.append((np.array([difference]), chance))
        assert sum(Fraction(d[0]) * chance for d, chance in differences) == 0
        variances[known] = sum(Fraction(d[0]) ** 2 * chance for d, chance in differences)
    assert variances[3] < variances[0]


def test_known_failures_count_as_if_they_had_sent_their_mean() -> None:
    rng = np.random.default_rng(4)
    others, random = rng.normal(size=(30, 2)), np.array([0.2, 0.7])
    replaced = np.vstack([others, np.tile(random, (12, 1))])
    middle = others.mean(axis=0)
    values, covariance = without_noise_of(
        12, middle, np.cov(others.T, bias=True), random, len(replaced)
    )
    assert values == pytest.approx(replaced.mean(axis=0))
    assert covariance == pytest.approx(np.cov(replaced.T) / len(replaced))


@pytest.mark.parametrize("choices", [2, 4, 5])
def test_known_failures_leave_a_part_of_the_bias_of_another_law(choices: int) -> None:
    """Of a wrong law only those who pass by chance remain, one in `choices`."""
    random, yes, wrong = Fraction(1, 10), Fraction(3, 100), Fraction(1, 5)
    passes = 1 - random + random / choices
    of_passers = ((1 - random) * yes + random / choices * wrong) / passes
    half = Fraction(1, 2)
    t = passes * of_passers + (1 - passes) * half
    corrected_share = half + (t - half) / (1 - random)
    assert corrected_share - yes == random / choices * (wrong - half) / (1 - random)


@pytest.mark.parametrize("choices", [2, 4])
@pytest.mark.parametrize("at_item", [Fraction(1, 20), Fraction(3, 20)])
def test_known_failures_and_another_share_at_the_item(choices: int, at_item: Fraction) -> None:
    random, yes, half = Fraction(1, 10), Fraction(3, 100), Fraction(1, 2)
    both = min(random, at_item)
    fails = at_item * (1 - Fraction(1, choices))
    # Those who fail count by the law, also if they answered the question with care.
    careful_failures = (at_item - both) * (1 - Fraction(1, choices))
    t = (1 - random - careful_failures) * yes + (random + careful_failures) * half
    assert 0 < fails < 1
    bias = half + (t - half) / (1 - at_item) - yes
    off = random - at_item
    assert bias == (off if off > 0 else off / choices) * (half - yes) / (1 - at_item)


def test_each_end_has_the_variance_of_its_side() -> None:
    """As score intervals have; the figure is inside even if its variance is estimated as 0 or less."""
    item, guess = Item(400, 30, 4), np.array([0.5, 1.0])
    covariance = np.array([[0.002, 0.0], [0.0, 0.0]])
    plain = Observed(np.array([0.2, 1.0]), covariance, guess, item)
    found = {}
    for side in (0.001, 0.002, 0.004):
        one = corrected([replace(plain, covariance=covariance * side / 0.002)], Z)
        assert one is not None
        found[side] = one.ends
    both = corrected([replace(plain, sides=(0.004, 0.001))], Z)
    usual = corrected([plain], Z)
    assert both is not None
    assert usual is not None
    assert (both.value, both.se) == (usual.value, usual.se)
    (lower, _), (_, upper) = (found[side] or (0.0, 0.0) for side in (0.004, 0.001))
    assert both.ends == pytest.approx((lower, upper))
    nothing = replace(plain, values=np.array([-0.04, 1.0]), covariance=np.zeros((2, 2)))
    certain = corrected([nothing], Z)
    assert certain is not None
    assert certain.ends is not None
    assert certain.ends[0] <= certain.value <= certain.ends[1]
