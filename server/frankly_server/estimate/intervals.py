# SPDX-License-Identifier: Apache-2.0
"""Intervals that hold at every n and every truth: exact for two-valued scores, Hoeffding, and at any time.

All of them hold for a census too, where reports are independent but not alike. Binomial tails bound those of unlike
trials beyond the mean [Hoeffding 1956, Thm 5], which is what `exact` needs at levels of ½ and above. For n of N people
drawn without replacement Hoeffding's bound holds [Hoeffding 1963, Thm 4]; for `exact` and `sequence` we have no proof,
so there they are left out.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from frankly_server.estimate.evidence import TwoValues
from frankly_server.estimate.margins import normal_quantile

Ends = tuple[float, float]
_KNOWN = 4096  # intervals of chances: the answers of one question often have the same few counts


def exact(two: TwoValues, n: int, level: float) -> Ends:
    """Return the Clopper-Pearson interval of a score that is `low` or `high`, in the target's own units.

    The estimate is low + (high − low)·count/n, so ends for the chance of `high` become ends for the target; that the
    chance may fall with the target (a negative slope) is settled by calling the larger value `high`.
    """
    return _scaled(two, _clopper_pearson(two.count, n, level))


def hoeffding(ends: tuple[Fraction, Fraction], n: int, level: float) -> float:
    """Return the half-width (max d − min d)·√(ln(2/(1 − level))/(2n)) [Hoeffding 1963, Thm 2]."""
    return float(ends[1] - ends[0]) * math.sqrt(math.log(2 / (1 - level)) / (2 * n))


def sequence(ends: tuple[Fraction, Fraction], n: int, level: float, planned: int) -> float:
    """Return a half-width that holds at all n at once, so that looking often does no harm.

    Robbins' normal mixture for scores in an interval of length R: |Σ(d − mean)| ≤ √((v + ρ) ln((v + ρ)/(ρ α²))) for all
    n with probability 1 − α, v = n R²/4 [Robbins 1970; Howard et al. 2021, eq. 3.7]. ρ makes it narrowest near
    n = `planned`, which must not depend on the reports.
    """
    alpha = 1 - level
    quarter = float(ends[1] - ends[0]) ** 2 / 4
    if quarter == 0:
        return 0.0
    rho = planned * quarter / (2 * math.log(1 / alpha) + math.log(1 + 2 * math.log(1 / alpha)))
    v = n * quarter
    return math.sqrt((v + rho) * math.log((v + rho) / (rho * alpha**2))) / n


def sequence_of_two(two: TwoValues, n: int, level: float) -> Ends:
    """Return the ends of an interval that holds at all n at once, for a score of two values.

    Under the true chance q the ratio of the likelihood mixed over a uniform prior to that of q is a martingale of mean
    one, so by Ville's inequality it stays below 1/α at all n with probability 1 − α [Robbins 1970]; the interval is
    where it does now.
    """
    return _scaled(two, _mixture(two.count, n, level))


@lru_cache(maxsize=_KNOWN)
def _clopper_pearson(k: int, n: int, level: float) -> Ends:
    tail = (1 - level) / 2
    low = 0.0 if k == 0 else float(special.betaincinv(k, n - k + 1, tail))
    high = 1.0 if k == n else float(special.betainccinv(k + 1, n - k, tail))
    return low, high


@lru_cache(maxsize=_KNOWN)
def _mixture(k: int, n: int, level: float) -> Ends:
    mixed = special.betaln(k + 1, n - k + 1)
    limit = math.log(1 / (1 - level))

    def excess(q: float) -> float:
        return float(mixed - special.xlogy(k, q) - special.xlog1py(n - k, -q) - limit)

    middle = k / n
    low = 0.0 if k == 0 else _crossing(excess, 0.0, middle)
    high = 1.0 if k == n else _crossing(excess, 1.0, middle)
    return low, high


def _crossing(excess: Callable[[float], float], outside: float, inside: float) -> float:
    """Return where `excess` changes its sign between an end, where it is +inf, and the middle, where it is negative."""
    tiny = 1e-300 if outside == 0.0 else 1 - 1e-16
    if excess(tiny) <= 0:
        return outside
    return float(optimize.brentq(excess, tiny, inside, xtol=1e-14))


def _scaled(two: TwoValues, chance: Ends) -> Ends:
    low, step = float(two.low), float(two.high - two.low)
    return low + step * chance[0], low + step * chance[1]


def widest(correlation: NDArray[np.float64], level: float) -> float:
    """Return z with P(max_t |Z_t| ≤ z) ≥ level for jointly normal Z; at most Bonferroni's, at least one target's.

    Found by integrating over 2^12 quasi-random points; the result is raised by two standard errors of the quantile.
    """
    targets = len(correlation)
    bonferroni = normal_quantile(level, targets)
    if targets > _MOST_JOINT:
        return bonferroni
    values, vectors = np.linalg.eigh(correlation)
    used = values > 1e-9 * max(values.max(), 1e-300)
    if not used.any():
        return bonferroni
    normals = _normals(int(used.sum())) @ (vectors[:, used] * np.sqrt(values[used])).T
    largest = np.sort(np.abs(normals).max(axis=1))
    rank = level * _POINTS + 2 * math.sqrt(_POINTS * level * (1 - level))
    found = float(largest[min(math.ceil(rank), _POINTS - 1)])
    return min(max(found, normal_quantile(level)), bonferroni)


_POINTS = 2**12
_MOST_JOINT = 24


@lru_cache(maxsize=_MOST_JOINT)
def _normals(dimensions: int) -> NDArray[np.float64]:
    """Return quasi-random standard normal vectors, the same ones every time."""
    points = stats.qmc.Halton(dimensions, scramble=False).random(_POINTS + 1)[1:]
    return np.asarray(stats.norm.ppf(np.clip(points, 1e-12, 1 - 1e-12)), dtype=np.float64)
