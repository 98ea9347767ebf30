# SPDX-License-Identifier: Apache-2.0
"""Programmes over the extreme rays of a cone: optimal mechanisms (spec 1.6; Funnel Thm 3).

A mechanism whose columns are multiples of rays v_1 … v_n is determined by weights θ ≥ 0 with
Σ θ_j v_j = 1, which makes its rows sum to 1. Rays are scaled to p·v = 1, so θ_j is the probability
of report j under the prior. Then

- I(X; Y) = Σ θ_j Σ_x p_x v_jx ln v_jx is linear in θ: a linear programme;
- the variance of the unbiased shares is tr(A(θ)⁻¹) − p·p with A(θ) = Σ θ_j v_j v_jᵀ: convex.

The bound of either problem holds for *every* mechanism of the cone, because it is checked on every
ray (docs/maths/optimum.md, claims 3 and 5).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

from frankly_design.notions.prior import Prior
from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.rays import Ray
from frankly_design.optimum.interior import TraceOptimum, minimise_trace
from frankly_design.optimum.variance.reports import balanced, thinned
from frankly_design.tables.linear import lp

NEGLIGIBLE = 1e-7
"""Reports whose probability stays below this under every answer are dropped."""
# A ray is treated as optimal if the slack of λ·v ≥ g(v), relative to the optimum, is below this.
_TIGHT = 1e-9
# Singular values below this count as 0; they would give a share a variance of 10^18.
_INDEPENDENT = 1e-9
# The centre is only the start of another search, so a large duality gap is sufficient.
_CENTRAL = 0.2
# Columns truncated to multiples of 2^-112 stay in the cone up to a relative error of about 2^-100,
# far smaller than 2^-48, the unit of published weights.
_SCALE_BITS = 112
# Largest error of a row sum of generated columns; a larger one means that the solver failed.
_ROW_ERROR = 1e-9


@dataclass(frozen=True, slots=True)
class Optimum:
    """Mechanism over rays: report j is θ_j times the scaled ray j.

    rays : integer columns.
    theta : shape (reports,), all positive.
    bound : proven bound of the objective: an upper bound for the information (nats) and the
    probability of a right guess, a lower bound for a variance, up to float rounding.
    multipliers : shape (answers,), the certificate of the bound, see `most_gain`; 0 for a variance.
    """

    rays: tuple[Ray, ...]
    theta: FloatArray
    bound: float
    multipliers: FloatArray

    def rows(self, prior: Prior) -> list[list[int]]:
        """Return the mechanism as integers, row = truth, every row summing to about 2^112.

        Each column is a multiple of its exact ray, rounded down to integers, so it is in the cone
        up to a relative error of about 2^-100.
        """
        shares, total = prior.shares, prior.total
        columns = []
        for ray, theta in zip(self.rays, self.theta, strict=True):
            # A float θ is an exact fraction, so all arithmetic from here on uses exact integers.
            numerator, denominator = float(theta).as_integer_ratio()
            expected = sum(n * v for n, v in zip(shares, ray, strict=True)) * denominator
            columns.append([((numerator * v * total) << _SCALE_BITS) // expected for v in ray])
        return [list(row) for row in zip(*columns, strict=True)]


def scaled(rays: Sequence[Ray] | FloatArray, prior: Prior) -> FloatArray:
    """Return the rays as floats with p·v = 1, shape (rays, answers); floats are returned as is."""
    if isinstance(rays, np.ndarray):
        return rays
    shares, total = prior.shares, prior.total
    expected = [sum(n * v for n, v in zip(shares, ray, strict=True)) for ray in rays]
    return np.array([[v * total / e for v in ray] for ray, e in zip(rays, expected, strict=True)])


def ray_information(V: FloatArray, prior: Prior) -> FloatArray:
    """Return Σ_x p_x v_x ln v_x per scaled ray: its I(X; Y) per unit of θ; shape (rays,)."""
    logs = np.log(V, out=np.zeros_like(V), where=V > 0)
    return np.asarray((V * logs) @ prior.probabilities(), dtype=np.float64)


def ray_guesses(V: FloatArray, prior: Prior) -> FloatArray:
    """Return P(right best guess) of each scaled ray per unit of θ: max_x p_x v_x, shape (rays,)."""
    return np.asarray(np.max(V * prior.probabilities(), axis=1), dtype=np.float64)


RAY_GAINS = {"information": ray_information, "hamming": ray_guesses}
"""Gain of each ray per unit of θ, for objectives that are sums over reports."""


def most_gain(rays: Sequence[Ray] | FloatArray, prior: Prior, objective: str) -> Optimum:
    """Maximise I(X; Y) or P(right guess) over mechanisms made of rays  [Funnel Thm 3, eqs. 13-15].

    Maximise g·θ subject to Σ θ_j v_j = 1, θ ≥ 0. A basic solution has at most `answers` reports,
    whose columns are linearly independent. Certificate: any λ with λ·v ≥ g(v) on every ray bounds
    the optimum by Σ λ_x.
    """
    V = scaled(rays, prior)
    gains = RAY_GAINS[objective](V, prior)
    unit = float(np.max(np.abs(gains)))  # the solver's tolerances are absolute
    solution = lp(-gains / unit, V.T.copy(), np.ones(V.shape[1]))
    dual_multipliers = -solution.dual * unit
    # The solver's duals may violate λ·v ≥ g(v) within its tolerance; `_raised` corrects this.
    multipliers = _raised(dual_multipliers, gains - V @ dual_multipliers, prior)
    return _finished(rays, V, solution.x, float(np.sum(multipliers)), multipliers)


def generated(
    columns: FloatArray, theta: FloatArray, bound: float, multipliers: FloatArray
) -> Optimum:
    """Return the mechanism made of generated columns, shape (n, a), as integer columns."""
    weights = theta * columns.max(axis=1)
    # Rare reports may be needed to make rows sum to 1, or to estimate a target.
    for least in (NEGLIGIBLE, NEGLIGIBLE**2, 0.0):
        V = columns[weights > least]
        kept = balanced(V, theta[weights > least])
        if len(V) and np.min(kept) > 0 and np.max(np.abs(kept @ V - 1)) <= _ROW_ERROR:
            return Optimum(tuple(integer_columns(V)), kept, bound, multipliers)
    raise _extreme_numbers_error()


def integer_columns(V: FloatArray) -> list[Ray]:
    """Return float columns as multiples of 2^-90, in units of 2^-90."""
    return [tuple(map(int, column)) for column in (V * 2.0**90).tolist()]


def repaired(
    rays: Sequence[Ray] | FloatArray,
    prior: Prior,
    best: Optimum,
    loss: float,
    objective: str = "information",
) -> Optimum | None:
    """Return the mechanism of least variance that reaches (1 − loss) of the optimum.

    With loss = 0 it uses only rays with λ·v = g(v): every mechanism made of them is optimal, so
    this breaks ties at no cost. The bound of the objective is that of `best`.

    Returns None if no such mechanism identifies all shares, or if the solver fails.
    """
    V = scaled(rays, prior)
    gains = RAY_GAINS[objective](V, prior)
    candidates = _chosen(rays, np.arange(len(V)))
    a = V.shape[1]
    if loss == 0:
        tight = np.flatnonzero(V @ best.multipliers - gains <= _TIGHT * best.bound)
        candidates, V, gains = [candidates[int(j)] for j in tight], V[tight], gains[tight]
        # Without full rank no mechanism made of these rays identifies all shares.
        if np.linalg.matrix_rank(V / V.max(axis=1, keepdims=True), _INDEPENDENT) < a:
            return None
        solution: TraceOptimum | None = minimise_trace(V, V.T.copy(), np.ones(a), np.eye(a))
    else:
        solution = _least_variance_above(V, gains / best.bound, best, candidates, 1 - loss)
    if solution is None or not solution.converged:
        return None
    theta = solution.x[: len(candidates)]
    return _finished(candidates, V, theta, best.bound, best.multipliers, (gains,))


def _chosen(rays: Sequence[Ray] | FloatArray, indices: NDArray[np.intp]) -> list[Ray]:
    """Return the rays at these indices as integers."""
    if isinstance(rays, np.ndarray):
        return integer_columns(rays[indices])
    return [rays[int(j)] for j in indices]


def _least_variance_above(
    V: FloatArray, gains: FloatArray, best: Optimum, rays: Sequence[Ray], floor: float
) -> TraceOptimum | None:
    """Minimise tr(A(θ)⁻¹) subject to gains·θ ≥ floor, with gains relative to the optimum."""
    a = V.shape[1]
    centre = minimise_trace(V, V.T.copy(), np.ones(a), np.eye(a), tolerance=_CENTRAL)
    if not centre.converged:
        return None
    # A mixture of the optimum and the centre that uses at most half of the allowed loss is a
    # feasible start in the interior.
    index = {ray: j for j, ray in enumerate(rays)}
    optimum = np.zeros(len(rays))
    optimum[[index[ray] for ray in best.rays]] = best.theta
    loss = max(1e-9, 1 - float(gains @ centre.x))
    share = min(0.5, 0.5 * (1 - floor) / loss)
    start = share * centre.x + (1 - share) * optimum
    U = np.vstack([V, np.zeros((1, a))])
    C = np.vstack([np.hstack([V.T, np.zeros((a, 1))]), np.append(gains, -1.0)])
    slack = float(gains @ start) - floor
    return minimise_trace(
        U, C, np.append(np.ones(a), floor), np.eye(a), start=np.append(start, slack)
    )


def _raised(multipliers: FloatArray, violations: FloatArray, prior: Prior) -> FloatArray:
    """Return λ + t·p with λ·v ≥ g(v) on every ray: p·v = 1, so t is the largest violation."""
    return multipliers + max(0.0, float(np.max(violations))) * prior.probabilities()


def _finished(
    rays: Sequence[Ray] | FloatArray,
    V: FloatArray,
    theta: FloatArray,
    bound: float,
    multipliers: FloatArray,
    gains: Sequence[FloatArray] = (),
) -> Optimum:
    """Return the optimum without negligible and redundant reports, rows summing to 1.

    gains : additional sums over reports that must not change, shape (k, rays).
    """
    indices = np.flatnonzero(theta * V.max(axis=1) > NEGLIGIBLE)
    a, theta = V.shape[1], balanced(V[indices], theta[indices])
    if len(indices) > a * (a + 1) // 2:
        # Thinning preserves these moments Σ θ v vᵀ, and therefore the variance and the row sums.
        fixed = [V[:, i] * V[:, j] for i in range(a) for j in range(i + 1)]
        indices, theta = thinned(np.array([*fixed, *gains]), indices, theta)
        theta = balanced(V[indices], theta)
    if np.min(theta) <= 0 or np.max(np.abs(theta @ V[indices] - 1)) > 1e-12:
        raise _extreme_numbers_error()
    return Optimum(tuple(_chosen(rays, indices)), theta, bound, multipliers)


def _extreme_numbers_error() -> InvalidInput:
    return InvalidInput(
        Problem.OPTIMISER_LIMIT,
        "the numbers are too extreme for the optimiser: use the mechanism grr, or a less extreme prior",
        "mechanism",
    )
