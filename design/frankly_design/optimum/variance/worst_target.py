# SPDX-License-Identifier: Apache-2.0
"""Payoff of the worst target: F(θ, π) = Σ_t π_t (w_tᵀA(θ)⁻¹w_t − c_t), linear in π."""

import numpy as np

from frankly_design.numeric.arrays import FloatArray


class WorstTarget:
    """Payoff F for A = fixed + Σ x_j v_j v_jᵀ.

    V : shape (n, a).
    W : shape (t, a).
    c : shape (t,), the sampling terms (w_t·p)².
    fixed : shape (a, a), positive definite, so that A is regular even at x = 0.
    """

    def __init__(self, V: FloatArray, W: FloatArray, c: FloatArray, fixed: FloatArray) -> None:
        self._V, self._W, self._c, self._fixed = V, W, c, fixed

    def slopes(self, x: FloatArray, pi: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """See `saddle.Payoff`."""
        _, UZ, variances = self._factors(x)
        return -(UZ**2) @ pi, variances

    def curvatures(
        self, x: FloatArray, pi: FloatArray, /
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """See `saddle.Payoff`."""
        whitened, UZ, _ = self._factors(x)
        return (
            2 * (whitened @ whitened.T) * ((UZ * pi) @ UZ.T),
            -(UZ**2),
            np.zeros((len(pi), len(pi))),
        )

    def _factors(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (V L⁻ᵀ, V A⁻¹Wᵀ, variances). Raises LinAlgError unless A is positive definite."""
        # With A = LLᵀ, both products below are plain multiplications by L⁻¹.
        inverse = np.linalg.inv(np.linalg.cholesky(self._fixed + (self._V.T * x) @ self._V))
        whitened = self._V @ inverse.T
        targets = inverse @ self._W.T
        return whitened, whitened @ targets, np.sum(targets**2, axis=0) - self._c
