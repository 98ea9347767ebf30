# SPDX-License-Identifier: Apache-2.0
"""Contrasts, ratios and medians of estimates with a covariance matrix."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from frankly_analyst.models.sample import FloatArray


@dataclass(frozen=True)
class Combined:
    """Combination of estimates with its interval; an end is None if it is unbounded.

    se : by the delta method for a ratio; None for a median.
    """

    estimate: float
    se: float | None
    low: float | None
    high: float | None
    level: float

    def __str__(self) -> str:
        ends = ("unbounded" if end is None else f"{end:.4g}" for end in (self.low, self.high))
        return f"{self.estimate:.4g}, {' to '.join(ends)} at {self.level:g}".replace("-", "−")


def linear(weights: FloatArray, values: FloatArray, V: FloatArray, level: float) -> Combined:
    """Return weights · values with its interval."""
    se = math.sqrt(max(float(weights @ V @ weights), 0.0))
    estimate, z = float(weights @ values), NormalDist().inv_cdf((1 + level) / 2)
    return Combined(estimate, se, estimate - z * se, estimate + z * se, level)


def fieller(
    of: FloatArray, over: FloatArray, values: FloatArray, V: FloatArray, level: float
) -> Combined:
    """Return of · values / over · values with Fieller's interval.

    The interval contains all ρ for which (A − ρB)² ≤ z² Var(A − ρB).

    Both ends are None unless the denominator differs from 0 at the level: then the set is unbounded.
    """
    A, B = float(of @ values), float(over @ values)
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    aa, ab, bb = float(of @ V @ of), float(of @ V @ over), float(over @ V @ over)
    ratio = A / B if B else math.nan
    se = math.sqrt(max(aa - 2 * ratio * ab + ratio**2 * bb, 0.0)) / abs(B) if B else None
    a, b, c = B * B - z2 * bb, A * B - z2 * ab, A * A - z2 * aa
    inner = b * b - a * c
    if a <= 0 or inner < 0:
        return Combined(ratio, se, None, None, level)
    return Combined(ratio, se, (b - math.sqrt(inner)) / a, (b + math.sqrt(inner)) / a, level)


def median(
    scores: Sequence[float] | FloatArray, values: FloatArray, V: FloatArray, level: float
) -> Combined:
    """Return the smallest score at which the cumulative share reaches ½, with its interval.

    The interval inverts the intervals of the cumulative shares: it runs from the first score whose
    cumulative share can be ½ to the first whose cumulative share cannot be below ½. It misses the
    median on one side only if the interval of a cumulative share misses on that side.
    """
    order = np.argsort(np.asarray(scores, dtype=float), kind="stable")
    ordered = np.asarray(scores, dtype=float)[order]
    C = np.tril(np.ones((len(order), len(order))))[:, np.argsort(order)]
    below = C @ values
    errors = np.sqrt(np.maximum(np.diagonal(C @ V @ C.T), 0.0))
    z = NormalDist().inv_cdf((1 + level) / 2)
    # The last cumulative share is 1 regardless of the noise.
    last = len(order) - 1

    def first(reached: FloatArray) -> float:
        places = np.flatnonzero(reached[:last] >= 0.5)
        return float(ordered[places[0] if len(places) else last])

    return Combined(first(below), None, first(below + z * errors), first(below - z * errors), level)
