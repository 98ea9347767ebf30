# SPDX-License-Identifier: Apache-2.0
"""Column generation for the variance (spec 1.6).

(1) Start with columns in many directions. (2) The convex master programme finds the best mechanism
made of them, and the prices Z = A⁻¹Wᵀ and ν. (3) Pricing finds columns that are worth more than
their price ν·v. (4) Repeat with these columns until there are none, or time is up. Then ν, raised
by the largest excess that a column may have, proves a bound.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from frankly_protocol import problems
from frankly_protocol.errors import InvalidInput

from frankly_server.design.optimum.interior import minimise_trace
from frankly_server.design.optimum.variance.column_base import ColumnBase
from frankly_server.design.optimum.variance.dual import maximise_dual
from frankly_server.design.optimum.variance.objective import Objective, Prices
from frankly_server.design.optimum.variance.pricing import VariancePricer
from frankly_server.design.optimum.variance.proof import (
    VarianceCertificate,
    branched_certificate,
    exact_certificate,
    relaxed_certificate,
)
from frankly_server.design.optimum.variance.reports import balanced
from frankly_server.design.tables.limits import Limits
from frankly_server.design.tables.linear import FloatArray, lp
from frankly_server.design.tables.spread import directions

NEGLIGIBLE = 1e-9
_ROW_ERROR = 1e-9
# Relative distance below which two columns are treated as equal.
_SAME = 1e-9
RESERVED = (1e-7, 1e-6, 1e-5)
"""Shares of a full-rank mechanism that is mixed in to keep A regular, tried in this order until the
method converges."""
# Weight below which a report is left out if the value allows.
_RARE = 3e-5
# Part of the starting weights that is spread over all columns, so that new ones start above 0.
_FRESH = 0.01
# Smallest interior weight that is accepted, times the number of columns.
_MIN_INTERIOR = 0.02
_MASTER_TOLERANCE = 1e-10
_ROUNDS = 200
# Share of the gap at which pricing stops; the master, the reserve and rare reports use the rest.
_STOP = 0.25


@dataclass(frozen=True)
class VarianceOptimum:
    """Best mechanism found; report j is θ_j times column j.

    columns : shape (n, a), p·v = 1.
    theta : shape (n,), positive, Σ θ_j v_j = 1.
    value : value of the objective of this mechanism.
    bound : lower bound on the value of every mechanism, proved by `certificate`.
    """

    columns: FloatArray
    theta: FloatArray
    value: float
    bound: float
    certificate: VarianceCertificate


@dataclass(frozen=True)
class VarianceMasterOptimum:
    """Best mechanism over the present columns.

    theta : weights of the columns, shape (n,).
    value : value of the objective, from which `offset`, the constant sampling term, is subtracted.
    prices : once no column is worth more than its price, they prove that no mechanism has a value
        below `prices.bound()` minus `offset`.
    scale : number that a gap is relative to.
    """

    theta: FloatArray
    value: float
    prices: Prices
    offset: float
    scale: float


class VarianceMaster:
    """Columns found so far, without duplicates, and the convex programme over them.

    If the rank of the targets is deficient, A may become singular at the optimum. Then the dual is
    solved instead, and a share η = 1e-7 of a full-rank mechanism is mixed in. It costs no more than
    about that share, since f((1−η)A₁ + ηA₂) ≤ f(A₁)/(1−η) for f(A) = tr(W A⁻¹ Wᵀ).
    """

    def __init__(self, base: ColumnBase, starts: FloatArray | None = None) -> None:
        self._base = base
        self.V = np.ones((1, base.answers))
        self._full_rank: FloatArray | None = None
        spread, units = directions(0, 2 * base.answers, base.answers), np.eye(base.answers)
        self.add(np.array([base.maximise(c) for c in (*units, *-units, *spread)]))
        if starts is not None:
            self.add(starts)
        self._theta = self._centre = self._interior_weights()

    def _interior_weights(self) -> FloatArray:
        """Add columns until a mechanism uses all of them; return its weights, shape (n,).

        Maximise t with Σ (θ_j + t) v_j = 1, θ ≥ 0. If t is tiny, the dual λ separates the columns
        from the constant column 1, which lies inside the base: a column in direction −λ is missing.
        """
        for _ in range(10 * self._base.answers):
            n, column_sum = len(self.V), self.V[1:].sum(axis=0)
            columns = np.vstack([self.V, column_sum]).T.copy()
            optimum = lp(np.append(np.zeros(n), -1.0), columns, np.ones(self._base.answers))
            t = float(optimum.x[-1])
            if t * n > _MIN_INTERIOR or not self.add(self._base.maximise(optimum.dual)[None]):
                if t <= 0:
                    break
                # Column 0, the constant column, has half of the weight, because `optimum` left it
                # out of the sum.
                theta = optimum.x[:n] + np.append(0.0, np.full(n - 1, t))
                return np.asarray(0.5 * theta + 0.5 * (np.arange(n) == 0))
        raise not_solved()

    def add(self, columns: FloatArray) -> int:
        """Add the columns that are new; return their number."""
        new: list[FloatArray] = []
        for v in columns:
            existing = np.vstack([self.V, *new]) if new else self.V
            if np.min(np.max(np.abs(existing - v), axis=1)) > _SAME * max(
                1.0, float(np.abs(v).max())
            ):
                new.append(v[None])
        if new:
            self.V = np.vstack([self.V, *new])
        return len(new)

    def solve(self, objective: Objective) -> VarianceMasterOptimum:
        """Return the optimum over the present columns.

        Its value is the variance, minus the information if `objective.informative`.

        Raises InvalidInput(optimiser_limit) if the method does not converge, for example because no
        mechanism of the cone makes all targets estimable.
        """
        V, W, gains = self.V, objective.W, objective.gains(self.V)
        if np.linalg.matrix_rank(W) == self._base.answers:
            x, nu = self._full_rank_optimum(W, -gains)
            theta = self.keep(x)
            Z = inverse_times(moments(V, theta), W)
        else:
            theta, Z, nu = self._low_rank_optimum(W, -gains)
        offset = objective.constant()
        variance = float(np.sum(W.T * inverse_times(moments(V, theta), W))) - offset
        information = float(theta @ gains)
        scale = max(variance, information) if objective.informative else variance
        return VarianceMasterOptimum(
            theta, variance - information, Prices(objective, Z, nu), offset, scale
        )

    def _full_rank_optimum(self, W: FloatArray, cost: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (θ, ν) of the optimum, from a start near the last one or else the default start.

        The entries of each answer are scaled to a maximum of 1, because otherwise they differ as
        much as the shares do.
        """
        scale = 1 / np.max(self.V, axis=0)
        T = self.V * scale
        for start in (self.start(), None):
            optimum = minimise_trace(
                T, T.T.copy(), scale, W * scale, cost=cost, start=start, tolerance=_MASTER_TOLERANCE
            )
            if optimum.converged:
                return optimum.x, optimum.dual * scale
        raise not_solved()

    def _low_rank_optimum(
        self, W: FloatArray, cost: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (θ, Z, ν) of the optimum; θ holds the reserved share."""
        dual = maximise_dual(self.V, W, cost, moments(self.V, self.reserved(1.0)))
        if not dual.converged:
            raise not_solved()
        theta = (1 - RESERVED[0]) * dual.x + self.reserved(RESERVED[0])
        return balanced(self.V, theta), dual.Z, dual.nu

    def start(self) -> FloatArray:
        """Return positive starting weights, shape (n,)."""
        # The last optimum has zero weights, at which an interior-point method stalls; mixing in the
        # interior weights avoids that.
        return (
            0.5 * self._padded(self._theta)
            + 0.5 * self._padded(self._centre)
            + _FRESH / len(self.V)
        )

    def keep(self, theta: FloatArray) -> FloatArray:
        """Store these weights for the next start; return them corrected to Σ θ_j v_j = 1."""
        self._theta = theta
        return balanced(self.V, theta)

    def reserved(self, share: float) -> FloatArray:
        """Return the weights of a full-rank mechanism times `share`, shape (n,)."""
        return share * self._full_rank_weights() if share else np.zeros(len(self.V))

    def _full_rank_weights(self) -> FloatArray:
        if self._full_rank is None:
            a = self._base.answers
            optimum = minimise_trace(self.V, self.V.T.copy(), np.ones(a), np.eye(a), tolerance=1e-2)
            if not optimum.converged:
                raise not_solved()
            self._full_rank = balanced(self.V, optimum.x)
        return self._padded(self._full_rank)

    def _padded(self, theta: FloatArray) -> FloatArray:
        """Return weights of earlier columns as weights of the present ones."""
        return np.append(theta, np.zeros(len(self.V) - len(theta)))


Problem = Callable[[VarianceMaster], VarianceMasterOptimum]
"""Programme over the present columns, such as `lambda master: master.solve(objective)`."""


def generate(
    base: ColumnBase, solve: Problem, limits: Limits, master: VarianceMaster, pricer: VariancePricer
) -> VarianceOptimum:
    """Minimise the objective of `solve` over all mechanisms of the cone, not only known columns.

    Parameters
    ----------
    master, pricer : new ones over the base, or those of an earlier problem, to continue from.

    Returns
    -------
    VarianceOptimum; value − bound is usually at most gap·scale, unless time ran out or the
        certificate is not `exact`.

    Raises
    ------
    InvalidInput(optimiser_limit) if the targets cannot be estimated, or the numbers are too
        extreme.
    """
    best: tuple[float, VarianceCertificate] | None = None
    solved = solve(master)
    if not pricer.exact:
        # The relaxation comes first, while there is time: its bound does not need all good columns.
        best = _better_bound(
            best,
            relaxed_certificate(base, solved.prices, moments(master.V, solved.theta), limits),
            solved.offset,
        )
    for _ in range(_ROUNDS):
        columns, largest_worth = pricer.price(solved.prices, master.V[solved.theta > NEGLIGIBLE])
        if pricer.exact:
            best = _better_bound(
                best, exact_certificate(solved.prices, largest_worth, pricer), solved.offset
            )
        limits.progress("variance", solved.value, np.nan if best is None else best[0])
        tolerance = _STOP * limits.gap * solved.scale
        if limits.out_of_time():
            break
        if largest_worth <= tolerance or not master.add(columns):
            # A local search that finds nothing proves nothing.
            if pricer.exact or _is_closed(solved, best, limits):
                break
            branched = branched_certificate(base, solved.prices, solved.scale, tolerance, limits)
            if branched is None:
                break
            best = _better_bound(best, branched[0], solved.offset)
            if not master.add(branched[1]):
                break
        solved = solve(master)
    if best is None or not (
        pricer.exact or limits.out_of_time() or _is_closed(solved, best, limits)
    ):
        best = _better_bound(
            best,
            relaxed_certificate(base, solved.prices, moments(master.V, solved.theta), limits),
            solved.offset,
        )
    return _without_rare_reports(master.V, solved, best, limits.gap)


def _is_closed(
    solved: VarianceMasterOptimum, best: tuple[float, VarianceCertificate] | None, limits: Limits
) -> bool:
    return best is not None and solved.value - best[0] <= limits.gap * solved.scale


def _better_bound(
    best: tuple[float, VarianceCertificate] | None, certificate: VarianceCertificate, offset: float
) -> tuple[float, VarianceCertificate]:
    bound = certificate.bound - offset
    return (bound, certificate) if best is None or bound > best[0] else best


def _without_rare_reports(
    V: FloatArray,
    solved: VarianceMasterOptimum,
    best: tuple[float, VarianceCertificate],
    gap: float,
) -> VarianceOptimum:
    """Return the optimum without rare reports, as far as the targets and the value allow.

    gap : as in `Limits`; a tenth of it may be lost.
    """
    objective, value = solved.prices.objective, solved.value + solved.offset
    for least in (_RARE, NEGLIGIBLE):
        used = solved.theta > least
        columns, theta = V[used], balanced(V[used], solved.theta[used])
        if _is_as_good(columns, theta, objective, value, min(_RARE, gap / 10)):
            return VarianceOptimum(columns, theta, solved.value, *best)
    used = solved.theta > 0
    return VarianceOptimum(V[used], balanced(V[used], solved.theta[used]), solved.value, *best)


def _is_as_good(
    columns: FloatArray, theta: FloatArray, objective: Objective, value: float, loss: float
) -> bool:
    """Return True if all targets are estimable and the value is at most `loss` (relative) above."""
    if theta.min() <= 0 or np.abs(theta @ columns - 1).max() > _ROW_ERROR:
        return False
    A, W = moments(columns, theta), objective.W
    Z, _, rank, _ = np.linalg.lstsq(A, W.T, rcond=1e-12)
    if np.linalg.matrix_rank(np.vstack([columns, W])) > rank:
        return False
    found = float(np.sum(W.T * Z)) - float(theta @ objective.gains(columns))
    return found <= value + loss * abs(value)


def moments(V: FloatArray, theta: FloatArray) -> FloatArray:
    """Return A(θ) = Σ θ_j v_j v_jᵀ, shape (a, a)."""
    return np.asarray((V.T * theta) @ V, dtype=np.float64)


def inverse_times(A: FloatArray, W: FloatArray) -> FloatArray:
    """Return Z = A⁻¹Wᵀ, shape (a, t)."""
    return np.asarray(np.linalg.solve(A, W.T), dtype=np.float64)


def not_solved() -> InvalidInput:
    """Return the error for a programme whose method did not converge."""
    message = "the targets cannot be estimated under this notion, or the numbers are too extreme: use the mechanism grr"
    return InvalidInput(problems.Problem.OPTIMISER_LIMIT, message, "mechanism")
