# SPDX-License-Identifier: Apache-2.0
"""Guaranteed intervals of many simulated surveys at once.

For scores of two values, the intervals are functions of one count, and the server's code computes
them for each count that occurs. For other scores, only the range of means whose interval contains
the true value is computed, from the server's moments: `kl` contains θ unless some λ excludes it,
`sequence` unless the mixture over λ does.
"""

import math
from dataclasses import replace

import numpy as np
from frankly_design.estimate import chernoff, intervals
from frankly_design.estimate.margins import normal_quantile
from frankly_design.kinds.scores import Score, TwoValues
from numpy.typing import NDArray
from scipy.optimize import brentq

from _estimate.linear import LEVEL, Both, FloatArray, IntArray, Linear, Z

OF_TWO = "clt of two values"
TILTS = np.geomspace(2.0**-10, 2.0**6, 129)
"""λ times the range of scores: the best of these is within a thousandth of the best λ."""


def of_two(
    score: Score, w: FloatArray, value: FloatArray, in_high: IntArray, n: int
) -> dict[str, Both]:
    """Return the ends for surveys with `in_high` reports in the upper group; `value` : estimates.

    The result includes `clt` for the two-valued score itself, which for sets is the score of a
    single bit.
    """
    assert score.two is not None  # noqa: S101 - checked by the caller
    counts, places = np.unique(in_high, return_inverse=True)
    ends_by_method: dict[str, list[chernoff.Ends]] = {"kl": [], "exact": [], "sequence": []}
    for count in counts:
        two, whole_score = replace(score.two, count=int(count)), replace(score, of_bit=False)
        ends_by_method["kl"].append(chernoff.kl(replace(whole_score, two=two), w, n, LEVEL))
        ends_by_method["exact"].append(chernoff.within(intervals.exact(two, n, LEVEL), w))
        ends_by_method["sequence"].append(
            chernoff.within(intervals.sequence_of_two(two, n, LEVEL), w)
        )
    every = {
        method: np.array(pairs)[np.ravel(places)].T for method, pairs in ends_by_method.items()
    }
    ends: dict[str, Both] = {method: (low, high) for method, (low, high) in every.items()}
    if score.of_bit:
        ends = {method: _shown(pairs, value, w) for method, pairs in ends.items()}
    return ends | {OF_TWO: _normal(score.two, in_high, n)}


def _normal(two: TwoValues, in_high: IntArray, n: int) -> Both:
    low, high = (sum(group) / 2 for group in (two.low, two.high))
    share = in_high / n
    mean, half = (
        low + (high - low) * share,
        Z * abs(high - low) * np.sqrt(share * (1 - share) / (n - 1)),
    )
    return mean - half, mean + half


def _shown(ends: Both, value: FloatArray, w: FloatArray) -> Both:
    """Return intervals of single bits, widened to the estimates clipped to [min w, max w]."""
    overlapping = (ends[0] <= w.max()) & (ends[1] >= w.min())
    reached = np.where(overlapping, np.clip(value, w.min(), w.max()), value)
    return np.minimum(ends[0], reached), np.maximum(ends[1], reached)


def hold(score: Score, w: FloatArray, theta: float, n: int) -> dict[str, chernoff.Ends]:
    """Return the least and the largest mean score whose `kl` and `sequence` contain a true value.

    For scores of more than two values. If no truth fits a mean, the server's interval is wider
    than assumed here.
    """
    assert score.law is not None  # noqa: S101 - the laws of these designs are short
    reach, limit = score.reach[1] - score.reach[0], math.log(2 / (1 - LEVEL)) / n
    signed = np.concatenate([-TILTS, TILTS]) / reach
    # λ excludes θ if ln G(λ, θ) − λm < −limit.
    bounds = (_log_moments(score, w, theta, signed, beyond=True) + limit) / signed
    tilts = chernoff._SIGNED / reach  # noqa: SLF001 - the server's mixture
    moments = _log_moments(score, w, theta, tilts)

    def excess(mean: float) -> float:
        log_terms = chernoff._LOG_WEIGHTS - n * (moments - mean * tilts)  # noqa: SLF001
        return float(np.logaddexp.reduce(log_terms)) - math.log(1 / (1 - LEVEL))

    # The excess is convex in the mean, and negative at θ.
    low, high = (
        end if excess(end) <= 0 else float(brentq(excess, theta, end)) for end in score.reach
    )
    return {"kl": (bounds[signed < 0].max(), bounds[signed > 0].min()), "sequence": (low, high)}


def _log_moments(
    score: Score, w: FloatArray, theta: float, tilts: FloatArray, *, beyond: bool = False
) -> FloatArray:
    """Return ln G(λ, θ); with `beyond`, its maximum over θ' ≥ θ for λ < 0, over θ' ≤ θ for λ > 0.

    An upper end is the largest θ that no λ < 0 excludes, so θ is outside if all θ' ≥ θ are
    excluded.
    """
    assert score.law is not None  # noqa: S101 - checked by the caller
    moments = chernoff.MixedMoments.of(score.law, w, 0.0, tilts)
    at = np.array([np.interp(theta, moments.knots, row) for row in moments.envelope])
    if beyond:
        outside = np.where(tilts[:, None] < 0, moments.knots >= theta, moments.knots <= theta)
        at = np.maximum(at, np.max(np.where(outside, moments.envelope, 0.0), axis=1))
    return np.asarray(np.log(at) + moments.shift)


def all_at_once(linear: Linear, counts: IntArray, deviations: FloatArray) -> NDArray[np.bool_]:
    """Return True per survey if `simultaneous` contains all true values.

    The factor of `simultaneous` is that of jointly normal estimates. It is computed only if the
    pointwise factor, a lower bound, is too small and Bonferroni's factor, an upper bound, is large
    enough.
    """
    n = int(counts[0].sum())
    largest = np.max(np.abs(deviations) / linear.worst, axis=1) * math.sqrt(n)
    held = largest <= normal_quantile(LEVEL)
    doubtful = np.flatnonzero(
        ~held & (largest <= normal_quantile(LEVEL, max(1, len(linear.targets))))
    )
    for i in doubtful:
        covariance = linear.covariance(counts[i])
        scale = np.sqrt(np.diagonal(covariance))
        held[i] = not np.all(scale > 0) or largest[i] <= intervals.widest(
            covariance / np.outer(scale, scale), LEVEL
        )
    return np.asarray(held)
