# SPDX-License-Identifier: Apache-2.0
"""Frontier of information against variance."""

import random

import numpy as np
import pytest
from frankly_design.optimum.interior import minimise_trace
from frankly_design.optimum.variance.column_base import Listed
from frankly_design.optimum.variance.criteria import least_variance
from frankly_design.optimum.variance.frontier import frontier, information_under_cap
from frankly_design.tables.limits import Limits
from frankly_protocol.errors import InvalidInput
from scipy.optimize import linprog, minimize
from scipy.special import xlogy

from tests.frankly_design.optimum.variance.cases import (
    AnswerLdp,
    Floats,
    information,
    level,
    lip_base,
    listed,
    patterns,
    random_mechanisms,
    variances,
)

SOME = [b for b in listed(61, 30, max_answers=5) if 4 <= len(b.rays) <= 30][:8]


def most_informative(base: Listed) -> float:
    gains = xlogy(base.rays, base.rays) @ base.prior
    solution = linprog(-gains, A_eq=base.rays.T, b_eq=np.ones(base.answers))
    return float(-solution.fun)


def by_slsqp(base: Listed, cap: float, least: Floats) -> float:
    """Return the largest I with variance ≤ cap, by SLSQP from an interior mechanism."""
    V, p = base.rays, base.prior
    gains = xlogy(V, V) @ p

    def room(x: Floats) -> float:
        return float(cap - np.trace(np.linalg.inv((V.T * x) @ V)) + p @ p)

    solution = minimize(
        lambda x: -gains @ x,
        least,
        jac=lambda x: -gains,
        bounds=[(0, None)] * len(V),
        constraints=[
            {"type": "eq", "fun": lambda x: x @ V - 1, "jac": lambda x: V.T},
            {
                "type": "ineq",
                "fun": room,
                "jac": lambda x: np.sum((V @ np.linalg.inv((V.T * x) @ V)) ** 2, axis=1),
            },
        ],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-11},
    )
    assert solution.status in (0, 8)
    return float(-solution.fun)


@pytest.mark.parametrize(
    "base", [*SOME[:4], *(pytest.param(base, marks=pytest.mark.full_only) for base in SOME[4:])]
)
@pytest.mark.parametrize("factor", [1.02, 1.3])
def test_the_information_under_a_cap_equals_that_of_another_solver(
    base: Listed, factor: float
) -> None:
    V, a = base.rays, base.answers
    least = least_variance(base, np.eye(a))
    cap = factor * least.value
    optimum = information_under_cap(base, np.eye(a), cap)
    assert optimum.exact
    assert optimum.variance <= cap * (1 + 1e-12)
    assert optimum.variance == pytest.approx(
        variances(optimum.columns, optimum.theta, np.eye(a), base.prior).sum(), rel=1e-9
    )
    assert optimum.information == pytest.approx(
        information(optimum.columns, optimum.theta, base.prior), rel=1e-7, abs=1e-9
    )
    assert optimum.information <= optimum.information_bound * (1 + 1e-12)
    assert optimum.information >= optimum.information_bound * (1 - 2e-6) - 1e-7
    centre = minimise_trace(V, V.T.copy(), np.ones(a), np.eye(a), tolerance=1e-4).x
    oracle = by_slsqp(base, cap, centre)
    assert oracle <= optimum.information_bound * (1 + 1e-6) + 1e-7
    assert oracle == pytest.approx(optimum.information, rel=1e-3, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("base", [*SOME[:4], lip_base(11, 5, 3, 0.5)])
def test_the_frontier_rises_and_is_evenly_spread(base: Listed) -> None:
    W = np.eye(base.answers)
    points = frontier(base, W, 8)
    informations = [point.information for point in points]
    spread = [point.variance for point in points]
    assert spread[0] == pytest.approx(least_variance(base, W).value, rel=1e-6)
    if len(points) == 1:  # the point of least variance has the most information
        return
    steps = np.diff(informations)
    np.testing.assert_allclose(steps, steps.mean(), rtol=1e-5)
    assert steps.min() > 0
    assert np.diff(spread).min() >= -1e-9 * spread[0]
    assert np.diff(np.diff(spread) / steps).min() >= -1e-4 * spread[-1]  # convex
    for point in points:
        assert point.variance_bound <= point.variance * (1 + 1e-9)
        assert point.information <= point.information_bound * (1 + 1e-9)
    for point in points[1:-1]:
        assert point.variance_bound >= point.variance * (1 - 2e-6)
    if isinstance(base, Listed):
        best = most_informative(base)
        assert (
            informations[-1]
            <= best * (1 + 1e-7)
            <= points[-1].information_bound * (1 + 1e-6) + 1e-3
        )
        assert informations[-1] == pytest.approx(best, rel=1e-2)


@pytest.mark.slow
def test_no_random_mechanism_lies_beyond_the_frontier() -> None:
    rng = random.Random(3)
    for base in SOME[:4]:
        W = np.eye(base.answers)
        points = frontier(base, W, 6)
        for theta in random_mechanisms(base.rays, rng, 100):
            reached = information(base.rays, theta, base.prior)
            spread = variances(base.rays, theta, W, base.prior).sum()
            for point in points:
                assert spread > point.variance or reached <= point.information_bound + 1e-9
                assert reached < point.information or spread >= point.variance_bound * (1 - 1e-9)


def test_equally_likely_answers_give_the_same_frontier_by_counting_and_in_general() -> None:
    p, E = np.full(6, 1 / 6), level("1.5")
    counted, general = (
        frontier(AnswerLdp(E, p), np.eye(6), 5),
        frontier(Listed(patterns(E, p), p), np.eye(6), 5),
    )
    for by_counting, in_general in zip(counted, general, strict=True):
        assert by_counting.information == pytest.approx(in_general.information, rel=1e-4)
        assert by_counting.variance == pytest.approx(in_general.variance, rel=1e-3)


def test_a_cap_below_the_least_variance_is_refused() -> None:
    base = SOME[2]
    W = np.eye(base.answers)
    least = least_variance(base, W).value
    with pytest.raises(InvalidInput, match="no mechanism has a variance below"):
        information_under_cap(base, W, 0.99 * least)
    assert information_under_cap(base, W, least * (1 + 1e-9)).variance <= least * (1 + 1e-9)


def test_a_cap_that_was_only_not_reached_in_time_is_not_called_impossible() -> None:
    base = lip_base(13, 5, 3, 0.5)
    W = np.eye(base.answers)
    cap = 1.0001 * least_variance(base, W).value
    with pytest.raises(InvalidInput, match=r"found in the time is .* limits\.seconds"):
        information_under_cap(base, W, cap, limits=Limits(out_of_time=lambda: True))


def test_a_generous_cap_gives_the_most_informative_mechanism() -> None:
    base = SOME[0]
    optimum = information_under_cap(base, np.eye(base.answers), 1e9)
    assert optimum.information == pytest.approx(most_informative(base), rel=1e-4)


@pytest.mark.slow
def test_bounds_are_true_when_time_is_up() -> None:
    base = lip_base(13, 5, 3, 0.5)
    full = frontier(base, np.eye(5), 5)
    calls = iter(range(10**9))
    early = frontier(base, np.eye(5), 5, limits=Limits(out_of_time=lambda: next(calls) > 20))
    for point in early:
        for true in full:
            assert (
                true.variance > point.variance or true.information <= point.information_bound + 1e-9
            )
            assert (
                true.information < point.information or true.variance >= point.variance_bound - 1e-9
            )


@pytest.mark.parametrize("times", [1.5, 1e3])
def test_a_cap_above_every_variance_costs_the_bound_nothing(times: float) -> None:
    """The price of the last optimum is paid for the variance that the cap allows beyond it."""
    base = AnswerLdp(level("3"), np.array([0.3, 0.3, 0.4]))
    W = np.eye(3)
    cap = times * least_variance(base, W).value
    found = information_under_cap(base, W, cap)
    assert found.variance < cap / 1.4
    assert -1e-9 <= found.information_bound - found.information <= 5e-7
