# SPDX-License-Identifier: Apache-2.0
"""Divisions of respondents over waves, compared with dense least squares and with other divisions."""

from math import exp

import numpy as np
import pytest
from frankly_design.estimate.wave_plan import (
    WaveDesign,
    WaveVariances,
    best_division,
    equal_split,
    possible_runs,
    single_waves,
)
from frankly_design.numeric.arrays import FloatArray


def of_yes_no(
    waves: int, epsilon: float, share: float = 0.3, changed: float = 0.2
) -> WaveVariances:
    """Return Warner's mechanism at ε/m, for a run of m waves."""
    noise = [[exp(epsilon / m) / (exp(epsilon / m) - 1) ** 2] for m in range(1, waves + 1)]
    spread = share * (1 - share)
    return WaveVariances(np.array(noise), np.array([spread]), 1 - changed / (2 * spread))


def by_least_squares(design: WaveDesign, target: int = 0) -> FloatArray:
    """Return the variances of changes from the regression of all groups' estimates on the waves."""
    variances = design.variances
    rows, blocks = [], []
    for first, last, share in design.runs:
        waves = np.arange(first, last + 1)
        rows.append(np.eye(variances.waves)[waves])
        apart = np.abs(waves[:, None] - waves[None, :])
        covariance = variances.sampling[target] * variances.persistence**apart
        covariance += np.eye(len(waves)) * variances.noise[last - first, target]
        blocks.append(covariance / share)
    X = np.vstack(rows)
    V = np.zeros((len(X), len(X)))
    place = 0
    for block in blocks:
        V[place : place + len(block), place : place + len(block)] = block
        place += len(block)
    covariance = np.linalg.inv(X.T @ np.linalg.inv(V) @ X)
    C = np.diff(np.eye(variances.waves), axis=0)
    return np.asarray(np.diag(C @ covariance @ C.T))


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0])
@pytest.mark.parametrize("divide", [equal_split, single_waves, best_division])
def test_variances_equal_those_of_least_squares(divide: object, epsilon: float) -> None:
    design = divide(of_yes_no(5, epsilon))  # type: ignore[operator]
    np.testing.assert_allclose(design.changes[:, 0], by_least_squares(design), rtol=1e-9)


def test_two_waves_by_hand() -> None:
    variances = of_yes_no(2, 1.0)
    noise, spread, kept = variances.noise[:, 0], 0.21, variances.persistence
    assert equal_split(variances).total == pytest.approx(2 * (noise[1] + spread * (1 - kept)))
    assert single_waves(variances).total == pytest.approx(4 * (noise[0] + spread))


@pytest.mark.parametrize("divide", [equal_split, single_waves])
def test_the_bound_of_a_design_counts_the_runs_that_it_does_not_have(divide: object) -> None:
    variances = of_yes_no(5, 3.0)
    best, other = best_division(variances), divide(variances)  # type: ignore[operator]
    assert best.total < 0.99 * other.total
    assert best.total >= other.total / other.excess * (1 - 1e-9)


@pytest.mark.parametrize(("waves", "epsilon"), [(2, 1.0), (3, 6.0), (6, 3.0), (6, 10.0), (9, 8.0)])
def test_no_division_is_better_than_the_bound(waves: int, epsilon: float) -> None:
    variances = of_yes_no(waves, epsilon)
    best = best_division(variances)
    assert 1 <= best.excess <= 1.01
    random = np.random.default_rng(waves)
    runs = possible_runs(waves)
    for concentration in (0.02, 0.1, 1.0):
        for _ in range(12):
            shares = np.zeros_like(best.shares)
            shares[runs] = random.dirichlet(np.full(runs.sum(), concentration))
            # A few people in each wave, so that every change can be estimated.
            shares = 0.999 * shares + 0.001 * single_waves(variances).shares
            other = WaveDesign(variances, shares)
            assert other.total >= best.total / best.excess
            # The bound of any design also holds for the best design.
            assert best.total >= other.total / other.excess * (1 - 1e-9)


def test_few_targets_share_one_division() -> None:
    one = of_yes_no(4, 2.0)
    two = WaveVariances(np.hstack([one.noise, 3 * one.noise]), np.array([0.21, 0.1]), 0.5)
    best = best_division(two)
    assert best.total == pytest.approx(sum(by_least_squares(best, t).sum() for t in range(2)))
    assert best.excess <= 1.01


def test_strong_noise_leaves_one_wave_for_each_person() -> None:
    """If noise grows as m², one answer from a person is worth more than two answers."""
    best = best_division(of_yes_no(5, 0.1))
    assert {first == last for first, last, _ in best.runs} == {True}


def test_little_noise_and_persistent_answers_leave_everybody_in_every_wave() -> None:
    best = best_division(of_yes_no(4, 60.0, changed=0.05))
    assert best.total == pytest.approx(equal_split(best.variances).total, rel=2e-3)
