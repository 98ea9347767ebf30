# SPDX-License-Identifier: Apache-2.0
"""LDP of many answers: values near the bound, and certified optima where all patterns are priced."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from frankly_design.engine import DesignRequest, design
from frankly_design.notions.prior import Prior
from frankly_design.optimum.variance import many_answers
from frankly_design.optimum.variance.column_base import Listed
from frankly_design.optimum.variance.criteria import least_variance
from frankly_design.optimum.variance.objective import Objective, Prices
from frankly_design.optimum.variance.patterns import of_one_target
from frankly_design.tables.limits import Limits
from frankly_protocol.audit import Claim, level_for

WITHIN = Limits(gap=0.01)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_sets_reach_the_optimum_of_all_patterns(epsilon: float) -> None:
    """The scale has nine points, and the test lists all 510 columns."""
    a, ratio = 9, float(np.exp(epsilon))
    p = np.full(a, 1 / a)
    W = np.tril(np.ones((a, a)))[:-1]
    U = np.array(list(product((1.0, ratio), repeat=a))[1:-1])
    least = least_variance(Listed(U / (U @ p)[:, None], p), W).value
    base = Listed(np.ones((1, a)), p, ratio=ratio)
    found = many_answers.optimum(base, Objective(many_answers.complete(W), p), Limits())
    assert found.value == pytest.approx(least, rel=2e-3)
    assert found.bound <= least <= found.value * (1 + 1e-9)
    assert np.abs(found.theta @ found.columns - 1).max() < 1e-9
    entries = found.columns / found.columns.min(axis=1, keepdims=True)
    assert np.isclose(entries, ratio).sum() + np.isclose(entries, 1).sum() == entries.size


@pytest.mark.full_only
@pytest.mark.parametrize("epsilon", ["1", "3"])
def test_uneven_shares_beyond_all_patterns_have_a_close_bound(epsilon: str) -> None:
    """For 24 answers, an earlier bound was 95 % below the value."""
    counts = np.random.default_rng(2).integers(20, 400, 24).tolist()
    claim = Claim("ldp", level_for(Fraction(epsilon)))
    found = design(DesignRequest(Prior.from_rows([counts]), (claim,), limits=WITHIN))
    assert found.bound is not None
    assert 0.97 * found.value < found.bound <= found.value


@pytest.mark.parametrize("full", [False, True])
def test_a_target_that_is_always_one_completes_the_rank(full: bool) -> None:
    W = np.eye(4) if full else np.tril(np.ones((4, 4)))[:-1]
    p = np.array([0.1, 0.2, 0.3, 0.4])
    completed = many_answers.complete(W)
    assert np.linalg.matrix_rank(completed) == 4
    assert (len(completed) == len(W)) == full
    # Both sets of targets have the same variance under a mechanism, here randomised response.
    V = np.ones((4, 4)) + 2 * np.eye(4)
    mass = V @ p
    A = (V.T / mass / 6) @ V
    assert A @ p == pytest.approx(np.ones(4))
    plain, more = (
        np.trace(T @ np.linalg.inv(A) @ T.T) - float(((T @ p) ** 2).sum()) for T in (W, completed)
    )
    assert more == pytest.approx(plain)
    # Targets of lower rank are not completed.
    assert len(many_answers.complete(W[:2])) == 2


# For the last eight seeds, the best pattern is found only after τ has been raised.
@pytest.mark.parametrize("seed", [*range(20), 828, 1273, 1586, 2506, 2826, 3043, 3906, 3960])
def test_the_best_pattern_for_one_target_is_found(seed: int) -> None:
    """The result is compared with all patterns at random prices."""
    rng = np.random.default_rng(seed)
    a = int(rng.integers(4, 8))
    p = rng.dirichlet(np.ones(a)) + 1e-3
    p /= p.sum()
    ratio = float(np.exp(rng.choice((1, 3, 5))))
    z = p * rng.normal(size=a)
    nu = p * rng.normal(size=a) ** 2 * rng.choice((0.01, 0.1, 1))
    prices = Prices(Objective(np.ones((1, a)), p), z[:, None], nu)
    U = np.array(list(product((1.0, ratio), repeat=a)))
    every = prices.worth(U / (U @ p)[:, None])
    columns, worth = of_one_target(prices, ratio)
    assert prices.worth(columns) == pytest.approx(worth)
    if every.max() > 0:
        assert worth.max() == pytest.approx(every.max(), rel=1e-10)
    else:
        assert worth.max() <= 0


def test_the_mean_of_a_long_scale_is_certified() -> None:
    """For 23 points, all patterns of one target are priced; the value is at most that of Duchi et al."""
    epsilon, a = 1.0, 23
    claim = Claim("ldp", level_for(Fraction(1)))
    scores = tuple(Fraction(x) for x in range(a))
    found = design(
        DesignRequest(
            Prior.from_rows([[1] * a]), (claim,), targets=(scores,), accept_unidentifiable=True,
            limits=Limits(gap=1e-5),
        )
    )  # fmt: skip
    assert found.certified
    ratio, half = np.exp(epsilon), (a - 1) / 2
    duchi = half**2 * ((ratio + 1) / (ratio - 1)) ** 2 - (a * a - 1) / 12
    assert found.value <= duchi * (1 + 1e-6)
