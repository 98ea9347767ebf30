# SPDX-License-Identifier: Apache-2.0
"""Bounds of lift, which random lifts never exceed and which are attained where this is claimed."""

import math
import random
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from papers.lift_bounds import breach_levels, max_lift_from, min_lift_from, of_alip


def random_lifts(
    rng: np.random.Generator, m: float, M: float, secrets: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw P(s) and lifts in [m, M] with mean 1, many of them at the ends."""
    while True:
        p = rng.dirichlet(np.ones(secrets))
        lift = np.where(
            rng.random(secrets) < 0.6, rng.choice([m, M], secrets), rng.uniform(m, M, secrets)
        )
        mean = p @ lift
        # Lifts are moved towards the far end until the mean is 1, which keeps the range.
        lift = (
            lift + (1 - mean) / (M - mean) * (M - lift)
            if mean < 1
            else lift + (1 - mean) / (m - mean) * (m - lift)
        )
        if abs(p @ lift - 1) < 1e-12:
            return p, lift


def test_no_lifts_exceed_the_bounds(full: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20000 if full else 2000):
        low, high = (
            Fraction(int(rng.integers(1001, 6000)), 1000),
            Fraction(int(rng.integers(1001, 6000)), 1000),
        )
        p, lift = random_lifts(rng, float(1 / low), float(high), int(rng.integers(2, 5)))
        bounds = of_alip(low.as_integer_ratio(), high.as_integer_ratio())
        for bound, value in (
            (bounds.l1, p @ abs(lift - 1)),
            (bounds.total_variation, p @ abs(lift - 1) / 2),
            (bounds.chi2, p @ (lift - 1) ** 2),
            (bounds.chi2_divergence, p @ (lift - 1) ** 2),
            (bounds.alpha, (p @ lift**3) ** (1 / 3)),
            (bounds.l1_inverse, p @ abs(1 / lift - 1)),
            (bounds.chi2_inverse, p @ (1 / lift - 1) ** 2),
            (bounds.alpha_inverse, (p @ lift**-3.0) ** (1 / 3)),
            (bounds.information, p @ (lift * np.log(lift))),
            (bounds.secret_ldp, lift.max() / lift.min()),
        ):
            assert value <= float(bound) * (1 + 1e-9)
        for measure, upper, lower in (
            ("l1", p @ abs(lift - 1), p @ abs(1 / lift - 1)),
            ("chi2", p @ (lift - 1) ** 2, p @ (1 / lift - 1) ** 2),
            ("alpha", (p @ lift**3) ** (1 / 3), (p @ lift**-3.0) ** (1 / 3)),
        ):
            assert lift.max() <= max_lift_from(measure, upper, p[np.argmax(lift)], 3) * (1 + 1e-9)
            assert lift.min() >= min_lift_from(
                measure, float(lower), float(p[np.argmin(lift)]), 3
            ) * (1 - 1e-9)


def test_the_bounds_of_both_sides_are_attained_by_two_lifts() -> None:
    m, M = Fraction(2, 5), Fraction(3)
    rare = (1 - m) / (M - m)  # P(l = M), for the mean to be 1
    bounds = of_alip((5, 2), (3, 1))
    assert bounds.l1 == rare * (M - 1) + (1 - rare) * (1 - m)
    assert bounds.total_variation == bounds.l1 / 2
    assert bounds.chi2 == rare * (M - 1) ** 2 + (1 - rare) * (1 - m) ** 2
    assert (bounds.alpha, bounds.alpha_inverse, bounds.secret_ldp) == (
        3,
        Fraction(5, 2),
        Fraction(15, 2),
    )
    assert bounds.information == math.log(3)


def test_one_side_alone() -> None:
    upper, lower = of_alip(None, (3, 1)), of_alip((5, 2), None)
    assert (upper.l1, upper.chi2) == (Fraction(4, 3), 2)  # lifts 0 and 3
    assert (
        upper.l1_inverse
        == upper.chi2_inverse
        == upper.alpha_inverse
        == upper.secret_ldp
        == math.inf
    )
    assert lower.l1 == Fraction(6, 5)  # lifts 2/5 and a rare lift that grows without bound
    assert lower.chi2 == lower.alpha == lower.information == lower.secret_ldp == math.inf
    assert (lower.l1_inverse, lower.chi2_inverse) == (Fraction(3, 2), Fraction(9, 4))


def test_a_level_of_one_leaves_nothing() -> None:
    for low, high in (((1, 1), (3, 1)), ((1, 1), None), ((1, 1), (1, 1))):
        bounds = of_alip(low, high)
        assert (bounds.l1, bounds.chi2, bounds.total_variation) == (0, 0, 0)


def test_no_breach_in_either_direction_within_the_levels(full: bool) -> None:
    """The test checks every event of the secret exactly; the lifts attain both levels."""
    rng = random.Random(4)
    near = 0
    for _ in range(2000 if full else 300):
        rho_1, rho_2 = sorted(Fraction(rng.randint(1, 19), 20) for _ in range(2))
        if rho_1 == rho_2:
            continue
        low, high = breach_levels(rho_1, rho_2)
        size = rng.randint(2, 4)
        masses = [Fraction(rng.randint(1, 9)) for _ in range(size)]
        p = [v / sum(masses) for v in masses]
        lift = [rng.choice([low, high, Fraction(1)]) for _ in range(size)]
        mean = sum(a * b for a, b in zip(p, lift, strict=True))
        end = high if mean < 1 else low
        if mean != 1:
            t = (1 - mean) / (end - mean)
            lift = [v + t * (end - v) for v in lift]
        assert sum(a * b for a, b in zip(p, lift, strict=True)) == 1
        for k in range(1, size):
            for event in combinations(range(size), k):
                before, after = sum(p[s] for s in event), sum(p[s] * lift[s] for s in event)
                assert not (before <= rho_1 and after > rho_2)
                assert not (before >= rho_2 and after < rho_1)
                near += (before <= rho_1 and after > rho_2 * Fraction(9, 10)) or (
                    before >= rho_2 and after < rho_1 * 2
                )
    assert near > 10


@pytest.mark.parametrize(
    "levels", [(0, Fraction(1, 2)), (Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 2), 1)]
)
def test_breach_levels_need_two_probabilities(levels: tuple[Fraction, Fraction]) -> None:
    with pytest.raises(ValueError, match="ρ₁"):
        breach_levels(*levels)
