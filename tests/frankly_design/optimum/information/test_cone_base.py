# SPDX-License-Identifier: Apache-2.0
"""Base of a cone by linear programmes, compared with the list of its rays, exact inequalities and scipy."""

import random
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.notions.cones import Cone
from frankly_design.notions.prior import Prior, pairs
from frankly_design.optimum.information.cone_base import ConeBase
from frankly_protocol.audit import Claim, level_for
from numpy.typing import NDArray
from scipy.optimize import linprog

from tests.frankly_design.maths import EVERY_NOTION, scaled_rays, tamed

Floats = NDArray[np.float64]


def unit_rows(cone: Cone) -> Floats:
    """Return the exact rows of the cone, each scaled to a largest entry of 1."""
    return np.array([[float(Fraction(r, max(map(abs, row)))) for r in row] for row in cone.rows()])


def directions(rng: random.Random, answers: int, count: int) -> Floats:
    return np.array([[rng.gauss(0, 1) for _ in range(answers)] for _ in range(count)])


@pytest.mark.parametrize("kind", EVERY_NOTION)
def test_the_small_description_contains_every_ray(kind: str) -> None:
    rng = random.Random(kind)
    for _ in range(3):
        prior, cone = tamed(kind, rng, 0.05, 3.0)
        base = ConeBase(cone, prior)
        for v in scaled_rays(cone, prior):
            t, nothing = v * base.scale, np.zeros(base.answers)
            # A tiny box around the ray contains a point of the polytope with its auxiliary
            # variables.
            assert base.support(nothing, t * (1 - 1e-8) - 1e-12, t * (1 + 1e-8) + 1e-12) is not None
            assert np.all(base.low <= t + 1e-12)
            assert np.all(t <= base.high + 1e-12)


@pytest.mark.parametrize("kind", EVERY_NOTION)
def test_vertices_lie_in_the_exact_cone_and_are_farthest(kind: str) -> None:
    rng = random.Random(kind)
    for _ in range(3):
        prior, cone = tamed(kind, rng, 0.05, 3.0)
        base, V, rows = ConeBase(cone, prior), scaled_rays(cone, prior), unit_rows(cone)
        for c in directions(rng, 4, 12):
            v = base.maximise(c)
            assert v @ prior.probabilities() == pytest.approx(1, abs=1e-9)
            assert np.min(rows @ v) > -1e-8 * np.max(v)
            assert np.min(v) >= 0
            best = float(np.max(V @ c))
            assert c @ v == pytest.approx(best, rel=1e-7, abs=1e-7)
            assert (
                best - 1e-9
                <= base.highest(c)
                <= best + 1e-6 * max(1.0, float(np.abs(c) @ np.max(V, axis=0)))
            )


@pytest.mark.parametrize("kind", EVERY_NOTION)
def test_supports_of_boxes_are_bounds_and_those_of_other_programmes(kind: str) -> None:
    rng = random.Random(kind)
    prior, cone = tamed(kind, rng)
    base, V, rows = ConeBase(cone, prior), scaled_rays(cone, prior), unit_rows(cone)
    p, checked = prior.probabilities(), 0
    for gain in directions(rng, 4, 25):
        shares = np.array([rng.expovariate(1) for _ in V])
        inside = (
            (shares / shares.sum()) @ V * base.scale
        )  # a point in the base, so that the box is not empty
        low = inside - (inside - base.low) * rng.random()
        high = inside + (base.high - inside) * rng.random()
        support = base.support(gain, low, high)
        bounds = list(zip(low / base.scale, high / base.scale, strict=True))
        solution = linprog(-gain * base.scale, -rows, np.zeros(len(rows)), p[None], [1.0], bounds)
        assert support is not None
        assert solution.status == 0
        assert (
            -solution.fun - 1e-9
            <= support.bound
            == pytest.approx(-solution.fun, rel=1e-6, abs=1e-7)
        )
        assert gain @ support.x == pytest.approx(support.bound, rel=1e-6, abs=1e-7)
        assert np.all(low - 1e-12 <= support.x)
        assert np.all(support.x <= high + 1e-12)
        for t in np.vstack([V * base.scale, inside]):
            # A variable at a distance δ from its bound costs |reduced|·δ.
            if np.all(low <= t) and np.all(t <= high):
                cost = np.maximum(support.reduced, 0) * (high - t) + np.maximum(
                    -support.reduced, 0
                ) * (t - low)
                assert gain @ t + np.max(cost) <= support.bound + 1e-9
                checked += 1
    assert checked >= 25


def test_an_empty_box_has_no_support() -> None:
    prior, cone = tamed("lip", random.Random(1))
    base = ConeBase(cone, prior)
    assert base.support(np.ones(4), base.high, base.high) is None  # p·v would exceed 1


@pytest.mark.parametrize("kind", EVERY_NOTION)
def test_corners_favour_each_answer_most(kind: str) -> None:
    prior, cone = tamed(kind, random.Random(kind))
    base, V = ConeBase(cone, prior), scaled_rays(cone, prior)
    for x in range(4):
        assert base.corners[x][x] / base.scale[x] == pytest.approx(np.max(V[:, x]), rel=1e-7)
        assert base.high[x] / base.scale[x] == pytest.approx(np.max(V[:, x]), rel=1e-7)
        assert base.low[x] / base.scale[x] == pytest.approx(np.min(V[:, x]), rel=1e-7, abs=1e-7)


def test_answers_without_mass_stay_bounded_under_rldp() -> None:
    counts = Prior.from_rows([[3, 0], [2, 5]])
    bounds = (((2, 5), (0, 1)), ((1, 5), (3, 5)))
    prior = pairs(counts)
    assert prior.shares == (3, 0, 2, 5)
    for diagonal in (False, True):
        cone = Cone((Claim("rldp", (2, 1), lower_bounds=bounds, diagonal=diagonal),), 4)
        base, V = ConeBase(cone, prior), scaled_rays(cone, prior)
        assert np.all(np.isfinite(base.high))
        for x in range(4):
            unit = np.eye(4)[x]
            assert base.maximise(unit)[x] == pytest.approx(np.max(V[:, x]), rel=1e-7)
            assert base.highest(unit) >= np.max(V[:, x]) - 1e-9
        assert np.max(V[:, 1]) > 1  # the test has something to bound


def test_answers_without_mass_stay_bounded_under_ldp() -> None:
    prior = Prior.from_rows([[3, 0, 4]])
    cone = Cone((Claim("ldp", (3, 1)),), 3)
    base, V = ConeBase(cone, prior), scaled_rays(cone, prior)
    for c in directions(random.Random(2), 3, 20):
        assert base.highest(c) == pytest.approx(np.max(V @ c), rel=1e-7)
    assert base.ratio == 3


@pytest.mark.parametrize("notion", ["lip", "secret-ldp", "srlip"])
def test_tiny_secrets_and_answers_are_not_lost(notion: str) -> None:
    # One secret has probability 10^-6, and one answer has about the same.
    prior = Prior.from_rows(
        [[1, 3, 2, 1], [3_000_000, 2_000_000, 2_000_000, 1], [10**6, 10**6, 2 * 10**6, 1]]
    )
    claim = Claim(
        notion,
        level_for(Fraction(1, 2)),
        prior.joint,
        attributes=(2, 2) if notion == "srlip" else None,
    )
    cone = Cone((claim,), 4)
    base, V, rows = ConeBase(cone, prior), scaled_rays(cone, prior), unit_rows(cone)
    for c in np.vstack([np.eye(4), -np.eye(4), directions(random.Random(3), 4, 20)]):
        best, reach = float(np.max(V @ c)), float(np.abs(c) @ np.max(V, axis=0))
        assert base.highest(c) >= best - 1e-9 * reach
        assert base.highest(c) <= best + 1e-5 * reach
        v = base.maximise(c)
        assert np.min(rows @ v) > -1e-7 * np.max(v)


def test_rows_equal_those_of_the_cone_and_omitted_if_many() -> None:
    prior, cone = tamed("lip", random.Random(4))
    rows = ConeBase(cone, prior).rows
    assert rows is not None
    np.testing.assert_allclose(rows, unit_rows(cone), rtol=1e-12)
    large_prior = Prior.from_rows([[1] * 60])
    assert ConeBase(Cone((Claim("ldp", (2, 1)),), 60), large_prior).rows is None


def test_only_ldp_alone_has_a_ratio() -> None:
    rng = random.Random(5)
    for kind in EVERY_NOTION:
        prior, cone = tamed(kind, rng)
        expected = float(Fraction(*(cone.claims[0].level or (0, 1)))) if kind == "ldp" else None
        assert ConeBase(cone, prior).ratio == expected


@pytest.mark.parametrize(
    ("notion", "magnitude", "level", "seed"),
    [
        ("lip", 12, "0.01", 12),
        ("lip", 12, "3", 11),
        ("srlip", 10, "3", 7),
        ("srlip", 10, "3", 10),
        ("srlip", 12, "3", 25),
    ],
)
def test_no_ray_is_cut_off_if_counts_differ_by_many_orders(
    notion: str, magnitude: int, level: str, seed: int
) -> None:
    # The vertices that the solver finds here differ from the exact rays by up to 4e-10.
    rng = random.Random(seed)
    counts = [
        [int(10 ** (magnitude * rng.random())) if rng.random() < 0.7 else 1 for _ in range(4)]
        for _ in range(rng.randint(2, 3))
    ]
    prior = Prior.from_rows(counts)
    attributes = (2, 2) if notion == "srlip" else None
    cone = Cone((Claim(notion, level_for(Fraction(level)), prior.joint, attributes=attributes),), 4)
    base = ConeBase(cone, prior)
    T = scaled_rays(cone, prior) * base.scale
    assert np.max(T - base.high) < 1e-15
    assert np.max(base.low - T) < 1e-15
    assert np.all(np.isfinite(base.high))
