# SPDX-License-Identifier: Apache-2.0
"""Share of attentive people by questions with known shares, against every possible set of reports."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from math import ceil, exp, factorial, hypot, prod, sqrt

import numpy as np
import pytest
from frankly_design.estimate.anchors import (
    TYPICAL,
    Anchored,
    AnchorScore,
    Counted,
    Stack,
    anchor_weights,
    fit_test,
    same_share_by_anchors,
)
from frankly_design.estimate.margins import normal_quantile
from frankly_design.estimate.validity import Observed, moments_of
from frankly_design.kinds.decoder import decoder, shares
from frankly_protocol.mechanisms import DenseMechanism
from scipy import optimize, stats

from tests.frankly_server.analysis.samples import LIP, grr, law

Z = normal_quantile(0.95)
WIDE = DenseMechanism(4, ((9, 1, 4, 2), (1, 9, 2, 4)))
"""More symbols than answers."""
BLURRED = DenseMechanism(4, ((12, 4), (4, 12), (4, 12)))
"""The second and the third answer cannot be told apart."""
OPEN = DenseMechanism(4, ((16, 0, 0), (0, 16, 0), (4, 4, 8)))
"""Some symbols never come from some answers."""
ANCHORS = [
    (grr(2, 1.0), (0, 1)),
    (grr(2, 2.0), (11, 1)),
    (grr(5, 1.0), (0, 0, 1, 0, 0)),
    (LIP, (1, 2, 3, 4)),
    (WIDE, (1, 0)),
    (BLURRED, (1, 2, 3)),
    (OPEN, (1, 0, 0)),
]
EACH = pytest.mark.parametrize(("mechanism", "counts"), ANCHORS)


def in_parts(counts: Sequence[int]) -> tuple[Fraction, ...]:
    return tuple(Fraction(n, sum(counts)) for n in counts)


def even(mechanism: DenseMechanism) -> tuple[Fraction, ...]:
    return (Fraction(1, mechanism.answers),) * mechanism.answers


def score_of(mechanism: DenseMechanism, counts: Sequence[int]) -> AnchorScore:
    found = AnchorScore.of(mechanism, in_parts(counts), even(mechanism))
    assert found is not None
    return found


def symbols(mechanism: DenseMechanism, counts: Sequence[int], kept: Fraction) -> np.ndarray:
    """Return the law of a report's symbol if this share of people reads."""
    answers = [
        kept * a + (1 - kept) * r for a, r in zip(in_parts(counts), even(mechanism), strict=True)
    ]
    return np.asarray(np.array(answers, dtype=float) @ law(mechanism))


@EACH
@pytest.mark.parametrize("kept", [Fraction(1), Fraction(6, 7), Fraction(0)])
def test_the_share_of_attentive_people_is_unbiased(
    mechanism: DenseMechanism, counts: tuple[int, ...], kept: Fraction
) -> None:
    score = score_of(mechanism, counts)
    chances = symbols(mechanism, counts, kept)
    assert chances @ score.values == pytest.approx(float(kept), abs=1e-12)
    assert score.variance(float(kept)) == pytest.approx(
        chances @ (score.values - float(kept)) ** 2, abs=1e-12
    )


@EACH
def test_values_of_symbols_have_the_least_variance(
    mechanism: DenseMechanism, counts: tuple[int, ...]
) -> None:
    score = score_of(mechanism, counts)
    chances = symbols(mechanism, counts, 1 - TYPICAL)
    # The least squares under the two conditions for the mean, by Lagrange's equations.
    rows = np.array([symbols(mechanism, counts, kept) for kept in (Fraction(1), Fraction(0))])
    size = len(chances)
    system = np.block([[np.diag(chances), rows.T], [rows, np.zeros((2, 2))]])
    solved = np.linalg.lstsq(system, np.array([0.0] * size + [1.0, 0.0]), rcond=None)[0][:size]
    assert chances @ solved**2 == pytest.approx(chances @ score.values**2, rel=1e-9)
    kept = float(1 - TYPICAL)
    assert 1 / score.information == pytest.approx(score.variance(kept), rel=1e-9)


def test_values_decode_the_known_choice_for_two_choices() -> None:
    mechanism, counts = grr(2, 1.0), (11, 1)
    (rows,) = (decoder(mechanism, shares(2), None).floats(),)
    d = np.array([11 / 12, 1 / 12]) - 0.5
    expected = (d @ rows - d @ np.array([0.5, 0.5])) / (d @ d)
    assert score_of(mechanism, counts).values == pytest.approx(expected)


@pytest.mark.parametrize(
    ("mechanism", "counts"), [(grr(2, 1.0), (3, 3)), (LIP, (1, 1, 1, 1)), (BLURRED, (2, 1, 3))]
)
def test_an_anchor_like_random_answers_tells_nothing(
    mechanism: DenseMechanism, counts: tuple[int, ...]
) -> None:
    assert AnchorScore.of(mechanism, in_parts(counts), even(mechanism)) is None


COSTS = [
    # counts, then n times the variance of κ̂ at ε = 0.5, 1, 2, 4, without random answers
    ((1, 0), (15.7, 3.68, 0.72, 0.08)),
    ((11, 1), (23.0, 5.7, 1.5, 0.55)),
    ((3, 1), (66.0, 18.0, 5.9, 3.3)),
]


@pytest.mark.parametrize(("counts", "variances"), COSTS)
def test_variances_of_anchors(counts: tuple[int, ...], variances: tuple[float, ...]) -> None:
    for epsilon, variance in zip((0.5, 1.0, 2.0, 4.0), variances, strict=True):
        assert score_of(grr(2, epsilon), counts).variance(1.0) == pytest.approx(variance, rel=0.07)


TWO = ((grr(2, 1.0), (0, 1)), (grr(2, 2.0), (2, 1)))


def pair_law(kept: Fraction) -> dict[tuple[int, int], float]:
    """Return the law of the symbols of two anchors in one report, by whether its person reads."""
    chances = {(y, z): 0.0 for y in range(2) for z in range(2)}
    for reads, share in ((True, kept), (False, 1 - kept)):
        first, second = (symbols(*anchor, Fraction(int(reads))) for anchor in TWO)
        for y, z in chances:
            chances[y, z] += float(share) * first[y] * second[z]
    return chances


@pytest.mark.parametrize("kept", [Fraction(1), Fraction(4, 5)])
def test_anchors_in_one_report_are_stacked(kept: Fraction) -> None:
    """The mean and the variance of κ̂ are those over every possible set of three reports."""
    n, chances = 3, pair_law(kept)
    scores = [score_of(*anchor) for anchor in TWO]
    weights = tuple(anchor_weights(scores, [1.0, 1.0]))
    assert sum(weights) == pytest.approx(1)
    assert weights[0] / weights[1] == pytest.approx(scores[0].information / scores[1].information)
    mean = second = 0.0
    for reports in combinations_with_replacement(sorted(chances), n):
        ways = factorial(n) / prod(factorial(reports.count(kind)) for kind in set(reports))
        chance = ways * prod(chances[kind] for kind in reports)
        counted = [
            Counted(score, np.bincount([kind[i] for kind in reports], minlength=2).astype(float))
            for i, score in enumerate(scores)
        ]
        found = Stack(n, tuple(counted), weights).attentive
        mean, second = mean + chance * found, second + chance * found**2
    assert mean == pytest.approx(float(kept))
    # The formula at the expected counts: it then has the true κ and the true variances of each.
    expected = [
        Counted(score, n * 1e6 * symbols(*anchor, kept))
        for score, anchor in zip(scores, TWO, strict=True)
    ]
    formula = Stack(round(n * 1e6), tuple(expected), weights).variance * 1e6
    assert formula == pytest.approx(second - mean**2, rel=1e-5)


def test_the_covariance_of_two_anchors_is_needed() -> None:
    kept, n = Fraction(4, 5), 10_000
    scores = [score_of(*anchor) for anchor in TWO]
    counted = tuple(
        Counted(score, n * symbols(*anchor, kept))
        for score, anchor in zip(scores, TWO, strict=True)
    )
    weights = tuple(anchor_weights(scores, [1.0, 1.0]))
    apart = sum(w**2 * one.variance for w, one in zip(weights, counted, strict=True))
    together = 2 * weights[0] * weights[1] * 0.8 * 0.2 / n
    assert Stack(n, counted, weights).variance == pytest.approx(apart + together)


def test_ends_are_where_the_variance_of_the_model_explains_the_distance() -> None:
    score = score_of(LIP, (1, 2, 3, 4))
    counted = Counted(score, np.array([310.0, 190.0, 260.0, 440.0]))
    found = Anchored(1200, (Stack(1200, (counted,), (1.0,)),))
    here = found.attentive
    seen = counted.variance * (counted.n - 1)

    def off(kept: float) -> float:
        change = score.variance(kept) - score.variance(here)
        return (kept - here) ** 2 - Z**2 / 1200 * (seen + change)

    low, high = optimize.brentq(off, here - 4, here), optimize.brentq(off, here, here + 4)
    assert found.ends(Z) == pytest.approx((1 - high, 1 - low))


def test_ends_of_two_choices_are_wilsons() -> None:
    counted = Counted(score_of(grr(2, 1.0), (0, 1)), np.array([700.0, 300.0]))
    found = Anchored(1000, (Stack(1000, (counted,), (1.0,)),))
    wilson = stats.binomtest(300, 1000).proportion_ci(0.95, "wilson")
    keep = exp(1) / (exp(1) + 1)
    kept = [2 * (end - (1 - keep)) / (2 * keep - 1) - 1 for end in (wilson.low, wilson.high)]
    assert found.ends(Z) == pytest.approx((1 - kept[1], 1 - kept[0]), rel=1e-6)


def anchored(*numbers: tuple[int, int]) -> Anchored:
    score = score_of(grr(2, 2.0), (0, 1))
    return Anchored.together(
        [
            Anchored(n, (Stack(n, (Counted(score, np.array([n - ones, ones], float)),), (1.0,)),))
            for n, ones in numbers
        ]
    )


def test_groups_together_are_weighted_by_reports() -> None:
    first, second, both = anchored((400, 300)), anchored((100, 60)), anchored((400, 300), (100, 60))
    assert both.n == both.shown == 500
    assert both.random == pytest.approx(0.8 * first.random + 0.2 * second.random)
    assert both.variance == pytest.approx(0.64 * first.variance + 0.04 * second.variance)
    below = [share * (one.random - one.ends(Z)[0]) for share, one in ((0.8, first), (0.2, second))]
    assert both.random - both.ends(Z)[0] == pytest.approx(hypot(*below))


def test_whether_as_many_answer_at_random_in_all_groups() -> None:
    groups = [anchored((400, 300)), anchored((300, 250)), anchored((500, 360))]
    together = anchored((400, 300), (300, 250), (500, 360)).attentive
    assert 0 < together < 1
    score = score_of(grr(2, 2.0), (0, 1))
    values, variances = [g.random for g in groups], [score.variance(together) / g.n for g in groups]
    fit = optimize.minimize_scalar(
        lambda x: sum((v - x) ** 2 / s for v, s in zip(values, variances, strict=True))
    )
    assert same_share_by_anchors(groups) == pytest.approx(stats.chi2.sf(fit.fun, 2), rel=1e-6)
    assert same_share_by_anchors(groups[:1]) is None
    # All reports of a group are equal: its variance is estimated as 0, but is not 0.
    extreme = same_share_by_anchors([groups[0], anchored((100, 100))])
    assert extreme is not None
    assert extreme < 1e-6


def test_an_imprecise_share_far_above_1_is_not_precise() -> None:
    """By chance κ̂ is far above 1 if an anchor tells little; figures would be shown only then."""
    score = score_of(grr(2, 2.0), (3, 1))
    found = Anchored(60, (Stack(60, (Counted(score, np.array([51.0, 9.0])),), (1.0,)),))
    assert found.attentive > 1.2
    assert sqrt(found.variance) < 0.25 * found.attentive
    assert sqrt(score.variance(1.0) / 60) > 0.25
    assert not found.within(0.25)
    equal = Anchored(
        2, (Stack(2, (Counted(score_of(grr(2, 2.0), (1, 0)), np.array([2.0, 0])),), (1.0,)),)
    )
    assert equal.variance == 0
    assert not equal.within(0.25)
    assert equal.missing == ceil(score_of(grr(2, 2.0), (1, 0)).variance(1.0) / 0.0625) - 2


def test_the_fit_of_a_square_table_is_pearsons_of_the_symbols() -> None:
    """At the fitted κ, the χ² of the shares is the sum of squared differences over expected counts."""
    mechanism, n = grr(3, 1.5), 2000
    numbers = np.array([1100.0, 520.0, 380.0])
    q, r, a = law(mechanism), np.full(3, 1 / 3), np.array([1.0, 0.0, 0.0])
    decoded = np.linalg.solve(q.T, numbers / n)

    def pearson(kept: float, at: float) -> float:
        fitted, expected = (n * ((k * a + (1 - k) * r) @ q) for k in (kept, at))
        return float(((numbers - fitted) ** 2 / expected).sum())

    at = 0.8
    best = optimize.minimize_scalar(lambda kept: pearson(kept, at)).fun
    inverse, shares_at = np.linalg.inv(q.T), at * a + (1 - at) * r
    expected = shares_at @ q
    covariance = inverse @ (np.diag(expected) - np.outer(expected, expected)) @ inverse.T / n
    found = fit_test(decoded - r, a - r, covariance)
    assert found is not None
    assert found[1] == 1
    assert found[0] == pytest.approx(best, rel=1e-6)


def test_one_anchor_of_two_choices_leaves_nothing_to_test() -> None:
    covariance = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert fit_test(np.array([-0.3, 0.3]), np.array([-0.5, 0.5]), covariance) is None


def test_the_published_example_of_the_crosswise_model() -> None:
    """cWise, data `cmdata`: .1950 without correction, .1054 with it, .7729 attentive.

    Its bootstrap has standard errors of .0208 to .0226 in two runs, the delta method .0227.
    """
    n, part = 2000, round(0.15 * 2**20)
    crosswise = DenseMechanism(20, ((2**20 - part, part), (part, 2**20 - part)))
    score = score_of(crosswise, (1, 0))
    item = Anchored(n, (Stack(n, (Counted(score, np.array([1541.0, 459.0])),), (1.0,)),))
    row = decoder(crosswise, shares(2), None).floats()[1]
    counts = np.array([1427.0, 573.0])
    t = float(row @ counts) / n
    variance = float((row - t) ** 2 @ counts) / n / (n - 1)
    seen = Observed(np.array([t, 1.0]), np.diag([variance, 0.0]), np.array([0.5, 1.0]), item)
    (a, b), covariance = moments_of([seen])
    value = a / b
    se = sqrt(np.array([1, -value]) @ covariance @ np.array([1, -value])) / b
    assert (round(t, 4), round(value, 4), round(item.attentive, 4)) == (0.195, 0.1054, 0.7729)
    assert se == pytest.approx(0.0226, abs=0.0005)


def test_a_repeated_question_is_as_precise_as_a_constant_one_and_more_choices_more_so() -> None:
    """Symbols "equal" and "different" of k² joint answers; readers give equal ones."""
    (keep, flip), _ = grr(2, 2.0).weights
    found = []
    for size in (2, 3, 5):
        equal = [x == z for x in range(size) for z in range(size)]
        rows = tuple((keep, flip) if same else (flip, keep) for same in equal)
        both = DenseMechanism(40, rows)
        known = tuple(Fraction(int(same), size) for same in equal)
        score = AnchorScore.of(both, known, even(both))
        assert score is not None
        found.append(score.variance(1.0))
    assert found[0] == pytest.approx(score_of(grr(2, 2.0), (1, 0)).variance(1.0))
    assert found == sorted(found, reverse=True)
