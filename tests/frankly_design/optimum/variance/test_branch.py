# SPDX-License-Identifier: Apache-2.0
"""Branch and bound for the variance: its bounds compared with all extreme rays, and its certificates."""

import random
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.engine import DesignRequest, design
from frankly_design.notions.ball_bounds import lower_bounds
from frankly_design.notions.declared.secret import robust
from frankly_design.notions.prior import Prior, pairs
from frankly_design.optimum import robust_rays
from frankly_design.optimum.information.cone_base import ConeBase
from frankly_design.optimum.variance import branch, pricing
from frankly_design.optimum.variance.objective import Objective, Prices
from frankly_design.tables.limits import Limits

from tests.frankly_design.maths import random_prior
from tests.frankly_design.optimum.variance.cases import cone_of, worth

MANY = Limits(boxes=100_000)


@pytest.mark.parametrize("informative", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_the_bound_is_the_largest_worth_of_a_ray(seed: int, informative: bool) -> None:
    rng = random.Random(seed)
    prior = random_prior(rng, rng.randint(3, 5), rng.randint(2, 4))
    cone = cone_of(prior, rng.choice(["lip", "secret-ldp"]), Fraction(rng.randint(2, 20), 10))
    p = prior.probabilities()
    rays = np.array(cone.rays(), dtype=np.float64)
    rays /= (rays @ p)[:, None]
    a = prior.answers
    Z = np.array([[rng.gauss(0, 1) for _ in range(a)] for _ in range(a)])
    nu = np.array([rng.gauss(0, 1) for _ in range(a)])
    prices = Prices(Objective(np.eye(a), p, informative), Z, nu)
    largest = float(worth(rays, prices).max())
    base, scale = ConeBase(cone, prior), float((Z**2).sum())
    # The tolerance is above 0: a constant is added to ν so that the largest worth is 1% of the scale.
    prices = prices.raised(largest - 0.01 * scale)
    # Just above the largest worth, nothing is found, and this is proved.
    found = branch.bound(base, prices, scale, 0.01 * scale * (1 + 1e-6), MANY)
    assert found is not None
    columns, bound = found
    assert len(columns) == 0
    assert bound == pytest.approx(0.01 * scale, rel=1e-5)
    # Just below the largest worth, a column is found, and the bound is not below the largest worth.
    found = branch.bound(base, prices, scale, 0.0099 * scale, MANY)
    assert found is not None
    columns, bound = found
    assert worth(columns, prices).max() > 0.0099 * scale
    # The bound of a search that ends early is above every ray, and longer searches have closer
    # bounds.
    bounds = []
    for boxes in (1, 4, 16, 64, 256):
        found = branch.bound(base, prices, scale, 0.0100001 * scale, Limits(boxes=boxes))
        assert found is not None
        bounds.append(found[1])
    assert min(bounds) >= 0.01 * scale * (1 - 1e-9)
    assert bounds == sorted(bounds, reverse=True)


def test_rldp_is_certified_where_products_leave_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Branch and bound closes the last part of the gap, which the products leave open."""
    counts = Prior.from_rows([[5005, 29113, 15791, 7806], [15610, 5526, 14015, 7134]])
    bounds = lower_bounds(counts.joint, 1, counts.total, "0.05")
    claim = robust(bounds, Fraction("7.7651"), diagonal=False)
    request = DesignRequest(pairs(counts), (claim,))
    monkeypatch.setattr(pricing, "base_vertices", lambda *_, **__: None)
    monkeypatch.setattr(robust_rays, "listed", lambda *_: None)
    branched = design(request)
    assert branched.certified
    monkeypatch.setattr(branch, "bound", lambda *_: None)
    without = design(request)
    assert not without.certified
    assert branched.value == pytest.approx(without.value, rel=1e-3)
    assert without.bound is not None
    assert branched.bound is not None
    assert without.bound < branched.bound <= branched.value
