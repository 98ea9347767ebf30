# SPDX-License-Identifier: Apache-2.0
"""Leakage of S by a mechanism over (s, u): under one distribution, over a polytope, over a ball.

The numbers are for display; only `frankly_protocol.audit` decides whether a promise holds.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
from frankly_design.measures import leakage, nats
from frankly_design.notions.ball_bounds import Bounds
from frankly_design.notions.balls import Ball, Vector
from frankly_design.notions.prior import Prior, pairs
from frankly_design.numeric.lazy import optimize
from frankly_protocol.audit.ratios import robust_ratios

# Search range of ln(gap): the multiplier κ exceeds the largest w by e^−80 to e^80 times the spread
# of w.
_RANGE = 80.0

Weights = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class BallLeakage:
    """Largest leakage of a mechanism over a ball, in nats, with the report and pair that attain it.

    report, pair : the report and the two secrets that attain it.
    exact : True if `epsilon` is the supremum (orders α ≥ 1, to about 1e-9); False if it is an upper
        bound.
    """

    epsilon: float
    exact: bool
    report: int
    pair: tuple[int, int]


def realised_epsilon(weights: Weights, joint: Sequence[Sequence[Any]]) -> float:
    """Return ε* = ln max P(y|s)/P(y|t) under P* = joint[s][u]  [Robust §8.3, with the logarithm].

    weights : whole numbers with equal row sums, rows = answers (s, u) row-major.
    joint : counts, or decimals that sum to 1.

    Returns math.inf if a report that occurs with one secret never occurs with another; secrets
    without mass are ignored.
    """
    return nats(leakage(weights, pairs(Prior.from_rows(joint))).between_secrets)


def worst_case_epsilon(weights: Weights, lower_bounds: Bounds) -> float:
    """Return the largest ln P(y|s)/P(y|t), s ≠ t, over all R_s ∈ D_s = {R ≥ L[s]}; rounded up.

    Returns math.inf if the ratio is unbounded.
    """
    columns = list(zip(*weights, strict=True))
    best = Fraction(1)
    for ratio in robust_ratios(columns, lower_bounds, diagonal=False):
        if ratio.n and not ratio.d:
            return math.inf
        if ratio.n:
            best = max(best, Fraction(ratio.n, ratio.d))
    return nats(best)


def worst_case_over_ball(weights: Weights, ball: Ball) -> BallLeakage:
    """Return the largest ln P(y|s)/P(y|t), s ≠ t, over every P in the ball.

    For α ≥ 1 it is the supremum: sup R_s·w_s is concave and inf R_t·w_t convex in the share of the
    radius spent on s and t (docs/maths/robust.md), so their ratio has one maximum over the split. A
    one-dimensional search finds it; each step solves two convex programmes by searching for their
    multipliers. For α < 1 it is an upper bound: both secrets spend the whole radius.
    """
    T = np.array([[float(Fraction(w, sum(row))) for w in row] for row in weights])
    blocks = T.reshape(len(ball.counts), -1, T.shape[1])
    extremes = _Extremes(ball, blocks)
    best = BallLeakage(0.0, ball.order >= 1, 0, (0, 1))
    # Most pairs cannot be the worst pair, even if both secrets spend the whole radius.
    for bound, y, s, t in sorted(extremes.bounds(), reverse=True):
        if bound <= best.epsilon:
            break
        epsilon = extremes.largest(y, s, t) if best.exact else bound
        if epsilon > best.epsilon:
            best = BallLeakage(epsilon, best.exact, y, (s, t))
    return best


class _Extremes:
    """Supremum and infimum of R·w over the conditional balls of one mechanism."""

    def __init__(self, ball: Ball, blocks: np.ndarray[Any, np.dtype[np.float64]]) -> None:
        self._ball, self._blocks = ball, blocks
        self._p = [ball.conditional(s) for s in range(len(ball.counts))]

    def bounds(self) -> Iterator[tuple[float, int, int, int]]:
        secrets, reports = range(len(self._p)), range(self._blocks.shape[2])
        sups = [[self._sup(s, y, 1.0) for y in reports] for s in secrets]
        infs = [[self._inf(s, y, 1.0) for y in reports] for s in secrets]
        for y in reports:
            for s, t in permutations(secrets, 2):
                yield _log_ratio(sups[s][y], infs[t][y]), y, s, t

    def largest(self, y: int, s: int, t: int) -> float:
        def loss(share: float) -> float:
            return -_log_ratio(self._sup(s, y, share), self._inf(t, y, 1 - share))

        loss_at_ends = min(loss(0.0), loss(1.0))
        # If the ratio is infinite at an end, that is the result; the search below needs finite
        # values.
        if math.isinf(loss_at_ends):
            return -loss_at_ends
        optimum = optimize.minimize_scalar(
            loss, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-10}
        )
        return -min(loss_at_ends, float(optimum.fun))

    def _sup(self, s: int, y: int, share: float) -> float:
        return support(
            self._p[s],
            self._blocks[s, :, y],
            self._ball.conditional_radius(s, share),
            self._ball.order,
        )

    def _inf(self, s: int, y: int, share: float) -> float:
        w = -self._blocks[s, :, y]
        return max(
            0.0, -support(self._p[s], w, self._ball.conditional_radius(s, share), self._ball.order)
        )


def support(p: Vector, w: Vector, radius: float, order: Fraction) -> float:
    """Return max R·w over distributions R with D_α(p‖R) ≤ radius.

    The optimum is R ∝ p·(κ − w)^(−1/α), with a multiplier κ above every w where p > 0, D decreasing
    in κ. A value with p = 0 gets probability only if its w is the largest; that costs −ln(1 − its
    probability).
    """
    alpha, top, bottom = float(order), float(w.max()), float(w.min())
    if radius == math.inf:
        return top
    positive = p > 0
    log_p, w_positive = np.log(p[positive]), w[positive]
    if radius <= 0 or top == bottom:
        return float(p @ w)

    def optimum(log_gap: float) -> Vector:
        """Return ln R for κ = top + (top − bottom)·e^log_gap."""
        log_r: Vector = (
            log_p - np.log(top - w_positive + (top - bottom) * math.exp(log_gap)) / alpha
        )
        return log_r - float(np.logaddexp.reduce(log_r))

    def excess(log_gap: float) -> float:
        return _divergence(log_p, optimum(log_gap), alpha) - radius

    if excess(-_RANGE) <= 0:
        # With κ = top, part of the radius is unused. It moves probability to the largest w; if p is
        # 0 there, the only cost is −ln(1 − moved).
        moved = 1.0 if top == w_positive.max() else -math.expm1(excess(-_RANGE))
        return float((1 - moved) * (np.exp(optimum(-_RANGE)) @ w_positive) + moved * top)
    if excess(_RANGE) >= 0:
        return float(p @ w)
    return float(
        np.exp(optimum(optimize.brentq(excess, -_RANGE, _RANGE, xtol=1e-12, rtol=1e-13)))
        @ w_positive
    )


def _divergence(log_p: Vector, log_r: Vector, order: float) -> float:
    """Return D_α  [(7)] of two distributions, given by their logarithms."""
    if order == 1:
        return float(np.sum(np.exp(log_p) * (log_p - log_r)))
    return float(np.logaddexp.reduce(order * log_p + (1 - order) * log_r)) / (order - 1)


def _log_ratio(high: float, low: float) -> float:
    if high <= 0:
        return 0.0
    return math.log(high / low) if low > 0 else math.inf
