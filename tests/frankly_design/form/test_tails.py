# SPDX-License-Identifier: Apache-2.0
"""Tail bounds of sums over questions: above every event and every sum, and close to the largest."""

from itertools import combinations, product
from random import Random

import numpy as np
import pytest
from frankly_design.form import tails
from frankly_design.form.tails import Corners, TailBound
from frankly_design.numeric.arrays import FloatArray


def of_shares(shares: FloatArray) -> Corners:
    """Return the corners for all contrasts of an answer; fail if there are none."""
    corners = Corners.of(shares, np.eye(len(shares)))
    assert corners is not None
    return corners


def yes_or_no(shares: list[float], factors: list[float]) -> TailBound:
    """Return the bound for yes/no questions; equal questions form one class."""
    kinds = list(zip(shares, factors, strict=True))
    return TailBound.of(
        [
            (of_shares(np.array([share, 1 - share])), factor, kinds.count((share, factor)))
            for share, factor in dict.fromkeys(kinds)
        ]
    )


def outcomes(shares: list[float]) -> tuple[FloatArray, FloatArray]:
    """Return the probability of every joint answer, and the X_i of each, of shape (answers, questions)."""
    yes = np.array(list(product((True, False), repeat=len(shares))))
    p = np.array(shares)
    return (
        np.prod(np.where(yes, p, 1 - p), axis=1),
        np.where(yes, np.sqrt((1 - p) / p), -np.sqrt(p / (1 - p))),
    )


@pytest.mark.parametrize("seed", range(12))
def test_no_event_is_above_the_bound(seed: int) -> None:
    """For all 255 events over three questions, Σ c²·γ² with γ_i = E[1_S·X_i] is at most T(P(S))²."""
    rng = Random(seed)
    shares = [0.5] * 3 if seed % 3 == 0 else [rng.uniform(0.1, 0.9) for _ in range(3)]
    factors = [1.0] * 3 if seed % 2 == 0 else [rng.uniform(0.3, 2) for _ in range(3)]
    chances, X = outcomes(shares)
    bound = yes_or_no(shares, factors)
    events = np.array(list(product((0.0, 1.0), repeat=8)))[1:]
    share = events @ chances
    gamma = (events * chances) @ X
    reached = np.sqrt((gamma**2 * np.array(factors) ** 2).sum(axis=1))
    most = bound.between(share, share)
    assert np.all(reached <= most)
    assert np.max(reached / most) > 0.98
    # Over an interval, the bound is above the bounds of all shares in the interval.
    wide = bound.between(np.maximum(share - 0.05, 0), np.minimum(share + 0.05, 1))
    assert np.all(wide >= most)


@pytest.mark.parametrize(("k", "number"), [(3, 2), (4, 2), (5, 3)])
def test_no_event_over_several_choices_is_above_the_bound(k: int, number: int) -> None:
    """The best event for a random h is all answers from a threshold upwards; some h have few values."""
    rng = np.random.default_rng(k)
    bound = TailBound.of([(of_shares(np.full(k, 1 / k)), 1.0, number)])
    closest = 0.0
    for few in [True, False] * 60:
        f = rng.choice([-1.0, 0.0, 2.0], (number, k)) if few else rng.normal(size=(number, k))
        h = f[0]
        for other in f[1:]:
            h = np.add.outer(h, other)
        event = h >= rng.choice(h.reshape(-1))
        share = np.array([event.mean()])
        means = [event.mean(axis=tuple(set(range(number)) - {i})) for i in range(number)]
        gamma = np.array([m - event.mean() for m in means])
        reached = np.sqrt((gamma**2).mean(axis=1).sum())
        ratio = reached / bound.between(share, share)[0]
        assert ratio <= 1
        closest = max(closest, float(ratio))
    assert closest > 0.98


@pytest.mark.parametrize("k", range(3, 8))
def test_the_hull_of_the_corners_contains_all_functions_of_variance_1(k: int) -> None:
    """In every direction u of length 1, some corner in its best order reaches 1 or more."""
    rng = np.random.default_rng(k)
    corners = tails._even_corners(k)
    directions = rng.normal(size=(2000, k)) * rng.choice([0.1, 1.0], size=(2000, k))
    directions = np.sort(np.vstack([directions, corners]))[:, ::-1]
    directions -= directions.mean(axis=1, keepdims=True)
    directions /= np.sqrt((directions**2).mean(axis=1, keepdims=True))
    assert np.all(np.diff(corners, axis=1) <= 1e-9)
    assert np.min(np.max(directions @ corners.T / k, axis=1)) >= 1 - 1e-9
    # The k − 1 steps, where the largest excess usually lies, have moved by at most 0.2 %.
    for w in range(1, k):
        step = np.repeat([np.sqrt((k - w) / w), -np.sqrt(w / (k - w))], [w, k - w])
        nearest = corners[np.argmin(((corners - step) ** 2).sum(axis=1))]
        assert np.allclose(nearest / step, (nearest / step)[0])
        assert 1 <= (nearest / step)[0] < 1.0021


@pytest.mark.parametrize("seed", range(8))
def test_no_sum_has_a_larger_excess(seed: int) -> None:
    """The test covers sums of eight questions with random variances, at every threshold."""
    rng = np.random.default_rng(seed)
    shares = [0.5] * 8 if seed < 3 else rng.uniform(0.05, 0.95, 8).tolist()
    factors = np.ones(8) if seed < 3 else rng.uniform(0.5, 1.5, 8)
    chances, X = outcomes(shares)
    bound = yes_or_no(shares, factors.tolist())
    for sparse in (0.1, 1.0, 10.0):
        v = rng.dirichlet(np.full(8, sparse))
        h = X @ (np.sqrt(v) * factors * rng.choice([-1, 1], 8))
        excess = chances @ np.maximum(h[:, None] - bound.thresholds, 0)
        assert np.all(excess <= bound.excesses + 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_means_have_no_larger_excess(seed: int) -> None:
    """For two equal means of uneven answers and a question with even choices, only signs are free."""
    rng = np.random.default_rng(seed)
    p, scores = rng.dirichlet(np.ones(4)), rng.normal(size=4)
    mean = Corners.of(p, scores[None])
    assert mean is not None
    bound = TailBound.of([(mean, 0.7, 2), (of_shares(np.full(3, 1 / 3)), 1.2, 1)])
    x = (scores - p @ scores) / np.sqrt(p @ (scores - p @ scores) ** 2)
    chances = np.einsum("i,j,k->ijk", p, p, np.full(3, 1 / 3)).reshape(-1)
    for _ in range(30):
        v = np.sqrt(rng.dirichlet(np.full(3, 0.7)))
        other = rng.normal(size=3)
        other = (other - other.mean()) / other.std()
        signs = rng.choice([-1, 1], 2)
        parts = (0.7 * v[0] * signs[0] * x, 0.7 * v[1] * signs[1] * x, 1.2 * v[2] * other)
        h = np.add.outer(np.add.outer(parts[0], parts[1]), parts[2]).reshape(-1)
        excess = chances @ np.maximum(h[:, None] - bound.thresholds, 0)
        assert np.all(excess <= bound.excesses + 1e-12)


def test_uneven_or_many_choices_have_no_corners() -> None:
    assert Corners.of(np.array([0.2, 0.3, 0.5]), np.eye(3)) is None
    assert Corners.of(np.full(8, 1 / 8), np.eye(8)) is None


def test_one_question_has_its_own_excess() -> None:
    """One question has all the variance, so E(c·|X| − t)₊ is known."""
    for share in (0.5, 0.2):
        bound = yes_or_no([share], [2.0])
        high, low = 2 * np.sqrt((1 - share) / share), 2 * np.sqrt(share / (1 - share))
        t = bound.thresholds
        largest = np.maximum(
            share * np.maximum(high - t, 0) + (1 - share) * np.maximum(-low - t, 0),
            share * np.maximum(-high - t, 0) + (1 - share) * np.maximum(low - t, 0),
        )
        assert np.all(bound.excesses >= largest)
        assert np.max(bound.excesses - largest) < 0.02


def test_equal_questions_cannot_adapt_much() -> None:
    """In any order, the others can adapt to a small question as to a coin toss, which adds 5 % at
    μ = .072.

    The test finds the largest sum over three even questions of five choices by trying all functions
    with two values.
    """
    share = np.array([0.072])
    bound = TailBound.of([(of_shares(np.full(5, 0.2)), 1.0, 3)]).between(share, share)[0]
    reached = 0.0
    steps = [
        np.repeat([np.sqrt((5 - w) / w), -np.sqrt(w / (5 - w))], [w, 5 - w]) for w in range(5)[1:]
    ]
    weights = [(a, b, 20 - a - b) for a, b in combinations(range(21), 2) if a + b <= 20]
    for (a, b, c), (f, g, h) in product(weights, product(steps, repeat=3)):
        sums = np.add.outer(
            np.add.outer(np.sqrt(a / 20) * f, np.sqrt(b / 20) * g), np.sqrt(c / 20) * h
        ).reshape(-1)
        top = np.sort(sums)[::-1]
        reached = max(reached, float(top[:9].sum()) / 125)
    assert reached <= bound <= 1.02 * reached


def test_finer_grids_change_little(monkeypatch: pytest.MonkeyPatch) -> None:
    shares, share = [0.5] * 5, np.geomspace(0.005, 0.5, 40)
    coarse = yes_or_no(shares, [1.0] * 5).between(share, share)
    monkeypatch.setattr(tails, "_STEP", 0.005)
    monkeypatch.setattr(tails, "_Y", np.arange(-4.5, 4.0025, 0.005))
    monkeypatch.setattr(tails, "_PARTS", [slice(None)])
    monkeypatch.setattr(tails, "_ARCS", 256)
    monkeypatch.setattr(tails, "_ANGLES", np.linspace(0, np.pi / 2, 257))
    monkeypatch.setattr(tails, "_V", np.sin(tails._ANGLES) ** 2)
    fine = yes_or_no(shares, [1.0] * 5).between(share, share)
    assert np.all(fine <= coarse * (1 + 1e-4))
    assert np.max(coarse / fine) < 1.01
