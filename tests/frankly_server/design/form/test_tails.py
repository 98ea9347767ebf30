# SPDX-License-Identifier: Apache-2.0
"""Tails of sums over yes/no questions: above every event and every sum, and close to the largest."""

from itertools import product
from random import Random

import numpy as np
import pytest
from frankly_server.design.form import tails
from frankly_server.design.form.tails import TailBound
from frankly_server.design.tables.linear import FloatArray


def outcomes(shares: list[float]) -> tuple[FloatArray, FloatArray]:
    """Return the chance of every joint answer, and the X_i of each, shape (answers, questions)."""
    yes = np.array(list(product((True, False), repeat=len(shares))))
    p = np.array(shares)
    return (
        np.prod(np.where(yes, p, 1 - p), axis=1),
        np.where(yes, np.sqrt((1 - p) / p), -np.sqrt(p / (1 - p))),
    )


@pytest.mark.parametrize("seed", range(12))
def test_no_event_is_above_the_bound(seed: int) -> None:
    """All 255 events over three questions: Σ c²·γ² with γ_i = E[1_S·X_i] is at most T(P(S))²."""
    rng = Random(seed)
    shares = [0.5] * 3 if seed % 3 == 0 else [rng.uniform(0.1, 0.9) for _ in range(3)]
    factors = [1.0] * 3 if seed % 2 == 0 else [rng.uniform(0.3, 2) for _ in range(3)]
    chances, X = outcomes(shares)
    bound = TailBound.of(shares, factors)
    events = np.array(list(product((0.0, 1.0), repeat=8)))[1:]
    share = events @ chances
    gamma = (events * chances) @ X
    reached = np.sqrt((gamma**2 * np.array(factors) ** 2).sum(axis=1))
    most = bound.between(share, share)
    assert np.all(reached <= most)
    assert np.max(reached / most) > 0.98
    # over an interval, the bound is above those of all shares in it
    wide = bound.between(np.maximum(share - 0.05, 0), np.minimum(share + 0.05, 1))
    assert np.all(wide >= most)


@pytest.mark.parametrize("seed", range(8))
def test_no_sum_has_a_larger_excess(seed: int) -> None:
    """Of sums of eight questions with random variances, at every threshold."""
    rng = np.random.default_rng(seed)
    shares = [0.5] * 8 if seed < 3 else rng.uniform(0.05, 0.95, 8).tolist()
    factors = rng.uniform(0.5, 1.5, 8)
    chances, X = outcomes(shares)
    bound = TailBound.of(shares, factors.tolist())
    for sparse in (0.1, 1.0, 10.0):
        v = rng.dirichlet(np.full(8, sparse))
        h = X @ (np.sqrt(v) * factors * rng.choice([-1, 1], 8))
        excess = chances @ np.maximum(h[:, None] - bound.thresholds, 0)
        assert np.all(excess <= bound.excesses + 1e-12)


def test_one_question_has_its_own_excess() -> None:
    """With one question all variance is its own: E(c·|X| − t)₊ is known."""
    for share in (0.5, 0.2):
        bound = TailBound.of([share], [2.0])
        high, low = 2 * np.sqrt((1 - share) / share), 2 * np.sqrt(share / (1 - share))
        t = bound.thresholds
        largest = np.maximum(
            share * np.maximum(high - t, 0) + (1 - share) * np.maximum(-low - t, 0),
            share * np.maximum(-high - t, 0) + (1 - share) * np.maximum(low - t, 0),
        )
        assert np.all(bound.excesses >= largest)
        assert np.max(bound.excesses - largest) < 0.02


def test_finer_grids_change_little(monkeypatch: pytest.MonkeyPatch) -> None:
    shares, share = [0.5] * 5, np.geomspace(0.005, 0.5, 40)
    coarse = TailBound.of(shares, [1.0] * 5).between(share, share)
    monkeypatch.setattr(tails, "_LOSS", 1e-4)
    monkeypatch.setattr(tails, "_STEP", 0.005)
    monkeypatch.setattr(tails, "_Y", np.arange(-4.5, 4.0025, 0.005))
    fine = TailBound.of(shares, [1.0] * 5).between(share, share)
    assert np.all(fine <= coarse * (1 + 1e-4))
    assert np.max(coarse / fine) < 1.01
