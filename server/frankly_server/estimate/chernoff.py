# SPDX-License-Identifier: Apache-2.0
"""Chernoff bounds on a target from the mean of its scores: at one number of reports (`kl`), and at all at once.

For a true value θ the worst mixed moment is G(λ, θ) = max{Σ_x p_x M_x(λ) : p a distribution, Σ_x p_x w_x = θ} with
M_x(λ) = E[exp(λd)|x]. P(mean ≤ m) ≤ (exp(−λm) G(λ, θ))^n for λ < 0, for like draws, for a census and for draws
without replacement (docs/maths/margins.md has the proofs). Every λ gives a valid bound, so searching for the best one
need not be exact.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from frankly_server.estimate.scores import Score, ScoreLaw

FloatArray = NDArray[np.float64]
Ends = tuple[float, float]

_KNOWN = 4096  # chances: the answers of one question often have the same few counts
_HALVINGS = 80
_COARSE, _FINE, _TILTS_OF_SUM = 49, 17, 97
"""How many λ are tried: ends come within a thousandth of the interval's width of the best."""
_STEEPEST = 50.0
"""The largest λ times the range around which λ is searched: exp(−50) is nothing."""
_ROUNDING = 1e-12
"""Relative error of a moment in floats, with room; it is allowed for on the safe side."""
_TILTS = np.geomspace(2.0**-13, 2.0**6, 39)
"""λ times the range, of a sequence: for 5 reports to 10^9, fixed before any report."""
_USUAL = 0.5
"""The λ times the range of most weight, near the best for 1,000 reports."""
_WEIGHTS = np.tile(1 / (1 + (np.log2(_TILTS / _USUAL) / 3) ** 2), 2)
_SIGNED = np.concatenate([-_TILTS, _TILTS])
_LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum())
_SECTIONS, _ROUNDS = 33, 6
"""Each round looks at so many points at once: 33^6 is more than 10^9."""


def kl(score: Score, w: FloatArray, n: int, level: float) -> Ends:
    """Return ends that hold at every n and every truth, for the target with weights `w` over the answers.

    Where score laws are listed, the mechanism-aware bound; otherwise the form of Hoeffding's theorem in the
    Kullback-Leibler divergence, which knows the scores' range only. Both are cut at the target's own range. If no truth
    is left, the second form is returned, which is never narrower.
    """
    limit = math.log(2 / (1 - level)) / n
    if score.two is not None:
        return shown(scaled(score.two.low, score.two.high, _chance_ends(score.two.count / n, limit)), [(score, w)])
    low, high = score.reach
    if not high > low:
        return within((low, high), w)
    mean = min(max((score.mean - low) / (high - low), 0.0), 1.0)
    chances = _chance_ends(mean, limit)
    plain = within(scaled((low, low), (high, high), chances), w)
    if score.law is None:
        return plain
    aware = _aware_ends(score, score.law, w, limit, (_tilt(mean, chances[0]), _tilt(mean, chances[1])))
    # rounding: at 10^12 reports and more the moments in floats say less than the divergence does.
    both = max(aware[0], plain[0]), min(aware[1], plain[1])
    return both if both[0] <= both[1] else plain


def kl_of_sum(parts: Sequence[tuple[Score, FloatArray, int]], level: float) -> Ends:
    """Return ends for the sum of the targets of several independent parts: (score, weights over the answers, n) each.

    The bound of a sum is the product of those of the parts, with λ times all reports over the part's own; the true
    values of the parts are whatever makes it largest, so they may differ. By the inequality of arithmetic and geometric
    means it is at most the n-th power of a mean, whose maximum is a concave polyline again. If no truth is left,
    Hoeffding's interval is returned.
    """
    total = sum(n for *_, n in parts)
    limit = math.log(2 / (1 - level)) / total
    laws = [_law_of(score, w) for score, w, _ in parts]
    squares = sum(float(law.high[-1] - law.low[0]) ** 2 / n for law, (*_, n) in zip(laws, parts, strict=True))
    below, above = (list(means) for means in zip(*(_mean_ends(score, n) for score, _, n in parts), strict=True))
    half = math.sqrt(squares * limit * total / 2)
    targets = [(score, w) for score, w, _ in parts]
    if half > 0:
        tilts = 4 * half / squares / total * np.geomspace(1 / 4, 4096, _TILTS_OF_SUM)
        upward = [(law, w, mean, n) for law, (_, w, n), mean in zip(laws, parts, above, strict=True)]
        downward = [(law.mirrored(), -w, -mean, n) for (law, w, _, n), mean in zip(upward, below, strict=True)]
        low, high = -_upper_of_sum(downward, limit, tilts), _upper_of_sum(upward, limit, tilts)
        if low <= high:
            return shown((low, high), targets)
    return shown((sum(below) - half, sum(above) + half), targets)


def _law_of(score: Score, w: FloatArray) -> ScoreLaw:
    """Return the law of a score; where it is not listed, that of its two ends with the same means.

    Of all laws on a range with given means that one has the largest moments.
    """
    if score.law is not None:
        return score.law
    low, high = (score.two.low[0], score.two.high[1]) if score.two is not None else score.reach
    chances = np.clip((w - low) / (high - low), 0.0, 1.0) if high > low else np.zeros(len(w))
    return ScoreLaw(np.array([low, high]), np.array([low, high]), np.stack([1 - chances, chances], axis=1))


def _mean_ends(score: Score, n: int) -> Ends:
    """Return the least and the largest mean that reports in two groups of values may have; otherwise the mean twice."""
    two = score.two
    return (score.mean, score.mean) if two is None else scaled(two.low, two.high, (two.count / n, two.count / n))


def _upper_of_sum(parts: Sequence[tuple[ScoreLaw, FloatArray, float, int]], limit: float, tilts: FloatArray) -> float:
    """Return the least upper end over a grid of λ < 0; each part is its law, weights, mean and n."""
    total = sum(n for *_, n in parts)
    found = [(Moments.of(law, w, mean, -tilts * (total / n)), n / total) for law, w, mean, n in parts]
    shift = np.max([moments.shift for moments, _ in found], axis=0)
    start, floor, steps, rises = 0.0, np.zeros(len(tilts)), [], []
    for moments, share in found:
        values = share * moments.envelope * np.exp(moments.shift - shift)[:, None]
        start, floor = start + float(moments.knots[0]), floor + values[:, 0]
        steps.append(np.broadcast_to(np.diff(moments.knots), (len(tilts), len(moments.knots) - 1)))
        rises.append(np.diff(values, axis=1))
    # The largest sum over all ways to split the true value: the steepest pieces of all parts come first.
    step, rise = np.concatenate(steps, axis=1), np.concatenate(rises, axis=1)
    order = np.argsort(-rise / step, axis=1)
    knots = start + np.cumsum(np.take_along_axis(step, order, axis=1), axis=1)
    values = floor[:, None] + np.cumsum(np.take_along_axis(rise, order, axis=1), axis=1)
    knots = np.concatenate([np.full((len(tilts), 1), start), knots], axis=1)
    values = np.concatenate([floor[:, None], values], axis=1)
    return float(_last_reached(knots, values, np.exp(-limit - shift - _ROUNDING)).min())


def sequence(score: Score, w: FloatArray, n: int, level: float) -> Ends:
    """Return ends that hold at all n at once, so that looking often does no harm; for scores of more than two values.

    Under a truth of value θ each exp(λ Σd)/G(λ, θ)^n is a non-negative supermartingale in n that starts at 1, and so is
    a mixture over λ with fixed weights. It reaches 1/α at any time with chance α at most [Ville 1939]; the interval is
    where it has not. log G is concave in θ, so this is an interval, and it holds the mean if
    that is possible.
    """
    low, high = score.reach
    if not high > low:
        return within((low, high), w)
    plain = ScoreLaw(np.array([low, high]), np.array([low, high]), np.eye(2))
    tilts = _SIGNED / (high - low)
    excess = math.log(1 / (1 - level))
    if score.law is not None:
        ends = _mixed_ends(Moments.of(score.law, w, score.mean, tilts), score.mean, n, excess)
        if ends is not None:
            return ends
    # Of the scores only the range is used: their law is not listed, or no truth near the mean could give them.
    wide = _mixed_ends(Moments.of(plain, np.array([low, high]), score.mean, tilts), score.mean, n, excess)
    return within(wide or score.reach, w)


def _mixed_ends(moments: "Moments", mean: float, n: int, excess: float) -> Ends | None:
    """Return where the mixture is below its limit, None if it is not at the possible value nearest to the mean."""
    knots = moments.knots
    inside = float(min(max(mean, knots[0]), knots[-1]))
    if moments.mixture(np.array([inside]), n)[0] > excess:
        return None
    low, high = (_last_below(moments, inside, float(end), n, excess) for end in (knots[0], knots[-1]))
    return low, high


def _last_below(moments: "Moments", inside: float, outside: float, n: int, excess: float) -> float:
    """Return a point at which the mixture exceeds its limit, next to where it begins to; `outside` if nowhere."""
    if moments.mixture(np.array([outside]), n)[0] <= excess:
        return outside
    for _ in range(_ROUNDS):
        points = np.linspace(inside, outside, _SECTIONS)
        first = int(np.argmax(moments.mixture(points, n) > excess))
        inside, outside = float(points[max(first - 1, 0)]), float(points[first])
    return outside


def within(ends: Ends, w: FloatArray) -> Ends:
    """Return the part of an interval within the target's range [min w, max w]; all of it if there is none."""
    low, high = max(ends[0], float(w.min())) + 0.0, min(ends[1], float(w.max())) + 0.0  # no -0.0
    return (low, high) if low <= high else ends


def shown(ends: Ends, parts: Sequence[tuple[Score, FloatArray]]) -> Ends:
    """Return the possible part of an interval for a sum of targets, (score, weights) each; all of it if there is none.

    Where it is from single bits, another estimate is shown than the one it is about: it is widened to that one where
    need be, as far as that is possible. What holds a truth still does so when it is wider.
    """
    hull = np.array([sum(float(end(w)) for _, w in parts) for end in (np.min, np.max)])
    low, high = within(ends, hull)
    if not any(score.of_bit for score, _ in parts):
        return low, high
    value = sum(score.mean for score, _ in parts)
    has_possible = low <= hull[1] and high >= hull[0]
    return widened((low, high), float(np.clip(value, *hull)) if has_possible else value)


def widened(ends: Ends, value: float) -> Ends:
    """Return the least interval that holds another one and a value."""
    return min(ends[0], value), max(ends[1], value)


def scaled(low: Ends, high: Ends, chance: Ends) -> Ends:
    """Return ends for the mean score from ends for the chance of the upper group, each by its outer values."""
    return low[0] + (high[0] - low[0]) * chance[0], low[1] + (high[1] - low[1]) * chance[1]


@lru_cache(maxsize=_KNOWN)
def _chance_ends(mean: float, limit: float) -> Ends:
    """Return the values whose divergence from a mean in [0, 1] is `limit` [Hoeffding 1963, Thm 1]."""
    return 1 - _upper_chance(1 - mean, limit), _upper_chance(mean, limit)


def _upper_chance(mean: float, limit: float) -> float:
    """Return the largest q with KL(mean, q) ≤ limit, rounded up, by bisection on the distance q − mean."""
    inside, outside = 0.0, 1 - mean
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if _divergence(mean, middle) > limit:
            outside = middle
        else:
            inside = middle
    return mean + outside


def _divergence(p: float, step: float) -> float:
    """Return KL(p, p + step), without cancellation where the step is small."""
    if step >= 1 - p:
        return math.inf if p < 1 else 0.0
    return -(1 - p) * math.log1p(-step / (1 - p)) - (p * math.log1p(step / p) if p > 0 else 0.0)


def _tilt(mean: float, end: float) -> float:
    """Return |λ| times the range at which the form in the divergence is reached."""
    if not (0 < mean < 1 and 0 < end < 1):
        return _STEEPEST
    odds = abs(math.log(mean) - math.log1p(-mean) - math.log(end) + math.log1p(-end))
    return min(max(odds, 1e-9), _STEEPEST)


def _aware_ends(score: Score, law: ScoreLaw, w: FloatArray, limit: float, tilts: Ends) -> Ends:
    """Return the mechanism-aware ends; the lower one is the mirror image of an upper one. low > high: no truth fits."""
    high = _upper(law, w, score.mean, limit, tilts[1])
    return -_upper(law.mirrored(), -w, -score.mean, limit, tilts[0]), high


def _upper(law: ScoreLaw, w: FloatArray, mean: float, limit: float, tilt: float) -> float:
    """Return the least upper end over a grid of λ < 0 around −tilt/range, then over a finer one around the best."""
    reach = float(law.high[-1] - law.low[0])
    coarse = tilt * np.geomspace(1 / 4, 256, _COARSE)
    ends = _upper_ends(law, w, mean, limit, -coarse / reach)
    best, step = float(coarse[int(np.argmin(ends))]), float(coarse[1] / coarse[0])
    # With `tilt` itself among them the end is never beyond that of the form in the divergence.
    fine = np.append(best * np.geomspace(1 / step, step, _FINE), tilt)
    return min(float(ends.min()), float(_upper_ends(law, w, mean, limit, -fine / reach).min()))


def _upper_ends(law: ScoreLaw, w: FloatArray, mean: float, limit: float, tilts: FloatArray) -> FloatArray:
    """Return, for each λ < 0, max{w·p : M(λ)·p ≥ exp(λ·mean − limit)}, −inf where there is no such p."""
    moments = Moments.of(law, w, mean, tilts)
    knots = np.broadcast_to(moments.knots, moments.envelope.shape)
    return _last_reached(knots, moments.envelope, np.exp(-limit - moments.shift - _ROUNDING))


def _last_reached(knots: FloatArray, values: FloatArray, least: FloatArray) -> FloatArray:
    """Return the largest argument at which each row of concave polylines is at least `least`; −inf if it is nowhere."""
    enough = values >= least[:, None]
    top, rows = values.shape[1] - 1, np.arange(len(values))
    last = top - np.argmax(enough[:, ::-1], axis=1)
    after = np.minimum(last + 1, top)
    above, below = values[rows, last], values[rows, after]
    share = np.where(above > below, (above - least) / np.where(above > below, above - below, 1.0), 0.0)
    ends = knots[rows, last] + np.clip(share, 0.0, 1.0) * (knots[rows, after] - knots[rows, last])
    return np.where(enough.any(axis=1), ends, -np.inf)


@dataclass(frozen=True, slots=True)
class Moments:
    """G(λ, θ) exp(−λm − shift) at θ = each knot, shape (λs, knots); between the knots it is linear.

    knots : the different weights of a target, increasing. shift : the largest exponent, so that nothing overflows.
    """

    knots: FloatArray
    envelope: FloatArray
    shift: FloatArray

    @classmethod
    def of(cls, law: ScoreLaw, w: FloatArray, mean: float, tilts: FloatArray) -> "Moments":
        """Return the worst mixed moments of a law at the λs given by `tilts`."""
        # Of each group the end that makes exp(λd) larger.
        exponents = np.maximum(np.outer(tilts, law.low - mean), np.outer(tilts, law.high - mean))
        shift = exponents.max(axis=1)
        moments = np.exp(exponents - shift[:, None]) @ law.chances.T
        knots, where = np.unique(w, return_inverse=True)
        most = np.full((len(knots), len(tilts)), -np.inf)
        np.maximum.at(most, where, moments.T)
        return cls(knots, _concave(knots, most.T), shift)

    def mixture(self, points: FloatArray, n: int) -> FloatArray:
        """Return the log of Σ_λ weight · (exp(λm)/G(λ, θ))^n at each θ of `points`, for the λs of a sequence."""
        place = np.clip(np.searchsorted(self.knots, points) - 1, 0, max(len(self.knots) - 2, 0))
        after = np.minimum(place + 1, len(self.knots) - 1)
        step = np.where(after > place, self.knots[after] - self.knots[place], 1.0)
        share = np.clip((points - self.knots[place]) / step, 0.0, 1.0)
        worst = (1 - share) * self.envelope[:, place] + share * self.envelope[:, after]
        with np.errstate(divide="ignore"):
            logs = np.log(worst) + self.shift[:, None] + _ROUNDING
        return np.asarray(np.logaddexp.reduce(_LOG_WEIGHTS[:, None] - n * logs, axis=0), dtype=np.float64)


def _concave(knots: FloatArray, values: FloatArray) -> FloatArray:
    """Return the least concave function above each row of values, at the knots."""
    if len(knots) <= 2:
        return values
    return np.array([_hull(knots, row) for row in values])


def _hull(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the upper convex hull of points with increasing x, at all x (Andrew's monotone chain)."""
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) > 1 and _is_below(x, y, kept[-2], kept[-1], i):
            kept.pop()
        kept.append(i)
    return np.interp(x, x[kept], y[kept])


def _is_below(x: FloatArray, y: FloatArray, a: int, b: int, c: int) -> bool:
    """Return True if point b is on or below the line from a to c."""
    return bool((y[b] - y[a]) * (x[c] - x[a]) <= (y[c] - y[a]) * (x[b] - x[a]))
