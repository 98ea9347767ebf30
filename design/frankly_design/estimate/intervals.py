# SPDX-License-Identifier: Apache-2.0
"""Clopper-Pearson, sequence and score intervals, and the normal factor of several targets.

`exact` and `sequence_of_two` are valid at every n and all true shares for independent draws.
`exact` is also valid for a census, where reports are independent but not identically distributed:
beyond the mean, binomial tails bound those of trials with different probabilities [Hoeffding 1956,
Thm 5], which suffices at levels of ½ and above. Neither is proved for draws without replacement, so
callers omit both there.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from frankly_design.estimate.chernoff import Ends, scaled
from frankly_design.estimate.margins import normal_quantile
from frankly_design.kinds.scores import TwoValues
from frankly_design.numeric.lazy import optimize, special

_CACHED = 4096  # size of the interval cache: answers of one question often share the same counts


def exact(two: TwoValues, n: int, level: float) -> Ends:
    """Return the Clopper-Pearson interval of a score of two groups, in the target's units.

    The mean score is low + (high − low)·q, where q is the probability of the upper group and low
    and high are values of the two groups. This mean increases with q, so the ends for q and the
    outer values of the groups give the ends for the target.
    """
    return scaled(two.low, two.high, _clopper_pearson(two.count, n, level))


def sequence_of_two(two: TwoValues, n: int, level: float) -> Ends:
    """Return the ends of a confidence sequence, valid at all n simultaneously, for two values.

    If q is the true probability of the upper value, the likelihood averaged over a uniform prior,
    divided by the likelihood of q, is a martingale of mean 1. By Ville's inequality it stays below
    1/α at all n with probability at least 1 − α = level [Robbins 1970]. The interval contains all q
    for which it is currently below 1/α.
    """
    return scaled(two.low, two.high, _mixture(two.count, n, level))


@dataclass(frozen=True, slots=True)
class Variance:
    """n times the variance of an estimate at the true value θ: constant + slope·θ − curve·θ²."""

    constant: float
    slope: float
    curve: float


def score(estimate: float, n: int, variance: Variance, z: float) -> Ends:
    """Return the ends of {θ : (estimate − θ)² ≤ z²/n · variance(θ)} [Wilson 1927 for a binomial].

    `variance.constant` is estimated, so the variance at `estimate` can be negative. It is then
    replaced by 0, so that the set is not empty and contains `estimate`.
    """
    k, curve = z * z / n, variance.curve
    at_estimate = max(0.0, variance.constant + variance.slope * estimate - curve * estimate**2)
    # With θ = estimate + u: (1 + k·curve)u² − k(slope − 2·curve·estimate)u − k·at_estimate ≤ 0.
    lean = k * (variance.slope - 2 * curve * estimate)
    root = math.sqrt(lean**2 + 4 * (1 + k * curve) * k * at_estimate)
    return estimate + (lean - root) / (2 * (1 + k * curve)), estimate + (lean + root) / (
        2 * (1 + k * curve)
    )


@lru_cache(maxsize=_CACHED)
def _clopper_pearson(k: int, n: int, level: float) -> Ends:
    tail = (1 - level) / 2
    low = 0.0 if k == 0 else float(special.betaincinv(k, n - k + 1, tail))
    return low, 1.0 if k == n else float(special.betainccinv(k + 1, n - k, tail))


@lru_cache(maxsize=_CACHED)
def _mixture(k: int, n: int, level: float) -> Ends:
    mixed = special.betaln(k + 1, n - k + 1)
    limit = math.log(1 / (1 - level))

    def excess(q: float) -> float:
        return float(mixed - special.xlogy(k, q) - special.xlog1py(n - k, -q) - limit)

    middle = k / n
    low = 0.0 if k == 0 else _crossing(excess, 0.0, middle)
    return low, 1.0 if k == n else _crossing(excess, 1.0, middle)


def _crossing(excess: Callable[[float], float], outside: float, inside: float) -> float:
    """Return the zero of `excess` between `outside`, where it is +inf, and `inside` (negative)."""
    # brentq needs finite values, so the search starts at the float next to the end. If `excess` is
    # not positive there, the end itself is returned.
    tiny = 1e-300 if outside == 0.0 else 1 - 1e-16
    if excess(tiny) <= 0:
        return outside
    return float(optimize.brentq(excess, tiny, inside, xtol=1e-14))


def widest(correlation: NDArray[np.float64], level: float) -> float:
    """Return z such that P(max_t |Z_t| ≤ z) is about `level` or more, for jointly normal Z.

    z is computed by quasi-Monte Carlo with 2^12 points and raised by two standard errors of the
    quantile. It is at least the factor of a single target and at most Bonferroni's factor, which is
    used for more than 24 targets.
    """
    targets = len(correlation)
    bonferroni = normal_quantile(level, targets)
    if targets > _MOST_JOINT:
        return bonferroni
    values, vectors = np.linalg.eigh(correlation)
    # rounding: shares sum to 1, so their covariance has an eigenvalue of 0 up to rounding, which is
    # dropped.
    used = values > 1e-9 * max(values.max(), 1e-300)
    if not used.any():
        return bonferroni
    normals = _normals(int(used.sum())) @ (vectors[:, used] * np.sqrt(values[used])).T
    largest = np.sort(np.abs(normals).max(axis=1))
    rank = level * _POINTS + 2 * math.sqrt(_POINTS * level * (1 - level))
    quantile = float(largest[min(math.ceil(rank), _POINTS - 1)])
    return min(max(quantile, normal_quantile(level)), bonferroni)


_POINTS = 2**12
_PRIMES = (
    2,
    3,
    5,
    7,
    11,
    13,
    17,
    19,
    23,
    29,
    31,
    37,
    41,
    43,
    47,
    53,
    59,
    61,
    67,
    71,
    73,
    79,
    83,
    89,
)
_MOST_JOINT = len(_PRIMES)  # targets; for more, Bonferroni's factor is used


@lru_cache(maxsize=_MOST_JOINT)
def _normals(dimensions: int) -> NDArray[np.float64]:
    """Return fixed quasi-random standard normal vectors, so that margins are reproducible."""
    points = np.stack([_radical_inverses(base) for base in _PRIMES[:dimensions]], axis=1)
    return np.asarray(special.ndtri(points), dtype=np.float64)


def _radical_inverses(base: int) -> NDArray[np.float64]:
    """Return the numbers 1, 2, … in this base, mirrored at the point: one axis of Halton's sequence.

    scipy.stats has the sequence too, but its import would take most of the time of a command.
    """
    rest, place = np.arange(1, _POINTS + 1), 1.0
    inverses = np.zeros(_POINTS)
    while rest.any():
        place /= base
        rest, digit = np.divmod(rest, base)
        inverses += digit * place
    return inverses
