# SPDX-License-Identifier: Apache-2.0
"""Mechanisms of least variance, computed without a list of rays."""

import math
import random
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from frankly_design.engine import DesignRequest, design
from frankly_design.notions.declared.secret import robust
from frankly_design.notions.prior import Prior, pairs
from frankly_design.optimum.interior import minimise_trace
from frankly_design.optimum.variance.column_base import Listed
from frankly_design.optimum.variance.criteria import least_variance
from frankly_design.tables.limits import Limits
from frankly_protocol.audit import require_private
from frankly_protocol.errors import InvalidInput
from scipy.optimize import minimize

from tests.frankly_design.optimum.variance.cases import (
    AnswerLdp,
    Floats,
    level,
    lip_base,
    listed,
    variances,
)


def subset_selection(a: int, k: int, E: float, p: Floats) -> tuple[Floats, Floats]:
    """Return subset selection as columns v and the probability of each report."""
    subsets = list(combinations(range(a), k))
    Q = np.array([[E if x in subset else 1.0 for subset in subsets] for x in range(a)])
    Q /= Q.sum(axis=1, keepdims=True)
    theta = p @ Q
    return (Q / theta).T, theta


@pytest.mark.parametrize("base", listed(31, 12))
def test_the_optimum_equals_that_of_another_solver(base: Listed) -> None:
    optimum = least_variance(base, np.eye(base.answers))
    V, p, a = base.rays, base.prior, base.answers
    reached = float(variances(optimum.columns, optimum.theta, np.eye(a), p).sum())
    assert optimum.value == pytest.approx(reached, rel=1e-7)
    assert optimum.bound <= optimum.value * (1 + 1e-9)
    assert optimum.bound >= optimum.value * (1 - 1e-6)
    assert optimum.certificate.exact
    np.testing.assert_allclose(optimum.theta @ optimum.columns, 1, atol=1e-9)
    if len(V) <= 40:
        centre = minimise_trace(V, V.T.copy(), np.ones(a), np.eye(a), tolerance=0.1).x
        oracle = minimize(
            lambda x: float(np.trace(np.linalg.inv((V.T * x) @ V))) - p @ p,
            centre,
            jac=lambda x: -np.sum((V @ np.linalg.inv((V.T * x) @ V)) ** 2, axis=1),
            bounds=[(0, None)] * len(V),
            constraints={"type": "eq", "fun": lambda x: x @ V - 1, "jac": lambda x: V.T},
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-12},
        )
        assert oracle.fun >= optimum.bound * (1 - 1e-6)
        assert oracle.fun == pytest.approx(optimum.value, rel=1e-3)


@pytest.mark.parametrize(
    ("answers", "secrets", "epsilon"), [(5, 3, 0.5), (7, 5, 0.25), (9, 4, 1.0)]
)
def test_columns_are_generated_if_only_the_rows_are_known(
    answers: int, secrets: int, epsilon: float
) -> None:
    base = lip_base(answers, answers, secrets, epsilon)
    optimum = least_variance(base, np.eye(answers))
    assert optimum.certificate.exact
    assert optimum.certificate.route == "vertices"
    assert optimum.value * (1 - 1e-6) <= optimum.bound <= optimum.value
    assert (optimum.columns @ base.rows.T).min() >= -1e-9
    assert optimum.columns.min() >= 0
    np.testing.assert_allclose(optimum.columns @ base.prior, 1, atol=1e-9)
    np.testing.assert_allclose(optimum.theta @ optimum.columns, 1, atol=1e-9)


@pytest.mark.parametrize("answers", [3, 5, 8, 12])
@pytest.mark.parametrize("epsilon", ["0.25", "1", "3"])
def test_random_priors_do_no_worse_than_grr_and_subset_selection(
    answers: int, epsilon: str
) -> None:
    rng, E = random.Random(answers), level(epsilon)
    p = np.array([rng.expovariate(1.0) for _ in range(answers)])
    p /= p.sum()
    optimum = least_variance(AnswerLdp(E, p), np.eye(answers))
    assert optimum.certificate.route == "patterns"
    assert optimum.value * (1 - 1e-6) <= optimum.bound <= optimum.value
    ratios = optimum.columns.max(axis=1) / optimum.columns.min(axis=1)
    assert ratios.max() <= E * (1 + 1e-9)
    for k in range(1, answers if answers < 12 else 4):
        V, theta = subset_selection(answers, k, E, p)
        peer = float(variances(V, theta, np.eye(answers), p).sum())
        assert optimum.value <= peer * (1 + 1e-9)
        assert optimum.bound <= peer


@pytest.mark.parametrize(
    "W", [np.eye(4)[:2], np.array([[1.0, -1, 0, 0], [0, 1, -1, 0]]), np.array([[0, 1.0, 2, 3]])]
)
def test_fewer_targets_than_answers(W: Floats) -> None:
    # The certificate is tight even if A is nearly singular.
    base = lip_base(3, 4, 3, 0.5)
    optimum = least_variance(base, W)
    assert optimum.value * (1 - 3e-6) <= optimum.bound <= optimum.value
    all_shares = least_variance(base, np.eye(4))
    assert optimum.value <= variances(all_shares.columns, all_shares.theta, W, base.prior).sum() * (
        1 + 3e-6
    )
    assert optimum.value == pytest.approx(
        variances(optimum.columns, optimum.theta, W, base.prior).sum(), rel=1e-6
    )


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_one_contrast_equals_that_of_another_solver(epsilon: str) -> None:
    E, p = level(epsilon), np.array([0.3, 0.5, 0.2])
    optimum = least_variance(AnswerLdp(E, p), np.array([[1.0, -1.0, 0.0]]))
    U = np.array([[E if mask >> x & 1 else 1.0 for x in range(3)] for mask in range(1, 7)])
    V = U / (U @ p)[:, None]
    oracle = minimize(
        lambda x: (
            float(np.array([1, -1, 0]) @ np.linalg.inv((V.T * x) @ V) @ np.array([1, -1, 0])) - 0.04
        ),
        minimise_trace(V, V.T.copy(), np.ones(3), np.eye(3), tolerance=0.1).x,
        bounds=[(1e-9, None)] * 6,
        constraints={"type": "eq", "fun": lambda x: x @ V - 1},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert oracle.fun >= optimum.bound * (1 - 1e-6)
    assert oracle.fun == pytest.approx(optimum.value, rel=1e-3)


def test_a_rare_answer_and_one_without_mass() -> None:
    # Under LDP the entries of an answer of mass zero are bounded by the others.
    for p in (np.array([0.5, 0.499, 0.001]), np.array([0.5, 0.5, 0.0])):
        optimum = least_variance(AnswerLdp(level("1"), p), np.eye(3))
        assert optimum.value * (1 - 1e-6) <= optimum.bound <= optimum.value


def test_targets_that_cannot_be_estimated_are_refused() -> None:
    same = Listed(np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 2.0]]), np.array([0.3, 0.4, 0.3]))
    with pytest.raises(InvalidInput):
        least_variance(same, np.eye(3))


def test_the_best_mechanism_so_far_is_returned_when_time_is_up() -> None:
    base = lip_base(5, 9, 5, 0.25)
    full = least_variance(base, np.eye(9))
    calls = iter(range(10**9))
    early = least_variance(base, np.eye(9), limits=Limits(out_of_time=lambda: next(calls) > 2))
    assert math.isfinite(early.value)
    assert early.bound <= full.value <= early.value * (1 + 1e-9)
    np.testing.assert_allclose(early.theta @ early.columns, 1, atol=1e-9)


def test_two_runs_give_the_same_result_and_report_their_progress() -> None:
    base, events = lip_base(6, 7, 4, 0.5), []
    first = least_variance(
        base, np.eye(7), limits=Limits(progress=lambda *event: events.append(event))
    )
    second = least_variance(base, np.eye(7))
    np.testing.assert_array_equal(first.theta, second.theta)
    np.testing.assert_array_equal(first.columns, second.columns)
    assert events[-1] == ("variance", first.value, first.bound)
    assert all(events[i][1] >= events[i + 1][1] * (1 - 1e-9) for i in range(len(events) - 1))


def test_starting_columns_are_accepted() -> None:
    base = lip_base(7, 6, 3, 0.5)
    full = least_variance(base, np.eye(6))
    again = least_variance(base, np.eye(6), starts=full.columns)
    assert again.value == pytest.approx(full.value, rel=1e-7)


def test_both_forms_of_the_newton_system_end_at_the_same_point() -> None:
    rng = random.Random(8)
    V = np.array([[math.exp(rng.uniform(0, 1)) for _ in range(6)] for _ in range(60)])
    V = np.vstack([V, 0.5 + np.eye(6)])
    V /= V.mean(axis=1, keepdims=True)
    cost = np.array([rng.uniform(0, 1) for _ in V])
    values = []
    for W in (
        np.eye(6),
        np.vstack([np.eye(6)] * 12) / math.sqrt(12),
    ):  # the same objective by 42 and by 438 rows
        solution = minimise_trace(V, V.T.copy(), np.ones(6), W, cost=cost)
        assert solution.converged
        values.append(float(cost @ solution.x + np.trace(np.linalg.inv((V.T * solution.x) @ V))))
    assert values[0] == pytest.approx(values[1], rel=1e-8)


def test_a_very_rare_answer_does_not_stop_the_method_early() -> None:
    # Entries of a column then differ by a factor of 10^5; the method once stopped here before it
    # reached its tolerance.
    prior = pairs(Prior.from_rows([[1, 7670, 3424], [21144, 287, 554], [9273, 40276, 17371]]))
    bounds = (
        ((239542263, 2**48), (191215688151082, 2**48), (83544443575195, 2**48)),
        ((269691785571642, 2**48), (3120693340291, 2**48), (6316137166239, 2**48)),
        ((37992239974023, 2**48), (167961049063355, 2**48), (71777138860489, 2**48)),
    )
    claim = robust(bounds, Fraction("6.4045"), diagonal=False)
    designed = design(DesignRequest(prior, (claim,), limits=Limits(gap=1e-2)))
    require_private(designed.mechanism, claim)
    assert designed.identifiable
    assert designed.bound is not None
    assert designed.bound <= designed.value <= designed.bound * 1.01
