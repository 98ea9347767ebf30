# SPDX-License-Identifier: Apache-2.0
"""Ends [low, high] of every known target, by each method that gives ends, and the flags that they raise."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from frankly_server.estimate import chernoff, intervals
from frankly_server.estimate.chernoff import Ends
from frankly_server.estimate.evidence import Evidence
from frankly_server.estimate.intervals import Variance
from frankly_server.estimate.margins import Values, normal_quantile
from frankly_server.estimate.scores import SAME, Score
from frankly_server.estimate.worst_case import linear_part

FloatArray = NDArray[np.float64]
Found = list[Ends | None]

IMPRECISE = 2 / 3
"""A margin above this fraction of its estimate."""
FEW = 5
"""Fewer informative reports than this."""
FAR = 5
"""So many worst-case standard errors beyond what is possible an estimate says that the reports do not fit.

It is the same at every level and by every method. Of honest surveys one in millions is that far.
"""
_EXACT_FROM = 0.5
VANISHED = 1e-9
"""Of the worst-case margin: what rounding leaves of a margin that is 0."""
_ROUNDED = 1e-12
"""Of the squared weights: below this a variance is lost in rounding."""


class TargetEnds:
    """Ends per known target; None where a method gives none."""

    def __init__(
        self, evidence: Evidence, moments: FloatArray, sampling: float, *, independent: bool, like_draws: bool
    ) -> None:
        """Take the evidence of at least one report, and its `truth_moments`.

        sampling : the share of the sampling variance that remains, 1 for independent draws and 0 for a census.
        like_draws : respondents are independent draws from one population. independent : or their reports are
        independent, as in a census.
        """
        self._evidence, self._moments, self._sampling = evidence, moments, sampling
        self._independent, self._like_draws = independent, like_draws
        self.scores = evidence.scores()

    def kl(self, level: float) -> Found:
        """Return the Chernoff bounds."""
        n = self._evidence.n
        return [chernoff.kl(score, w, n, level) for score, w in self._each()]

    def exact(self, level: float) -> Found:
        """Return the Clopper-Pearson intervals of scores of two values."""
        if not self._independent or level < _EXACT_FROM:
            return [None] * len(self.scores)
        n = self._evidence.n
        return [
            None if score.two is None else chernoff.shown(intervals.exact(score.two, n, level), [(score, w)])
            for score, w in self._each()
        ]

    def sequence(self, level: float) -> Found:
        """Return intervals that hold at all n at once."""
        if not self._like_draws:
            return [None] * len(self.scores)
        n = self._evidence.n
        return [
            chernoff.sequence(score, w, n, level)
            if score.two is None
            else chernoff.shown(intervals.sequence_of_two(score.two, n, level), [(score, w)])
            for score, w in self._each()
        ]

    def score(
        self, level: float, shares: FloatArray | None, nearest: FloatArray | None, errors: Values, worst: Values
    ) -> Found:
        """Return the score intervals, no narrower at either end than the normal ones, before they are cut.

        Their distances from the estimates can be combined with those of other parts; those of cut ones cannot.

        shares : unbiased, of all answers, None if not all are identifiable. nearest : the possible ones nearest to
        these. errors, worst : standard errors as estimated and at the worst truth, per target.
        """
        evidence, sampling, z = self._evidence, self._sampling, normal_quantile(level)
        if shares is None and sampling < 1:
            return [None] * len(self.scores)
        # n times the variance is Σ p c − sampling·θ²; the sum is estimated without bias.
        C = linear_part(self._moments, evidence.W, sampling)
        sums = np.diagonal(evidence.moment()) if shares is None else C @ shares
        local = None if nearest is None else Local.of(evidence, nearest, z)
        found: Found = []
        for t, w, c, total in zip(evidence.known, evidence.W, C, sums, strict=True):
            value, error, largest = float(evidence.exact[t] or 0), errors[t] or 0.0, worst[t] or 0.0
            below, above = reaches(value, evidence.n, float(total), w, c, local, sampling, z)
            low, high = value - max(below, z * error), value + max(above, z * error)
            if high - low <= VANISHED * z * largest:
                # All that was estimated vanishes, though some truth may vary.
                low, high = value - z * largest, value + z * largest
            found.append((low, high))
        return found

    def _each(self) -> Iterator[tuple[Score, FloatArray]]:
        return zip(self.scores, self._evidence.W, strict=True)


@dataclass(frozen=True, slots=True)
class Local:
    """Shares p near the estimated ones, and E[s sᵀ] there, s being what a report decodes to for every answer."""

    p: FloatArray
    moments: FloatArray

    @classmethod
    def of(cls, evidence: Evidence, nearest: FloatArray, z: float) -> "Local":
        """Return what is local to `nearest` and z² more people of equal shares."""
        p = (evidence.n * nearest + z * z / evidence.answers) / (evidence.n + z * z)
        return cls(p, evidence.share_moments(p))


def reaches(
    value: float, n: int, total: float, w: FloatArray, c: FloatArray, local: Local | None, sampling: float, z: float
) -> Ends:
    """Return how far the score interval of a target of weights w reaches below and above its estimate.

    total : an unbiased estimate of Σ_x p_x c_x, which is n times the variance + sampling·θ². It moves with θ by
    `slope`. Unless c is a straight line in w, where nothing else is needed, an end is at least as far as with the
    variance at the local shares: answers that nobody has shown yet may vary more than those that were seen.
    """
    grows = slope(w, c, local)
    low, high = intervals.score(value, n, Variance(total - grows * value, grows, sampling), z)
    below, above = value - low, high - value
    if local is None or _is_line(w, c):
        return below, above
    there = z * sqrt(max(0.0, float(c @ local.p) - sampling * float(w @ local.p) ** 2) / n)
    return max(below, there), max(above, there)


def slope(w: FloatArray, c: FloatArray, local: Local | None) -> float:
    """Return by how much Σ_x p_x c_x grows with the true value of a target of weights w.

    As its estimate does with that of the target: their covariance over the target's variance, for one report. Where c
    is a straight line in w this is its slope at every truth. If that cannot be told, it is the slope of the least
    squares line over the answers; 0 if the weights are all equal.
    """
    if local is not None:
        along = local.moments @ (w - w @ local.p)
        variance = float((w - w @ local.p) @ along)
        if variance > _ROUNDED * float(w @ w):
            return float((c - c @ local.p) @ along) / variance
    return _least_squares(w, c)


def _least_squares(w: FloatArray, c: FloatArray) -> float:
    centred = w - w.mean()
    squares = float(centred @ centred)
    return float(centred @ c) / squares if squares > 0 else 0.0


def _is_line(w: FloatArray, c: FloatArray) -> bool:
    beside = c - _least_squares(w, c) * w
    return float(np.ptp(beside)) <= SAME * float(np.abs(c).max())


def cut(ends: Ends, value: float, w: FloatArray) -> Ends:
    """Return what an interval about an estimate has in common with what is possible, widened to the estimate."""
    return chernoff.widened(chernoff.within(ends, w), value)


def around_possible(value: float, estimate: float, ends: Ends, possible: Ends) -> Ends:
    """Return an interval for a biased `value`, which is possible, from the interval of the unbiased estimate.

    That one is moved with its estimate to the nearest possible value, cut to what is possible and widened to `value`
    where need be. Every possible value that it held, it still holds; and something is always left of it.
    """
    moved = min(max(estimate, possible[0]), possible[1]) - estimate
    return chernoff.widened((max(ends[0] + moved, possible[0]), min(ends[1] + moved, possible[1])), value)


def row_flags(
    value: float | None, ends: Ends | None, possible: Ends, informative: int | None, worst: float | None
) -> list[str]:
    """Return the flags of one row: of the margin that is shown, and of an estimate that no truth explains.

    possible : least and largest value that any shares give the target; its width is 100 points for a share. worst : its
    worst-case standard error, None if there is none.
    """
    low, high = possible
    beyond = 0.0 if value is None else max(low - value, value - high)
    margin = 0.0 if value is None or ends is None else max(value - ends[0], ends[1] - value)
    named = {
        "imprecise": value is not None and margin > IMPRECISE * abs(value),
        "margin_too_wide": margin > high - low > 0,
        "few_informative": informative is not None and informative < FEW and high > low,
        "reports_do_not_fit": worst is not None and beyond > max(FAR * worst, VANISHED * (high - low)),
    }
    return [name for name, holds in named.items() if holds]
