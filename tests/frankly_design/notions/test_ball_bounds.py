# SPDX-License-Identifier: Apache-2.0
"""Lower bounds for claims, which are never above the exact value, checked with 400 digits."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.notions.ball_bounds import ball_bounds, lower_bounds
from frankly_design.notions.balls import Ball, confidence_ball
from frankly_protocol.audit import Claim
from frankly_protocol.audit.claims import require_sound

from tests.frankly_design.notions.ball_reference import boundary_point, random_counts

ORDERS = [0.01, 0.3, 0.5, 0.999999, 1, 1.000001, 1.7, 2, 5, 100]
UNIT = Fraction(1, 2**48)


def truth_holds(ball: Ball, s: int, u: int, L: Fraction) -> bool:
    """Return True if (L, 1−L) is on or outside the conditional ball, by Theorem 1 with 400 digits."""
    with localcontext(prec=400):
        total = sum(map(sum, ball.counts))
        number = lambda v: Decimal(v.numerator) / Decimal(v.denominator)  # noqa: E731
        mass, alpha = number(Fraction(sum(ball.counts[s]), total)), number(ball.order)
        rho, r, c = (
            number(Fraction(ball.counts[s][u], sum(ball.counts[s]))),
            number(L),
            number(ball.threshold),
        )
        if alpha == 1:
            divergence = rho * (rho / r).ln() + (1 - rho) * ((1 - rho) / (1 - r)).ln()
            return divergence >= c / 2 / mass
        argument = ((1 + alpha * (alpha - 1) * c / 2) ** (1 / alpha) - 1 + mass) / mass
        radius = alpha / (alpha - 1) * argument.ln()
        moment = rho**alpha * r ** (1 - alpha) + (1 - rho) ** alpha * (1 - r) ** (1 - alpha)
        return moment.ln() / (alpha - 1) >= radius


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_a_bound_holds_in_400_digits_and_its_neighbour_does_not(order: float, full: bool) -> None:
    """The test checks all eight bounds of two random balls for each order, or of four with --full."""
    rng = np.random.default_rng(round(10**6 * order))
    for _ in range(4 if full else 2):
        counts = random_counts(rng, 2, 4, 1000)
        ball = confidence_ball(counts, order, 3000, "0.01")
        for s, row in enumerate(ball_bounds(ball)):
            for u, (k, d) in enumerate(row):
                assert d == 2**48
                assert k > 0
                assert truth_holds(ball, s, u, k * UNIT)
                assert not truth_holds(ball, s, u, (k + 1) * UNIT)


@pytest.mark.slow
@pytest.mark.parametrize("order", [0.4, 0.5, 1, 2, 3])
def test_no_distribution_of_the_ball_is_below_its_bounds(order: float, full: bool) -> None:
    """The test uses 20 random directions from six random balls for each order, or from fifteen with
    --full."""
    rng = np.random.default_rng(round(7 + 100 * order))
    for _ in range(15 if full else 6):
        counts = random_counts(rng, 3, 3)
        ball, P = confidence_ball(counts, order, 200, "0.05"), np.array(counts) / np.sum(counts)
        bounds = np.array([[k / d for k, d in row] for row in ball_bounds(ball)])
        for _ in range(20):
            # Mass moves mostly within a row, because such directions could violate a bound.
            s, u = rng.integers(0, 3, size=2)
            direction = 0.02 * rng.normal(size=P.shape) * P
            direction[s, u] -= P[s, u]
            direction[s] += P[s] * rng.random()
            direction -= direction.sum() * P
            Q = boundary_point(P, ball.radius, order, direction)
            conditional = Q / Q.sum(axis=1, keepdims=True)
            assert np.all(conditional >= bounds * (1 - 1e-12))


def test_every_bound_fits_a_claim() -> None:
    rng = np.random.default_rng(3)
    for order in (0.5, 1, 2, 7):
        counts = random_counts(rng, 4, 5, 3)
        counts[0][0] = counts[1][1] = 0
        counts[2] = [0] * 5
        bounds = lower_bounds(counts, order, 5000, "0.05")
        require_sound(Claim("rldp", (2, 1), lower_bounds=bounds), 20)
        assert all(k == 0 for n, (k, _) in zip(counts[0], bounds[0], strict=True) if n == 0)
        assert all(k == 0 for k, _ in bounds[2])
        assert sum(Fraction(*bound) for bound in bounds[3]) < 1


def test_more_people_and_more_risk_give_larger_bounds() -> None:
    def first(n: int, beta: str) -> int:
        return lower_bounds([[30, 70], [50, 50]], 2, n, beta)[0][0][0]

    assert 0 < first(100, "0.05") < first(1000, "0.05") < first(10**6, "0.05") < 0.3 * 2**48
    assert first(100, "0.001") < first(100, "0.05") < first(100, "0.5")


def test_the_largest_counts_are_accepted() -> None:
    largest = 2**53 - 1
    for order in (2, 3, 0.5, 1):
        bounds = lower_bounds([[1, largest], [largest, largest]], order, largest, "0.05")
        assert bounds[0][1][0] > 0.99 * 2**48
        assert 0 <= bounds[0][0][0] < 2
