# SPDX-License-Identifier: Apache-2.0
"""Walk over all vertices of a base, compared with exact enumeration."""

import random
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.notions import promises, walk
from frankly_design.notions.ball_bounds import lower_bounds
from frankly_design.notions.cones import Cone
from frankly_design.notions.declared.answer import answer_ldp
from frankly_design.notions.declared.secret import robust
from frankly_design.notions.prior import Prior, pairs
from frankly_design.notions.walk import vertices
from frankly_design.numeric.rays import extreme_rays
from frankly_design.optimum.information.cone_base import ConeBase
from frankly_design.optimum.variance.pricing import base_vertices
from frankly_design.tables.limits import Limits
from frankly_protocol.audit import Claim, level_for

from tests.frankly_design.maths import random_epsilon, random_prior
from tests.frankly_design.optimum.variance.cases import cone_of, lip_base


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
    # The walk reaches no other rays; a degenerate vertex may be listed several times.
    for v in rays:
        assert np.abs(exact - v).max(axis=1).min() < 1e-5


@pytest.mark.parametrize("seed", range(15))
def test_the_small_description_reaches_every_extreme_ray(seed: int) -> None:
    """The claims are a notion of the secret and a ceiling; both compare all pairs of averages."""
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
    # The ends of the intervals of the two auxiliary variables add vertices.
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
    prior = pairs(counts)
    claims = [robust(bounds, random_epsilon(rng, 0.3, 1.5), diagonal=diagonal)]
    if seed % 2:
        claims.append(answer_ldp(Fraction(2)))
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
    # The third answer has no mass, and no row bounds its entry.
    assert (
        vertices(
            np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, 0.0]]),
            np.array([0.5, 0.5, 0.0]),
            np.ones(3),
            100,
        )
        is None
    )


def _scaled(rays: list[tuple[int, ...]], p: np.ndarray) -> np.ndarray:
    exact = np.array(rays, dtype=np.float64)
    return np.asarray(exact / (exact @ p)[:, None])


def _same_points(V: np.ndarray, exact: np.ndarray) -> bool:
    apart = np.abs(V[:, None] - exact[None]).max(axis=2) / exact.max()
    return bool(apart.min(axis=0).max() < 1e-11 and apart.min(axis=1).max() < 1e-11)


_LEFT_TO_EXACT = {17}
"""Seed of a cone with three rows nearly tight at one vertex, where the walk gives up."""


@pytest.mark.parametrize("seed", range(20))
def test_vertices_in_floats_are_the_exact_rays(seed: int) -> None:
    """Small counts make vertices degenerate; large counts do not."""
    rng = random.Random(seed)
    secrets, answers = rng.randint(2, 5), rng.randint(2, 6 if seed % 4 else 4)
    most = (3, 10, 10_000)[seed % 3]
    prior = Prior.from_rows(
        [[rng.randint(x % 2, most) + (s == x) for x in range(answers)] for s in range(secrets)]
        + [[1] * answers]
    )
    notion = ("lip", "secret-ldp", "lip")[seed % 3]
    claims = [promises.promise(notion, prior, random_epsilon(rng, 0.1, 2.0))]
    if seed % 4 == 0:
        claims.append(answer_ldp(random_epsilon(rng, 0.5, 2.0)))
    cone, p = Cone(tuple(claims), answers), prior.probabilities()
    V = cone.vertices(p)
    # Exact arithmetic handles very degenerate cones.
    if V is None:
        assert seed in _LEFT_TO_EXACT
        return
    assert np.min(V) >= 0
    assert _same_points(V, _scaled(extreme_rays(cone.rows(), answers), p))


@pytest.mark.parametrize("kept", [1, 3, 20])
def test_vertices_that_floats_miss_are_found_by_the_walk(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = lip_base(1, 6, 4, 0.5)
    assert base.rows is not None
    complete = walk.base_vertices(base.rows, base.prior, 1000)
    few = complete[:: len(complete) // kept][:kept] if complete is not None else np.empty((0, 6))
    monkeypatch.setattr(walk, "float_vertices", lambda equation, rows: few)
    again = walk.base_vertices(base.rows, base.prior, 1000)
    assert again is not None
    assert complete is not None
    assert len(few) == kept < len(complete)
    assert _same_points(again, complete)


def test_vertices_that_floats_invent_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    base = lip_base(1, 6, 4, 0.5)
    assert base.rows is not None
    complete = walk.base_vertices(base.rows, base.prior, 1000)
    assert complete is not None
    invented = np.vstack([complete, 2 * complete[:1] - complete[1:2], np.eye(6)])
    monkeypatch.setattr(walk, "float_vertices", lambda equation, rows: invented)
    again = walk.base_vertices(base.rows, base.prior, 1000)
    assert again is None or _same_points(again, complete)
    monkeypatch.setattr(walk, "float_vertices", lambda equation, rows: invented[:0])
    assert walk.base_vertices(base.rows, base.prior, 1000) is None
    monkeypatch.undo()
    assert walk.base_vertices(base.rows, base.prior, len(complete) - 2) is None
