# SPDX-License-Identifier: Apache-2.0
"""Maximum likelihood on single reports with scipy and numerical derivatives, independent of the
models' code."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

Law = Callable[[np.ndarray], np.ndarray]
"""Function from parameters to the probability of every single report, shape (n,)."""


def maximum(law: Law, start: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the maximum likelihood estimate and the log-likelihood."""

    def loss(beta: np.ndarray) -> float:
        return -float(np.log(np.maximum(law(beta), 1e-300)).sum())

    beta = minimize(loss, start, method="BFGS").x
    for _ in range(3):  # BFGS stops at an error of 1e-5; Newton's method reduces it
        beta = beta + np.linalg.solve(hessian(law, beta), scores(law, beta).sum(axis=0))
    return beta, -loss(beta)


def scores(law: Law, beta: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """Return the derivative of each report's log-probability, shape (n, P), by central differences."""
    steps = h * np.eye(len(beta))
    return np.stack(
        [(np.log(law(beta + s)) - np.log(law(beta - s))) / (2 * h) for s in steps], axis=1
    )


def hessian(law: Law, beta: np.ndarray, h: float = 1e-4) -> np.ndarray:
    """Return the negative second derivative of the log-likelihood."""
    steps = h * np.eye(len(beta))
    rows = [
        (scores(law, beta + s).sum(axis=0) - scores(law, beta - s).sum(axis=0)) / (2 * h)
        for s in steps
    ]
    return -(np.array(rows) + np.array(rows).T) / 2


def softmax(eta: np.ndarray) -> np.ndarray:
    """Return softmax over the last axis."""
    e = np.exp(eta - eta.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def expand(rows: list[dict[str, Any]], counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the stratum and the symbol of every report."""
    H, Y = np.indices(counts.shape)
    repeat = counts.ravel().astype(int)
    return np.repeat(H.ravel(), repeat), np.repeat(Y.ravel(), repeat)
