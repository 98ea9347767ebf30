# SPDX-License-Identifier: Apache-2.0
"""Objective F(θ) = tr(W A(θ)⁻¹ Wᵀ) − information, and prices that prove bounds (spec 1.6)."""

from dataclasses import dataclass

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special


@dataclass(frozen=True)
class Objective:
    """F = tr(W A⁻¹ Wᵀ), minus I(X; Y) in nats if `informative`.

    W : shape (t, a), the targets; multiplied by √μ if the variance has a price μ.
    """

    W: FloatArray
    prior: FloatArray
    informative: bool = False

    def gains(self, V: FloatArray, looser: float = 0.0) -> FloatArray:
        """Return each column's information per unit of θ, Σ_x p_x v_x ln v_x, shape (n, a) → (n,).

        looser : δ if columns may have entries down to −δ. Then (v+δ) ln(v+δ) + δ ln(1/δ) replaces
        v ln v. This function is convex for v ≥ −δ and never below v ln v for v ≥ 0, because
        v ln v − (v+δ) ln(v+δ) is decreasing in v.
        """
        if not self.informative:
            return np.zeros(len(V))
        U = np.maximum(V + looser, 0.0)
        return np.asarray(
            special.xlogy(U, U) @ self.prior - special.xlogy(looser, looser), dtype=np.float64
        )

    def constant(self) -> float:
        """Return |W p|², by which tr(W A⁻¹ Wᵀ) exceeds the variance of the estimates at n = 1."""
        return float(np.sum((self.W @ self.prior) ** 2))


def centred(W: FloatArray, prior: FloatArray) -> FloatArray:
    """Return targets less their means, if their rank is deficient; they have the same variances.

    Every mechanism has A·p = 1, so tr(W A⁻¹ Wᵀ) is then the variance itself. Otherwise it exceeds
    the variance by |W p|², and what a method loses relative to the one may be much of the other.
    """
    if np.linalg.matrix_rank(W) == W.shape[1]:
        return W
    return np.asarray(W - (W @ prior)[:, None], dtype=np.float64)


@dataclass(frozen=True)
class Prices:
    """Prices Z, ν of columns, which prove a bound if no column of the base has a positive `worth`.

    Z : shape (a, t).
    nu : shape (a,).
    """

    objective: Objective
    Z: FloatArray
    nu: FloatArray

    def worth(self, V: FloatArray, looser: float = 0.0) -> FloatArray:
        """Return g(v) + |Zᵀv|² − ν·v per column, shape (n, a) → (n,); `looser` as in `gains`."""
        gains = self.objective.gains(V, looser)
        return np.asarray(gains + np.sum((V @ self.Z) ** 2, axis=1) - V @ self.nu, dtype=np.float64)

    def slope(self, v: FloatArray) -> FloatArray:
        """Return the gradient of the worth at v, shape (a,); finite where v = 0."""
        rise = 2 * self.Z @ (self.Z.T @ v) - self.nu
        if self.objective.informative:
            # ln 0 is infinite; a floor of 1e-9 keeps the gradient finite.
            rise = rise + self.objective.prior * (np.log(np.maximum(v, 1e-9)) + 1)
        return np.asarray(rise, dtype=np.float64)

    def raised(self, largest_worth: float) -> "Prices":
        """Return prices without positive worths; `largest_worth` bounds those at these prices."""
        return Prices(self.objective, self.Z, self.nu + largest_worth * self.objective.prior)

    def bound(self) -> float:
        """Return the lower bound of F that these prices prove if no column has a positive worth.

        The bound is 2 tr(WZ) − Σν or, without the information, (tr WZ)²/Σν, which is the same bound
        for the best multiple of Z.
        """
        trace, total = float(np.sum(self.objective.W.T * self.Z)), float(np.sum(self.nu))
        if not self.objective.informative and total > 0:
            return trace**2 / total
        return 2 * trace - total
