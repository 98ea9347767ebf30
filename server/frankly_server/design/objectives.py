# SPDX-License-Identifier: Apache-2.0
"""What a design is good for: mutual information and the variance of the unbiased shares, of any table of weights.

A table W[x][y] of whole numbers with equal row sums T is the channel Q(y|x) = W[x][y] / T. Everything here is computed
from these whole numbers; floats appear only in the last step.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from frankly_server import rational

OBJECTIVES = ("variance", "information", "hamming")
EXACT_ANSWERS = 64
"""Up to this size the variance is inverted exactly; beyond, in floats (the exact inverse takes minutes at 256)."""
_LIMIT_SHIFT = 200
_LIMIT = 1e-12

Weights = Sequence[Sequence[int]]


def entropy(counts: Sequence[int]) -> float:
    """Return H in nats of the distribution counts / sum(counts)."""
    total = sum(counts)
    return -math.fsum(n / total * math.log(n / total) for n in counts if n)


def information(weights: Weights, counts: Sequence[int]) -> float:
    """Return I(X; Y) in nats for X ~ counts / sum(counts): Σ p_x Q(y|x) ln(Q(y|x) / P(y))."""
    total, row_sum = sum(counts), max(map(sum, weights))
    terms = []
    for column in zip(*weights, strict=True):
        expected = sum(n * w for n, w in zip(counts, column, strict=True))
        for n, w in zip(counts, column, strict=True):
            if n and w:
                terms.append(n / total * (w / row_sum) * log_ratio(w * total, expected))
    return max(0.0, math.fsum(terms))


def hamming(weights: Weights, counts: Sequence[int]) -> float:
    """Return the expected Hamming error: how often the best guess of the answer from the report is wrong."""
    right = sum(max(n * w for n, w in zip(counts, column, strict=True)) for column in zip(*weights, strict=True))
    return float(1 - right / (sum(counts) * max(map(sum, weights))))


def log_ratio(n: int, d: int) -> float:
    """Return ln(n/d) of positive whole numbers of any size, to a few units in the last place."""
    if d < 2 * n < 4 * d:
        return math.log1p((n - d) / d)
    shift = n.bit_length() - d.bit_length()
    near_one = n / (d << shift) if shift >= 0 else (n << -shift) / d
    return math.log(near_one) + shift * math.log(2)


def normalised(value: float, counts: Sequence[int]) -> float:
    """Return I / H(X), the share of the answer's information that survives; 0 if there is none."""
    whole = entropy(counts)
    return value / whole if whole > 0 else 0.0


def variance(weights: Weights, counts: Sequence[int]) -> float:
    """Return Σ_x [(QᵀD⁻¹Q)⁻¹ − p pᵀ]_xx with D = diag(Qp), the total variance of the unbiased shares at n = 1.

    The truth is taken to be the design prior p (DESIGN §7); where p is zero the limit is meant, computed at 2^-200.
    Infinite if the shares are not identifiable.
    """
    if rational.rank(weights) < len(weights):
        return math.inf
    total, row_sum = sum(counts), max(map(sum, weights))
    sampling = math.fsum((n / total) ** 2 for n in counts)
    if len(weights) > EXACT_ANSWERS:
        return _trace_of_inverse(np.array([[w / row_sum for w in row] for row in weights]), counts) - sampling
    positive = [n << _LIMIT_SHIFT or 1 for n in counts]
    gram, _, scale = rational.normal_equations(weights, positive)
    # gram = Σ_y W_xy W_x'y · scale/u_y with u = total·row_sum·Qp, hence A = gram · total / (row_sum · scale).
    trace = sum(rational.inverse_diagonal(gram)) * row_sum * scale / sum(positive)
    return float(trace) - sampling


def _trace_of_inverse(Q: NDArray[np.float64], counts: Sequence[int]) -> float:
    p = np.maximum(np.array(counts, dtype=np.float64) / sum(counts), _LIMIT)
    eigenvalues = np.linalg.eigvalsh((Q / (p @ Q)) @ Q.T)
    return float(np.sum(1 / eigenvalues))
