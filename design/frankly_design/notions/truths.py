# SPDX-License-Identifier: Apache-2.0
"""Largest variance over plausible truths, for a fixed mechanism and decoder.

The truths q_i have weights π_i, the columns v_j of the mechanism have weights θ_j. With a decoder
for the mixture q̄ = Σ π_i q_i the payoff is F(θ, π) = tr(W A⁻¹ Wᵀ) − the sampling term, where W is
the matrix of targets and A = Σ_j θ_j v_j v_jᵀ / (q̄·v_j). F is convex in θ and concave in π, and
its saddle point is minimax over mechanisms and decoders together. For fixed π this is the ordinary
problem with prior q̄ (docs/maths/variance.md, claims 13 and 14).
"""

from dataclasses import dataclass

import numpy as np

from frankly_design.numeric.arrays import FloatArray

# The bound is valid after any number of steps; further steps only tighten it.
_STEPS = 5_000
_EXACT = 1e-12


@dataclass(frozen=True)
class Truths:
    """Plausible shares of the answers.

    points : shape (m, a), each row of sum 1; every answer has mass in some row.
    mixed : True if all mixtures of the points are plausible too, False if only the points are.
    """

    points: FloatArray
    mixed: bool = False

    def sampling(self, W: FloatArray, pi: FloatArray) -> float:
        """Return the sampling term: Σ π_i|Wq_i|² for the points alone, |Wq̄|² for mixtures."""
        U = self.points @ W.T
        return float(np.sum((pi @ U) ** 2)) if self.mixed else float(pi @ np.sum(U**2, axis=1))

    def variances(self, squares: FloatArray, W: FloatArray) -> FloatArray:
        """Return c·q − |Wq|² at every point, shape (m,).

        squares : c_x = E[|d|²|x] of an unbiased decoder, shape (a,).
        """
        return np.asarray(
            self.points @ squares - np.sum((self.points @ W.T) ** 2, axis=1), dtype=np.float64
        )

    def largest(self, squares: FloatArray, W: FloatArray) -> float:
        """Return the largest c·q − |Wq|² over all plausible q.

        For mixtures the result is an upper bound, within a relative 1e-12 unless the step limit is
        reached first. The variance is concave in q, so a tangent bounds it, and the tangent is
        largest at one of the points. Pairwise Frank-Wolfe steps find the point of contact.
        """
        if not self.mixed:
            return float(self.variances(squares, W).max())
        U, gains = self.points @ W.T, self.points @ squares
        pi = np.zeros(len(gains))
        pi[int(np.argmax(self.variances(squares, W)))] = 1.0
        bound = np.inf
        for _ in range(_STEPS):
            mean = pi @ U
            slope = gains - 2 * U @ mean
            best, worst = int(np.argmax(slope)), int(np.argmin(np.where(pi > 0, slope, np.inf)))
            value = float(pi @ gains - mean @ mean)
            bound = min(bound, value + float(slope[best] - pi @ slope))
            curvature = 2 * float(np.sum((U[best] - U[worst]) ** 2))
            if bound - value <= _EXACT * abs(bound) or curvature == 0:
                break
            # The step cannot move more weight than the worst point has, so π stays non-negative.
            step = min(float(pi[worst]), float(slope[best] - slope[worst]) / curvature)
            pi[best], pi[worst] = pi[best] + step, pi[worst] - step
        return bound


class WorstTruth:
    """Payoff F for columns V and weights θ = x + reserved.

    V : shape (n, a).
    W : shape (t, a).
    reserved : weights of shape (n,) that keep A regular.
    """

    def __init__(self, V: FloatArray, W: FloatArray, truths: Truths, reserved: FloatArray) -> None:
        self._V, self._W, self._reserved = V, W, reserved
        self._masses = truths.points @ V.T  # probability that a truth sends a column, per unit of θ
        self._U = truths.points @ W.T
        self._mixed = truths.mixed

    def slopes(self, x: FloatArray, pi: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """See `saddle.Payoff`; over points alone, ∂F/∂π are the variances at the points."""
        theta, mass, _, UZ = self._factors(x, pi)
        squares = np.sum(UZ**2, axis=1) / mass
        levels = self._masses @ (squares * theta / mass)
        if not self._mixed:
            return -squares, levels - np.sum(self._U**2, axis=1)
        mean = pi @ self._U / pi.sum()  # |Σ π_i Wq_i|²/Σπ is homogeneous of degree 1
        return -squares, levels - 2 * self._U @ mean + float(mean @ mean)

    def curvatures(
        self, x: FloatArray, pi: FloatArray, /
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """See `saddle.Payoff`.

        A is linear in g_j = θ_j/(q̄·v_j), and tr(W A⁻¹ Wᵀ) is convex in g with Hessian H; the chain
        rule gives the derivatives by θ and π.
        """
        theta, mass, whitened, UZ = self._factors(x, pi)
        squares = np.sum(UZ**2, axis=1)
        H = 2 * (whitened @ whitened.T) * (UZ @ UZ.T)
        by_theta = 1 / mass
        by_pi = -self._masses * (theta / mass**2)  # ∂g/∂π, shape (m, n)
        xx = H * by_theta[:, None] * by_theta
        cross = by_theta[:, None] * (H @ by_pi.T) + (squares / mass**2)[:, None] * self._masses.T
        curved = (
            by_pi @ H @ by_pi.T - 2 * (self._masses * (squares * theta / mass**3)) @ self._masses.T
        )
        if self._mixed:
            deviation = self._U - pi @ self._U / pi.sum()
            curved -= 2 / float(pi.sum()) * deviation @ deviation.T
        return xx, cross, curved

    def _factors(
        self, x: FloatArray, pi: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return (θ, q̄·v_j, V L⁻ᵀ, V A⁻¹Wᵀ). Raises LinAlgError if A is not positive definite."""
        theta, mass = x + self._reserved, pi @ self._masses
        inverse = np.linalg.inv(np.linalg.cholesky((self._V.T * (theta / mass)) @ self._V))
        whitened = self._V @ inverse.T
        return theta, mass, whitened, whitened @ (inverse @ self._W.T)
