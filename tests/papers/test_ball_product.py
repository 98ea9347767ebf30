# SPDX-License-Identifier: Apache-2.0
"""Robust, Examples 1 and 2: the Rényi divergence, F and F′, checked with definitions, grids and a
separate optimiser."""

import math
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.notions.balls import Ball, confidence_ball

from papers.ball_leakage import worst_case_over_ball
from papers.ball_product import ESTIMATE, best_over, edge, in_product, nearest, renyi_divergence
from papers.channel import information
from papers.robust_common import POLYOPT, Estimate
from tests.frankly_design.notions.ball_reference import minimum_over_ball, renyi
from tests.papers.registry import paper

ORDERS = (0.3, 0.5, 0.9, 1.0, 1.7, 2.0, 5.0)
P_HAT = np.array(ESTIMATE) / 100
BALL = confidence_ball(ESTIMATE, 2, 100, "0.05")


@paper("Robust (21)")
def test_the_renyi_divergence_is_its_definition() -> None:
    rng = np.random.default_rng(21)
    for order in ORDERS:
        for _ in range(20):
            p, r = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
            assert renyi_divergence(p, r, order) == pytest.approx(renyi(p, r, order), abs=1e-12)
            assert renyi_divergence(p, r, order) >= 0
        assert renyi_divergence(p, p, order) == pytest.approx(0, abs=1e-12)
    # With missing values
    assert (
        renyi_divergence([0.5, 0.5], [1, 0], 2) == math.inf == renyi_divergence([1, 0], [0, 1], 0.5)
    )
    assert renyi_divergence([1, 0], [0.25, 0.75], 2) == pytest.approx(math.log(4))
    assert renyi_divergence([0.25] * 4, [1, 0, 0, 0], 0.5) == pytest.approx(math.log(4))
    # By (38), none of the corners of F′ is in F.
    for corner in ([0.7171, 0.2829, 0, 0], [0, 0, 0.1923, 0.8077]):
        assert renyi_divergence(P_HAT, corner, 2) == math.inf


@paper("Robust §4.1 F′")
def test_the_nearest_distribution_has_the_best_masses() -> None:
    """A grid over the mass of the first secret contains no smaller divergence."""
    rng = np.random.default_rng(41)
    for order in ORDERS:
        joint = rng.dirichlet(np.ones(6)).reshape(2, 3)
        R = rng.dirichlet(np.ones(3), size=2)
        P = nearest(joint, R, order)
        assert P.sum() == pytest.approx(1)
        assert P / P.sum(axis=1, keepdims=True) == pytest.approx(R)
        others = [
            renyi_divergence(joint, np.array([[m], [1 - m]]) * R, order)
            for m in np.linspace(0.001, 0.999, 999)
        ]
        assert renyi_divergence(joint, P, order) <= min(others) + 1e-12


@paper("Robust §4.1 F′")
def test_members_of_the_ball_are_extreme_in_one_projection_at_most() -> None:
    """If P(·|s) is at the edge of F_s, every P(·|t) is P̂(·|t); the corner of both is in F′ but not in F."""
    for s, u in ((0, 0), (0, 1), (1, 0), (1, 1)):
        low, P = minimum_over_ball(
            P_HAT, BALL.radius, 2, lambda P, s=s, u=u: float(P[s, u] / P[s].sum())
        )
        assert low == pytest.approx(BALL.least(s)[u], abs=1e-5)
        other = P[1 - s] / P[1 - s].sum()
        assert other == pytest.approx(BALL.conditional(1 - s), abs=0.02)
    both = np.array([[v, 1 - v] for v in (BALL.least(s)[0] for s in (0, 1))])
    P = nearest(P_HAT, 0.9999 * both + 0.0001 * P_HAT / P_HAT.sum(axis=1, keepdims=True), 2)
    assert in_product(BALL, P)
    assert renyi_divergence(P_HAT, P, 2) > BALL.radius
    centre = P_HAT[:, 0] / P_HAT.sum(axis=1)
    for first, second in centre + (1 - 1e-9) * (edge(BALL, 24) - centre):
        assert in_product(BALL, nearest(P_HAT, [[first, 1 - first], [second, 1 - second]], 2))
    assert not in_product(BALL, np.array([[0.1, 0.9], [0, 0]]))
    assert in_product(BALL, np.array([[0.4, 0.6], [0, 0]]))  # a secret without mass has no P(·|s)


@paper("Robust §4.1 F′")
def test_below_order_one_the_ball_may_be_all_that_its_projections_allow() -> None:
    """Erratum 9.24: for even cells, α = ½ and B = ln 4, Σ√(P̂P) = ½Σ√P ≥ ½, so F contains every P,
    including the ends of both projections."""
    even = ((1, 1), (1, 1))
    ball = Ball(even, Fraction(1, 2), Fraction(4))
    assert ball.radius == pytest.approx(math.log(4))
    assert [ball.conditional_radius(s) for s in (0, 1)] == [math.inf, math.inf]
    rng = np.random.default_rng(9)
    at_both_ends = np.array([[0.5, 0], [0.5, 0]])
    for P in [at_both_ends, *rng.dirichlet(np.full(4, 0.2), size=200).reshape(-1, 2, 2)]:
        assert in_product(ball, P)
        assert renyi_divergence(np.full((2, 2), 0.25), P, 0.5) <= math.log(4) + 1e-12
    # (23) is undefined here, because it would take the logarithm of (1/4 − 1/2)/(1/2).
    assert (math.exp((0.5 - 1) * ball.radius / 0.5) - 0.5) / 0.5 == pytest.approx(-0.5)


@paper("Robust (37)")
def test_f_prime_as_printed_leaves_out_members_of_the_ball() -> None:
    """With the intervals of (37), F ⊂ F′ fails on both sides of both secrets; the complement of
    .1620 is .8380, printed as .83830."""
    first, second = edge(BALL, 72).T
    assert (first.min(), first.max()) == pytest.approx((0.1552, 0.7273), abs=6e-5)
    assert (second.min(), second.max()) == pytest.approx((0.1921, 0.4666), abs=6e-5)
    assert first.min() < 0.1620
    assert first.max() > 0.7171
    assert second.min() < 0.1923
    assert second.max() > 0.4663
    assert 1 - 0.1620 == pytest.approx(0.8380) != 0.83830
    for x, y in zip(first, second, strict=True):
        P = nearest(P_HAT, [[x, 1 - x], [y, 1 - y]], 2)
        assert renyi(P_HAT, P, 2) <= BALL.radius * (1 + 1e-9)


@paper("Robust §4.1 F′")
def test_designing_for_the_projections_costs_utility() -> None:
    """At ε = .7, the best mechanism over 60 points of F has 5% more information than PolyOpt and
    leaks hardly more over all of F."""
    example, epsilon = Estimate(ESTIMATE), Fraction("0.7")
    table = best_over(edge(BALL, 60), P_HAT, float(epsilon))
    assert table.sum(axis=1) == pytest.approx(np.ones(4))
    whole = np.rint(2**40 * table).astype(object)
    found = worst_case_over_ball([[int(w) for w in row] for row in whole], BALL)
    assert found.epsilon == pytest.approx(float(epsilon), abs=4e-3)
    polyopt = example.table(POLYOPT, epsilon, 300)
    gain = information(table, P_HAT.ravel()) / information(polyopt, P_HAT.ravel())
    assert gain == pytest.approx(1.0545, abs=2e-3)
