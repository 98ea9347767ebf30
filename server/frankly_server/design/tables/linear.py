# SPDX-License-Identifier: Apache-2.0
"""Linear programmes; the only module that imports highspy."""

from dataclasses import dataclass

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

from frankly_server.lazy import highspy, sparse

FloatArray = NDArray[np.float64]

FEASIBILITY = 1e-10  # the smallest tolerance that HiGHS accepts
# Reached only in numerical trouble: ordinary programmes take far less time.
TIME_LIMIT_S = 60.0
# Matrices of at most this many entries are kept dense.
_MAX_DENSE_ENTRIES = 20_000
# Largest violation of a row by a returned vertex; the mixing in `quantise` must correct it.
_ROW_TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True)
class LinearOptimum:
    """Basic optimal solution `x`, shape (n,), with duals, shape (m,): cᵀ − dualᵀ·A ≥ −tolerance."""

    x: FloatArray
    dual: FloatArray


@dataclass(frozen=True, slots=True)
class Support:
    """Farthest point of a polytope in a direction c.

    x : vertex, shape (n,).
    bound : upper bound of c·x by weak duality; it does not depend on the solver's tolerances.
    reduced : shape (n,), the reduced costs c − Aᵀy; a point whose x_j lies δ below its upper bound
        (above its lower bound if reduced_j < 0) has c·x ≤ bound − |reduced_j|·δ.
    """

    x: FloatArray
    bound: float
    reduced: FloatArray


def _solver() -> "highspy.Highs":
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    # One thread, so that the same request gives the same design in every run.
    solver.setOptionValue("threads", 1)
    # The simplex method gives basic solutions, and each solve starts from the previous basis.
    solver.setOptionValue("solver", "simplex")
    solver.setOptionValue("primal_feasibility_tolerance", FEASIBILITY)
    solver.setOptionValue("dual_feasibility_tolerance", FEASIBILITY)
    return solver


def _run(solver: "highspy.Highs") -> "highspy.HighsModelStatus":
    """Solve within TIME_LIMIT_S seconds; the solver's clock adds up the time of all its runs."""
    solver.setOptionValue("time_limit", solver.getRunTime() + TIME_LIMIT_S)
    solver.run()
    return solver.getModelStatus()


def _model(
    matrix: "sparse.csc_array",
    cost: FloatArray,
    rows: tuple[FloatArray, FloatArray],
) -> "highspy.HighsLp":
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.col_cost_ = cost
    model.col_lower_, model.col_upper_ = np.zeros(len(cost)), np.full(len(cost), highspy.kHighsInf)
    model.row_lower_, model.row_upper_ = rows
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = matrix.indptr.astype(np.int32)
    model.a_matrix_.index_ = matrix.indices.astype(np.int32)
    model.a_matrix_.value_ = matrix.data
    return model


class Polytope:
    """Polytope {x : row_low ≤ A·x ≤ row_high, low ≤ x ≤ high}, for many linear programmes over it.

    Each programme starts from the basis of the previous one. The bound of `farthest` is finite only
    if `low` and `high` are.
    """

    def __init__(
        self,
        matrix: "sparse.csc_array",
        row_low: FloatArray,
        row_high: FloatArray,
        low: FloatArray,
        high: FloatArray,
    ) -> None:
        self._matrix = matrix
        # Small matrices multiply faster as dense arrays.
        small = matrix.shape[0] * matrix.shape[1] <= _MAX_DENSE_ENTRIES
        self._transposed = np.ascontiguousarray(matrix.toarray().T) if small else matrix.T.tocsr()
        self.low, self.high = low, high
        self._index = np.arange(len(low), dtype=np.int32)
        self._solver = _solver()
        # No presolve: programmes differ only in costs and bounds; the previous basis helps more.
        self._solver.setOptionValue("presolve", "off")
        self._solver.passModel(_model(matrix, np.zeros(len(low)), (row_low, row_high)))
        self._solver_bounds: tuple[FloatArray | None, FloatArray | None] = (None, None)
        self._row_low, self._row_high = row_low, row_high
        self._has_low, self._has_high = np.isfinite(row_low), np.isfinite(row_high)
        self._finite_low = np.where(self._has_low, row_low, 0.0)
        self._finite_high = np.where(self._has_high, row_high, 0.0)

    def with_variables(self, rows: FloatArray, low: FloatArray, high: FloatArray) -> "Polytope":
        """Return the polytope with further variables z = rows·x, which are within [low, high].

        rows : shape (k, n). low, high : shape (k,), finite.
        """
        k = len(rows)
        defined = sparse.hstack([sparse.csc_array(rows), -sparse.eye_array(k)])
        padded = sparse.hstack([self._matrix, sparse.csc_array((self._matrix.shape[0], k))])
        return Polytope(
            sparse.csc_array(sparse.vstack([padded, defined])),
            np.append(self._row_low, np.zeros(k)),
            np.append(self._row_high, np.zeros(k)),
            np.append(self.low, low),
            np.append(self.high, high),
        )

    def vertex(
        self,
        c: FloatArray,
        low: FloatArray | None = None,
        high: FloatArray | None = None,
    ) -> FloatArray | None:
        """Return a vertex that maximises c·x; None if the polytope is empty.

        Also returns None if the solver's point violates a row, as may happen on extreme numbers.

        low, high : bounds of the variables, shape (n,); those of the polytope by default.
        """
        low = self.low if low is None else low
        high = self.high if high is None else high
        if not self._solve(c, low, high):
            return None
        x = np.minimum(np.maximum(self._solver.getSolution().col_value, low), high)
        # On extreme numbers the solver may report an infeasible point as feasible.
        inside = x @ self._transposed
        outside = np.maximum(self._row_low - inside, inside - self._row_high)
        return x if float(np.max(outside)) <= _ROW_TOLERANCE else None

    def farthest(
        self,
        c: FloatArray,
        low: FloatArray | None = None,
        high: FloatArray | None = None,
    ) -> Support | None:
        """Return a vertex that maximises c·x, with a bound by weak duality; None if empty."""
        low = self.low if low is None else low
        high = self.high if high is None else high
        if not self._solve(c, low, high):
            return None
        solution = self._solver.getSolution()
        x = np.minimum(np.maximum(solution.col_value, low), high)
        # Weak duality: c·x = y·Ax + (c − Aᵀy)·x, and the bounds limit both terms.
        y = -np.array(solution.row_dual)
        # Tolerances may leave a tiny multiplier on an infinite side of a row. It would make the
        # bound infinite, so it is set to 0; the bound holds for any multipliers.
        up, down = np.maximum(y, 0.0) * self._has_high, np.minimum(y, 0.0) * self._has_low
        reduced = c - self._transposed @ (up + down)
        bound = up @ self._finite_high + down @ self._finite_low
        bound += np.maximum(reduced, 0.0) @ high + np.minimum(reduced, 0.0) @ low
        return Support(x, float(bound), reduced)

    def _solve(self, c: FloatArray, low: FloatArray, high: FloatArray) -> bool:
        self._solver.changeColsCost(len(c), self._index, -c)
        # Bounds are sent only if they changed. Identity suffices: callers never change them in
        # place, and calls without bounds pass the same `self.low` and `self.high`.
        if low is not self._solver_bounds[0] or high is not self._solver_bounds[1]:
            self._solver.changeColsBounds(len(c), self._index, low, high)
            self._solver_bounds = (low, high)
        status = _run(self._solver)
        # Numerical trouble: a start without the old basis often helps.
        if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible):
            self._solver.clearSolver()
            status = _run(self._solver)
        return bool(status != highspy.HighsModelStatus.kInfeasible)


@dataclass(frozen=True, slots=True)
class MasterOptimum:
    """Basic optimum: `x`, shape (n,), one entry per column; `dual` and `missing`, shape (m,)."""

    x: FloatArray
    dual: FloatArray
    missing: FloatArray


class MasterProgramme:
    """Master programme of column generation: columns are added later.

    Minimise cost·θ + Σ_i penalty_i |missing_i| subject to Σ θ_j a_j + missing = rhs, θ ≥ 0. The
    penalties bound the duals, |dual_i| ≤ penalty_i. Without them the duals are extreme while
    columns are few, and pricing returns the same few columns (the stabilisation of du Merle et al.,
    1999).
    """

    def __init__(self, rhs: FloatArray, penalty: FloatArray) -> None:
        self._m = m = len(rhs)
        # For each row, two columns stand for the positive and the negative part of missing mass.
        both = sparse.csc_array(np.hstack([np.eye(m), -np.eye(m)]))
        self._solver = _solver()
        self._slack = np.arange(2 * m, dtype=np.int32)
        self._solver.passModel(_model(both, np.zeros(2 * m), (rhs, rhs)))
        self.penalise(penalty)

    def add(self, columns: FloatArray, cost: FloatArray) -> None:
        """Add columns, one per row of shape (k, m)."""
        k, m = columns.shape
        start = np.arange(0, k * m, m, dtype=np.int32)
        index = np.tile(np.arange(m, dtype=np.int32), k)
        infinite = np.full(k, highspy.kHighsInf)
        self._solver.addCols(k, cost, np.zeros(k), infinite, k * m, start, index, columns.ravel())

    def penalise(self, penalty: FloatArray) -> None:
        """Set the penalties, shape (m,); infinity forbids missing mass."""
        self.penalty = penalty.copy()
        free = np.isfinite(penalty)
        cost, high = np.where(free, penalty, 0.0), np.where(free, highspy.kHighsInf, 0.0)
        self._solver.changeColsCost(2 * self._m, self._slack, np.tile(cost, 2))
        self._solver.changeColsBounds(
            2 * self._m,
            self._slack,
            np.zeros(2 * self._m),
            np.tile(high, 2),
        )

    def solve(self) -> MasterOptimum:
        """Return a basic optimum. Raises InvalidInput(optimiser_limit) if none is found."""
        status = _run(self._solver)
        # On extreme numbers: retry without the old basis, with a larger tolerance each time.
        for tolerance in (1e-9, 1e-8, 1e-7):
            if status == highspy.HighsModelStatus.kOptimal:
                break
            self._solver.clearSolver()
            self._solver.setOptionValue("primal_feasibility_tolerance", tolerance)
            self._solver.setOptionValue("dual_feasibility_tolerance", tolerance)
            status = _run(self._solver)
        self._solver.setOptionValue("primal_feasibility_tolerance", FEASIBILITY)
        self._solver.setOptionValue("dual_feasibility_tolerance", FEASIBILITY)
        if status != highspy.HighsModelStatus.kOptimal:
            message = "the linear programme was not solved: use the mechanism grr"
            raise InvalidInput(Problem.OPTIMISER_LIMIT, message, "mechanism")
        solution = self._solver.getSolution()
        x, m = np.array(solution.col_value), self._m
        return MasterOptimum(
            np.maximum(x[2 * m :], 0.0),
            np.array(solution.row_dual),
            x[:m] - x[m : 2 * m],
        )


def lp(cost: FloatArray, matrix: FloatArray, rhs: FloatArray) -> LinearOptimum:
    """Minimise cost·x subject to matrix·x = rhs, x ≥ 0, by the simplex method.

    Parameters
    ----------
    cost : shape (n,).
    matrix : shape (m, n), every entry finite.
    rhs : shape (m,).

    Raises
    ------
    InvalidInput(optimiser_limit) if no optimum is found. The programmes of this package are
    feasible and bounded, so the numbers are then too extreme for the solver.
    """
    master = MasterProgramme(rhs, np.full(len(rhs), np.inf))
    master.add(matrix.T, cost)
    optimum = master.solve()
    return LinearOptimum(optimum.x, optimum.dual)
