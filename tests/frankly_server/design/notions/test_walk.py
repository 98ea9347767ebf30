# SPDX-License-Identifier: Apache-2.0
"""All vertices of a base, against the exact enumeration."""

import random
from fractions import Fraction

import numpy as np
import pytest
from frankly_protocol.audit import Claim, level_for
from frankly_server.design import Prior
from frankly_server.design.notions import promises
from frankly_server.design.notions.ball_bounds import lower_bounds
from frankly_server.design.notions.cones import Cone
from frankly_server.design.notions.rays import extreme_rays
from frankly_server.design.notions.walk import vertices
from frankly_server.design.optimum.information.cone_base import ConeBase
from frankly_server.design.optimum.variance.pricing import base_vertices
from frankly_server.design.tables.limits import Limits

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
    # and no others; a degenerate vertex may be listed several times
    for v in rays:
        assert np.abs(exact - v).max(axis=1).min() < 1e-5


@pytest.mark.parametrize("seed", range(15))
def test_the_small_description_reaches_every_extreme_ray(seed: int) -> None:
    """A notion of the secret with a ceiling: both compare all pairs of averages."""
    rng = random.Random(seed)
    prior = random_prior(rng, rng.randint(3, 6), 4)
    notion = ("lip", "secret-ldp")[seed % 2]
    claims = (
        Claim(notion, level_for(random_epsilon(rng, 0.1, 1.0)), prior.joint),
        Claim("ldp", level_for(random_epsilon(rng, 1.0, 3.0))),
    )
    cone, p = Cone(claims, prior.answers), prior.probabilities()
    exact = np.array(extreme_rays(cone.rows(), prior.answers), dtype=np.float64)
    exact /= (exact @ p)[:, None]
    base = ConeBase(cone, prior)
    V = base_vertices(base, Limits())
    assert V is not None
    # Ends of the two further variables' intervals add vertices.
    assert len(V) < 20 * len(exact)
    for ray in exact:
        assert np.abs(V - ray).max(axis=1).min() < 1e-5
    assert base.rows is not None
    assert np.min(V @ base.rows.T) > -1e-6


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_small_description_of_rldp_reaches_every_extreme_ray(seed: int, diagonal: bool) -> None:
    rng = random.Random(seed)
    rows = [[rng.randint(20, 400) for _ in range(2 + seed % 2)] for _ in range(2)]
    counts = Prior.from_rows(rows)
    bounds = lower_bounds(counts.joint, 2, counts.total, "0.05")
    prior = promises.pairs(counts)
    claims = [promises.robust(bounds, random_epsilon(rng, 0.3, 1.5), diagonal=diagonal)]
    if seed % 2:
        claims.append(promises.answer_ldp(Fraction(2)))
    cone, p = Cone(tuple(claims), prior.answers), prior.probabilities()
    exact = np.array(extreme_rays(cone.rows(), prior.answers), dtype=np.float64)
    exact /= (exact @ p)[:, None]
    base = ConeBase(cone, prior)
    V = base_vertices(base, Limits())
    assert V is not None
    for ray in exact:
        assert np.abs(V - ray).max(axis=1).min() < 1e-5
    assert base.rows is not None
    assert np.min(V @ base.rows.T) > -1e-6
    assert all(sum(row) > 0 for row in cone.lifted_rows())


def test_the_walk_stops_after_too_many_vertices_or_out_of_time() -> None:
    base = lip_base(1, 8, 5, 0.25)
    start = np.arange(1.0, 9.0)
    every = vertices(base.rows, base.prior, start, 100_000)
    assert every is not None
    assert len(every) > 100
    assert vertices(base.rows, base.prior, start, 50) is None
    assert vertices(base.rows, base.prior, start, 100_000, lambda: True) is None


def test_the_walk_gives_up_if_the_base_is_unbounded() -> None:
    # The third answer has no mass, and no row bounds it.
    assert (
        vertices(
            np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, 0.0]]),
            np.array([0.5, 0.5, 0.0]),
            np.ones(3),
            100,
        )
        is None
    )
