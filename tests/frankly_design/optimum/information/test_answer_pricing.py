# SPDX-License-Identifier: Apache-2.0
"""Pricing under LDP of the answer: all patterns if there are few, otherwise the quasiconcave bound."""

import random

import numpy as np
import pytest
from frankly_design.optimum.information import answer_pricing
from frankly_design.optimum.information.answer_pricing import best_columns
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def best_pattern(p: Floats, ratio: float, prices: Floats) -> float:
    """Return the largest worth of any column with entries 1 and E, by enumerating the patterns."""
    a = len(p)
    inside = (np.arange(1, 2**a - 1)[:, None] >> np.arange(a) & 1).astype(bool)
    V = np.where(inside, ratio, 1.0)
    V = V / (V @ p)[:, None]
    return float(np.max((V * np.log(V)) @ p - V @ prices))


def relaxed(p: Floats, ratio: float, prices: Floats, monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(answer_pricing, "MOST_ANSWERS", 1)
    columns, bound = best_columns(p, ratio, prices)
    assert columns.shape == (0, len(p))
    return bound


def random_case(seed: int) -> tuple[Floats, float, Floats]:
    rng = random.Random(seed)
    a = rng.choice([3, 6, 10, 14])
    p = np.array([rng.choice([1, 5, 50]) * rng.random() for _ in range(a)])
    p /= p.sum()
    if seed % 3 == 0:  # an answer without mass
        p[0] = 0.0
        p /= p.sum()
    return (
        p,
        rng.choice([1.1, 3.0, 40.0]),
        np.array([rng.gauss(0, rng.choice([0.01, 0.3])) * (q + 0.02) for q in p]),
    )


@pytest.mark.parametrize("seed", range(12))
def test_few_answers_are_priced_by_all_patterns(seed: int) -> None:
    p, ratio, prices = random_case(seed)
    columns, bound = best_columns(p, ratio, prices)
    best = best_pattern(p, ratio, prices)
    assert best <= bound + 1e-13
    assert bound == pytest.approx(best, abs=1e-9)
    worth = (columns * np.log(columns)) @ p - columns @ prices
    assert np.max(worth) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(24))
def test_the_relaxed_bound_holds_for_every_pattern(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    p, ratio, prices = random_case(seed)
    assert relaxed(p, ratio, prices, monkeypatch) >= best_pattern(p, ratio, prices)


@pytest.mark.parametrize("seed", range(9))
def test_the_relaxed_bound_is_the_best_of_fractional_patterns(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # F/N is computed on a fine grid of P; the least cost of P is interpolated between the cheapest
    # answers.
    p, ratio, prices = random_case(seed)
    positive = p > 0
    order = np.argsort(prices[positive] / p[positive])
    knees = np.concatenate([[0.0], np.cumsum(p[positive][order])])
    costs = np.minimum(prices[~positive], 0).sum() + np.concatenate(
        [[0.0], np.cumsum(prices[positive][order])]
    )
    P = np.unique(np.concatenate([knees, np.linspace(0, 1, 200_001)]))
    N = 1 + (ratio - 1) * P
    F = (
        ratio * np.log(ratio) * P
        - N * np.log(N)
        - prices.sum()
        - (ratio - 1) * np.interp(P, knees, costs)
    )
    assert relaxed(p, ratio, prices, monkeypatch) == pytest.approx(float(np.max(F / N)), abs=1e-7)


def test_the_relaxed_bound_is_exact_if_whole_answers_are_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Half of the mass is much cheaper than the other half, so that no answer is taken partially.
    p, prices = np.full(8, 1 / 8), np.array([-1.0] * 4 + [1.0] * 4)
    best = best_pattern(p, 3.0, prices)
    assert relaxed(p, 3.0, prices, monkeypatch) == pytest.approx(best, abs=1e-9)


def test_many_answers_have_a_bound() -> None:
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(200))
    prices = rng.normal(0, 0.3, 200) * p
    columns, bound = best_columns(p, 3.0, prices)
    assert len(columns) == 0
    for _ in range(300):
        v = np.where(rng.random(200) < rng.random(), 3.0, 1.0)
        v = v / (v @ p)
        assert float((v * np.log(v)) @ p - v @ prices) <= bound
