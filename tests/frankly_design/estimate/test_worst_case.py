# SPDX-License-Identifier: Apache-2.0
"""Worst case over all shares, compared with a fine grid of the simplex."""

import random

import numpy as np
import pytest
from frankly_design.estimate.worst_case import linear_part, worst_case_variance

from tests.frankly_design.maths import grid


@pytest.mark.parametrize("factor", [1.0, 0.4, 0.0])
def test_no_shares_of_a_grid_are_worse_and_the_worst_come_close(factor: float) -> None:
    rng = random.Random(71)
    P = grid(4, 24)
    for _ in range(60):
        w = np.array([rng.uniform(-2, 2) for _ in range(4)])
        c = np.array([rng.uniform(0, 4) for _ in range(4)]) + factor * w**2
        values = P @ c - factor * (P @ w) ** 2
        variance = worst_case_variance(c, w, factor)
        assert np.max(values) <= variance + 1e-12
        assert variance <= np.max(values) + 0.2


@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_on_two_answers_it_is_the_parabola(factor: float) -> None:
    rng = random.Random(72)
    t = np.linspace(0, 1, 100001)
    for _ in range(20):
        c, w = (
            np.array([rng.uniform(0, 3), rng.uniform(0, 3)]),
            np.array([rng.uniform(-1, 1), rng.uniform(-1, 1)]),
        )
        values = c[0] + t * (c[1] - c[0]) - factor * (w[0] + t * (w[1] - w[0])) ** 2
        assert worst_case_variance(c, w, factor) == pytest.approx(np.max(values), abs=1e-9)


def test_equal_targets_leave_a_linear_function() -> None:
    assert worst_case_variance(np.array([1.0, 5.0, 2.0]), np.ones(3)) == 4


def test_direct_questioning_has_the_variance_of_a_share() -> None:
    # Reports are the answers, so E[d²|x] = w_x² and the variance is p(1 − p), at most ¼; in a
    # census, the variance is 0.
    target = np.array([1.0, 0.0])
    assert worst_case_variance(linear_part(target**2, target, 1.0), target) == pytest.approx(0.25)
    assert worst_case_variance(linear_part(target**2, target, 0.0), target, 0.0) == 0
