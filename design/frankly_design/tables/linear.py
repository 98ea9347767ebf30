# SPDX-License-Identifier: Apache-2.0
"""Linear programmes. Only this module imports highspy."""

from dataclasses import dataclass

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import highspy, sparse

FEASIBILITY = 1e-10  # the smallest tolerance that HiGHS accepts
# Reached only in case of numerical trouble; ordinary programmes take far less time.
TIME_LIMIT_S = 60.0
# Matrices of at most this many entries are kept dense.
_MAX_DENSE_ENTRIES = 20_000
# Largest allowed violation of a row by a returned vertex; the mixing in `quantise` corrects it.
_ROW_TOLERANCE = 1e-8
# `narrowed` uses this margin for rounding, and ignores entries below this share of a row's largest
# entry, which would amplify rounding errors. _NEVER stands for a missing limit.
_NARROW, _TINY, _NEVER = 1e-10, 1e-4, 1e30


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
    reduced : shape (n,), the reduced costs c − Aᵀy; a point whose x_j is δ below its upper bound
        (above its lower bound if reduced_j < 0) has c·x ≤ bound − |reduced_j|·δ.
    """

    x: FloatArray
    bound: float
    reduced: FloatArray


def _solver() -> "highspy.Highs":
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    # One thread, so that the same request always gives the same design.
    solver.setOptionValue("threads", 1)
    # The simplex method gives basic solutions, and each solve starts from the previous basis.
    solver.setOptionValue("solver", "simplex")
    solver.setOptionValue("primal_feasibility_tolerance", FEASIBILITY)
    solver.setOptionValue("dual_feasibility_tolerance", FEASIBILITY)
    return solver


def _run(solver: "highspy.Highs") -> "highspy.HighsModelStatus":
    """Solve within TIME_LIMIT_S seconds; the solver's clock accumulates the time of all runs."""
    solver.setOptionValue("time_limit", solver.getRunTime() + TIME_LIMIT_S)
    solver.run()
    return solver.getModelStatus()


def _model(
    matrix: "sparse.csc_array", cost: FloatArray, rows: tuple[FloatArray, FloatArray]
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
    """Polytope {x : row_low ≤ A·x ≤ row_high, low ≤ x ≤ high}, for repeated linear programmes.

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
        # No presolve: programmes differ only in costs and bounds, and the previous basis helps
        # more.
        self._solver.setOptionValue("presolve", "off")
        self._solver.passModel(_model(matrix, np.zeros(len(low)), (row_low, row_high)))
        self._solver_bounds: tuple[FloatArray | None, FloatArray | None] = (None, None)
        self._row_low, self._row_high = row_low, row_high
        self._has_low, self._has_high = np.isfinite(row_low), np.isfinite(row_high)
        self._finite_low = np.where(self._has_low, row_low, 0.0)
        self._finite_high = np.where(self._has_high, row_high, 0.0)
        self._rows: tuple[FloatArray, FloatArray] | None = None
        if small:
            # The rows as sides S·x ≤ limit: positive and negative parts of S, and the upward and
            # downward change of each variable that uses one unit of a side's slack.
            dense = self._transposed.T
            sides = np.vstack([dense[self._has_high], -dense[self._has_low]])
            self._limits = np.append(row_high[self._has_high], -row_low[self._has_low])
            least = _TINY * np.abs(sides).max(axis=1, keepdims=True, initial=0.0)
            self._rows = np.maximum(sides, 0.0), np.maximum(-sides, 0.0)
            self._per_unit = [
                np.where(part > least, 1 / np.where(part > least, part, 1.0), _NEVER)
                for part in self._rows
            ]

    def with_variables(self, rows: FloatArray, low: FloatArray, high: FloatArray) -> "Polytope":
        """Return the polytope with additional variables z = rows·x, bounded by [low, high].

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

    def narrowed(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return tightened bounds of the polytope's points within [low, high]; None if empty.

        A row bounds each of its variables by the slack that remains at the best values of the
        others. For large sparse polytopes, returns `low` and `high` unchanged.
        """
        if self._rows is None:
            return low, high
        # One side per row, row·x ≤ limit. Its slack when all variables are at their best:
        above, below = self._rows
        room = self._limits - above @ low + below @ high
        if float(room.min()) < -_ROW_TOLERANCE:
            return None
        room = np.maximum(room, 0.0)[:, None]
        up, down = (np.min(room * per_unit, axis=0) + _NARROW for per_unit in self._per_unit)
        low, high = np.maximum(low, high - down), np.minimum(high, low + up)
        return (low, high) if np.all(low <= high) else None

    def vertex(
        self, c: FloatArray, low: FloatArray | None = None, high: FloatArray | None = None
    ) -> FloatArray | None:
        """Return a vertex that maximises c·x; None if the polytope is empty.

        Also returns None if the solver's point violates a row, which can happen for extreme
        numbers.

        low, high : bounds of the variables, shape (n,); those of the polytope by default.
        """
        low = self.low if low is None else low
        high = self.high if high is None else high
        if not self._solve(c, low, high):
            return None
        x = np.minimum(np.maximum(self._solver.getSolution().col_value, low), high)
        # For extreme numbers the solver may report an infeasible point as feasible.
        inside = x @ self._transposed
        outside = np.maximum(self._row_low - inside, inside - self._row_high)
        return x if float(np.max(outside)) <= _ROW_TOLERANCE else None

    def farthest(
        self, c: FloatArray, low: FloatArray | None = None, high: FloatArray | None = None
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
        # Tolerances may leave a tiny multiplier on an infinite side of a row, which would make
        # the bound infinite. It is set to 0, because the bound holds for any multipliers.
        up, down = np.maximum(y, 0.0) * self._has_high, np.minimum(y, 0.0) * self._has_low
        reduced = c - self._transposed @ (up + down)
        bound = up @ self._finite_high + down @ self._finite_low
        bound += np.maximum(reduced, 0.0) @ high + np.minimum(reduced, 0.0) @ low
        return Support(x, float(bound), reduced)

    def _solve(self, c: FloatArray, low: FloatArray, high: FloatArray) -> bool:
        self._solver.changeColsCost(len(c), self._index, -c)
        # Bounds are passed only if they changed. An identity test suffices: callers never modify
        # them in place, and calls without bounds pass the same `self.low` and `self.high`.
        if low is not self._solver_bounds[0] or high is not self._solver_bounds[1]:
            self._solver.changeColsBounds(len(c), self._index, low, high)
            self._solver_bounds = (low, high)
        status = _run(self._solver)
        # In case of numerical trouble, a restart without the old basis often helps.
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
    """Master programme of column generation, to which columns are added.

    Minimise cost·θ + Σ_i penalty_i |missing_i| subject to Σ θ_j a_j + missing = rhs, θ ≥ 0. The
    penalties bound the duals, |dual_i| ≤ penalty_i. Without penalties the duals are extreme while
    there are few columns, and pricing returns the same columns again (stabilisation of du Merle et
    al., 1999).
    """

    def __init__(self, rhs: FloatArray, penalty: FloatArray) -> None:
        self._m = m = len(rhs)
        self._solver = _equations(rhs)
        self._slack = np.arange(2 * m, dtype=np.int32)
        # For each row, two columns represent the positive and the negative part of missing mass.
        self.add(np.vstack([np.eye(m), -np.eye(m)]), np.zeros(2 * m))
        self.penalise(penalty)

    def add(self, columns: FloatArray, cost: FloatArray) -> None:
        """Add columns, one per row of shape (k, m)."""
        _add_columns(self._solver, columns, cost)

    def penalise(self, penalty: FloatArray) -> None:
        """Set the penalties, shape (m,); infinity forbids missing mass."""
        self.penalty = penalty.copy()
        free = np.isfinite(penalty)
        cost, high = np.where(free, penalty, 0.0), np.where(free, highspy.kHighsInf, 0.0)
        self._solver.changeColsCost(2 * self._m, self._slack, np.tile(cost, 2))
        self._solver.changeColsBounds(
            2 * self._m, self._slack, np.zeros(2 * self._m), np.tile(high, 2)
        )

    def solve(self) -> MasterOptimum:
        """Return a basic optimum. Raises InvalidInput(optimiser_limit) if none is found."""
        _optimise(self._solver)
        solution = self._solver.getSolution()
        x, m = np.array(solution.col_value), self._m
        return MasterOptimum(
            np.maximum(x[2 * m :], 0.0), np.array(solution.row_dual), x[:m] - x[m : 2 * m]
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
        feasible and bounded, so a failure means that the numbers are too extreme.
    """
    solver = _equations(rhs)
    # Presolve takes longer than it saves: the columns are dense, and there are few rows.
    solver.setOptionValue("presolve", "off")
    _add_columns(solver, matrix.T, cost)
    _optimise(solver)
    solution = solver.getSolution()
    return LinearOptimum(np.maximum(solution.col_value, 0.0), np.array(solution.row_dual))


def _equations(rhs: FloatArray) -> "highspy.Highs":
    """Return a programme with the equations 0 = rhs, to which columns are added."""
    solver, m = _solver(), len(rhs)
    none = np.zeros(m, dtype=np.int32)
    solver.addRows(m, rhs, rhs, 0, none, none[:0], np.zeros(0))
    return solver


def _add_columns(solver: "highspy.Highs", columns: FloatArray, cost: FloatArray) -> None:
    """Add variables x ≥ 0 with these columns, one per row of shape (k, m)."""
    k, m = columns.shape
    start = np.arange(0, k * m, m, dtype=np.int32)
    index = np.tile(np.arange(m, dtype=np.int32), k)
    infinite = np.full(k, highspy.kHighsInf)
    solver.addCols(k, cost, np.zeros(k), infinite, k * m, start, index, columns.ravel())


def _optimise(solver: "highspy.Highs") -> None:
    """Solve the programme. Raises InvalidInput(optimiser_limit) if no optimum is found."""
    status = _run(solver)
    # For extreme numbers: retry without the old basis, each time with a larger tolerance.
    for tolerance in (1e-9, 1e-8, 1e-7):
        if status == highspy.HighsModelStatus.kOptimal:
            break
        solver.clearSolver()
        solver.setOptionValue("primal_feasibility_tolerance", tolerance)
        solver.setOptionValue("dual_feasibility_tolerance", tolerance)
        status = _run(solver)
    solver.setOptionValue("primal_feasibility_tolerance", FEASIBILITY)
    solver.setOptionValue("dual_feasibility_tolerance", FEASIBILITY)
    if status != highspy.HighsModelStatus.kOptimal:
        raise InvalidInput(
            Problem.OPTIMISER_LIMIT,
            "the linear programme was not solved: use the mechanism grr",
            "mechanism",
        )
