# SPDX-License-Identifier: Apache-2.0
"""All vertices of a base, against the exact enumeration."""

import random

import numpy as np
import pytest
from frankly_server.design.optimum.variance.walk import vertices

from tests.frankly_server.design.optimum.variance.cases import cone_of, lip_base
from tests.frankly_server.maths import random_epsilon, random_prior


@pytest.mark.parametrize("seed", range(25))
def test_the_walk_reaches_every_extreme_ray(seed: int) -> None:
    rng = random.Random(seed)
    prior = random_prior(rng, rng.randint(2, 6), rng.randint(2, 4))
    cone = cone_of(prior, rng.choice(["lip", "secret-ldp"]), random_epsilon(rng, 0.1, 2.0))
    p = prior.probabilities()
    rows = np.array(cone.rows(), dtype=np.float64).reshape(-1, len(p))
    exact = np.array(cone.rays(), dtype=np.float64)
    exact /= (exact @ p)[:, None]
    rays = vertices(rows, p, np.array([rng.gauss(0, 1) for _ in p]), 100_000)
    assert rays is not None
    for ray in exact:
        assert np.abs(rays - ray).max(axis=1).min() < 1e-5
    # nothing else: every vertex lies beside an exact one, several beside one where more inequalities meet than needed
    for v in rays:
        assert np.abs(exact - v).max(axis=1).min() < 1e-5


def test_the_walk_gives_up_where_there_is_too_much_or_no_time() -> None:
    base = lip_base(1, 8, 5, 0.25)
    start = np.arange(1.0, 9.0)
    every = vertices(base.rows, base.prior, start, 100_000)
    assert every is not None
    assert len(every) > 100
    assert vertices(base.rows, base.prior, start, 50) is None
    assert vertices(base.rows, base.prior, start, 100_000, lambda: True) is None


def test_the_walk_gives_up_where_the_base_is_unbounded() -> None:
    # The third answer has no mass and nothing holds it.
    assert (
        vertices(
            np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, 0.0]]),
            np.array([0.5, 0.5, 0.0]),
            np.ones(3),
            100,
        )
        is None
    )
