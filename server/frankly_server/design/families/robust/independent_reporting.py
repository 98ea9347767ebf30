# SPDX-License-Identifier: Apache-2.0
"""Independent Reporting: S and U pass through separate randomised responses.

The response on S is ε₁-LDP, the response on U is δ₂-LDP. U reveals S only indirectly, so the latter
leaks only ε₂ ≤ δ₂ about S, and both together leak at most ε₁ + ε₂. The possible difference between
P(·|s) and P(·|t) determines how far δ₂ may exceed ε₂: `ValueLeak`  [Robust §7; erratum 9.10, 9.13].
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from frankly_protocol.audit import Claim
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

from frankly_server.design.notions.ball_bounds import Bounds
from frankly_server.design.notions.balls import Ball
from frankly_server.design.tables.quantise import Quantised, quantise
from frankly_server.lazy import optimize

# The objective has several maxima: a grid of this many intervals finds their neighbourhoods, and
# the best five points are refined.
_GRID = 400
_REFINED = 5
_SCALE_BITS = 60

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ValueLeak:
    """Leakage about S by randomised response on U.

    e^ε₂ = max (1 + (g−1)·high)/(1 + (g−1)·low) with g = e^δ₂.

    high, low : upper bounds of P(u|s) and lower bounds of P(u|t), one pair for every s ≠ t and u. A
        randomised response has only two probabilities, so P(report u | s) ∝ 1 + (g−1)·P(u|s)
        depends on one value u alone, and sets of values need not be considered.
    """

    high: tuple[float, ...]
    low: tuple[float, ...]

    @classmethod
    def of_distance(cls, d: float) -> "ValueLeak":
        """Return the leakage by Theorem 5: ‖P(·|s)−P(·|t)‖₁ ≤ d gives δ₂ = ln(1 + 2(e^ε₂−1)/d)."""
        return cls((d / 2,), (0.0,))

    @classmethod
    def of_bounds(cls, bounds: Bounds) -> "ValueLeak":
        """Return the exact leakage over a claim's polytopes D_s = {R ≥ L[s]} (not in the paper)."""
        low = [[n / d for n, d in row] for row in bounds]
        free = [max(0.0, 1 - math.fsum(row)) for row in low]
        high = [[v + slack for v in row] for row, slack in zip(low, free, strict=True)]
        return cls._of_intervals(low, high)

    @classmethod
    def of_ball(cls, ball: Ball) -> "ValueLeak":
        """Return the leakage over a ball (not in the paper).

        Each P(u|s) lies between its least and greatest value in the ball. The leakage is never
        larger than that of Theorem 5.
        """
        secrets = range(len(ball.counts))
        return cls._of_intervals(
            [list(ball.least(s)) for s in secrets], [list(ball.greatest(s)) for s in secrets]
        )

    @classmethod
    def _of_intervals(
        cls, low: Sequence[Sequence[float]], high: Sequence[Sequence[float]]
    ) -> "ValueLeak":
        intervals = {
            (float(above), float(below))
            for s, t in permutations(range(len(low)), 2)
            for above, below in zip(high[s], low[t], strict=True)
        }
        ordered = sorted(intervals, reverse=True)
        return cls(tuple(above for above, _ in ordered), tuple(below for _, below in ordered))

    def delta2(self, eps2: float) -> float:
        """Return the largest δ₂ that leaks at most ε₂ about S; inf if U may be sent unchanged."""
        # Solving the leakage for g gives g − 1 = (e^ε₂ − 1)/(high − e^ε₂·low), which is smallest
        # for the largest denominator.
        gap = float(np.max(np.array(self.high) - math.exp(eps2) * np.array(self.low)))
        if gap <= 0:
            return math.inf
        return math.log1p(math.expm1(eps2) / gap)

    @property
    def knee(self) -> float:
        """Least ε₂ at which U may be sent unchanged; math.inf if there is none."""
        ratios = [
            h / v if v > 0 else math.inf for h, v in zip(self.high, self.low, strict=True) if h > 0
        ]
        return math.log(max(1.0, *ratios)) if ratios else 0.0


@dataclass(frozen=True, slots=True)
class Split:
    """Split of a level: randomised responses of level eps1 on S and delta2 on U, in nats.

    The promised level is eps1 + eps2; eps2 is the leakage about S by reporting U at delta2. With
    delta2 = math.inf, U is sent unchanged.

    information : I(X; Y) in nats under the estimate, X = (S, U).
    """

    secrets: int
    values: int
    eps1: float
    eps2: float
    delta2: float
    information: float

    def table(self) -> Matrix:
        """Return Q[(s,u)][(s',u')], shape (a, a), row-major, factors of level 0 included."""
        return _product(grr_rows(self.secrets, self.eps1), grr_rows(self.values, self.delta2))

    def short_table(self) -> Matrix:
        """Return the table without a factor of level 0, which would be pure noise."""
        first = grr_rows(self.secrets, self.eps1) if self.eps1 else np.ones((self.secrets, 1))
        second = grr_rows(self.values, self.delta2) if self.delta2 else np.ones((self.values, 1))
        return _product(first, second)


def distance_bound(ball: Ball) -> float:
    """Return d = min(2, 2·max rad_s + max ‖P̂(·|s) − P̂(·|t)‖₁)  [Robust Thm 5, (62)]."""
    secrets = range(len(ball.counts))
    spreads = [ball.spread(s) for s in secrets]
    p = [ball.conditional(s) for s in secrets]
    gaps = [float(np.abs(p[s] - p[t]).sum()) for s, t in permutations(secrets, 2)]
    return min(2.0, 2 * max(spreads) + max(gaps))


def best_split(joint: Sequence[Sequence[int]], epsilon: float, leak: ValueLeak) -> Split:
    """Return the most informative split of ε  [Robust (82)].

    It maximises I(X; GRR_ε₁(S), GRR_δ₂(U)) over ε₂ in [0, ε], with ε₁ = ε − ε₂ and
    δ₂ = leak.delta2(ε₂). There are several local maxima, and the best is usually at an end (erratum
    9.10). So both ends, a grid, and the point at which U may be sent unchanged are compared, and
    the best few are refined.

    joint : counts N[s][u] of the estimate.
    epsilon : nats, ≥ 0.
    """
    P = np.array(joint, dtype=np.float64)
    P /= P.sum()

    def value(eps2: float) -> float:
        return _information(P, epsilon - eps2, leak.delta2(eps2))

    points = [float(v) for v in np.linspace(0, epsilon, _GRID + 1)]
    # The objective has a kink at the knee, which a grid would miss.
    if leak.knee <= epsilon:
        points = sorted([*points, leak.knee])
    values = [value(eps2) for eps2 in points]
    best = max(zip(values, points, strict=True))
    for i in sorted(range(len(points)), key=lambda i: -values[i])[:_REFINED]:
        best = max(
            best, _refined(value, points[max(0, i - 1)], points[min(len(points) - 1, i + 1)])
        )
    information, eps2 = best
    return Split(P.shape[0], P.shape[1], epsilon - eps2, eps2, leak.delta2(eps2), information)


def weights(
    split: Split, claim: Claim, joint: Sequence[Sequence[int]], bits: int = 48
) -> Quantised:
    """Return the split's mechanism in whole numbers, verified exactly against the claim.

    A split made with `ValueLeak.of_bounds(claim.lower_bounds)` and ε = ln(level) keeps its rldp
    claim. A split by Theorem 5 may leak more than ε over the claim's polytope, because the theorem
    is about the ball, which lies inside the polytope.

    Raises InvalidInput(mechanism_not_certified) if the claim does not hold.
    """
    # rounding: not these floats but the exact verifier in `quantise` decides if the claim holds.
    rows = [[int(q * 2.0**_SCALE_BITS) for q in row] for row in split.short_table()]
    return quantise(rows, [claim], [n for row in joint for n in row], bits)


def independent_reporting(
    joint: Sequence[Sequence[int]], claim: Claim, bits: int = 48
) -> tuple[Split, Quantised]:
    """Return the best split under an rldp claim, and its verified whole numbers.

    Raises InvalidInput(unsupported) for another notion.
    """
    if claim.notion != "rldp" or claim.lower_bounds is None or claim.level is None:
        raise InvalidInput(
            Problem.UNSUPPORTED, "independent-reporting is for the notion rldp", "mechanism"
        )
    p, q = claim.level
    leak = ValueLeak.of_bounds(claim.lower_bounds)
    split = best_split(joint, math.log(p / q), leak)
    return split, weights(split, claim, joint, bits)


def grr_rows(size: int, epsilon: float) -> Matrix:
    """Return generalised randomised response as floats, shape (size, size); epsilon in [0, ∞]."""
    off = math.exp(-epsilon)
    rows = np.full((size, size), off)
    np.fill_diagonal(rows, 1.0)
    return rows / (1 + (size - 1) * off)


def _product(first: Matrix, second: Matrix) -> Matrix:
    return np.kron(first, second).astype(np.float64)


def _information(P: Matrix, eps1: float, delta2: float) -> float:
    """Return I(X;Y) = H(Y) − H(Y|X), by the chain rule the same number as Robust (77).

    All rows of a randomised response have the same entropy, and the two responses are independent
    given X, so H(Y|X) is the sum of the entropies of two rows.
    """
    first, second = grr_rows(P.shape[0], eps1), grr_rows(P.shape[1], delta2)
    return _entropy(first.T @ P @ second) - _entropy(first[0]) - _entropy(second[0])


def _entropy(q: Matrix) -> float:
    positive = q[q > 0]
    return -float(np.sum(positive * np.log(positive)))


def _refined(value: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    optimum = optimize.minimize_scalar(
        lambda v: -value(v), bounds=(low, high), method="bounded", options={"xatol": 1e-12}
    )
    return -float(optimum.fun), float(optimum.x)
