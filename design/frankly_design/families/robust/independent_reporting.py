# SPDX-License-Identifier: Apache-2.0
"""Independent Reporting: S and U pass through separate randomised responses.

The response on S is ε₁-LDP, the response on U is δ₂-LDP. U reveals S only indirectly, so the
response on U leaks only ε₂ ≤ δ₂ about S, and both together leak at most ε₁ + ε₂. The possible
difference between P(·|s) and P(·|t) determines how far δ₂ may exceed ε₂ (`ValueLeak`)
[Robust §7; erratum 9.10, 9.13].
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from frankly_design.notions.ball_bounds import Bounds
from frankly_design.numeric.lazy import optimize

# The objective has several maxima. A grid of this many intervals finds their neighbourhoods, and
# the best five points are refined.
_GRID = 400
_REFINED = 5

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ValueLeak:
    """Leakage about S through randomised response on U.

    e^ε₂ = max (1 + (g−1)·high)/(1 + (g−1)·low) with g = e^δ₂.

    high, low : upper bounds of P(u|s) and lower bounds of P(u|t), one pair for every s ≠ t and u. A
        randomised response has only two probabilities, so P(report u | s) ∝ 1 + (g−1)·P(u|s)
        depends on a single value u, and sets of values need not be considered.
    """

    high: tuple[float, ...]
    low: tuple[float, ...]

    @classmethod
    def of_bounds(cls, bounds: Bounds) -> "ValueLeak":
        """Return the exact leakage over a claim's polytopes D_s = {R ≥ L[s]} (not in the paper)."""
        low = [[n / d for n, d in row] for row in bounds]
        free = [max(0.0, 1 - math.fsum(row)) for row in low]
        high = [[v + slack for v in row] for row, slack in zip(low, free, strict=True)]
        return cls.of_intervals(low, high)

    @classmethod
    def of_intervals(
        cls, low: Sequence[Sequence[float]], high: Sequence[Sequence[float]]
    ) -> "ValueLeak":
        """Return the leakage if each P(u|s) lies between low[s][u] and high[s][u]."""
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
        """Least ε₂ at which U may be sent unchanged; math.inf if there is no such ε₂."""
        ratios = [
            h / v if v > 0 else math.inf for h, v in zip(self.high, self.low, strict=True) if h > 0
        ]
        return math.log(max(1.0, *ratios)) if ratios else 0.0


@dataclass(frozen=True, slots=True)
class Split:
    """Split of a level into randomised responses of level eps1 on S and delta2 on U, in nats.

    The total level is eps1 + eps2; eps2 is the leakage about S from reporting U at delta2. If
    delta2 = math.inf, U is sent unchanged.

    information : I(X; Y) in nats under the estimate, X = (S, U).
    """

    secrets: int
    values: int
    eps1: float
    eps2: float
    delta2: float
    information: float


def best_split(joint: Sequence[Sequence[int]], epsilon: float, leak: ValueLeak) -> Split:
    """Return the most informative split of ε  [Robust (82)].

    The split maximises I(X; GRR_ε₁(S), GRR_δ₂(U)) over ε₂ in [0, ε], with ε₁ = ε − ε₂ and
    δ₂ = leak.delta2(ε₂). There are several local maxima, and the best is usually at an end (erratum
    9.10). The search compares both ends, a grid, and the point from which U may be sent unchanged,
    and refines the best few.

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


def grr_rows(size: int, epsilon: float) -> Matrix:
    """Return generalised randomised response as floats, shape (size, size); epsilon in [0, ∞]."""
    off = math.exp(-epsilon)
    rows = np.full((size, size), off)
    np.fill_diagonal(rows, 1.0)
    return rows / (1 + (size - 1) * off)


def _information(P: Matrix, eps1: float, delta2: float) -> float:
    """Return I(X;Y) = H(Y) − H(Y|X), which equals Robust (77) by the chain rule.

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
