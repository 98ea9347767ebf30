# SPDX-License-Identifier: Apache-2.0
"""Local search, which climbs to a ray of the cone that no other ray beats in its linear model."""

import random

import numpy as np
import pytest
from frankly_design.optimum.information.ascent import climb, worth_of
from frankly_design.optimum.information.cone_base import ConeBase
from frankly_design.optimum.information.gains import Guessing, Information
from numpy.typing import NDArray

from tests.frankly_design.maths import EVERY_NOTION, scaled_rays, tamed

Floats = NDArray[np.float64]


@pytest.mark.parametrize("kind", EVERY_NOTION)
@pytest.mark.parametrize("of", [Information, Guessing])
def test_a_climb_ends_at_a_ray_at_least_as_good_as_its_start(
    kind: str, of: type[Information] | type[Guessing]
) -> None:
    rng = random.Random(kind)
    prior, cone = tamed(kind, rng)
    base, V = ConeBase(cone, prior), scaled_rays(cone, prior)
    T, gain, climbed = V * base.scale, of(base), 0
    for _ in range(8):
        prices = np.array([rng.gauss(0, 0.5) for _ in range(4)])
        worth = gain.values(T) - T @ prices
        mixed = rng.random() < 0.6  # otherwise the start is a ray; a climb ends at a ray with zeros
        start = T[rng.sample(range(len(T)), 2)].mean(axis=0) if mixed else T[rng.randrange(len(T))]
        t, value = climb(base, gain, prices, start)
        assert value == pytest.approx(worth_of(gain, prices, t))
        assert worth_of(gain, prices, start) - 1e-12 <= value <= np.max(worth) + 1e-9
        # The end is one of the exact rays, and by its tangent no other ray is better.
        assert np.min(np.max(np.abs(T - t), axis=1)) < 1e-7
        assert promised(gain, prices, T, t) < 1e-6
        if promised(gain, prices, T, start) > 1e-6:
            assert value > worth_of(gain, prices, start)
            climbed += 1
    assert climbed


def promised(gain: Information | Guessing, prices: Floats, T: Floats, t: Floats) -> float:
    """Return the largest excess over t of any ray, by the tangent at t."""
    tangent = gain.slope(t) - prices
    return float(np.max(T @ tangent) - t @ tangent)


def test_the_worth_of_a_column_is_its_gain_minus_its_price() -> None:
    prior, cone = tamed("ldp", random.Random(0))
    base = ConeBase(cone, prior)
    assert worth_of(Information(base), np.array([1.0, 2.0, 3.0, 4.0]), base.scale) == pytest.approx(
        -float(base.scale @ [1, 2, 3, 4])  # the constant column has no information
    )
