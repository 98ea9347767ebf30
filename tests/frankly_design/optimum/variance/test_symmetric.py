# SPDX-License-Identifier: Apache-2.0
"""Equally likely answers, for which the optimum is a subset selection of any size."""

import math

import numpy as np
import pytest
from frankly_design.optimum.variance.column_base import Listed
from frankly_design.optimum.variance.criteria import least_variance
from frankly_design.optimum.variance.symmetric import balanced_subsets

from tests.frankly_design.optimum.variance.cases import (
    AnswerLdp,
    Floats,
    level,
    patterns,
    variances,
)


def best_subset_selection(a: int, E: float) -> float:
    """Return the total variance of the best subset selection at equal shares and n = 1, from
    inclusion rates.

    Report y favours k answers; x is inside with probability f = kE/(kE + a − k) if x is true,
    otherwise with h = (k − f)/(a − 1). An answer's estimate is (1[x inside] − h)/(f − h);
    P(inside) = k/a.
    """
    variances_by_size = []
    for k in range(1, a):
        f = k * E / (k * E + a - k)
        h = (k - f) / (a - 1)
        variances_by_size.append(a * (k / a) * (1 - k / a) / (f - h) ** 2)
    return min(variances_by_size)


@pytest.mark.parametrize("answers", [3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("epsilon", ["0.25", "0.5", "1", "2", "3"])
def test_the_optimum_is_the_best_subset_selection(answers: int, epsilon: str) -> None:
    E, p = level(epsilon), np.full(answers, 1 / answers)
    expected = best_subset_selection(answers, E)
    for base in (
        AnswerLdp(E, p),
        Listed(patterns(E, p), p),
    ):  # by counting, and by the general route
        optimum = least_variance(base, np.eye(answers))
        assert optimum.certificate.exact
        assert optimum.value == pytest.approx(expected, rel=1e-6)
        assert optimum.bound == pytest.approx(expected, rel=1e-6)
        assert optimum.bound <= expected * (1 + 1e-12)


@pytest.mark.parametrize("answers", [21, 37, 64])
@pytest.mark.parametrize("epsilon", ["0.25", "1", "2.5"])
def test_many_answers(answers: int, epsilon: str) -> None:
    E, p = level(epsilon), np.full(answers, 1 / answers)
    optimum = least_variance(AnswerLdp(E, p), np.eye(answers))
    expected = best_subset_selection(answers, E)
    assert optimum.certificate.exact
    assert optimum.certificate.route == "counts"
    assert optimum.bound == pytest.approx(expected, rel=1e-9)
    reached = variances(optimum.columns, optimum.theta, np.eye(answers), p)
    assert reached.sum() == pytest.approx(expected, rel=1e-6)
    assert optimum.columns.max(axis=1) / optimum.columns.min(axis=1) == pytest.approx(
        np.full(len(optimum.theta), E)
    )


@pytest.mark.parametrize("W", [3 * np.eye(5) - 1, np.eye(5) + 0.2, np.array([[1.0, -1, 0, 0, 0]])])
def test_other_targets(W: Floats) -> None:
    # The first two sets of targets treat all answers alike; the third does not and takes the
    # general route.
    E, p = level("1"), np.full(5, 0.2)
    optimum = least_variance(AnswerLdp(E, p), W)
    general = least_variance(Listed(patterns(E, p), p), W)
    assert optimum.value == pytest.approx(general.value, rel=1e-6)
    assert (optimum.certificate.route == "counts") == (len(W) == 5)


@pytest.mark.parametrize(("answers", "size"), [(6, 3), (21, 5), (40, 11), (64, 17)])
def test_every_pair_is_covered_equally_often(answers: int, size: int) -> None:
    inside, weights = balanced_subsets(answers, size)
    assert (inside.sum(axis=1) == size).all()
    assert weights.min() > 0
    assert math.isclose(weights.sum(), 1, abs_tol=1e-12)
    together = (inside.T * weights) @ inside
    expected = np.full((answers, answers), size * (size - 1) / (answers * (answers - 1)))
    np.fill_diagonal(expected, size / answers)
    np.testing.assert_allclose(together, expected, atol=1e-10)
