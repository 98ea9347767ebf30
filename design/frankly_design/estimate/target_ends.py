# SPDX-License-Identifier: Apache-2.0
"""Intervals [low, high] of identifiable targets by each method."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from frankly_design.estimate import chernoff, intervals
from frankly_design.estimate.chernoff import Ends
from frankly_design.estimate.intervals import Variance
from frankly_design.estimate.margins import Values, normal_quantile
from frankly_design.estimate.worst_case import linear_part
from frankly_design.kinds.evidence import Evidence
from frankly_design.kinds.scores import SAME, Score
from frankly_design.numeric.arrays import FloatArray

EndsList = list[Ends | None]

_EXACT_FROM = 0.5  # least level of `exact`; the proof for a census needs it (see `intervals`)
VANISHED = 1e-9
"""A margin up to this fraction of the worst-case margin is treated as 0."""
_ROUNDED = 1e-12
"""A variance up to this fraction of the squared weights may be a rounding error."""


class TargetEnds:
    """Intervals per known target by each method; None where a method has no interval."""

    def __init__(
        self,
        evidence: Evidence,
        moments: FloatArray,
        sampling: float,
        *,
        independent: bool,
        like_draws: bool,
    ) -> None:
        """Compute the scores of the evidence, which needs at least one report.

        moments : the evidence's `truth_moments`.
        sampling : the share of the sampling variance that remains, 1 for independent draws and 0
            for a census.
        like_draws : True if respondents are independent draws from one population.
        independent : True if the reports are independent, as for such draws and for a census.
        """
        self._evidence, self._moments, self._sampling = evidence, moments, sampling
        self._independent, self._like_draws = independent, like_draws
        self.scores = evidence.scores()

    def kl(self, level: float) -> EndsList:
        """Return the Chernoff bounds."""
        n = self._evidence.n
        return [chernoff.kl(score, w, n, level) for score, w in self._scores_and_weights()]

    def exact(self, level: float) -> EndsList:
        """Return the Clopper-Pearson intervals of scores of two values."""
        if not self._independent or level < _EXACT_FROM:
            return [None] * len(self.scores)
        n = self._evidence.n
        return [
            None
            if score.two is None
            else chernoff.displayed(intervals.exact(score.two, n, level), [(score, w)])
            for score, w in self._scores_and_weights()
        ]

    def sequence(self, level: float) -> EndsList:
        """Return confidence sequences, which are valid at all n simultaneously."""
        if not self._like_draws:
            return [None] * len(self.scores)
        n = self._evidence.n
        return [
            chernoff.sequence(score, w, n, level)
            if score.two is None
            else chernoff.displayed(intervals.sequence_of_two(score.two, n, level), [(score, w)])
            for score, w in self._scores_and_weights()
        ]

    def score(
        self,
        level: float,
        shares: FloatArray | None,
        nearest: FloatArray | None,
        errors: Values,
        worst: Values,
    ) -> EndsList:
        """Return the score intervals, at each end at least as wide as the normal intervals.

        The intervals are not cut to the possible values, so that their distances from the estimates
        can be combined with those of other parts.

        shares : unbiased shares of all answers, None if not all are identifiable.
        nearest : their projection onto the simplex.
        errors, worst : estimated and worst-case standard error of each target.
        """
        evidence, sampling, z = self._evidence, self._sampling, normal_quantile(level)
        if shares is None and sampling < 1:
            return [None] * len(self.scores)
        # n times the variance is Σ p c − sampling·θ²; `sums` estimates Σ p c without bias.
        C = linear_part(self._moments, evidence.W, sampling)
        sums = np.diagonal(evidence.moment()) if shares is None else C @ shares
        local = None if nearest is None else Local.of(evidence, nearest, z)
        uncut: EndsList = []
        for t, w, c, total in zip(evidence.known, evidence.W, C, sums, strict=True):
            value, error, largest = float(evidence.exact[t] or 0), errors[t] or 0.0, worst[t] or 0.0
            below, above = reaches(value, evidence.n, float(total), w, c, local, sampling, z)
            low, high = value - max(below, z * error), value + max(above, z * error)
            if high - low <= VANISHED * z * largest:
                # The estimated variance is 0, but it may be positive at another possible truth.
                low, high = value - z * largest, value + z * largest
            uncut.append((low, high))
        return uncut

    def _scores_and_weights(self) -> Iterator[tuple[Score, FloatArray]]:
        return zip(self.scores, self._evidence.W, strict=True)


@dataclass(frozen=True, slots=True)
class Local:
    """Shares p near the estimated shares, and `Evidence.share_moments` at p."""

    p: FloatArray
    moments: FloatArray

    @classmethod
    def of(cls, evidence: Evidence, nearest: FloatArray, z: float) -> "Local":
        """Return the local shares and moments: `nearest` plus z² people with equal shares."""
        # The added people (Agresti and Coull's number) give weight to answers with an estimated
        # share of 0, whose true share may be positive.
        p = (evidence.n * nearest + z * z / evidence.answers) / (evidence.n + z * z)
        return cls(p, evidence.share_moments(p))


def reaches(
    value: float,
    n: int,
    total: float,
    w: FloatArray,
    c: FloatArray,
    local: Local | None,
    sampling: float,
    z: float,
) -> Ends:
    """Return the distances of a score interval's ends below and above the estimate.

    total : an unbiased estimate of Σ_x p_x c_x, which is n times the variance plus sampling·θ².

    Σ_x p_x c_x changes with the true value θ at the rate `slope`. Unless c is linear in w, the
    distances are at least those with the variance at the local shares, because answers whose
    estimated share is 0 may have a larger variance than others.
    """
    growth = slope(w, c, local)
    low, high = intervals.score(value, n, Variance(total - growth * value, growth, sampling), z)
    below, above = value - low, high - value
    # If c is linear in w, the variance is a known function of θ, and the score interval needs no
    # lower limit.
    if local is None or _is_line(w, c):
        return below, above
    at_local_shares = z * sqrt(
        max(0.0, float(c @ local.p) - sampling * float(w @ local.p) ** 2) / n
    )
    return max(below, at_local_shares), max(above, at_local_shares)


def slope(w: FloatArray, c: FloatArray, local: Local | None) -> float:
    """Return the slope of Σ_x p_x c_x in the true value of a target of weights w (control variate).

    This is the regression slope between the two estimates for one report: their covariance divided
    by the variance of the target's estimate. If c is linear in w, it is the slope of that line.
    Without local shares, returns the slope of the least-squares line over the answers, or 0 if all
    weights are equal.
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
    """Return an interval cut to the possible values, then widened to contain its estimate."""
    return chernoff.widened(chernoff.within(ends, w), value)


def around_possible(value: float, estimate: float, ends: Ends, possible: Ends) -> Ends:
    """Return an interval for the biased estimate `value` from that of the unbiased estimate.

    The interval is shifted so that the unbiased estimate becomes a possible value, cut to the
    possible values and widened to contain `value`. The result contains all possible values of the
    original interval and is never empty.
    """
    moved = min(max(estimate, possible[0]), possible[1]) - estimate
    return chernoff.widened(
        (max(ends[0] + moved, possible[0]), min(ends[1] + moved, possible[1])), value
    )
