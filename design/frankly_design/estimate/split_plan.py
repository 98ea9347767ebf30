# SPDX-License-Identifier: Apache-2.0
"""Planning of split ballots: reports for a difference between two arms, and the test of the arms' sizes.

A device draws its arm before anything is asked (spec 3.10), so the reports of two arms are
independent samples of the same people. The difference D of their estimates of a share or mean has
the variance V₁/n₁ + V₂/n₂, with V the variance of the estimate from one report of an arm. With n
reports of both arms, a share π of them in the first, this is (V₁/π + V₂/(1 − π))/n. Powers are those
of the two-sided test by the normal approximation, at the planned variances. A test whose variance is
that of equal shares, as the test of two groups is (spec 8.12), can have another power, mostly if the
arms differ in size or mechanism; `null` takes this into account. The best share is that of Neyman's
allocation [Neyman 1934].
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor, isfinite, lgamma, log, log1p, pi, sqrt
from statistics import NormalDist
from typing import Final

from frankly_design.estimate.effects import chi_squared
from frankly_design.estimate.planner import MOST
from frankly_design.numeric.lazy import special

WHOLE: Final = 1 << 16
"""The chances of a document's arms sum to this number."""
_TIE = 1e-9
"""Outcomes whose log chances differ by less are equally likely: the difference is rounding."""
_STIRLING = 16
"""Stirling's series is accurate to 1e-16 from here on; below, the logarithm of Γ is."""


def reports_needed(
    difference: float,
    v1: float,
    v2: float,
    share: float,
    power: float,
    level: float,
    null: tuple[float, float] | None = None,
) -> int:
    """Return how many reports of both arms find a difference with at least this power.

    difference : θ₁ − θ₂, of either sign, not 0. v1, v2 : variances of one report's estimate in each
        arm, ≥ 0 and not both 0. share : π, the chance of the first arm, in (0, 1). power : in [½, 1).
        level : of the two-sided test, the chance that it rejects without a difference, in (0, 1).
        null : variances of one report's estimate in each arm at the shares for which the test computes
        its standard error; None if it is computed at the true ones. Not both 0.

    The rejections on the wrong side are left out, which makes the number larger by less than a
    report at usual powers. Raises ValueError for other arguments, or if more than 10^12 reports are needed.
    """
    _require_finite("difference", difference)
    if difference == 0:
        raise ValueError("difference must not be 0: no number of reports finds it")
    if not 0.5 <= power < 1:
        raise ValueError(f"power must be at least 0.5 and below 1, got {power}")
    tested, actual = _roots(v1, v2, share, null)
    distance = _quantile(level) * tested + NormalDist().inv_cdf(power) * actual
    # Compared before it is squared: the squares of a small difference are beyond the range of floats.
    root = distance / abs(difference)
    if root > sqrt(MOST):
        raise ValueError(f"the difference is too small: more than {MOST} reports are needed")
    # rounding: a whole number can come out slightly above itself
    return max(2, ceil(root**2 * (1 - 1e-12)))


def power_of(
    n: float,
    difference: float,
    v1: float,
    v2: float,
    share: float,
    level: float,
    null: tuple[float, float] | None = None,
) -> float:
    """Return the chance that the two-sided test rejects with n reports of both arms.

    n : above 0, may be an expected (non-integer) number. The other arguments are those of
    `reports_needed`; difference may be 0, for which the chance is `level` without `null`. Rejections on both sides
    count, as a two-sided test makes them. Raises ValueError for arguments out of range.
    """
    _require_finite("difference", difference)
    if not (isfinite(n) and n > 0):
        raise ValueError(f"n must be above 0, got {n}")
    tested, actual = _roots(v1, v2, share, null)
    # The test rejects outside ±limit standard errors of the difference.
    limit, normal = _quantile(level) * tested / actual, NormalDist()
    shift = abs(difference) * sqrt(n) / actual
    return normal.cdf(shift - limit) + normal.cdf(-shift - limit)


def best_share(v1: float, v2: float) -> int:
    """Return the chance of the first arm, out of 65,536, with the least variance of the difference.

    v1, v2 : variances of one report's estimate in each arm, ≥ 0 and not both 0. The least variance
    is at π = √V₁/(√V₁ + √V₂); the result is the nearest whole number from 1 to 65,535.
    Raises ValueError for other variances.
    """
    _require_variances(v1, v2)
    first, second = sqrt(v1), sqrt(v2)
    return min(max(round(WHOLE * first / (first + second)), 1), WHOLE - 1)


def sizes_test(counts: Sequence[int], chances: Sequence[int]) -> float:
    """Return the p-value of the hypothesis that devices drew the arms with these chances.

    counts : reports of each arm, ≥ 0. chances : of each arm, whole numbers above 0; only their
    ratios matter. Two arms have the exact two-sided binomial test: the sum of the chances of all
    outcomes that are no likelier than the observed one. More arms have Pearson's χ² [Pearson 1900], which is
    approximate if an arm expects fewer than about 5 reports. Without reports it is 1.
    Raises ValueError for fewer than two arms, or other numbers of counts than of chances.
    """
    if len(counts) != len(chances) or len(counts) < 2:
        raise ValueError("expected one count and one chance for each of at least two arms")
    if min(counts) < 0 or min(chances) <= 0:
        raise ValueError("counts must be at least 0 and chances above 0")
    n, whole = sum(counts), sum(chances)
    if n == 0:
        return 1.0
    if len(counts) == 2:
        return _binomial_test(counts[0], n, Fraction(chances[0], whole))
    # Fractions, because the difference of two large floats is rounded.
    terms = (
        Fraction((count * whole - n * chance) ** 2, n * chance * whole)
        for count, chance in zip(counts, chances, strict=True)
    )
    return chi_squared(float(sum(terms)), len(counts) - 1)


def _binomial_test(k: int, n: int, p: Fraction) -> float:
    """Return the chance of the outcomes of n draws no likelier than k."""
    likely = _log_chance(k, n, p) + _TIE
    mode = floor((n + 1) * p)
    if _log_chance(mode, n, p) <= likely:
        return 1.0
    if k > mode:
        k, mode, p = n - k, n - mode, 1 - p
    return _at_most(k, n, p) + _at_most(n - _first(mode, n, p, likely), n, 1 - p)


def _first(mode: int, n: int, p: Fraction, likely: float) -> int:
    """Return the first outcome above a mode whose log chance is at most `likely`; n + 1 if none is."""
    low, high = mode, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _log_chance(middle, n, p) <= likely else (middle, high)
    return high


def _at_most(k: int, n: int, p: Fraction) -> float:
    """Return P(X ≤ k) of a binomial X; k from −1 to n − 1."""
    return float(special.betainc(n - k, k + 1, float(1 - p))) if k >= 0 else 0.0


def _log_chance(k: int, n: int, p: Fraction) -> float:
    """Return ln P(X = k) of a binomial X, without the cancellation of logarithms of Γ [Loader 2000]."""
    if k in (0, n):
        return n * log1p(-float(p if k == 0 else 1 - p))
    return (
        _stirling(n)
        - _stirling(k)
        - _stirling(n - k)
        - _deviance(k, n * p)
        - _deviance(n - k, n * (1 - p))
        - log(2 * pi * k * (n - k) / n) / 2
    )


def _stirling(n: int) -> float:
    """Return ln n! minus Stirling's approximation (n + ½) ln n − n + ½ ln 2π, for n ≥ 1."""
    if n < _STIRLING:
        return lgamma(n + 1) - (n + 0.5) * log(n) + n - log(2 * pi) / 2
    square = float(n) * n
    return (1 - (1 / 30 - (1 / 105 - (1 / 140 - 1 / (99 * square)) / square) / square) / square) / (
        12 * n
    )


def _deviance(k: int, mean: Fraction) -> float:
    """Return k ln(k/m) − k + m, with the difference k − m exact."""
    off = k - mean
    return k * log1p(float(off / mean)) - float(off)


def _roots(
    v1: float, v2: float, share: float, null: tuple[float, float] | None
) -> tuple[float, float]:
    """Return √n times the standard error of the test, and the true one."""
    actual = sqrt(_spread(v1, v2, share))
    return (actual if null is None else sqrt(_spread(*null, share))), actual


def _spread(v1: float, v2: float, share: float) -> float:
    """Return n times the variance of the difference: V₁/π + V₂/(1 − π)."""
    _require_variances(v1, v2)
    if not 0 < share < 1:
        raise ValueError(f"share must be above 0 and below 1, got {share}")
    return v1 / share + v2 / (1 - share)


def _quantile(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level must be above 0 and below 1, got {level}")
    # The lower tail is used, because 1 − tail would lose digits at small levels.
    return -NormalDist().inv_cdf(level / 2)


def _require_variances(v1: float, v2: float) -> None:
    _require_finite("v1", v1)
    _require_finite("v2", v2)
    if min(v1, v2) < 0 or max(v1, v2) == 0:
        raise ValueError(f"variances must be at least 0 and not both 0, got {v1} and {v2}")


def _require_finite(name: str, value: float) -> None:
    if not isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value}")
