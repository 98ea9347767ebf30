# SPDX-License-Identifier: Apache-2.0
"""Calibration to known totals: constrained least squares, and unbiasedness checked by enumeration."""

import math
from itertools import product
from math import factorial, prod
from typing import Any

import numpy as np
import pytest
from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models.totals import calibrate, margins
from scipy import stats

STATES = list(product("ab", "xyz"))


def problem() -> tuple[np.ndarray, np.ndarray]:
    """Return estimated cells and a covariance that is singular because the cells add up to 1."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(6, 6)) * 0.05
    A -= A.mean(axis=0)
    theta = rng.dirichlet(np.ones(6))
    return theta, A @ A.T


def test_it_is_the_constrained_least_squares_solution() -> None:
    """The solution satisfies the Karush-Kuhn-Tucker equations on the subspace where the covariance
    is regular."""
    theta, S = problem()
    C, t = margins(STATES, {0: {"a": 0.4, "b": 0.6}})
    made = calibrate(theta, S, C, t)
    basis = np.linalg.svd(S)[0][:, :5]  # directions in which the estimate varies
    inverse = np.linalg.inv(basis.T @ S @ basis)
    free = C[:1] @ basis
    system = np.block([[inverse, free.T], [free, np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.r_[np.zeros(5), 0.4 - C[0] @ theta])
    assert made.estimate == pytest.approx(theta + basis @ solution[:5], abs=1e-10)
    assert C @ made.estimate == pytest.approx(t, abs=1e-12)
    assert made.df == 1
    assert made.p == pytest.approx(stats.chi2.sf(made.chi2, 1))
    assert made.chi2 == pytest.approx((C[0] @ theta - 0.4) ** 2 / (C[0] @ S @ C[0]))
    values = np.linalg.eigvalsh(S - made.covariance)
    assert values.min() > -1e-12  # variances never increase
    assert np.abs(C @ made.covariance).max() < 1e-12


def test_with_a_fixed_covariance_it_is_unbiased_by_enumeration() -> None:
    """For k = 2 × 2 and 4 reports of a Warner pair, the mean over all counts is the truth and the
    variance is as stated."""
    law = np.kron(*[np.array([[0.8, 0.2], [0.2, 0.8]])] * 2)
    truth, n = np.array([0.4, 0.1, 0.2, 0.3]), 4
    p, V = truth @ law, np.linalg.inv(law.T)
    S = V @ (np.diag(p) - np.outer(p, p)) @ V.T / n
    C, t = margins(list(product("ab", "ab")), {1: {"a": 0.6, "b": 0.4}})
    mean, second = np.zeros(4), np.zeros((4, 4))
    for counts in product(range(n + 1), repeat=4):
        if sum(counts) == n:
            chance = factorial(n) * prod(
                q**c / factorial(c) for q, c in zip(p, counts, strict=True)
            )
            made = calibrate(V @ (np.array(counts) / n), S, C, t).estimate
            mean, second = mean + chance * made, second + chance * np.outer(made, made)
    assert mean == pytest.approx(truth, abs=1e-12)
    assert second - np.outer(mean, mean) == pytest.approx(
        calibrate(truth, S, C, t).covariance, abs=1e-12
    )


BAD: dict[str, tuple[Any, str]] = {
    "covariance": (lambda: calibrate([0.5, 0.5], [[1.0]], [[1, 0]], [0.5]), "covariance"),
    "constraints": (lambda: calibrate([0.5, 0.5], np.eye(2), [[1, 0, 0]], [0.5]), "constraints"),
    "number of totals": (
        lambda: calibrate([0.5, 0.5], np.eye(2), [[1, 0]], [0.5, 0.5]),
        "constraints",
    ),
    "contradiction": (
        lambda: calibrate([0.5, 0.5], np.eye(2), [[1, 0], [1, 0]], [0.5, 0.6]),
        "totals",
    ),
    "the sum of shares": (
        lambda: calibrate(*problem(), *margins(STATES, {0: {"a": 0.4, "b": 0.5}})),
        "totals",
    ),
    "not a number": (lambda: calibrate([0.5, 0.5], np.eye(2), [[1, 0]], [math.nan]), "totals"),
    "a text": (lambda: calibrate(["half", 0.5], np.eye(2), [[1, 0]], [0.5]), "estimate"),  # type: ignore[list-item]
    "unknown question": (lambda: margins(STATES, {7: {"a": 0.4}}), "known"),
    "unknown choice": (lambda: margins(STATES, {0: {"maybe": 0.4}}), "known"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name: str) -> None:
    call, field = BAD[name]
    with pytest.raises(InvalidRequest) as caught:
        call()
    assert caught.value.field == field
