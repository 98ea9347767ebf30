# SPDX-License-Identifier: Apache-2.0
"""What a design is good for: mutual information and the variance of the unbiased shares, of any table of weights.

A table W[x][y] of whole numbers with equal row sums T is the channel Q(y|x) = W[x][y] / T. Everything here is computed
from these whole numbers; floats appear only in the last step.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from frankly_server import rational

OBJECTIVES = ("variance", "information", "hamming")
EXACT_ANSWERS = 64
"""Up to this size the variance is inverted exactly; beyond, in floats (the exact inverse takes minutes at 256)."""
_LIMIT_SHIFT = 200
_LIMIT = 1e-12

Weights = Sequence[Sequence[int]]
Targets = Sequence[Sequence[Fraction]]


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
    return math.fsum(target_variances(weights, counts, None))


def target_variances(weights: Weights, counts: Sequence[int], targets: Targets | None) -> list[float]:
    """Return the variance of the unbiased estimate of every target W·p at n = 1, for the truth p of the prior.

    targets : rows W, exact, one number per answer; None for all shares. Infinite where a target is not estimable.
    """
    size = rational.rank(weights)
    a, total, row_sum = len(weights), sum(counts), max(map(sum, weights))
    if size < a:
        return _deficient(weights, counts, targets, size)
    sampling = [_share(row, counts) ** 2 for row in targets] if targets else [Fraction(n, total) ** 2 for n in counts]
    if a > EXACT_ANSWERS:
        covariance = np.linalg.inv(_moments(weights, counts))
        W = np.eye(a) if targets is None else np.array([[float(v) for v in row] for row in targets])
        found = np.sum(W @ covariance * W, axis=1)
        return [float(v) - float(s) for v, s in zip(found, sampling, strict=True)]
    positive = [n << _LIMIT_SHIFT or 1 for n in counts]
    gram, _, scale = rational.normal_equations(weights, positive)
    # gram = Σ_y W_xy W_x'y · scale/u_y with u = total·row_sum·Qp, hence A = gram · total / (row_sum · scale).
    unit = Fraction(row_sum * scale, sum(positive))
    if targets is None:
        exact = list(rational.inverse_diagonal(gram))
    else:
        common = [rational.whole(row) for row in targets]
        solved = rational.solve(gram, [list(column) for column in zip(*common, strict=True)])
        exact = [
            sum((w * solved[x][t] for x, w in enumerate(row)), Fraction(0)) * _factor(row, targets[t]) ** 2
            for t, row in enumerate(common)
        ]
    return [_float(v * unit) - float(s) for v, s in zip(exact, sampling, strict=True)]


def _float(value: Fraction) -> float:
    """Return the value as a float, infinite where it is too large for one: a mechanism that all but hides a share."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _share(row: Sequence[Fraction], counts: Sequence[int]) -> Fraction:
    return sum((v * n for v, n in zip(row, counts, strict=True)), Fraction(0)) / sum(counts)


def _factor(whole: Sequence[int], row: Sequence[Fraction]) -> Fraction:
    """Return what whole numbers must be multiplied by to be the row again."""
    x = next(x for x, v in enumerate(row) if v)
    return row[x] / whole[x]


def _deficient(weights: Weights, counts: Sequence[int], targets: Targets | None, size: int) -> list[float]:
    """The targets inside the span of the reports can be estimated from a mechanism of deficient rank, others cannot."""
    if targets is None:
        return [math.inf] * len(weights)
    columns = [list(column) for column in zip(*weights, strict=True)]
    inverse, found = np.linalg.pinv(_moments(weights, counts), rcond=1e-12, hermitian=True), []
    for row in targets:
        w = np.array([float(v) for v in row])
        inside = rational.rank([*columns, rational.whole(row)]) == size
        found.append(float(w @ inverse @ w) - float(_share(row, counts)) ** 2 if inside else math.inf)
    return found


def _moments(weights: Weights, counts: Sequence[int]) -> NDArray[np.float64]:
    """Return A = Q D⁻¹ Qᵀ (row = truth) in floats; an answer without mass counts as very rare."""
    row_sum = max(map(sum, weights))
    Q = np.array([[w / row_sum for w in row] for row in weights])
    p = np.maximum(np.array(counts, dtype=np.float64) / sum(counts), _LIMIT)
    return np.asarray((Q / (p @ Q)) @ Q.T, dtype=np.float64)
