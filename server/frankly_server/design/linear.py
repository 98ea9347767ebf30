# SPDX-License-Identifier: Apache-2.0
"""Linear programmes; the only module that imports highspy."""

from dataclasses import dataclass

import highspy
import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

FEASIBILITY = 1e-10
TIME_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class LinearOptimum:
    """A basic optimal solution: `x` of shape (n,), `dual` of shape (m,) with cᵀ − dualᵀ·A ≥ 0 up to the tolerance."""

    x: FloatArray
    dual: FloatArray


def lp(cost: FloatArray, matrix: FloatArray, rhs: FloatArray) -> LinearOptimum:
    """Minimise cost·x subject to matrix·x = rhs, x ≥ 0, by the simplex method.

    Parameters
    ----------
    cost : shape (n,). matrix : shape (m, n), every entry finite. rhs : shape (m,).

    Raises
    ------
    InvalidInput(optimiser_limit) unless an optimum is found; for our programmes, which are feasible and bounded, this
    means that the numbers are too extreme for the solver.
    """
    m, n = matrix.shape
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = n, m
    model.col_cost_ = cost
    model.col_lower_, model.col_upper_ = np.zeros(n), np.full(n, highspy.kHighsInf)
    model.row_lower_, model.row_upper_ = rhs, rhs
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.arange(0, m * n + 1, m, dtype=np.int32)
    model.a_matrix_.index_ = np.tile(np.arange(m, dtype=np.int32), n)
    model.a_matrix_.value_ = matrix.T.ravel()
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue(
        "solver", "simplex"
    )  # a basic solution: at most m nonzero entries, linearly independent columns
    solver.setOptionValue("primal_feasibility_tolerance", FEASIBILITY)
    solver.setOptionValue("dual_feasibility_tolerance", FEASIBILITY)
    solver.setOptionValue("time_limit", TIME_LIMIT_S)
    solver.passModel(model)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise InvalidInput(
            Problem.OPTIMISER_LIMIT, "the linear programme was not solved: use the mechanism grr", "mechanism"
        )
    solution = solver.getSolution()
    return LinearOptimum(np.array(solution.col_value), np.array(solution.row_dual))
