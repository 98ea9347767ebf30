# SPDX-License-Identifier: Apache-2.0
"""Objectives that are sums over reports of a convex gain of the report's column (spec 1.6).

Columns are represented as t = σ∘v of a `ConeBase`, p·v = 1. Every gain here is sublinear, so some
optimum uses only extreme rays (docs/maths/generation.md, claim 1).
"""

from typing import Protocol

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special
from frankly_design.optimum.information.cone_base import ConeBase


class Gain(Protocol):
    """Gain of a report per unit of its probability.

    ceiling : upper bound of the total gain of any mechanism, private or not.
    """

    ceiling: float

    def values(self, T: FloatArray) -> FloatArray:
        """Return the gain of each column of T, shape (n, a) → (n,)."""
        ...

    def slope(self, t: FloatArray) -> FloatArray:
        """Return a subgradient at t, shape (a,) → (a,)."""
        ...


class Information:
    """I(X; Y) = Σ_y θ_y Σ_x p_x v_x ln v_x, in nats  [Funnel Thm 3, Robust eq. 45].

    The gain is a sum over answers, which `branch` relies on.
    """

    def __init__(self, base: ConeBase) -> None:
        self.weight = base.prior / base.scale
        self.scale = base.scale
        p = base.prior[base.prior > 0]
        self.ceiling = float(-np.sum(p * np.log(p)))
        # The gradient is −∞ at t = 0, but a linear programme needs finite costs.
        self._floor = 1e-9 * self.scale

    def terms(self, t: FloatArray) -> FloatArray:
        """Return the terms of the gain, one per answer, with the same shape as t."""
        return np.asarray(self.weight * special.xlogy(t, t / self.scale), dtype=np.float64)

    def values(self, T: FloatArray) -> FloatArray:
        """Return the gain of each column, shape (n, a) → (n,)."""
        return np.asarray(special.xlogy(T, T / self.scale) @ self.weight, dtype=np.float64)

    def slope(self, t: FloatArray) -> FloatArray:
        """Return the gradient, with a large but finite negative value where t = 0."""
        return np.asarray(
            self.weight * (np.log(np.maximum(t, self._floor) / self.scale) + 1), dtype=np.float64
        )

    def secant(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (slope, constant) of each term's secant, which lies above it on [low, high]."""
        at_low, width = self.terms(low), high - low
        rise = self.terms(high) - at_low
        # On a very narrow interval the difference quotient would be noise. The slope at `high` is
        # larger, so the line stays above the term.
        slope = np.where(width > 1e-13, rise / np.maximum(width, 1e-300), self.slope(high))
        return slope, at_low - slope * low


class Guessing:
    """Probability that the best guess is right, 1 − the Hamming error: Σ_y θ_y max_x p_x v_x."""

    ceiling = 1.0

    def __init__(self, base: ConeBase) -> None:
        self.weight = base.prior / base.scale

    def values(self, T: FloatArray) -> FloatArray:
        """Return the gain of each column, shape (n, a) → (n,)."""
        return np.asarray(np.max(T * self.weight, axis=-1), dtype=np.float64)

    def slope(self, t: FloatArray) -> FloatArray:
        """Return a subgradient: the gradient of the best guess's term."""
        # Any maximiser gives a subgradient; argmax returns the first, so runs are reproducible.
        best = int(np.argmax(self.weight * t))
        return np.where(np.arange(len(t)) == best, self.weight, 0.0)
