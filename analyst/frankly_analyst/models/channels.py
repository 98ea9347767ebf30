# SPDX-License-Identifier: Apache-2.0
"""Channels from true shares to reports: score and information of counts with respect to shares.

A *channel* describes the reports given the states: by the law of the symbols of a table
(multinomial likelihood), or by the first and second moments of features (quasi-score equations),
which are the bits of a set or a decoded score. For a table both give the same equations. Shapes:
H strata, E predictors, S states; `steps` is ∂π/∂η, shape (H, E, S).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from frankly_analyst.models.sample import FloatArray

_LEAST = 1e-300

Curvature = Callable[[FloatArray], FloatArray]
"""Σ_s v_s ∂²π_s/∂η∂η, shape (H, E, E), at the current shares, from v, shape (H, S)."""


class Channel(Protocol):
    """Reports of H strata."""

    @property
    def n(self) -> FloatArray:
        """Number of reports of each stratum, shape (H,)."""

    def objective(self, pi: FloatArray, at: FloatArray, weights: FloatArray) -> float:
        """Return the objective of the fit; `at` are the shares that fix the weights of quasi-scores."""

    def equations(self, pi: FloatArray, steps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the score, shape (H, E), and expected information, (H, E, E), of each stratum's reports."""

    def observed(self, pi: FloatArray, steps: FloatArray, curvature: Curvature) -> FloatArray:
        """Return minus the derivative of each stratum's score [:, e] by the predictor [:, :, f], (H, E, E)."""

    def spread(self, pi: FloatArray, steps: FloatArray) -> FloatArray:
        """Return the covariance of single reports' scores within each stratum (divisor n), (H, E, E)."""


@dataclass(frozen=True)
class TableChannel:
    """Multinomial counts, shape (H, Y), of symbols with the law Q, shape (S, Y)."""

    Q: FloatArray
    counts: FloatArray
    n: FloatArray

    def law(self, pi: FloatArray) -> FloatArray:
        """Return the probability of each symbol, at least the smallest positive number."""
        return np.maximum(pi @ self.Q, _LEAST)

    def objective(self, pi: FloatArray, at: FloatArray, weights: FloatArray) -> float:  # noqa: ARG002 (no quasi-score)
        """Return the log-likelihood without the multinomial coefficients."""
        return float(weights @ np.sum(self.counts * np.log(self.law(pi)), axis=1))

    def equations(self, pi: FloatArray, steps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return score and Fisher information."""
        law, slopes = self.law(pi), steps @ self.Q
        score = np.einsum("hey,hy->he", slopes, self.counts / law)
        scaled = slopes * (self.n[:, None] / law)[:, None, :]
        return score, scaled @ slopes.transpose(0, 2, 1)

    def observed(self, pi: FloatArray, steps: FloatArray, curvature: Curvature) -> FloatArray:
        """Return minus the second derivative of the log-likelihood."""
        law, slopes = self.law(pi), steps @ self.Q
        scaled = slopes * (self.counts / law**2)[:, None, :]
        curved = curvature((self.counts / law) @ self.Q.T)
        return np.asarray(scaled @ slopes.transpose(0, 2, 1) - curved)

    def spread(self, pi: FloatArray, steps: FloatArray) -> FloatArray:
        """Return the covariance of the scores of single reports."""
        scores = (steps @ self.Q) / self.law(pi)[:, None, :]
        share = self.counts / self.n[:, None]
        mean = np.einsum("hey,hy->he", scores, share)
        second = (scores * share[:, None, :]) @ scores.transpose(0, 2, 1)
        return np.asarray(second - mean[:, :, None] * mean[:, None, :])


@dataclass(frozen=True)
class MomentChannel:
    """Features with the means A, shape (S, F), and second moments, shape (S, F, F), given the state.

    means, covariances : observed means, shape (H, F), and covariances (divisor n) of the features.
    """

    A: FloatArray
    moments: FloatArray
    means: FloatArray
    covariances: FloatArray
    n: FloatArray

    def _inverse(self, pi: FloatArray) -> FloatArray:
        mean = pi @ self.A
        C = np.einsum("hs,sij->hij", pi, self.moments) - mean[:, :, None] * mean[:, None, :]
        # Bits of a subset report have a fixed sum, so their covariance is singular.
        return np.linalg.pinv(C, rcond=1e-10, hermitian=True)

    def objective(self, pi: FloatArray, at: FloatArray, weights: FloatArray) -> float:
        """Return minus half the weighted squared distance of the means, with the weights fixed at `at`."""
        distance = self.means - pi @ self.A
        squares = np.einsum("hi,hij,hj->h", distance, self._inverse(at), distance, optimize=True)
        return float(-0.5 * weights @ (self.n * squares))

    def equations(self, pi: FloatArray, steps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return quasi-score and its information."""
        slopes = steps @ self.A
        scaled = slopes @ self._inverse(pi) * self.n[:, None, None]
        score = np.einsum("hei,hi->he", scaled, self.means - pi @ self.A)
        return score, scaled @ slopes.transpose(0, 2, 1)

    def observed(self, pi: FloatArray, steps: FloatArray, curvature: Curvature) -> FloatArray:
        """Return minus the derivative of quasi-score and working covariance, not symmetric."""
        slopes, mean, inverse = steps @ self.A, pi @ self.A, self._inverse(pi)
        distance = np.einsum("hij,hj->hi", inverse, self.means - mean)
        # ∂C/∂η_f times the distance; the null space of C is the same everywhere, so that ∂C⁺ = −C⁺ ∂C C⁺.
        moved = steps @ np.einsum("sij,hj->hsi", self.moments, distance)
        moved -= slopes * np.einsum("hi,hi->h", mean, distance)[:, None, None]
        moved -= mean[:, None, :] * np.einsum("hfi,hi->hf", slopes, distance)[:, :, None]
        scaled = slopes @ inverse @ (slopes + moved).transpose(0, 2, 1)
        return np.asarray(self.n[:, None, None] * (scaled - curvature(distance @ self.A.T)))

    def spread(self, pi: FloatArray, steps: FloatArray) -> FloatArray:
        """Return the covariance of the quasi-scores of single reports."""
        scores = steps @ self.A @ self._inverse(pi)
        return np.asarray(scores @ self.covariances @ scores.transpose(0, 2, 1))
