# SPDX-License-Identifier: Apache-2.0
"""Mutual information in floats, for mechanisms and sizes for which exact numbers would take minutes."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def information(Q: FloatArray, p: FloatArray) -> float:
    """Return I(X; Y) in nats. Q : Q(y|x), shape (answers, reports), row = truth. p : P(x), may contain zeros."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(Q > 0, Q * np.log(Q / (p @ Q)), 0.0)
    return float(p[p > 0] @ terms[p > 0].sum(axis=1))


def entropy(p: FloatArray) -> float:
    """Return the entropy of a distribution in nats."""
    positive = p[p > 0]
    return -float(positive @ np.log(positive))


def unary_information(keep: float, flip: float, p: FloatArray) -> float:
    """Return I(X; Y) in nats of a unary encoding: the true bit is 1 with chance `keep`, any other with `flip`.

    The function sums over all 2^a reports: the chance of a report with k ones depends only on k and
    on the prior probability that
    the truth is among its ones. p : P(x), up to 20 answers.
    """
    a = len(p)
    inside, ones = np.zeros(1), np.zeros(1, dtype=np.int64)
    for share in p:
        inside, ones = np.concatenate([inside, inside + share]), np.concatenate([ones, ones + 1])
    flip_powers = _powers(flip, a)
    chance = np.zeros(len(inside))
    for k in range(a + 1):
        truth_share = inside[ones == k]
        with_truth = keep * flip_powers[k - 1] if k else 0.0
        without = (1 - keep) * flip_powers[k] if k < a else 0.0
        chance[ones == k] = truth_share * with_truth + (1 - truth_share) * without
    return (
        entropy(chance)
        - entropy(np.array([keep, 1 - keep]))
        - (a - 1) * entropy(np.array([flip, 1 - flip]))
    )


def _powers(flip: float, answers: int) -> list[float]:
    """Return flip^k (1−flip)^(a−1−k), the chance of k given ones among the others, k = 0 … a−1."""
    return [flip**k * (1 - flip) ** (answers - 1 - k) for k in range(answers)]
