# SPDX-License-Identifier: Apache-2.0
"""Estimates and intervals of many simulated surveys at once, from the scores of single reports.

Every estimate is a mean of scores, so its figures follow from the counts by linear algebra.
`score`, `clt` and `chebyshev` are computed here from their definitions (docs/maths/margins.md),
and `grid` compares some of them with the server's. The server's decoder also supplies the scores.
"""

import math
from copy import copy
from dataclasses import dataclass

import numpy as np
from frankly_design.estimate.estimator import evidence_of
from frankly_design.estimate.figures import Figures
from frankly_design.estimate.margins import Margins, chebyshev_factor, normal_quantile
from frankly_design.estimate.worst_case import worst_case_variance
from frankly_design.kinds.decoder import Targets, shares
from numpy.typing import NDArray

from _estimate.designs import Case

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Both = tuple[FloatArray, FloatArray]
LEVEL = 0.95
Z = normal_quantile(LEVEL)
_VANISHED = 1e-9


@dataclass(frozen=True)
class Surveys:
    """Figures of simulated surveys, one row each; columns are targets. ends : by method, (low, high)."""

    value: FloatArray
    error: FloatArray
    ends: dict[str, Both]


class Linear:
    """A mechanism with its identifiable targets, and figures of many surveys at once.

    W : shape (targets, answers). scores : one report's decoded value per target, by the server.
    """

    def __init__(self, case: Case, targets: Targets, prior: tuple[int, ...] | None) -> None:
        self.case, self.targets, self.prior, self._alone = case, targets, prior, True
        units = [case.counts(row) for row in np.eye(case.law.shape[1], dtype=np.int64)]
        evidences = [evidence_of(case.mechanism, unit, targets, prior) for unit in units]
        self.known = evidences[0].known
        V = np.array([[float(e.exact[t] or 0) for e in evidences] for t in self.known]).reshape(
            -1, len(units)
        )
        answers = [
            evidence_of(case.mechanism, unit, shares(case.law.shape[0]), prior).shares
            for unit in units
        ]
        identifiable = answers[0] is not None
        self._D = (
            np.array([[float(v or 0) for v in e or ()] for e in answers]).T
            if identifiable
            else None
        )
        self._decode(evidences[0].W, V)
        by_unit = [e.scores() for e in evidences]
        self.scores = by_unit[0]
        self.two = np.array([score.two is not None for score in self.scores], dtype=np.bool_)
        self._in_high = np.array(
            [[s.two.count if s.two else 0 for s in unit_scores] for unit_scores in by_unit]
        ).T

    def _decode(self, W: FloatArray, V: FloatArray) -> None:
        self.W, self._V = W, V
        self._C = V**2 @ self.case.law.T
        centred = W - W.mean(axis=1, keepdims=True)
        squares = np.sum(centred**2, axis=1)
        self._line = np.sum(centred * self._C, axis=1) / np.where(squares > 0, squares, 1.0)
        beside = self._C - self._line[:, None] * W
        self._is_line = np.ptp(beside, axis=1) <= 1e-9 * np.abs(self._C).max(axis=1)
        self.worst = np.sqrt(
            [max(0.0, worst_case_variance(c, w)) for c, w in zip(self._C, W, strict=True)]
        )

    def about(self, W: FloatArray) -> "Linear | None":
        """Return a copy for other targets, only for `surveys`; None if shares are not estimable."""
        if self._D is None:
            return None
        clone = copy(self)
        clone._alone = False  # noqa: SLF001 - of the same class
        clone._decode(W, W @ self._D)  # noqa: SLF001 - of the same class
        return clone

    def surveys(self, counts: IntArray) -> Surveys:
        """Return the figures of surveys with these counts per symbol, all of the same number of reports."""
        n = int(counts[0].sum())
        rates = counts / n
        value, squares = rates @ self._V.T, rates @ (self._V**2).T
        variance = np.maximum(0.0, squares - value**2) / (n - 1)
        if self._D is not None and self._alone:
            # As on the server, a negative privacy part of a target's variance becomes 0 (not of
            # covariances).
            variance += np.maximum(0.0, rates @ self._D.T @ (self.W**2).T - squares) / n
        # Rounding turns a variance of 0 into a tiny positive one.
        error = np.sqrt(np.where(variance < (_VANISHED * self.worst) ** 2, 0.0, variance))
        uncut = self._score(value, squares, error, rates, n)
        half = self.worst / math.sqrt(n)
        ends = {
            "score": cut(uncut, value, self.W.min(axis=1), self.W.max(axis=1)),
            "uncut": uncut,
            "clt": (value - Z * error, value + Z * error),
            "chebyshev": (
                value - chebyshev_factor(LEVEL) * half,
                value + chebyshev_factor(LEVEL) * half,
            ),
        }
        return Surveys(value, error, ends)

    def covariance(self, counts: IntArray) -> FloatArray:
        """Return the estimated covariance of one survey."""
        n = int(counts.sum())
        centred = self._V - (self._V @ counts / n)[:, None]
        return np.asarray((centred * counts) @ centred.T / (n * (n - 1)))

    def in_high(self, counts: IntArray, t: int) -> IntArray:
        """Return each survey's number of reports in the upper of the two groups of scores."""
        return np.asarray(counts @ self._in_high[t])

    def _score(
        self, value: FloatArray, squares: FloatArray, error: FloatArray, rates: FloatArray, n: int
    ) -> Both:
        """Return {θ : (m − θ)² ≤ z²/n·(v + b(θ − m) − θ²)}, united with m ± z·se here and at p*."""
        v, b, variance_there = (
            (squares, self._line, 0.0) if self._D is None else self._moved(rates, n)
        )
        k, variance_here = Z * Z / n, np.maximum(0.0, v - value**2)
        # With θ = m + u: (1 + k)u² − k(b − 2m)u − k·(v − m²) ≤ 0.
        lean = k * (b - 2 * value)
        root = np.sqrt(lean**2 + 4 * (1 + k) * k * variance_here)
        least = np.maximum(Z * error, Z * np.sqrt(variance_there / n))
        low = np.minimum(value + (lean - root) / (2 * (1 + k)), value - least)
        high = np.maximum(value + (lean + root) / (2 * (1 + k)), value + least)
        largest = Z * self.worst / math.sqrt(n)
        flat = high - low <= _VANISHED * largest
        return np.where(flat, value - largest, low), np.where(flat, value + largest, high)

    def _moved(self, rates: FloatArray, n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the unbiased v, its regression slope on the estimate at p*, and v − θ² at p*."""
        assert self._D is not None  # noqa: S101 - checked by the caller
        of_c = self._C @ self._D
        p = rates @ self._D.T
        near = (n * on_simplex(p) + Z * Z / p.shape[1]) / (n + Z * Z)
        chances = near @ self.case.law
        mean = near @ self.W.T
        variance = chances @ (self._V**2).T - mean**2
        together = chances @ (of_c * self._V).T - (near @ self._C.T) * mean
        varying = variance > 1e-12 * np.sum(self.W**2, axis=1)
        slopes = np.where(varying, together / np.where(varying, variance, 1.0), self._line)
        residual = np.maximum(0.0, near @ self._C.T - mean**2)
        return p @ self._C.T, slopes, np.where(self._is_line, 0.0, residual)


def cut(ends: Both, value: FloatArray, lower: FloatArray, upper: FloatArray) -> Both:
    """Return intervals cut to [lower, upper], then widened to the estimate; uncut if disjoint."""
    low, high = np.maximum(ends[0], lower), np.minimum(ends[1], upper)
    proper = low <= high
    return np.where(proper, np.minimum(low, value), ends[0]), np.where(
        proper, np.maximum(high, value), ends[1]
    )


def on_simplex(p: FloatArray) -> FloatArray:
    """Return the Euclidean projection of each row onto the simplex [Coverage, Wolfe, Crowder 1974]."""
    falling = -np.sort(-p, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, p.shape[1] + 1)
    last = np.sum(falling > excess, axis=1) - 1
    return np.asarray(np.maximum(0.0, p - excess[np.arange(len(p)), last][:, None]))


def product_margins(linear: Linear, counts: IntArray) -> tuple[FloatArray, Margins]:
    """Return the server's estimates and margins of one survey."""
    case, targets = linear.case, linear.targets
    evidence = evidence_of(case.mechanism, case.counts(counts), targets, linear.prior)
    spreads = Figures(evidence, len(targets), None, census=False, are_shares=False).spreads(LEVEL)
    return np.array(spreads["unbiased"], dtype=float), spreads["margins"]
