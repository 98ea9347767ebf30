# SPDX-License-Identifier: Apache-2.0
"""Bounds from moments of pairs of answers: below every mechanism, and near the certified optimum."""

from itertools import product

import numpy as np
import pytest
from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.variance import pair_bound
from frankly_design.optimum.variance.column_base import Listed
from frankly_design.optimum.variance.criteria import least_variance
from frankly_design.optimum.variance.many_answers import complete
from frankly_design.optimum.variance.objective import Objective


def every_column(p: FloatArray, ratio: float) -> FloatArray:
    """Return all columns with entries 1 and E, scaled to p·v = 1."""
    U = np.array(list(product((1.0, ratio), repeat=len(p)))[1:-1])
    return np.asarray(U / (U @ p)[:, None])


def drawn(seed: int) -> tuple[FloatArray, FloatArray, float]:
    """Return random targets, shares and a random ratio."""
    rng = np.random.default_rng(seed)
    a = int(rng.integers(3, 7))
    p = rng.dirichlet(np.ones(a)) + 0.01
    W = (np.eye(a), np.tril(np.ones((a, a)))[:-1], rng.normal(size=(a, a)), rng.normal(size=(2, a)))
    return W[seed % 4], p / p.sum(), float(np.exp(rng.choice((0.1, 0.5, 1, 2, 4))))


# Each kind of target occurs at least once; --full doubles the number.
@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.full_only) for seed in range(6, 12))]
)
def test_no_column_is_above_the_certificate(seed: int) -> None:
    W, p, ratio = drawn(seed)
    objective = Objective(complete(W), p)
    prices = pair_bound.certified(objective, ratio)
    assert prices is not None
    V = every_column(p, ratio)
    assert prices.worth(V).max() <= 1e-12 * float(np.abs(V @ prices.nu).max())
    least = least_variance(Listed(V, p), W)
    bound = prices.bound() - objective.constant()
    assert bound <= least.value * (1 + 1e-6)
    if len(W) > 2:
        # For few targets the relaxation is weak.
        assert bound >= least.value * 0.95


@pytest.mark.parametrize("steps", [0, 1, 5, 30])
def test_a_search_that_is_cut_short_still_proves_its_bound(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_bound, "_STEPS", steps)
    W, p, ratio = drawn(5)
    prices = pair_bound.certified(Objective(complete(W), p), ratio)
    assert prices is not None
    V = every_column(p, ratio)
    assert prices.worth(V).max() <= 1e-12 * float(np.abs(V @ prices.nu).max())


def test_the_gradient_equals_that_of_differences() -> None:
    W, p, ratio = drawn(6)
    problem = pair_bound._PairBound(W, p, ratio)
    problem.barrier = 1e-2
    rng = np.random.default_rng(0)
    y = problem.start()
    y += 0.01 * rng.random(len(y))
    here = problem(y)
    assert here is not None
    for i in rng.permutation(len(y))[:12]:
        step = np.where(np.arange(len(y)) == i, 1e-6, 0.0)
        above, below = problem(y + step), problem(y - step)
        assert above is not None
        assert below is not None
        assert here[1][i] == pytest.approx((above[0] - below[0]) / 2e-6, rel=1e-4, abs=1e-7)
