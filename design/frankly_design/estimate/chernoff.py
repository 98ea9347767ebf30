# SPDX-License-Identifier: Apache-2.0
"""Chernoff bounds on a target from the mean of its scores, for one n (`kl`) or all (`sequence`).

A report of a person with answer x has a score d with mean w_x, the target's weight. If the target
has the true value θ, the worst mixed moment is

    G(λ, θ) = max{Σ_x p_x M_x(λ) : p a distribution, Σ_x p_x w_x = θ}  with M_x(λ) = E[exp(λd)|x].

For λ < 0 the mean score of n reports satisfies P(mean ≤ m) ≤ (exp(−λm) G(λ, θ))^n: for independent
draws, for a census and for draws without replacement (proofs in docs/maths/margins.md). Every λ
gives a valid bound, so an inexact search for the best λ makes the interval wider, never invalid.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from frankly_design.kinds.scores import Score, ScoreLaw
from frankly_design.numeric.arrays import FloatArray

Ends = tuple[float, float]

_CACHED = 4096  # size of the interval cache: answers of one question often share the same counts
_HALVINGS = 80  # bisection steps: more than a float's 53 bits, because q may be close to the mean
_COARSE, _FINE, _TILTS_OF_SUM = 49, 17, 97
"""Numbers of λ values; the ends differ from the best ones by less than 1/1000 of the width."""
_STEEPEST = 50.0
"""Largest value of λ times the range in the search for λ; exp(−50) is negligible."""
_ROUNDING = 1e-12
"""Bound on the relative error of a moment in floats; moments are raised by this amount."""
# The mixture of a sequence must be fixed before the first report, or Ville's inequality does not
# apply.
_TILTS = np.geomspace(2.0**-13, 2.0**6, 39)
"""Values of λ times the range in the mixture of a sequence: the best for 5 to 10^9 reports."""
_HEAVIEST = 0.5
"""Value of λ times the range with the largest weight: near the best for 1,000 reports."""
_WEIGHTS = np.tile(1 / (1 + (np.log2(_TILTS / _HEAVIEST) / 3) ** 2), 2)
_SIGNED = np.concatenate([-_TILTS, _TILTS])
_LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum())
_SECTIONS, _ROUNDS = 33, 6
"""Points per round, and rounds, of the search for an end; each narrows the bracket 32-fold."""


def kl(score: Score, w: FloatArray, n: int, level: float) -> Ends:
    """Return the ends of an interval that is valid for every n and all true shares.

    w : the target's weights over the answers.

    For scores with two values this is the Chernoff bound of a binomial share. For other scores it
    is Hoeffding's theorem in the Kullback-Leibler form, which uses only the range of the scores. If
    the law of the scores is listed, the result is the intersection of Hoeffding's interval with the
    mechanism-aware one from G(λ, θ), or Hoeffding's interval if the intersection is empty. The
    interval is cut to the target's range.
    """
    limit = math.log(2 / (1 - level)) / n
    if score.two is not None:
        chances = _chance_ends(score.two.count / n, limit)
        return displayed(scaled(score.two.low, score.two.high, chances), [(score, w)])
    low, high = score.reach
    if not high > low:
        return within((low, high), w)
    mean = min(max((score.mean - low) / (high - low), 0.0), 1.0)
    chances = _chance_ends(mean, limit)
    hoeffding = within(scaled((low, low), (high, high), chances), w)
    if score.law is None:
        return hoeffding
    tilts = _tilt(mean, chances[0]), _tilt(mean, chances[1])
    aware = _aware_ends(score, score.law, w, limit, tilts)
    # The mechanism-aware interval is the narrower one. rounding: from about 10^12 reports on, its
    # allowance for rounding may make it wider, so both are compared.
    both = max(aware[0], hoeffding[0]), min(aware[1], hoeffding[1])
    return both if both[0] <= both[1] else hoeffding


def kl_of_sum(parts: Sequence[tuple[Score, FloatArray, int]], level: float) -> Ends:
    """Return the ends of an interval for the sum of the targets of independent parts.

    parts : (score, weights over the answers, number of reports) of each part.

    The bound of a sum is the product of the parts' bounds at λ·(all reports)/(the part's reports).
    The true values of the parts may differ; the bound is maximised over them. By the inequality of
    arithmetic and geometric means, the bound is at most the n-th power of a mean, whose maximum is
    again a concave polyline. If no possible value is left, returns Hoeffding's interval.
    """
    total = sum(n for *_, n in parts)
    limit = math.log(2 / (1 - level)) / total
    laws = [_law_of(score, w) for score, w, _ in parts]
    squares = sum(
        float(law.high[-1] - law.low[0]) ** 2 / n for law, (*_, n) in zip(laws, parts, strict=True)
    )
    below, above = (
        list(means) for means in zip(*(_mean_ends(score, n) for score, _, n in parts), strict=True)
    )
    half = math.sqrt(squares * limit * total / 2)
    targets = [(score, w) for score, w, _ in parts]
    if half > 0:
        # Hoeffding's interval corresponds to λ = 4·half/squares/total; the best λ may be larger.
        tilts = 4 * half / squares / total * np.geomspace(1 / 4, 4096, _TILTS_OF_SUM)
        upward = [
            (law, w, mean, n) for law, (_, w, n), mean in zip(laws, parts, above, strict=True)
        ]
        downward = [
            (law.mirrored(), -w, -mean, n)
            for (law, w, _, n), mean in zip(upward, below, strict=True)
        ]
        low, high = -_upper_of_sum(downward, limit, tilts), _upper_of_sum(upward, limit, tilts)
        if low <= high:
            return displayed((low, high), targets)
    return displayed((sum(below) - half, sum(above) + half), targets)


def _law_of(score: Score, w: FloatArray) -> ScoreLaw:
    """Return the law of a score or, if it is not listed, a two-point law with the same means.

    Of all laws on a range with fixed means, the law on the two ends of the range has the largest
    moments, so the bound remains valid.
    """
    if score.law is not None:
        return score.law
    low, high = (score.two.low[0], score.two.high[1]) if score.two is not None else score.reach
    chances = np.clip((w - low) / (high - low), 0.0, 1.0) if high > low else np.zeros(len(w))
    return ScoreLaw(
        np.array([low, high]), np.array([low, high]), np.stack([1 - chances, chances], axis=1)
    )


def _mean_ends(score: Score, n: int) -> Ends:
    """Return the least and the largest possible mean; they differ only for two groups of values."""
    if score.two is None:
        return score.mean, score.mean
    share = score.two.count / n
    return scaled(score.two.low, score.two.high, (share, share))


def _upper_of_sum(
    parts: Sequence[tuple[ScoreLaw, FloatArray, float, int]], limit: float, tilts: FloatArray
) -> float:
    """Return the smallest upper end of a sum over a grid of λ < 0.

    parts : (law, weights, mean, n) of each part.
    tilts : the |λ| of the grid.
    """
    total = sum(n for *_, n in parts)
    bounds = [
        (MixedMoments.of(law, w, mean, -tilts * (total / n)), n / total)
        for law, w, mean, n in parts
    ]
    # A common shift of the exponents makes it possible to add the parts, and avoids overflow.
    shift = np.max([moments.shift for moments, _ in bounds], axis=0)
    start, floor, steps, rises = 0.0, np.zeros(len(tilts)), [], []
    for moments, share in bounds:
        values = share * moments.envelope * np.exp(moments.shift - shift)[:, None]
        start, floor = start + float(moments.knots[0]), floor + values[:, 0]
        steps.append(np.broadcast_to(np.diff(moments.knots), (len(tilts), len(moments.knots) - 1)))
        rises.append(np.diff(values, axis=1))
    # Maximum over all ways to split the true value between the parts: merge the pieces of their
    # concave polylines, the steepest first (sup-convolution).
    step, rise = np.concatenate(steps, axis=1), np.concatenate(rises, axis=1)
    order = np.argsort(-rise / step, axis=1)
    knots = start + np.cumsum(np.take_along_axis(step, order, axis=1), axis=1)
    values = floor[:, None] + np.cumsum(np.take_along_axis(rise, order, axis=1), axis=1)
    knots = np.concatenate([np.full((len(tilts), 1), start), knots], axis=1)
    values = np.concatenate([floor[:, None], values], axis=1)
    return float(_last_reached(knots, values, np.exp(-limit - shift - _ROUNDING)).min())


def sequence(score: Score, w: FloatArray, n: int, level: float) -> Ends:
    """Return the ends of a confidence sequence, which are valid at all n simultaneously.

    Use this for scores of more than two values, `intervals.sequence_of_two` for two.

    Let α = 1 − level. If θ is the true value, each exp(λ Σd)/G(λ, θ)^n is a non-negative
    supermartingale in n that starts at 1, and so is a mixture over λ with fixed weights. The
    probability that the mixture ever reaches 1/α is at most α [Ville 1939]. The result contains all
    θ for which it is currently below 1/α. log G is concave in θ, so these θ form an interval, which
    contains the mean if the mean is a possible value.
    """
    low, high = score.reach
    if not high > low:
        return within((low, high), w)
    two_ends = ScoreLaw(np.array([low, high]), np.array([low, high]), np.eye(2))
    tilts = _SIGNED / (high - low)
    excess = math.log(1 / (1 - level))
    if score.law is not None:
        ends = _mixed_ends(MixedMoments.of(score.law, w, score.mean, tilts), score.mean, n, excess)
        if ends is not None:
            return ends
    # Without a listed law, or if no possible value explains the mean, only the range of the scores
    # is used.
    moments = MixedMoments.of(two_ends, np.array([low, high]), score.mean, tilts)
    return within(_mixed_ends(moments, score.mean, n, excess) or score.reach, w)


def _mixed_ends(moments: "MixedMoments", mean: float, n: int, excess: float) -> Ends | None:
    """Return the interval of values θ at which the log of the mixture is at most `excess`.

    Returns None if the log is larger even at the possible value nearest to the mean.
    """
    knots = moments.knots
    inside = float(min(max(mean, knots[0]), knots[-1]))
    if moments.mixture(np.array([inside]), n)[0] > excess:
        return None
    low, high = (
        _last_below(moments, inside, float(end), n, excess) for end in (knots[0], knots[-1])
    )
    return low, high


def _last_below(
    moments: "MixedMoments", inside: float, outside: float, n: int, excess: float
) -> float:
    """Return the first point from `inside` to `outside` at which the mixture exceeds its limit.

    Returns `outside` if the mixture is within its limit there.
    """
    if moments.mixture(np.array([outside]), n)[0] <= excess:
        return outside
    # Section search with many points per round, because a vectorised call takes about as long for
    # many points as for one. The outer end of the bracket is returned, so that the interval is not
    # too narrow.
    for _ in range(_ROUNDS):
        points = np.linspace(inside, outside, _SECTIONS)
        first = int(np.argmax(moments.mixture(points, n) > excess))
        inside, outside = float(points[max(first - 1, 0)]), float(points[first])
    return outside


def within(ends: Ends, w: FloatArray) -> Ends:
    """Return an interval cut to the target's range [min w, max w]; uncut if they are disjoint."""
    low, high = max(ends[0], float(w.min())) + 0.0, min(ends[1], float(w.max())) + 0.0  # no -0.0
    return (low, high) if low <= high else ends


def displayed(ends: Ends, parts: Sequence[tuple[Score, FloatArray]]) -> Ends:
    """Return the interval to display for a sum of targets, cut to the possible values.

    parts : (score, weights) of each target.

    The interval is not cut if it contains no possible value. An interval from single bits of unary
    reports (`Score.of_bit`) belongs to another estimate than the displayed one, so it is widened to
    contain the displayed estimate. A wider interval covers the truth at least as often.
    """
    hull = np.array([sum(float(end(w)) for _, w in parts) for end in (np.min, np.max)])
    low, high = within(ends, hull)
    if not any(score.of_bit for score, _ in parts):
        return low, high
    value = sum(score.mean for score, _ in parts)
    has_possible = low <= hull[1] and high >= hull[0]
    return widened((low, high), float(np.clip(value, *hull)) if has_possible else value)


def widened(ends: Ends, value: float) -> Ends:
    """Return the smallest interval that contains the interval `ends` and a value."""
    return min(ends[0], value), max(ends[1], value)


def scaled(low: Ends, high: Ends, chance: Ends) -> Ends:
    """Return the ends for the mean score from the ends for the upper group's probability."""
    return low[0] + (high[0] - low[0]) * chance[0], low[1] + (high[1] - low[1]) * chance[1]


@lru_cache(maxsize=_CACHED)
def _chance_ends(mean: float, limit: float) -> Ends:
    """Return the two q with KL(mean, q) = `limit`, for a mean in [0, 1] [Hoeffding 1963, Thm 1]."""
    return 1 - _upper_chance(1 - mean, limit), _upper_chance(mean, limit)


def _upper_chance(mean: float, limit: float) -> float:
    """Return the largest q with KL(mean, q) ≤ limit, rounded up, by bisection on q − mean."""
    inside, outside = 0.0, 1 - mean
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if _divergence(mean, middle) > limit:
            outside = middle
        else:
            inside = middle
    return mean + outside


def _divergence(p: float, step: float) -> float:
    """Return KL(p, p + step), without cancellation for small steps."""
    if step >= 1 - p:
        return math.inf if p < 1 else 0.0
    return -(1 - p) * math.log1p(-step / (1 - p)) - (p * math.log1p(step / p) if p > 0 else 0.0)


def _tilt(mean: float, end: float) -> float:
    """Return |λ| times the range at which Hoeffding's bound is attained, at most `_STEEPEST`."""
    if not (0 < mean < 1 and 0 < end < 1):
        return _STEEPEST
    odds = abs(math.log(mean) - math.log1p(-mean) - math.log(end) + math.log1p(-end))
    return min(max(odds, 1e-9), _STEEPEST)


def _aware_ends(score: Score, law: ScoreLaw, w: FloatArray, limit: float, tilts: Ends) -> Ends:
    """Return the mechanism-aware ends, with low > high if no possible value fits."""
    # The lower end is the negative of an upper end of the negative score.
    high = _upper(law, w, score.mean, limit, tilts[1])
    return -_upper(law.mirrored(), -w, -score.mean, limit, tilts[0]), high


def _upper(law: ScoreLaw, w: FloatArray, mean: float, limit: float, tilt: float) -> float:
    """Return the smallest upper end over a grid of λ < 0 around −tilt/range and a finer grid."""
    reach = float(law.high[-1] - law.low[0])
    coarse = tilt * np.geomspace(1 / 4, 256, _COARSE)
    ends = _upper_ends(law, w, mean, limit, -coarse / reach)
    best, step = float(coarse[int(np.argmin(ends))]), float(coarse[1] / coarse[0])
    # The grid includes `tilt`, so that the result is at most the end of Hoeffding's interval.
    fine = np.append(best * np.geomspace(1 / step, step, _FINE), tilt)
    return min(float(ends.min()), float(_upper_ends(law, w, mean, limit, -fine / reach).min()))


def _upper_ends(
    law: ScoreLaw, w: FloatArray, mean: float, limit: float, tilts: FloatArray
) -> FloatArray:
    """Return for each λ < 0 max{w·p : M(λ)·p ≥ exp(λ·mean − limit)}, −inf if no p satisfies it."""
    moments = MixedMoments.of(law, w, mean, tilts)
    knots = np.broadcast_to(moments.knots, moments.envelope.shape)
    return _last_reached(knots, moments.envelope, np.exp(-limit - moments.shift - _ROUNDING))


def _last_reached(knots: FloatArray, values: FloatArray, least: FloatArray) -> FloatArray:
    """Return the largest argument at which each concave polyline is at least `least`, or −inf."""
    enough = values >= least[:, None]
    top, rows = values.shape[1] - 1, np.arange(len(values))
    last = top - np.argmax(enough[:, ::-1], axis=1)
    after = np.minimum(last + 1, top)
    above, below = values[rows, last], values[rows, after]
    share = np.where(
        above > below, (above - least) / np.where(above > below, above - below, 1.0), 0.0
    )
    ends = knots[rows, last] + np.clip(share, 0.0, 1.0) * (knots[rows, after] - knots[rows, last])
    return np.where(enough.any(axis=1), ends, -np.inf)


@dataclass(frozen=True, slots=True)
class MixedMoments:
    """Worst mixed moments G(λ, θ) of a law, for several λ.

    knots : the distinct weights of a target, increasing.
    envelope : G(λ, θ) exp(−λm − shift) at each knot θ, shape (λs, knots); linear between knots. m
        is the observed mean.
    shift : the largest exponent for each λ, shape (λs,), which is factored out to avoid overflow.
    """

    knots: FloatArray
    envelope: FloatArray
    shift: FloatArray

    @classmethod
    def of(cls, law: ScoreLaw, w: FloatArray, mean: float, tilts: FloatArray) -> "MixedMoments":
        """Return the worst mixed moments of a law at the λs given by `tilts`."""
        # Values of a group differ only by rounding; the end with the larger exp(λd) gives the wider
        # interval.
        exponents = np.maximum(np.outer(tilts, law.low - mean), np.outer(tilts, law.high - mean))
        shift = exponents.max(axis=1)
        moments = np.exp(exponents - shift[:, None]) @ law.chances.T
        # Among answers of equal weight, the worst mixture uses the one with the largest moment.
        knots, knot_of_answer = np.unique(w, return_inverse=True)
        largest = np.full((len(knots), len(tilts)), -np.inf)
        np.maximum.at(largest, knot_of_answer, moments.T)
        return cls(knots, _concave(knots, largest.T), shift)

    def mixture(self, points: FloatArray, n: int) -> FloatArray:
        """Return log Σ_λ weight · (exp(λm)/G(λ, θ))^n at each θ of `points`."""
        before = np.clip(np.searchsorted(self.knots, points) - 1, 0, max(len(self.knots) - 2, 0))
        after = np.minimum(before + 1, len(self.knots) - 1)
        step = np.where(after > before, self.knots[after] - self.knots[before], 1.0)
        share = np.clip((points - self.knots[before]) / step, 0.0, 1.0)
        worst = (1 - share) * self.envelope[:, before] + share * self.envelope[:, after]
        with np.errstate(divide="ignore"):
            logs = np.log(worst) + self.shift[:, None] + _ROUNDING
        return np.asarray(
            np.logaddexp.reduce(_LOG_WEIGHTS[:, None] - n * logs, axis=0), dtype=np.float64
        )


def _concave(knots: FloatArray, values: FloatArray) -> FloatArray:
    """Return the least concave function above each row of values, at the knots."""
    if len(knots) <= 2:
        return values
    return np.array([_hull(knots, row) for row in values])


def _hull(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the upper convex hull of points with increasing x (Andrew's monotone chain)."""
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) > 1 and _is_below(x, y, hull[-2], hull[-1], i):
            hull.pop()
        hull.append(i)
    return np.interp(x, x[hull], y[hull])


def _is_below(x: FloatArray, y: FloatArray, a: int, b: int, c: int) -> bool:
    """Return True if point b is on or below the line from a to c."""
    return bool((y[b] - y[a]) * (x[c] - x[a]) <= (y[c] - y[a]) * (x[b] - x[a]))
