# SPDX-License-Identifier: Apache-2.0
"""The rays of RLDP from the corners of its parts, against exact enumeration, and what they certify."""

import random
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.engine import DesignRequest, design
from frankly_design.notions.ball_bounds import lower_bounds
from frankly_design.notions.cones import Cone
from frankly_design.notions.declared.secret import robust as robust_claim
from frankly_design.notions.prior import Prior, pairs
from frankly_design.numeric.rays import extreme_rays
from frankly_design.optimum import programme, robust_rays
from frankly_design.tables.limits import Limits
from frankly_protocol.audit import Claim, level_for

EVEN_4X2 = [[16, 12], [11, 10], [9, 14], [13, 15]]
EVEN_5X2 = [[8, 4], [5, 6], [2, 9], [7, 7], [6, 11]]


def robust(
    counts: list[list[int]], epsilon: str, people: int = 1000, *, diagonal: bool = False
) -> tuple[Prior, Claim]:
    """The claim of the ball of order 2 and β = .05 around the shares of `counts`."""
    joint = Prior.from_rows(counts)
    bounds = lower_bounds(joint.joint, 2, people, "0.05")
    return pairs(joint), robust_claim(bounds, Fraction(epsilon), diagonal=diagonal)


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize("epsilon", ["0.05", "0.5", "3"])
@pytest.mark.parametrize("diagonal", [False, True])
def test_every_extreme_ray_is_listed_and_the_others_are_columns_too(
    shape: tuple[int, int], epsilon: str, diagonal: bool
) -> None:
    rng = random.Random(f"{shape} {epsilon}")
    secrets, values = shape
    counts = [[rng.randint(1, 40) for _ in range(values)] for _ in range(secrets)]
    prior, claim = robust(counts, epsilon, diagonal=diagonal)
    cone, p = Cone((claim,), prior.answers), prior.probabilities()
    points = robust_rays.listed(cone, p, Limits())
    assert points is not None
    size = points.max()
    for ray in programme.scaled(cone.rays(), prior):
        assert np.abs(points - ray).max(axis=1).min() <= 1e-9 * size
    for row in cone.rows():
        coefficients = np.array([float(Fraction(n, max(map(abs, row)))) for n in row])
        assert (points @ coefficients).min() >= -1e-10 * size


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize("ceiling", ["0.3", "0.8", "2"])
def test_a_ceiling_cuts_the_list(shape: tuple[int, int], ceiling: str) -> None:
    rng = random.Random(f"{shape} {ceiling}")
    secrets, values = shape
    counts = [[rng.randint(1, 40) for _ in range(values)] for _ in range(secrets)]
    prior, claim = robust(counts, "0.5")
    cone = Cone((claim, Claim("ldp", level_for(Fraction(ceiling)))), prior.answers)
    points = robust_rays.listed(cone, prior.probabilities(), Limits())
    assert points is not None
    size = points.max()
    rows = np.array([[n / max(map(abs, row)) for n in row] for row in cone.rows()])
    assert (points @ rows.T).min() >= -1e-10 * size
    rays = np.array(extreme_rays(cone.rows(), prior.answers), dtype=np.float64)
    for ray in rays / (rays @ prior.probabilities())[:, None]:
        assert np.abs(points - ray).max(axis=1).min() <= 1e-8 * size


def test_other_cones_have_no_such_list() -> None:
    prior, claim = robust(EVEN_4X2, "0.5")
    p, ldp = prior.probabilities(), Claim("ldp", level_for(Fraction(1)))
    assert robust_rays.listed(Cone((ldp,), 8), p, Limits()) is None
    assert robust_rays.listed(Cone((claim,), 8), p, Limits(memory=1)) is None
    assert robust_rays.listed(Cone((claim,), 8), p, Limits(out_of_time=lambda: True)) is None


@pytest.mark.parametrize(
    ("counts", "epsilon", "least"),
    [(EVEN_4X2, "0.25", 125.647), (EVEN_5X2, "0.1", 1219.804), (EVEN_5X2, "0.5", 48.8632)],
)
def test_the_least_variance_at_small_levels_is_certified(
    counts: list[list[int]], epsilon: str, least: float
) -> None:
    prior, claim = robust(counts, epsilon)
    found = design(DesignRequest(prior, (claim,), objective="variance"))
    assert found.certified
    assert found.exact
    assert found.value == pytest.approx(least, rel=1e-5)


def test_the_least_variance_under_a_ceiling_too_is_certified() -> None:
    prior, claim = robust([[126, 110], [98, 127], [114, 106], [100, 219]], "0.1907")
    ceiling = Claim("ldp", level_for(Fraction("1.5026")))
    found = design(DesignRequest(prior, (claim, ceiling), objective="variance"))
    assert found.certified
    assert found.exact
