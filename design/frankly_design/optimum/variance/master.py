# SPDX-License-Identifier: Apache-2.0
"""Master programme of column generation for the variance: the best mechanism of known columns."""

from dataclasses import dataclass

import numpy as np
from frankly_protocol import problems
from frankly_protocol.errors import InvalidInput

from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.interior import minimise_trace
from frankly_design.optimum.variance.column_base import ColumnBase
from frankly_design.optimum.variance.dual import maximise_dual
from frankly_design.optimum.variance.objective import Objective, Prices
from frankly_design.optimum.variance.reports import balanced
from frankly_design.tables.limits import Limits, TimeExceeded
from frankly_design.tables.linear import lp
from frankly_design.tables.spread import directions

# Relative distance below which two columns are treated as equal.
_SAME = 1e-9
RESERVED = (1e-7, 1e-6, 1e-5)
"""Shares of a full-rank mechanism that is mixed in to keep A regular; they are tried in this order
until the method converges."""
# Share of the starting weights spread over all columns, so that new columns start above 0.
_FRESH = 0.01
# Smallest acceptable interior weight, times the number of columns.
_MIN_INTERIOR = 0.02
_MASTER_TOLERANCE = 1e-10


@dataclass(frozen=True)
class VarianceMasterOptimum:
    """Best mechanism over the current columns.

    theta : weights of the columns, shape (n,).
    value : value of the objective minus `offset`, the constant sampling term.
    prices : if no column is worth more than its price, they prove that every mechanism has a value
    of
        at least `prices.bound()` minus `offset`.
    scale : reference value for relative gaps.
    """

    theta: FloatArray
    value: float
    prices: Prices
    offset: float
    scale: float


class VarianceMaster:
    """Columns found so far, without duplicates, and the convex programme over them.

    If the targets are rank-deficient, A may become singular at the optimum. Then the dual is solved
    instead, and a share η = 1e-7 of a full-rank mechanism is mixed in. The relative loss is at most
    about η, because f((1−η)A₁ + ηA₂) ≤ f(A₁)/(1−η) for f(A) = tr(W A⁻¹ Wᵀ).
    """

    def __init__(
        self, base: ColumnBase, starts: FloatArray | None = None, limits: Limits | None = None
    ) -> None:
        self._base, self._limits = base, limits or Limits()
        # Until there is a solution, the search may use the time reserved for finishing.
        self.is_solved = False
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
        from the constant column 1, which is inside the base, so a column in direction −λ is
        missing.
        """
        for _ in range(10 * self._base.answers):
            self._poll()
            n, column_sum = len(self.V), self.V[1:].sum(axis=0)
            columns = np.vstack([self.V, column_sum]).T.copy()
            optimum = lp(np.append(np.zeros(n), -1.0), columns, np.ones(self._base.answers))
            t = float(optimum.x[-1])
            if t * n > _MIN_INTERIOR or not self.add(self._base.maximise(optimum.dual)[None]):
                if t <= 0:
                    break
                # Column 0, the constant column, gets half of the weight, because `optimum` excludes
                # it from the sum.
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
        """Return the optimum over the current columns.

        The value is the variance, minus the information if `objective.informative`.

        Raises InvalidInput(optimiser_limit) if the method does not converge, for example because no
        mechanism of the cone makes all targets estimable.
        """
        V, W, gains = self.V, objective.W, objective.gains(self.V)
        full_rank = None
        if np.linalg.matrix_rank(W) == self._base.answers:
            full_rank = self._full_rank_optimum(W, -gains)
        if full_rank is None:
            theta, Z, nu = self._low_rank_optimum(W, -gains)
        else:
            theta, nu = self.keep(full_rank[0]), full_rank[1]
            Z = inverse_times(moments(V, theta), W)
        offset = objective.constant()
        variance = float(np.sum(W.T * inverse_times(moments(V, theta), W))) - offset
        information = float(theta @ gains)
        scale = max(variance, information) if objective.informative else variance
        return VarianceMasterOptimum(
            theta, variance - information, Prices(objective, Z, nu), offset, scale
        )

    def _full_rank_optimum(
        self, W: FloatArray, cost: FloatArray | None = None, tolerance: float = _MASTER_TOLERANCE
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return (θ, ν) of the optimum, starting near the last optimum or else from the default.

        Returns None if the method converges from neither start, which happens for extreme numbers;
        the dual may still converge.

        The entries of each answer are scaled to a maximum of 1; otherwise they would differ as much
        as the shares.
        """
        scale = 1 / np.max(self.V, axis=0)
        T = self.V * scale
        for start in (self.start(), None):
            optimum = minimise_trace(
                T,
                T.T.copy(),
                scale,
                W * scale,
                cost=cost,
                start=start,
                tolerance=tolerance,
                poll=self._poll,
            )
            if optimum.converged:
                return optimum.x, optimum.dual * scale
        return None

    def _low_rank_optimum(
        self, W: FloatArray, cost: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (θ, Z, ν) of the optimum; θ includes the reserved share."""
        dual = maximise_dual(self.V, W, cost, moments(self.V, self.reserved(1.0)), self._poll)
        if not dual.converged:
            raise not_solved()
        theta = (1 - RESERVED[0]) * dual.x + self.reserved(RESERVED[0])
        return balanced(self.V, theta), dual.Z, dual.nu

    def start(self) -> FloatArray:
        """Return positive starting weights, shape (n,)."""
        # The last optimum has zero weights, where an interior-point method stalls; mixing in the
        # interior weights avoids this.
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
            optimum = self._full_rank_optimum(np.eye(self._base.answers), tolerance=1e-2)
            if optimum is None:
                raise not_solved()
            self._full_rank = balanced(self.V, optimum[0])
        return self._padded(self._full_rank)

    def _poll(self) -> None:
        """Raise TimeExceeded if time is up, or if it is overdue while there is no solution."""
        if self._limits.search_overdue() or (self.is_solved and self._limits.out_of_time()):
            raise TimeExceeded

    def _padded(self, theta: FloatArray) -> FloatArray:
        """Return weights of earlier columns, padded with zeros for later columns."""
        return np.append(theta, np.zeros(len(self.V) - len(theta)))


def moments(V: FloatArray, theta: FloatArray) -> FloatArray:
    """Return A(θ) = Σ θ_j v_j v_jᵀ, shape (a, a)."""
    return np.asarray((V.T * theta) @ V, dtype=np.float64)


def inverse_times(A: FloatArray, W: FloatArray) -> FloatArray:
    """Return Z = A⁻¹Wᵀ, shape (a, t)."""
    return np.asarray(np.linalg.solve(A, W.T), dtype=np.float64)


def not_solved() -> InvalidInput:
    """Return the error for a programme whose method did not converge."""
    return InvalidInput(
        problems.Problem.OPTIMISER_LIMIT,
        "the targets cannot be estimated under this notion, or the numbers are too extreme: use the mechanism grr",
        "mechanism",
    )
