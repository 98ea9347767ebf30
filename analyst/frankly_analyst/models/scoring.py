# SPDX-License-Identifier: Apache-2.0
"""Fisher scoring of score equations through the mechanism, on counts by stratum.

The model is P(report | x) = Σ_s Q(report | s) π_s(η(x)), η_e = X_e β[index_e]. The cost of a step
grows with the number of strata, not of reports. Errors: model-based I⁻¹ with the expected
information I, and the sandwich J⁻¹ M J⁻ᵀ whose bread J is minus the derivative of the score, the
only correct choice if the model is wrong, and whose middle M is the variance of the scores under
the sampling design.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from frankly_analyst.models.channels import Channel
from frankly_analyst.models.families import Family
from frankly_analyst.models.sample import SIMPLE, FloatArray

MOST_STEPS = 200
_CONVERGED, _DONE = 1e-18, 1e-10
"""Newton decrements (twice the distance of the log-likelihood from its maximum): the fit stops below
the first, per report. If rounding stops it earlier, it counts as solved below the second."""
_MOST_MOVE = 2.0
"""Largest change of a predictor in one step: limits overshooting to shares of 0 or 1."""
_FAR = 20.0
"""Predictor beyond which a share is within 2e-9 of 0 or 1; the estimate is then infinite."""
_SINGULAR = 1e-11


@dataclass(frozen=True)
class Predictor:
    """One linear predictor: X, shape (H, m), times the parameters at `index`, shape (m,)."""

    X: FloatArray
    index: NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """Counts of one version with the predictors of its strata and the weight of each report."""

    channel: Channel
    predictors: Sequence[Predictor]
    weights: FloatArray

    def eta(self, beta: FloatArray) -> FloatArray:
        """Return the predictors, shape (H, E)."""
        return np.stack([part.X @ beta[part.index] for part in self.predictors], axis=1)

    def gather(self, per_predictor: FloatArray, parameters: int) -> FloatArray:
        """Return Σ_h of a vector over predictors, shape (H, E), in parameters."""
        total = np.zeros(parameters)
        for e, part in enumerate(self.predictors):
            np.add.at(total, part.index, part.X.T @ per_predictor[:, e])
        return total

    def square(self, matrices: FloatArray, parameters: int) -> FloatArray:
        """Return Σ_h X_hᵀ M_h X_h, M of shape (H, E, E), in parameters."""
        total = np.zeros((parameters, parameters))
        for e, row in enumerate(self.predictors):
            for f, column in enumerate(self.predictors):
                part = (row.X * matrices[:, e, f, None]).T @ column.X
                np.add.at(total, (row.index[:, None], column.index[None, :]), part)
        return total

    def rows(self, per_predictor: FloatArray, parameters: int) -> FloatArray:
        """Return each stratum's vector over predictors in parameters, shape (H, P)."""
        total = np.zeros((len(per_predictor), parameters))
        for e, part in enumerate(self.predictors):
            # An index occurs at most once per predictor.
            total[:, part.index] += part.X * per_predictor[:, e, None]
        return total


@dataclass(frozen=True)
class Solution:
    """Root of the score equations.

    problem : "" | "singular" | "infinite" | "slow". information : shape (P, P), at the last step.
    """

    beta: FloatArray
    information: FloatArray
    objective: float
    iterations: int
    problem: str = ""


@dataclass(frozen=True)
class Equations:
    """Score equations of all versions together."""

    blocks: Sequence[Block]
    family: Family
    parameters: int
    bounded: bool = True

    def at(self, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return score and information."""
        score, information = np.zeros(self.parameters), np.zeros((self.parameters,) * 2)
        for block in self.blocks:
            gradient, matrices = block.channel.equations(*self.family(block.eta(beta)))
            score += block.gather(gradient * block.weights[:, None], self.parameters)
            information += block.square(matrices * block.weights[:, None, None], self.parameters)
        return score, information

    def observed(self, beta: FloatArray) -> FloatArray:
        """Return minus the derivative of the score, shape (P, P): row = equation, column = parameter."""
        total = np.zeros((self.parameters,) * 2)
        for block in self.blocks:
            eta = block.eta(beta)
            matrices = block.channel.observed(
                *self.family(eta), partial(self.family.curvature, eta)
            )
            total += block.square(matrices * block.weights[:, None, None], self.parameters)
        return total

    def objective(self, beta: FloatArray, at: FloatArray) -> float:
        """Return the objective of the fit, with the weights of quasi-scores fixed at `at`; −∞ outside the model."""
        total = 0.0
        for block in self.blocks:
            pi, _ = self.family(block.eta(beta))
            if self.bounded and (pi.min() < 0 or not np.isfinite(pi).all()):
                return -np.inf
            total += block.channel.objective(pi, self.family(block.eta(at))[0], block.weights)
        return total

    def solve(self, start: FloatArray) -> Solution:
        """Return the root by Fisher scoring with halved steps."""
        beta, reports = start, sum(float(block.channel.n.sum()) for block in self.blocks)
        for iteration in range(1, MOST_STEPS + 1):
            score, information = self.at(beta)
            move, problem = _step(information, score)
            if problem or (self.bounded and self._far(beta)):
                # Far from 0 the information vanishes: it is singular because a share is 0 or 1.
                infinite = iteration > 1 and self._far(beta, 0.4)
                return self._solution(beta, iteration, "infinite" if infinite else problem)
            decrement = float(score @ move)
            if self.bounded:
                move = move * min(1.0, _MOST_MOVE / max(self._change(move), 1e-300))
            beta, moved = self._line(beta, move, float(score @ move))
            enough = _CONVERGED * reports
            if decrement < enough or not moved:
                solved = decrement < max(_DONE, enough)
                return self._solution(beta, iteration, "" if solved else "slow")
        return self._solution(beta, MOST_STEPS, "slow")

    def _solution(self, beta: FloatArray, iterations: int, problem: str) -> Solution:
        return Solution(beta, self.at(beta)[1], self.objective(beta, beta), iterations, problem)

    def _line(self, beta: FloatArray, move: FloatArray, slope: float) -> tuple[FloatArray, bool]:
        here = self.objective(beta, beta)
        size = 1.0
        for _ in range(40):
            there = self.objective(beta + size * move, beta)
            # Armijo's condition, with room for the rounding of sums over many reports.
            if there >= here + 1e-4 * size * slope - 1e-13 * abs(here):
                return beta + size * move, True
            size /= 2
        return beta, False

    def _change(self, move: FloatArray) -> float:
        return max(float(np.abs(block.eta(move)).max()) for block in self.blocks)

    def _far(self, beta: FloatArray, part: float = 1.0) -> bool:
        return any(np.abs(block.eta(beta)).max() > part * _FAR for block in self.blocks)


def _step(information: FloatArray, score: FloatArray) -> tuple[FloatArray, str]:
    """Return I⁻¹·score, with "singular" if the information does not determine all parameters."""
    scale = np.sqrt(np.diagonal(information))
    if not np.isfinite(information).all() or (scale <= 0).any():
        return np.zeros_like(score), "singular"
    scaled = information / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(scaled)
    if values[0] <= _SINGULAR * values[-1]:
        return np.zeros_like(score), "singular"
    return np.asarray(vectors @ ((vectors.T @ (score / scale)) / values) / scale), ""


def inverted(observed: FloatArray, information: FloatArray) -> FloatArray | None:
    """Return the inverse of the observed information; None if the root is not an isolated maximum.

    information : the expected information, which scales the parameters. The observed information
    may be indefinite if the model does not fit: the root may then be a saddle point or lie in a
    flat valley, where standard errors have no meaning.
    """
    scale = np.sqrt(np.diagonal(information))
    scaled = observed / np.outer(scale, scale)
    values = np.linalg.eigvalsh((scaled + scaled.T) / 2)
    if values[0] <= _SINGULAR * values[-1]:
        return None
    return np.asarray(np.linalg.inv(scaled) / np.outer(scale, scale))


def undetermined(information: FloatArray) -> FloatArray:
    """Return each parameter's weight, 0 to 1, in the weakest direction of the information."""
    scale = np.sqrt(np.maximum(np.diagonal(information), 0))
    if (scale <= 0).any():
        return np.asarray((scale <= 0).astype(float))
    _, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    weakest = np.abs(vectors[:, 0])
    return np.asarray(weakest / weakest.max())


@dataclass(frozen=True)
class Piece:
    """Scores of single reports of one block, in predictors: mean, (H, E), and covariance, (H, E, E), by stratum."""

    block: Block
    mean: FloatArray
    spread: FloatArray


def pieces(equations: Equations, beta: FloatArray) -> list[Piece]:
    """Return the scores of single reports at `beta`."""
    found = []
    for block in equations.blocks:
        pi, steps = equations.family(block.eta(beta))
        score, _ = block.channel.equations(pi, steps)
        mean = score / block.channel.n[:, None]
        found.append(Piece(block, mean, block.channel.spread(pi, steps)))
    return found


def score_variance(
    scores: Sequence[Piece],
    parameters: int,
    sampling: str,
    calibration: Sequence[tuple[FloatArray, FloatArray]] | None = None,
) -> FloatArray:
    """Return the variance M of the total score under the sampling design, shape (P, P).

    calibration : per piece (Z, base): calibration variables, shape (H, C), and base weights, (H,). Scores
        then count by their residuals from the regression on Z, because the totals of Z are known.
    """
    M = np.zeros((parameters, parameters))
    for piece in scores:
        n, w = piece.block.channel.n, piece.block.weights
        # A single report in a stratum of fixed size does not determine the variance;
        # `sparse_strata` flags this.
        factor = n if sampling == SIMPLE else n * n / np.maximum(n - 1, 1)
        M += piece.block.square(piece.spread * (w**2 * factor)[:, None, None], parameters)
    if sampling != SIMPLE:
        return M
    means = [piece.block.rows(piece.mean, parameters) for piece in scores]
    fits = [np.zeros_like(mean) for mean in means]
    if calibration is not None:
        fits = _regressions(means, [piece.block for piece in scores], calibration)
    reports = sum(float(piece.block.channel.n.sum()) for piece in scores)
    sums = np.zeros(parameters)
    for piece, mean, fit in zip(scores, means, fits, strict=True):
        n, w = piece.block.channel.n, piece.block.weights
        residual = (mean - fit) * (w * np.sqrt(n))[:, None]
        M += residual.T @ residual
        sums += residual.T @ np.sqrt(n)
    # Scores add up to 0, but with weights other than the base weights their residuals need not.
    M -= np.outer(sums, sums) / reports
    return np.asarray(M * reports / (reports - 1))


def _regressions(
    means: Sequence[FloatArray],
    blocks: Sequence[Block],
    calibration: Sequence[tuple[FloatArray, FloatArray]],
) -> list[FloatArray]:
    scaled = [
        Z * (base * block.channel.n)[:, None]
        for (Z, base), block in zip(calibration, blocks, strict=True)
    ]
    left = sum(part.T @ Z for part, (Z, _) in zip(scaled, calibration, strict=True))
    right = sum(part.T @ mean for part, mean in zip(scaled, means, strict=True))
    slopes = np.linalg.pinv(np.asarray(left), hermitian=True) @ right
    return [Z @ slopes for Z, _ in calibration]
