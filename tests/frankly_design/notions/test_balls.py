# SPDX-License-Identifier: Apache-2.0
"""Balls and their projections, compared with a general optimiser on the ball's definition."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from frankly_design.notions.balls import Ball, confidence_ball, least, subset_sums
from scipy.stats import power_divergence

from tests.frankly_design.notions.ball_reference import minimum_over_ball, random_counts, renyi

ORDERS = [0.3, 0.5, 0.9, 1, 1.5, 2, 3, 10]
# An order below 1, Kullback–Leibler, and an order above 1; --full adds the others.
FEW_ORDERS = [
    order if order in (0.5, 1, 3) else pytest.param(order, marks=pytest.mark.full_only)
    for order in ORDERS
]


@pytest.mark.parametrize("order", ORDERS)
def test_the_ball_is_where_scipys_power_divergence_stays_below_the_quantile(order: float) -> None:
    rng = np.random.default_rng(round(100 * order))
    for _ in range(50):
        counts = random_counts(rng, 2, 3)
        n = sum(map(sum, counts))
        ball = confidence_ball(counts, order, n, "0.05")
        P = rng.dirichlet(np.ones(6))
        statistic = power_divergence(np.ravel(counts), n * P, lambda_=order - 1).statistic
        # For every order, n times the threshold equals scipy's quantile of the statistic.
        inside = renyi(np.array(counts) / n, P.reshape(2, 3), order) <= ball.radius
        assert inside == bool(statistic <= float(ball.threshold) * n)


@pytest.mark.slow
@pytest.mark.parametrize("order", FEW_ORDERS)
def test_least_and_spread_are_attained_and_never_exceeded(order: float) -> None:
    rng = np.random.default_rng(1000 + round(100 * order))
    counts = random_counts(rng, 2, 3)
    ball = confidence_ball(counts, order, 150, "0.05")
    P = np.array(counts) / np.sum(counts)
    s = 1
    for u in range(3):
        low, _ = minimum_over_ball(
            P, ball.radius, order, lambda Q, u=u: float(Q[s, u] / Q[s].sum())
        )
        high, _ = minimum_over_ball(
            P, ball.radius, order, lambda Q, u=u: -float(Q[s, u] / Q[s].sum())
        )
        assert low == pytest.approx(ball.least(s)[u], rel=1e-4, abs=1e-9)
        assert low >= ball.least(s)[u] * (1 - 1e-9)
        assert -high == pytest.approx(ball.greatest(s)[u], rel=1e-4)
        assert -high <= ball.greatest(s)[u] * (1 + 1e-9)
    center = P[s] / P[s].sum()
    # The ℓ1 norm is the maximum of linear functions, one for each choice of signs.
    widest = max(
        -minimum_over_ball(
            P, ball.radius, order, lambda Q, v=v: -float(np.dot(v, Q[s] / Q[s].sum() - center))
        )[0]
        for v in product((-1, 1), repeat=3)
    )
    assert widest == pytest.approx(ball.spread(s), rel=1e-4)
    assert widest <= ball.spread(s) * (1 + 1e-9)


@pytest.mark.parametrize("order", [2, 3, 1, 0.5, 0.7])
def test_a_value_with_count_zero_may_gain_all_mass(order: float) -> None:
    # Erratum 9.8: as ρ → 0 the gain tends to 1 − e^(−B_s).
    ball = Ball(((0, 6, 14), (10, 5, 5)), Fraction(order), Fraction(1, 10))
    radius = ball.conditional_radius(0)
    assert ball.least(0)[0] == 0
    assert ball.greatest(0)[0] == pytest.approx(1 - math.exp(-radius), rel=1e-9)
    # The limit is attained if all other values shrink proportionally.
    R = np.array([1 - math.exp(-radius), 0.3 * math.exp(-radius), 0.7 * math.exp(-radius)])
    assert renyi(np.array([0, 0.3, 0.7]), R, order) == pytest.approx(radius, rel=1e-9)
    assert ball.spread(0) >= 2 * ball.greatest(0)[0] * (1 - 1e-9)


def test_below_order_one_a_ball_can_contain_everything() -> None:
    # By errata 9.7 and 9.8, B_s is infinite and L = 0 if the argument of the logarithm is not
    # positive.
    wide = Ball(((1, 1), (500, 498)), Fraction(1, 2), Fraction(1, 10))
    assert wide.radius < math.inf
    assert wide.conditional_radius(0) == math.inf
    assert list(wide.least(0)) == [0, 0]
    assert wide.spread(0) == 2
    # A distribution that moves all mass of one cell of the rare secret into its other cell stays in
    # the ball.
    P = np.array([[1, 1], [500, 498]]) / 1000
    assert renyi(P, np.array([[0, 0.002], [0.5, 0.498]]), 0.5) < wide.radius
    assert Ball(((1, 1), (1, 1)), Fraction(1, 2), Fraction(8)).radius == math.inf


def test_a_secret_without_respondents_has_unknown_conditional_shares() -> None:
    ball = confidence_ball([[0, 0, 0], [1, 2, 3]], 2, 100, "0.05")
    assert ball.conditional_radius(0) == math.inf
    assert (list(ball.least(0)), list(ball.greatest(0)), ball.spread(0)) == ([0] * 3, [1] * 3, 2)


def test_with_too_many_subsets_the_spread_is_bounded_from_above() -> None:
    rng = np.random.default_rng(5)
    # The 24 values have counts so large and so different that all 2^24 sums differ.
    row = [int(n) for n in rng.integers(2**30, 2**40, size=24)]
    assert subset_sums(row) is None
    for order in (0.5, 1, 1.5, 2, 4):
        ball = Ball((tuple(row), tuple(reversed(row))), Fraction(order), Fraction(1, 50))
        radius, p = ball.conditional_radius(0), ball.conditional(0)
        # Random sets of values stay below the bound; the ℓ1 distance is twice the mass that a set
        # loses.
        picks = rng.integers(0, 2, size=(2000, 24)).astype(bool)
        sums = np.array([p[pick].sum() for pick in picks])
        sums = sums[(sums > 0) & (sums < 1 - 1e-12)]
        assert 2 * np.max(sums - least(sums, radius, order)) <= ball.spread(0) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_the_spread_is_the_best_of_all_sets(order: float, full: bool) -> None:
    """The test uses five random rows of counts for each order, or twelve with --full."""
    rng = np.random.default_rng(17)
    for _ in range(12 if full else 5):
        row = [int(n) for n in rng.integers(0, 30, size=rng.integers(2, 7))]
        row[0] += 1
        ball = Ball(
            (tuple(row), (1,) * len(row)), Fraction(order), Fraction(int(rng.integers(1, 40)), 100)
        )
        p, radius = ball.conditional(0), ball.conditional_radius(0)
        if radius == math.inf:
            continue
        picks = [
            np.array(pick, dtype=bool)
            for pick in product((0, 1), repeat=len(row))
            if 0 < sum(pick) < len(row)
        ]
        gains = [
            (sigma := p[pick].sum()) - least(np.array([sigma]), radius, order)[0] for pick in picks
        ]
        assert ball.spread(0) == pytest.approx(2 * max(gains), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("order", [0.5, 2])
def test_closed_forms_and_bisection_agree(order: float) -> None:
    from frankly_design.notions.balls import _bracketed

    p = np.linspace(0.01, 0.99, 60)
    for radius in (1e-4, 0.05, 0.4, 3.0):
        assert _bracketed(p, radius, order) == pytest.approx(
            least(p, radius, order), rel=1e-9, abs=1e-12
        )


def test_subset_sums_lists_every_sum() -> None:
    row = [3, 0, 5, 9]
    expected = {
        sum(n for n, take in zip(row, pick, strict=True) if take)
        for pick in product((0, 1), repeat=4)
    }
    sums = subset_sums(row)
    assert sums is not None
    # The list includes the full set, because a value with count 0 may be the only one that gains.
    assert sorted(expected - {0}) == [round(v * 17) for v in sums]
