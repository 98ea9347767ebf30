# SPDX-License-Identifier: Apache-2.0
"""What is minimised, F(θ) = tr(W A(θ)⁻¹ Wᵀ) − information, and what proves that nothing is lower (DESIGN §2)."""

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from frankly_server.design.linear import FloatArray


@dataclass(frozen=True)
class Objective:
    """F = tr(W A⁻¹ Wᵀ), less I(X; Y) in nats if `informative`; W of shape (t, a) carries the price of the variance."""

    W: FloatArray
    prior: FloatArray
    informative: bool = False

    def gains(self, V: FloatArray, looser: float = 0.0) -> FloatArray:
        """Return the information of each column per unit of θ, Σ_x p_x v_x ln v_x, shape (n, a) → (n,).

        looser : δ where columns may have entries down to −δ; then (v+δ) ln(v+δ) + δ ln(1/δ) takes the place of v ln v:
        convex for v ≥ −δ, and never below it for v ≥ 0, since v ln v − (v+δ) ln(v+δ) falls as v grows.
        """
        if not self.informative:
            return np.zeros(len(V))
        U = np.maximum(V + looser, 0.0)
        return np.asarray(xlogy(U, U) @ self.prior - xlogy(looser, looser), dtype=np.float64)

    def constant(self) -> float:
        """|W p|²: what tr(W A⁻¹ Wᵀ) is more than the variance of the unbiased estimates at n = 1."""
        return float(np.sum((self.W @ self.prior) ** 2))


@dataclass(frozen=True)
class Prices:
    """What a column is charged: `worth` must be ≤ 0 on the base for Z, ν to prove a bound.

    Z : shape (a, t). nu : shape (a,).
    """

    objective: Objective
    Z: FloatArray
    nu: FloatArray

    def worth(self, V: FloatArray, looser: float = 0.0) -> FloatArray:
        """Return g(v) + |Zᵀv|² − ν·v of each column, shape (n, a) → (n,); `looser` as in `Objective.gains`."""
        gains = self.objective.gains(V, looser)
        return np.asarray(gains + np.sum((V @ self.Z) ** 2, axis=1) - V @ self.nu, dtype=np.float64)

    def slope(self, v: FloatArray) -> FloatArray:
        """Return its gradient at v, shape (a,); finite where v = 0."""
        rise = 2 * self.Z @ (self.Z.T @ v) - self.nu
        if self.objective.informative:
            rise = rise + self.objective.prior * (np.log(np.maximum(v, 1e-9)) + 1)
        return np.asarray(rise, dtype=np.float64)

    def raised(self, most: float) -> "Prices":
        """Return prices that no column exceeds if none was worth more than `most`: p·v = 1 on each."""
        return Prices(self.objective, self.Z, self.nu + most * self.objective.prior)

    def bound(self) -> float:
        """Return the lower bound of F that these prices prove if no column of the base is worth more than 0.

        2 tr(WZ) − Σν; without the information (tr WZ)²/Σν, which is the same at the best multiple of Z.
        """
        trace, total = float(np.sum(self.objective.W.T * self.Z)), float(np.sum(self.nu))
        if not self.objective.informative and total > 0:
            return trace**2 / total
        return 2 * trace - total
