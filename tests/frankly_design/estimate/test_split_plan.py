# SPDX-License-Identifier: Apache-2.0
"""Plans of split ballots, compared with reference figures and with enumerations in fractions."""

from fractions import Fraction
from math import comb, exp, inf, isclose, nan, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate.split_plan import (
    WHOLE,
    best_share,
    power_of,
    reports_needed,
    sizes_test,
)
from frankly_design.numeric.lazy import special


def variance(share: float, epsilon: float) -> float:
    """Return the variance of one report's unbiased score under randomised response."""
    kept = exp(epsilon) / (1 + exp(epsilon))
    yes = share * kept + (1 - share) * (1 - kept)
    return yes * (1 - yes) / (2 * kept - 1) ** 2


PLANS = [
    ((0.08, 4.0), (0.03, 4.0), 0.5, 884),
    ((0.08, 2.0), (0.03, 2.0), 0.5, 2919),
    ((0.20, 4.0), (0.15, 2.0), 0.5, 3062),
    ((0.20, 4.0), (0.15, 2.0), None, 3007),
]


@pytest.mark.parametrize(("first", "second", "share", "reports"), PLANS)
def test_reference_figures(
    first: tuple[float, float], second: tuple[float, float], share: float | None, reports: int
) -> None:
    v1, v2 = variance(*first), variance(*second)
    share = best_share(v1, v2) / WHOLE if share is None else share
    difference = first[0] - second[0]
    assert reports_needed(difference, v1, v2, share, 0.8, 0.05) == reports
    assert reports_needed(-difference, v2, v1, 1 - share, 0.8, 0.05) == reports


@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("level", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.7])
def test_the_number_is_the_least_with_the_power_on_the_right_side(
    power: float, level: float, share: float
) -> None:
    v1, v2, difference = 0.3, 0.9, 0.04
    n = reports_needed(difference, v1, v2, share, power, level)
    assert power_of(n, difference, v1, v2, share, level) >= power
    right_side = NormalDist(difference, sqrt((v1 / share + v2 / (1 - share)) / (n - 1)))
    limit = right_side.stdev * NormalDist().inv_cdf(1 - level / 2)
    assert 1 - right_side.cdf(limit) < power


def test_a_large_difference_needs_a_report_in_each_arm() -> None:
    assert reports_needed(100.0, 0.1, 0.1, 0.5, 0.8, 0.05) == 2


def test_a_whole_number_is_not_rounded_up() -> None:
    z = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)
    for n in range(10, 2000, 7):
        difference = z * sqrt(4 * 0.3 / n)
        assert reports_needed(difference, 0.3, 0.3, 0.5, 0.8, 0.05) == n


@pytest.mark.parametrize("level", [0.01, 0.05, 0.5])
def test_without_a_difference_the_power_is_the_level(level: float) -> None:
    assert power_of(100, 0.0, 0.2, 0.4, 0.3, level) == pytest.approx(level, rel=1e-9)


def test_the_power_is_the_share_of_rejections() -> None:
    n, difference, v1, v2, share, level = 40.5, 0.3, 0.5, 2.0, 0.4, 0.2
    se = sqrt(v1 / (share * n) + v2 / ((1 - share) * n))
    # The mean over a fine grid of quantiles of the estimate of D.
    uniform = (np.arange(200_000) + 0.5) / 200_000
    estimates = difference + se * special.ndtri(uniform)
    rejected = np.abs(estimates) / se > NormalDist().inv_cdf(1 - level / 2)
    power = power_of(n, difference, v1, v2, share, level)
    assert power == pytest.approx(float(rejected.mean()), abs=1e-5)
    assert power == pytest.approx(power_of(n, -difference, v2, v1, 1 - share, level))


@pytest.mark.parametrize("null", [(0.2, 0.2), (0.5, 0.1), (0.0, 0.4)])
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_the_standard_error_of_the_test_can_be_that_of_equal_shares(
    null: tuple[float, float], share: float
) -> None:
    v1, v2, difference, level = 0.3, 0.15, 0.05, 0.05
    n = reports_needed(difference, v1, v2, share, 0.8, level, null)
    se = sqrt((v1 / share + v2 / (1 - share)) / n)
    limit = 1.9599639845400545 * sqrt((null[0] / share + null[1] / (1 - share)) / n)
    law = NormalDist(difference, se)
    power = power_of(n, difference, v1, v2, share, level, null)
    assert power == pytest.approx(1 - law.cdf(limit) + law.cdf(-limit), rel=1e-12)
    assert 0.8 <= power < 0.802
    assert reports_needed(difference, v1, v2, share, 0.8, level, (v1, v2)) == reports_needed(
        difference, v1, v2, share, 0.8, level
    )


@pytest.mark.parametrize("null", [(0.0, 0.0), (-1.0, 1.0), (1.0, inf)])
def test_variances_of_the_test_are_checked(null: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match=r"variances|v2"):
        reports_needed(power=0.8, null=null, **PLAN)
    with pytest.raises(ValueError, match=r"variances|v2"):
        power_of(n=100, null=null, **PLAN)


@pytest.mark.parametrize(("v1", "v2"), [(1.0, 1.0), (0.1, 3.0), (2.0, 0.3), (1.0, 1e6)])
def test_no_other_chance_has_a_smaller_variance(v1: float, v2: float) -> None:
    chances = np.arange(1, WHOLE)
    variances = v1 * WHOLE / chances + v2 * WHOLE / (WHOLE - chances)
    chosen = best_share(v1, v2)
    assert variances[chosen - 1] <= variances.min() * (1 + 1e-9)
    assert best_share(v2, v1) == WHOLE - chosen


def test_an_arm_without_variance_is_drawn_as_rarely_as_possible() -> None:
    assert (best_share(0.0, 1.0), best_share(1.0, 0.0)) == (1, 65_535)
    assert best_share(4.0, 1.0) == round(WHOLE * 2 / 3)


def exact(k: int, n: int, p: Fraction) -> Fraction:
    """Return the two-sided p-value by listing all outcomes."""
    chances = [comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(n + 1)]
    return sum((chance for chance in chances if chance <= chances[k]), Fraction(0))


@pytest.mark.parametrize("chance", [1, 6554, 21845, 32768, 32769, 49152, 65535])
def test_two_arms_have_the_exact_binomial_test(chance: int) -> None:
    p = Fraction(chance, WHOLE)
    for n in (1, 2, 3, 7, 16, 33, 60):
        for k in range(n + 1):
            value = sizes_test([k, n - k], [chance, WHOLE - chance])
            assert isclose(value, exact(k, n, p), rel_tol=1e-9), (n, k)


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 3), Fraction(3, 7)])
def test_outcomes_that_are_equally_likely_count(p: Fraction) -> None:
    chances = [p.numerator, p.denominator - p.numerator]
    for n in (20, 21, 40):
        for k in range(n + 1):
            assert isclose(sizes_test([k, n - k], chances), exact(k, n, p), rel_tol=1e-9)


@pytest.mark.parametrize("n", [5000, 1_000_000, 10_000_000])
@pytest.mark.parametrize("chance", [3, 20_000, 32_768])
@pytest.mark.parametrize("deviations", [-6.0, -1.5, -0.001, 0.7, 2.0, 5.0])
def test_many_reports_lose_no_accuracy(n: int, chance: int, deviations: float) -> None:
    p = chance / WHOLE
    k = max(0, round(n * p + deviations * sqrt(n * p * (1 - p))))
    # The log chances of outcomes around the mean, each from its neighbour.
    spread = 40 * sqrt(n * p * (1 - p)) + 60
    outcomes = np.arange(max(0, int(n * p - spread)), min(n, int(n * p + spread)) + 1)
    steps = np.log((n - outcomes[:-1]) / (outcomes[:-1] + 1.0) * (p / (1 - p)))
    logs = np.concatenate([[0.0], np.cumsum(steps.astype(np.longdouble))])
    chances = np.exp(logs - logs.max())
    observed = logs[np.searchsorted(outcomes, k)]
    total = float(chances[logs <= observed + 1e-10].sum() / chances.sum())
    value = sizes_test([k, n - k], [chance, WHOLE - chance])
    assert value == pytest.approx(total, rel=1e-8)


def test_the_arms_can_be_exchanged() -> None:
    for k in (0, 3, 400, 519, 1000):
        first = sizes_test([k, 1000 - k], [30_000, 35_536])
        assert first == pytest.approx(sizes_test([1000 - k, k], [35_536, 30_000]), rel=1e-12)


def test_more_arms_have_pearsons_test() -> None:
    counts, chances = [30, 50, 20], [16_384, 32_768, 16_384]
    statistic = (30 - 25) ** 2 / 25 + 0 + (20 - 25) ** 2 / 25
    # χ² with two degrees of freedom is an exponential distribution.
    assert sizes_test(counts, chances) == pytest.approx(exp(-statistic / 2), rel=1e-12)
    assert sizes_test([25, 50, 25], chances) == 1.0


def test_without_reports_nothing_is_rejected() -> None:
    assert sizes_test([0, 0], [1, 65_535]) == 1.0
    assert sizes_test([0, 0, 0], [1, 2, 3]) == 1.0


PLAN: dict[str, Any] = {"difference": 0.1, "v1": 1.0, "v2": 1.0, "share": 0.5, "level": 0.05}
FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"difference": nan}, "difference must be a finite number"),
    ({"difference": inf}, "difference must be a finite number"),
    ({"v1": -0.1}, "variances must be at least 0"),
    ({"v2": -0.1}, "variances must be at least 0"),
    ({"v1": 0.0, "v2": 0.0}, "not both 0"),
    ({"v1": inf}, "v1 must be a finite number"),
    ({"v2": nan}, "v2 must be a finite number"),
    ({"share": 0.0}, "share must be above 0"),
    ({"share": 1.0}, "share must be above 0"),
    ({"level": 0.0}, "level must be above 0"),
    ({"level": 1.0}, "level must be above 0"),
]


@pytest.mark.parametrize(("fault", "words"), FAULTS)
def test_arguments_out_of_range_are_refused(fault: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        reports_needed(power=0.8, **PLAN | fault)
    with pytest.raises(ValueError, match=words):
        power_of(n=100, **PLAN | fault)


@pytest.mark.parametrize("power", [0.49, 1.0, nan])
def test_a_power_is_at_least_a_half(power: float) -> None:
    with pytest.raises(ValueError, match="power must be at least"):
        reports_needed(power=power, **PLAN)


def test_differences_that_cannot_be_found() -> None:
    with pytest.raises(ValueError, match="must not be 0"):
        reports_needed(power=0.8, **PLAN | {"difference": 0.0})
    for difference in (1e-6, 1e-200):
        with pytest.raises(ValueError, match="too small"):
            reports_needed(power=0.8, **PLAN | {"difference": difference})
    # 31.4 / 0.0000057² is just below 10^12.
    assert reports_needed(power=0.8, **PLAN | {"difference": 5.7e-6}) < 10**12


@pytest.mark.parametrize("n", [0, -1, nan, inf])
def test_numbers_of_reports_are_above_0(n: float) -> None:
    with pytest.raises(ValueError, match="n must be above 0"):
        power_of(n=n, **PLAN)


@pytest.mark.parametrize(("v1", "v2"), [(0.0, 0.0), (-1.0, 1.0), (nan, 1.0)])
def test_variances_of_arms_are_checked(v1: float, v2: float) -> None:
    with pytest.raises(ValueError, match=r"variances|v1"):
        best_share(v1, v2)


@pytest.mark.parametrize(
    ("counts", "chances", "words"),
    [
        ([5], [1], "at least two arms"),
        ([5, 5], [1, 1, 1], "at least two arms"),
        ([5, -1], [1, 1], "at least 0"),
        ([5, 5], [0, 1], "above 0"),
    ],
)
def test_malformed_counts_are_refused(counts: list[int], chances: list[int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        sizes_test(counts, chances)
