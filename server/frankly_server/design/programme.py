# SPDX-License-Identifier: Apache-2.0
"""Optimal mechanisms as programmes over the extreme rays of a cone (DESIGN §2; Funnel Thm 3 for the information).

A mechanism whose columns are multiples of rays v_1 … v_n is given by weights θ ≥ 0 with Σ θ_j v_j = 1: its rows sum
to one. Rays are scaled here to p·v = 1, so that θ_j is how often report j is expected under the prior. Then

- I(X; Y) = Σ θ_j Σ_x p_x v_jx ln v_jx is linear in θ: a linear programme;
- the variance of the unbiased shares is tr(A(θ)⁻¹) − p·p with A(θ) = Σ θ_j v_j v_jᵀ: convex.

Both come with a bound that holds for *every* mechanism of the cone, because it is checked against every ray.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server import rational
from frankly_server.design.interior import TraceOptimum, minimise_trace
from frankly_server.design.linear import FloatArray, lp
from frankly_server.design.prior import Prior
from frankly_server.design.variance.reports import balanced, thinned
from frankly_server.design.vertices import Ray

NEGLIGIBLE = 1e-7
"""A report that no answer sends more often than this is left to the others."""
_TIGHT = 1e-9
_CENTRAL = 0.2
_SCALE_BITS = 112
_ROW_ERROR = 1e-9


@dataclass(frozen=True, slots=True)
class Optimum:
    """A mechanism over rays: report j is θ_j times the scaled ray j.

    rays : whole-number columns. theta : shape (reports,), all positive. bound : proven bound of the objective, from
    above for the information (nats), from below for tr(A⁻¹), up to float rounding in its last digits.
    multipliers : shape (answers,), what proves the bound: see `most_gain`.
    """

    rays: tuple[Ray, ...]
    theta: FloatArray
    bound: float
    multipliers: FloatArray

    def rows(self, prior: Prior) -> list[list[int]]:
        """Return the mechanism as whole numbers, row = truth, every row summing to about 2^112.

        Each column is a multiple of its exact ray to the last unit, so it lies in the cone to about 2^-100.
        """
        shares, total = prior.shares, prior.total
        columns = []
        for ray, theta in zip(self.rays, self.theta, strict=True):
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
    """Return what each scaled ray contributes to I(X; Y) per unit of θ, in nats: Σ_x p_x v_x ln v_x, shape (rays,)."""
    logs = np.log(V, out=np.zeros_like(V), where=V > 0)
    return np.asarray((V * logs) @ prior.probabilities(), dtype=np.float64)


def ray_guesses(V: FloatArray, prior: Prior) -> FloatArray:
    """Return how often the best guess from each scaled ray is right, per unit of θ: max_x p_x v_x, shape (rays,)."""
    return np.asarray(np.max(V * prior.probabilities(), axis=1), dtype=np.float64)


RAY_GAINS = {"information": ray_information, "hamming": ray_guesses}
"""What one report is worth, for the objectives that add up over reports."""


def most_gain(rays: Sequence[Ray], prior: Prior, objective: str) -> Optimum:
    """Maximise I(X; Y), or the chance of guessing right, over the mechanisms made of rays  [Funnel Thm 3, eqs. 13-15].

    Maximise g·θ subject to Σ θ_j v_j = 1, θ ≥ 0. A basic solution has at most `answers` reports, linearly independent.
    Certificate: any λ with λ·v ≥ g(v) on every ray bounds the optimum by Σ λ_x.
    """
    V = scaled(rays, prior)
    gains = RAY_GAINS[objective](V, prior)
    unit = float(np.max(np.abs(gains)))  # the solver's tolerances are absolute
    solution = lp(-gains / unit, V.T.copy(), np.ones(V.shape[1]))
    found = -solution.dual * unit
    multipliers = _raised(found, gains - V @ found, prior)
    return _finished(rays, V, solution.x, float(np.sum(multipliers)), multipliers)


def generated(columns: FloatArray, theta: FloatArray, bound: float, multipliers: FloatArray) -> Optimum:
    """Return the mechanism made of generated columns, shape (n, a), as whole-number columns."""
    kept = np.flatnonzero(theta * columns.max(axis=1) > NEGLIGIBLE)
    V = columns[kept]
    theta = balanced(V, theta[kept])
    if np.min(theta) <= 0 or np.max(np.abs(theta @ V - 1)) > _ROW_ERROR:
        raise _not_solved()
    return Optimum(tuple(whole_columns(V)), theta, bound, multipliers)


def whole_columns(V: FloatArray) -> list[Ray]:
    """Return float columns as whole numbers in the same proportions, to 2^-90."""
    return [tuple(int(v * 2.0**90) for v in column) for column in V.tolist()]


def repaired(
    rays: Sequence[Ray], prior: Prior, best: Optimum, loss: float, objective: str = "information"
) -> Optimum | None:
    """Return the mechanism of least variance among those that reach (1 − loss) of the optimum; None if none.

    With loss = 0 these are the mechanisms on rays where λ·v = i(v): ties are broken without giving anything up.
    The bound of the information is `best`'s.
    """
    V = scaled(rays, prior)
    gains = RAY_GAINS[objective](V, prior)
    a = V.shape[1]
    if loss == 0:
        tight = np.flatnonzero(V @ best.multipliers - gains <= _TIGHT * best.bound)
        kept = [rays[int(j)] for j in tight]
        solution = minimise_trace(V[tight], V[tight].T.copy(), np.ones(a), np.eye(a)) if _spans(kept) else None
    else:
        kept = list(rays)
        solution = _with_floor(V, gains / best.bound, best, rays, 1 - loss)
    if solution is None or not solution.converged:
        return None
    V = scaled(kept, prior)
    gains = RAY_GAINS[objective](V, prior)
    return _finished(kept, V, solution.x[: len(kept)], best.bound, best.multipliers, gains=gains)


def _spans(rays: Sequence[Ray]) -> bool:
    return bool(rays) and rational.rank(rays) == len(rays[0])


def _with_floor(
    V: FloatArray, gains: FloatArray, best: Optimum, rays: Sequence[Ray], floor: float
) -> TraceOptimum | None:
    """Minimise tr(A(θ)⁻¹) with the further row gains·θ − slack = floor; `gains` are relative to the optimum."""
    a = V.shape[1]
    centre = minimise_trace(V, V.T.copy(), np.ones(a), np.eye(a), tolerance=_CENTRAL)
    if not centre.converged:
        return None
    # Between the optimum and the centre, half of the loss lies within the floor: a feasible start off the boundary.
    index = {ray: j for j, ray in enumerate(rays)}
    optimum = np.zeros(len(rays))
    optimum[[index[ray] for ray in best.rays]] = best.theta
    lost = max(1e-9, 1 - float(gains @ centre.x))
    share = min(0.5, 0.5 * (1 - floor) / lost)
    start = share * centre.x + (1 - share) * optimum
    U = np.vstack([V, np.zeros((1, a))])
    C = np.vstack([np.hstack([V.T, np.zeros((a, 1))]), np.append(gains, -1.0)])
    slack = float(gains @ start) - floor
    return minimise_trace(U, C, np.append(np.ones(a), floor), np.eye(a), start=np.append(start, slack))


def _raised(multipliers: FloatArray, violations: FloatArray, prior: Prior) -> FloatArray:
    """Return multipliers raised by t·p so that the largest violation over all rays vanishes: p·v = 1 on each."""
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
    """Drop negligible reports, thin the rest out, and make the rows sum to one to machine precision."""
    kept = np.flatnonzero(theta * V.max(axis=1) > NEGLIGIBLE)
    fixed = [V[:, i] * V[:, j] for i in range(V.shape[1]) for j in range(i + 1)]
    if gains is not None:
        fixed.append(gains)
    features = np.array(fixed)
    kept, theta = thinned(features, kept, balanced(V[kept], theta[kept]))
    theta = balanced(V[kept], theta)
    if np.min(theta) <= 0 or np.max(np.abs(theta @ V[kept] - 1)) > 1e-12:
        raise _not_solved()
    return Optimum(tuple(rays[int(j)] for j in kept), theta, bound, multipliers)


def _not_solved() -> InvalidInput:
    words = "the numbers are too extreme for the optimiser: use the mechanism grr, or a less extreme prior"
    return InvalidInput(Problem.OPTIMISER_LIMIT, words, "mechanism")
