# SPDX-License-Identifier: Apache-2.0
"""Criterion of the worst target's variance."""

import random

import numpy as np
import pytest
from frankly_design.optimum.interior import minimise_trace
from frankly_design.optimum.variance.column_base import Listed
from frankly_design.optimum.variance.criteria import least_variance, least_worst_variance
from scipy.optimize import minimize

from tests.frankly_design.optimum.variance.cases import (
    AnswerLdp,
    Floats,
    level,
    lip_base,
    listed,
    patterns,
    random_mechanisms,
    variances,
)


def by_slsqp(V: Floats, W: Floats, p: Floats) -> float:
    """Return min s subject to every variance ≤ s, by sequential quadratic programming from the centre."""
    a = V.shape[1]
    centre = minimise_trace(V, V.T.copy(), np.ones(a), np.eye(a), tolerance=0.05).x

    def each(x: Floats) -> Floats:
        Z = np.linalg.solve((V.T * x[:-1]) @ V, W.T)
        return np.asarray(x[-1] - np.sum(W.T * Z, axis=0) + (W @ p) ** 2)

    def slope(x: Floats) -> Floats:
        Z = np.linalg.solve((V.T * x[:-1]) @ V, W.T)
        return np.hstack([(V @ Z).T ** 2, np.ones((len(W), 1))])

    rows = np.hstack([V.T, np.zeros((a, 1))])
    start = np.append(centre, variances(V, centre, W, p).max())
    solution = minimize(
        lambda x: x[-1],
        start,
        jac=lambda x: np.append(np.zeros(len(V)), 1.0),
        bounds=[(0, None)] * (len(V) + 1),
        constraints=[
            {"type": "eq", "fun": lambda x: rows @ x - 1, "jac": lambda x: rows},
            {"type": "ineq", "fun": each, "jac": slope},
        ],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-11},
    )
    return float(solution.fun)


@pytest.mark.parametrize("base", [b for b in listed(51, 30) if len(b.rays) <= 30][:10])
def test_the_worst_variance_equals_that_of_another_solver(base: Listed) -> None:
    W = np.eye(base.answers)
    optimum = least_worst_variance(base, W)
    reached = variances(optimum.columns, optimum.theta, W, base.prior).max()
    assert optimum.value == pytest.approx(reached, rel=1e-6)
    assert optimum.value * (1 - 1e-6) <= optimum.bound <= optimum.value * (1 + 1e-9)
    assert optimum.certificate.exact
    oracle = by_slsqp(base.rays, W, base.prior)
    assert oracle >= optimum.bound * (1 - 1e-6)
    assert oracle == pytest.approx(optimum.value, rel=2e-3)


@pytest.mark.parametrize("base", listed(52, 8))
def test_no_random_mechanism_has_a_better_worst_target(base: Listed) -> None:
    rng, W = random.Random(2), np.eye(base.answers)
    bound = least_worst_variance(base, W).bound
    for theta in random_mechanisms(base.rays, rng, 200):
        assert variances(base.rays, theta, W, base.prior).max() >= bound


def test_the_worst_lies_between_the_mean_and_the_total() -> None:
    base = lip_base(9, 6, 4, 0.5)
    W = np.vstack([np.eye(6), np.eye(6)[:1] - np.eye(6)[1:2]])
    total, worst = least_variance(base, W), least_worst_variance(base, W)
    assert total.value / len(W) <= worst.value * (1 + 1e-6)
    at_total = variances(total.columns, total.theta, W, base.prior).max()
    assert worst.value <= at_total * (1 + 1e-6)
    assert worst.value < 0.99 * at_total or at_total == pytest.approx(worst.value, rel=0.01)


def test_two_targets_out_of_many() -> None:
    base = lip_base(10, 5, 3, 0.5)
    W = np.array([[1.0, -1, 0, 0, 0], [0, 0, 1, 0, 0]])
    optimum = least_worst_variance(base, W)
    each_variance = variances(optimum.columns, optimum.theta, W, base.prior)
    assert each_variance.max() == pytest.approx(optimum.value, rel=1e-6)
    assert optimum.value * (1 - 1e-6) <= optimum.bound <= optimum.value


def test_equal_answers_have_equal_variances() -> None:
    p = np.full(5, 0.2)
    V = patterns(level("1"), p)
    total = least_variance(AnswerLdp(level("1"), p), np.eye(5))
    worst = least_worst_variance(Listed(V, p), np.eye(5))
    assert worst.value == pytest.approx(total.value / 5, rel=1e-6)
