# SPDX-License-Identifier: Apache-2.0
"""Estimates and intervals of many simulated surveys at once, from what single reports decode to.

Every estimate is a mean of scores, so its figures follow from the counts by linear algebra. `score`, `clt` and
`chebyshev` are computed from their definitions. `kl` and `exact` are functions of the mean score, or of a count, alone;
the product computes them at some values of it. `compare` says how far this is from the product.
"""

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from frankly_server.estimate import chernoff, estimate, intervals
from frankly_server.estimate.decoder import Targets, shares
from frankly_server.estimate.estimator import evidence_of
from frankly_server.estimate.figures import Figures
from frankly_server.estimate.scores import Score
from numpy.typing import NDArray

from _estimate.designs import Case

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
LEVEL, Z = 0.95, NormalDist().inv_cdf(0.975)
MOST_VALUES = 40
"""Different means of a score of more than two values, in one cell, whose Chernoff bounds are computed."""
HAIR = 1e-12
MOST_BOUNDS = 4
"""Targets whose Chernoff bounds are computed; of more, so many evenly spaced ones."""
METHODS = ("score", "clt", "kl", "exact", "chebyshev")


@dataclass(frozen=True)
class Surveys:
    """Figures of simulated surveys, one row each; columns are targets. ends : by method, (low, high)."""

    value: FloatArray
    ends: dict[str, tuple[FloatArray, FloatArray]]


class Linear:
    """A mechanism with its targets. V : shape (targets, symbols). W : (targets, answers). known : targets it can tell.

    two : per target, whether scores take two values.
    """

    def __init__(self, case: Case, targets: Targets, prior: tuple[int, ...] | None) -> None:
        self.case, self.targets, self.prior = case, targets, prior
        self._computed: dict[tuple[str, int, float, int], tuple[float, float]] = {}
        units = np.eye(case.law.shape[1], dtype=np.int64)
        each = [evidence_of(case.mechanism, case.counts(row), targets, prior) for row in units]
        self.known, self.W = each[0].known, each[0].W
        self.V = np.array([[float(e.exact[t] or 0) for e in each] for t in self.known]).reshape(
            len(self.known), len(units)
        )
        scores = [e.scores() for e in each]
        self._law_of: list[Score] = scores[0]
        self.two = np.array([score.two is not None for score in scores[0]], dtype=bool)
        self._in_high = np.array(
            [[s[t].two.count if s[t].two else 0 for s in scores] for t in range(len(self.known))]  # type: ignore[union-attr]
        ).reshape(len(self.known), len(units))
        self._answers = self._decoder_of_answers()
        figures = Figures(each[0], len(targets), None, census=False, are_shares=False)
        worst = figures.spreads(LEVEL, ())["worst_case_se"]
        self._worst = np.array([worst[t] for t in self.known], dtype=float)
        self._moments = self.V**2 @ case.law.T

    def _decoder_of_answers(self) -> FloatArray | None:
        """Return what symbols decode to for every answer, None if not all can be told."""
        a = self.case.law.shape[0]
        units = np.eye(self.case.law.shape[1], dtype=np.int64)
        each = [evidence_of(self.case.mechanism, self.case.counts(row), shares(a), self.prior) for row in units]
        if each[0].rank < a:
            return None
        return np.array([[float(v or 0) for v in e.exact] for e in each]).T

    def surveys(self, counts: IntArray, methods: tuple[str, ...] = METHODS) -> Surveys:
        """Return the figures of surveys with these counts per symbol, all of the same number of reports."""
        n = int(counts[0].sum())
        rates = counts / n
        value = rates @ self.V.T
        variance = (rates @ (self.V**2).T - value**2) / (n - 1)
        if self._answers is not None:
            # As the product does: an estimated privacy part below 0 counts as 0.
            privacy = (rates @ (self.V**2).T - rates @ self._answers.T @ (self.W**2).T) / n
            variance += np.maximum(0.0, -privacy)
        error = np.sqrt(np.maximum(0.0, np.where(variance < HAIR * self._worst**2, 0.0, variance)))
        ends = {"score": self._score(value, error, rates, n), "clt": (value - Z * error, value + Z * error)}
        wide = self._worst / math.sqrt(n) / math.sqrt(1 - LEVEL)
        ends["chebyshev"] = value - wide, value + wide
        if "kl" in methods:
            ends |= self._bounds(value, counts, n)
        return Surveys(value, ends)

    def covariance(self, counts: IntArray) -> FloatArray:
        """Return the estimated covariances of surveys, shape (surveys, targets, targets)."""
        n = int(counts[0].sum())
        value = counts @ self.V.T / n
        second = np.einsum("ry,ty,uy->rtu", counts / n, self.V, self.V, optimize=True)
        return np.asarray((second - value[:, :, None] * value[:, None, :]) / (n - 1))

    def _score(self, value: FloatArray, error: FloatArray, rates: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
        """Return {θ : (θ̂ − θ)² ≤ z²/n·(α + βθ + r − θ²)} as roots of a quadratic in θ, beside the normal interval."""
        lows, highs = np.empty_like(value), np.empty_like(value)
        for t, w in enumerate(self.W):
            design = np.stack([np.ones_like(w), w], axis=1)
            (alpha, beta), *_ = np.linalg.lstsq(design, self._moments[t], rcond=None)
            rest = self._moments[t] - alpha - beta * w
            if self._answers is not None:
                r = rates @ self._answers.T @ rest
            else:
                r = rates @ self.V[t] ** 2 - alpha - beta * value[:, t]
            theta, k = value[:, t], Z * Z / n
            # The variance at the estimate is not taken below 0.
            constant = np.maximum(alpha + r, theta**2 - beta * theta)
            # (1 + k)θ² − (2θ̂ + kβ)θ + θ̂² − k·constant ≤ 0
            middle = (2 * theta + k * beta) / (2 * (1 + k))
            root = np.sqrt(np.maximum(0.0, middle**2 - (theta**2 - k * constant) / (1 + k)))
            low, high = middle - root, middle + root
            if not self.two[t] or self._law_of[t].of_bit:
                # Cut at what is possible, unless all of it is outside, and joined with the normal interval.
                cut = np.maximum(low, w.min()), np.minimum(high, w.max())
                low, high = np.where(cut[0] <= cut[1], cut, (low, high))
                low, high = np.minimum(low, theta - Z * error[:, t]), np.maximum(high, theta + Z * error[:, t])
            most = Z * self._worst[t] / math.sqrt(n)
            flat = high - low <= 1e-9 * most
            lows[:, t], highs[:, t] = np.where(flat, theta - most, low), np.where(flat, theta + most, high)
        return lows, highs

    def _bounds(self, value: FloatArray, counts: IntArray, n: int) -> dict[str, tuple[FloatArray, FloatArray]]:
        found = {method: (np.full_like(value, np.nan), np.full_like(value, np.nan)) for method in ("kl", "exact")}
        for t in np.unique(np.linspace(0, len(self.known) - 1, MOST_BOUNDS).astype(int)):
            score = self._law_of[t]
            at = value[:, t] if score.two is None else (counts @ self._in_high[t]).astype(float)
            if score.two is None and len(np.unique(at)) > MOST_VALUES:
                continue  # such bounds are cut at 0 and 1, so that those between computed ones are not known
            for method in ("kl", "exact") if score.two is not None else ("kl",):
                values, places = np.unique(at, return_inverse=True)
                ends = np.array([self._ends(method, int(t), float(value), n) for value in values])
                low, high = ends[np.ravel(places)].T
                if score.of_bit:
                    low, high = self._shown(value[:, t], low, high, self.W[t])
                found[method][0][:, t], found[method][1][:, t] = low, high
        return found

    @staticmethod
    def _shown(value: FloatArray, low: FloatArray, high: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return intervals about single bits widened to the estimates, as far as that is possible."""
        possible = (low <= w.max()) & (high >= w.min())
        reached = np.where(possible, np.clip(value, w.min(), w.max()), value)
        return np.minimum(low, reached), np.maximum(high, reached)

    def _ends(self, method: str, t: int, at: float, n: int) -> tuple[float, float]:
        if (method, t, at, n) not in self._computed:
            self._computed[method, t, at, n] = self._bound(method, t, at, n)
        return self._computed[method, t, at, n]

    def _bound(self, method: str, t: int, at: float, n: int) -> tuple[float, float]:
        score = replace(self._law_of[t], of_bit=False)  # widened to the estimates afterwards
        if score.two is None:
            return chernoff.kl(replace(score, mean=at), self.W[t], n, LEVEL)
        two = replace(score.two, count=round(at))
        if method == "exact":
            return chernoff.within(intervals.exact(two, n, LEVEL), self.W[t])
        return chernoff.kl(replace(score, two=two), self.W[t], n, LEVEL)


def compare(linear: Linear, counts: IntArray) -> float:
    """Return the largest deviation from the product's own `estimate` in one survey; 1 is the width of the interval."""
    ours, t_of = linear.surveys(counts[None, :]), linear.known
    theirs = estimate(
        linear.case.mechanism, linear.case.counts(counts), design_prior=linear.prior, targets=linear.targets
    )
    worst = 0.0
    for method, (lows, highs) in ours.ends.items():
        pairs = theirs.margins.ends(method, theirs.unbiased)
        for i, t in enumerate(t_of):
            pair = pairs[t]
            if pair is None or math.isnan(lows[0, i]):
                continue
            scale = pair[1] - pair[0]
            if max(scale, float(highs[0, i] - lows[0, i])) < 1e-6:
                continue  # both are 0 but for rounding
            worst = max(worst, abs(pair[0] - lows[0, i]) / scale, abs(pair[1] - highs[0, i]) / scale)
    return worst
