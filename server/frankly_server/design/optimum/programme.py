# SPDX-License-Identifier: Apache-2.0
"""Programmes over the extreme rays of a cone: optimal mechanisms (spec 1.6; Funnel Thm 3).

A mechanism whose columns are multiples of rays v_1 … v_n is given by weights θ ≥ 0 with
Σ θ_j v_j = 1, which makes its rows sum to one. Rays are scaled here to p·v = 1, so θ_j is the
probability of report j under the prior. Then

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

from frankly_server import rational
from frankly_server.design.notions.prior import Prior
from frankly_server.design.notions.rays import Ray
from frankly_server.design.optimum.interior import TraceOptimum, minimise_trace
from frankly_server.design.optimum.variance.reports import balanced, thinned
from frankly_server.design.tables.linear import FloatArray, lp

NEGLIGIBLE = 1e-7
"""Reports whose probability stays below this under every answer are dropped."""
# Slack of λ·v ≥ g(v), relative to the optimum, below which a ray is treated as optimal.
_TIGHT = 1e-9
# The centre is only the start of another search, so a large duality gap is acceptable.
_CENTRAL = 0.2
# Published weights are multiples of 2^-48. Columns cut off at 2^-112 stay in the cone to a relative
# error of about 2^-100, which is far smaller.
_SCALE_BITS = 112
# Largest error of a row sum of generated columns; a larger one means that the solver failed.
_ROW_ERROR = 1e-9


@dataclass(frozen=True, slots=True)
class Optimum:
    """Mechanism over rays: report j is θ_j times the scaled ray j.

    rays : whole-number columns.
    theta : shape (reports,), all positive.
    bound : proven bound of the objective, from above for the information (nats) and the probability
        of a right guess, from below for a variance, up to float rounding in its last digits.
    multipliers : shape (answers,), the certificate of the bound, see `most_gain`; 0 for a variance.
    """

    rays: tuple[Ray, ...]
    theta: FloatArray
    bound: float
    multipliers: FloatArray

    def rows(self, prior: Prior) -> list[list[int]]:
        """Return the mechanism as whole numbers, row = truth, every row summing to about 2^112.

        Each column is a multiple of its exact ray, rounded down to whole numbers, so it lies in the
        cone to a relative error of about 2^-100.
        """
        shares, total = prior.shares, prior.total
        columns = []
        for ray, theta in zip(self.rays, self.theta, strict=True):
            # Exact integers from here on, because a float θ is an exact fraction.
            numerator, denominator = float(theta).as_integer_ratio()
            expected = sum(n * v for n, v in zip(shares, ray, strict=True)) * denominator
            columns.append([((numerator * v * total) << _SCALE_BITS) // expected for v in ray])
        return [list(row) for row in zip(*columns, strict=True)]


def scaled(rays: Sequence[Ray], prior: Prior) -> FloatArray:
    """Return the rays as floats with p·v = 1, shape (rays, answers)."""
    shares, total = prior.shares, prior.total
    expected = [sum(n * v for n, v in zip(shares, ray, strict=True)) for ray in rays]
    return np.array([[v * total / e for v in ray] for ray, e in zip(rays, expected, strict=True)])


def ray_information(V: FloatArray, prior: Prior) -> FloatArray:
    """Return Σ_x p_x v_x ln v_x of each scaled ray, its I(X; Y) per unit of θ; shape (rays,)."""
    logs = np.log(V, out=np.zeros_like(V), where=V > 0)
    return np.asarray((V * logs) @ prior.probabilities(), dtype=np.float64)


def ray_guesses(V: FloatArray, prior: Prior) -> FloatArray:
    """Return P(right best guess) of each scaled ray per unit of θ: max_x p_x v_x, shape (rays,)."""
    return np.asarray(np.max(V * prior.probabilities(), axis=1), dtype=np.float64)


RAY_GAINS = {"information": ray_information, "hamming": ray_guesses}
"""Gain per unit of θ of each ray, for the objectives that are sums over reports."""


def most_gain(rays: Sequence[Ray], prior: Prior, objective: str) -> Optimum:
    """Maximise I(X; Y) or P(right guess) over mechanisms of rays  [Funnel Thm 3, eqs. 13-15].

    Maximise g·θ subject to Σ θ_j v_j = 1, θ ≥ 0. A basic solution has at most `answers` reports,
    whose columns are linearly independent. Certificate: any λ with λ·v ≥ g(v) on every ray bounds
    the optimum by Σ λ_x.
    """
    V = scaled(rays, prior)
    gains = RAY_GAINS[objective](V, prior)
    unit = float(np.max(np.abs(gains)))  # the solver's tolerances are absolute
    solution = lp(-gains / unit, V.T.copy(), np.ones(V.shape[1]))
    dual_multipliers = -solution.dual * unit
    # The solver's duals may violate λ·v ≥ g(v) by its tolerance; raising them corrects that.
    multipliers = _raised(dual_multipliers, gains - V @ dual_multipliers, prior)
    return _finished(rays, V, solution.x, float(np.sum(multipliers)), multipliers)


def generated(
    columns: FloatArray,
    theta: FloatArray,
    bound: float,
    multipliers: FloatArray,
) -> Optimum:
    """Return the mechanism made of generated columns, shape (n, a), as whole-number columns."""
    weights = theta * columns.max(axis=1)
    # Rare reports may be needed for rows that sum to 1, or to estimate a target.
    for least in (NEGLIGIBLE, NEGLIGIBLE**2, 0.0):
        V = columns[weights > least]
        kept = balanced(V, theta[weights > least])
        if len(V) and np.min(kept) > 0 and np.max(np.abs(kept @ V - 1)) <= _ROW_ERROR:
            return Optimum(tuple(integer_columns(V)), kept, bound, multipliers)
    raise _extreme_numbers_error()


def integer_columns(V: FloatArray) -> list[Ray]:
    """Return float columns as multiples of 2^-90, in units of 2^-90."""
    return [tuple(int(v * 2.0**90) for v in column) for column in V.tolist()]


def repaired(
    rays: Sequence[Ray], prior: Prior, best: Optimum, loss: float, objective: str = "information"
) -> Optimum | None:
    """Return the mechanism of least variance that reaches (1 − loss) of the optimum.

    With loss = 0 it uses rays with λ·v = g(v) only: every mechanism on them is optimal, so this
    breaks ties at no cost. The bound of the objective is that of `best`.

    Returns None if no such mechanism identifies every share, or if the solver fails.
    """
    V = scaled(rays, prior)
    gains = RAY_GAINS[objective](V, prior)
    a = V.shape[1]
    if loss == 0:
        tight = np.flatnonzero(V @ best.multipliers - gains <= _TIGHT * best.bound)
        candidates = [rays[int(j)] for j in tight]
        # Without full rank no mechanism on these rays identifies every share.
        if not _spans(candidates):
            return None
        optimal = V[tight]
        solution: TraceOptimum | None = minimise_trace(
            optimal, optimal.T.copy(), np.ones(a), np.eye(a)
        )
    else:
        candidates = list(rays)
        solution = _least_variance_above(V, gains / best.bound, best, rays, 1 - loss)
    if solution is None or not solution.converged:
        return None
    V = scaled(candidates, prior)
    gains = RAY_GAINS[objective](V, prior)
    return _finished(
        candidates,
        V,
        solution.x[: len(candidates)],
        best.bound,
        best.multipliers,
        gains=gains,
    )


def _spans(rays: Sequence[Ray]) -> bool:
    return bool(rays) and rational.rank(rays) == len(rays[0])


def _least_variance_above(
    V: FloatArray, gains: FloatArray, best: Optimum, rays: Sequence[Ray], floor: float
) -> TraceOptimum | None:
    """Minimise tr(A(θ)⁻¹) subject to gains·θ ≥ floor, with gains relative to the optimum."""
    a = V.shape[1]
    centre = minimise_trace(V, V.T.copy(), np.ones(a), np.eye(a), tolerance=_CENTRAL)
    if not centre.converged:
        return None
    # A mixture of optimum and centre that uses at most half of the allowed loss is a feasible start
    # inside the boundary.
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
        U,
        C,
        np.append(np.ones(a), floor),
        np.eye(a),
        start=np.append(start, slack),
    )


def _raised(multipliers: FloatArray, violations: FloatArray, prior: Prior) -> FloatArray:
    """Return λ + t·p with λ·v ≥ g(v) on every ray: p·v = 1, so t is the largest violation."""
    return multipliers + max(0.0, float(np.max(violations))) * prior.probabilities()


def _finished(
    rays: Sequence[Ray],
    V: FloatArray,
    theta: FloatArray,
    bound: float,
    multipliers: FloatArray,
    *,
    gains: FloatArray | None = None,
) -> Optimum:
    """Return the optimum without negligible and superfluous reports, rows summing to one.

    gains : a further sum over reports that must not change.
    """
    indices = np.flatnonzero(theta * V.max(axis=1) > NEGLIGIBLE)
    # Thinning preserves these moments Σ θ v vᵀ, and with them the variance and the row sums.
    fixed = [V[:, i] * V[:, j] for i in range(V.shape[1]) for j in range(i + 1)]
    if gains is not None:
        fixed.append(gains)
    features = np.array(fixed)
    indices, theta = thinned(features, indices, balanced(V[indices], theta[indices]))
    theta = balanced(V[indices], theta)
    if np.min(theta) <= 0 or np.max(np.abs(theta @ V[indices] - 1)) > 1e-12:
        raise _extreme_numbers_error()
    return Optimum(tuple(rays[int(j)] for j in indices), theta, bound, multipliers)


def _extreme_numbers_error() -> InvalidInput:
    message = "the numbers are too extreme for the optimiser: use the mechanism grr, or a less extreme prior"
    return InvalidInput(Problem.OPTIMISER_LIMIT, message, "mechanism")
