# SPDX-License-Identifier: Apache-2.0
"""Objectives of a design: mutual information, Hamming error, variance of the unbiased shares.

A table W[x][y] of integers with equal row sums T is the channel Q(y|x) = W[x][y] / T. Ranks and, up
to the last step, Hamming errors are exact. Variances at full rank with up to 128 answers are
computed to one part in 2^63. All other figures are computed in floats.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from frankly_design.numeric import rational
from frankly_design.tables.limits import Poll, no_poll

OBJECTIVES = ("variance", "information", "hamming")
EXACT_ANSWERS = 128
"""Largest number of answers for which variances are computed without floats; 256 would take 1 s."""
# An answer without mass counts as 2^-200 of a person in exact arithmetic, and as a share of 1e-12
# in floats. Otherwise a report that only this answer sends would have probability 0.
_RARE_SHIFT = 200
_RARE_SHARE = 1e-12

Weights = Sequence[Sequence[int]]
Targets = Sequence[Sequence[Fraction]]


def entropy(counts: Sequence[int]) -> float:
    """Return H in nats of the distribution counts / sum(counts)."""
    total = sum(counts)
    return -math.fsum(n / total * math.log(n / total) for n in counts if n)


def information(weights: Weights, counts: Sequence[int], poll: Poll = no_poll) -> float:
    """Return I(X; Y) in nats for X ~ counts / sum(counts): Σ p_x Q(y|x) ln(Q(y|x) / P(y)).

    poll : called for every report; an exception that it raises ends the computation.
    """
    total, row_sum = sum(counts), max(map(sum, weights))
    terms = []
    for column in zip(*weights, strict=True):
        poll()
        expected = sum(n * w for n, w in zip(counts, column, strict=True))
        for n, w in zip(counts, column, strict=True):
            if n and w:
                terms.append(n / total * (w / row_sum) * log_ratio(w * total, expected))
    return max(0.0, math.fsum(terms))


def hamming(weights: Weights, counts: Sequence[int]) -> float:
    """Return the Hamming error: the probability that the best guess from a report is wrong."""
    columns = zip(*weights, strict=True)
    correct = sum(max(n * w for n, w in zip(counts, column, strict=True)) for column in columns)
    return float(1 - correct / (sum(counts) * max(map(sum, weights))))


def log_ratio(n: int, d: int) -> float:
    """Return ln(n/d) of positive integers of any size, to a few units in the last place."""
    # Near 1, log(n/d) would lose all digits of n/d − 1, and a level close to 0 would become 0.
    if d < 2 * n < 4 * d:
        return math.log1p((n - d) / d)
    # The numbers may exceed the range of floats; after shifting, their quotient is in [1/2, 2].
    shift = n.bit_length() - d.bit_length()
    near_one = n / (d << shift) if shift >= 0 else (n << -shift) / d
    return math.log(near_one) + shift * math.log(2)


def normalised(value: float, counts: Sequence[int]) -> float:
    """Return I / H(X), the share of the answer's entropy that reports preserve; 0 if H(X) = 0."""
    total = entropy(counts)
    return value / total if total > 0 else 0.0


def variance(weights: Weights, counts: Sequence[int]) -> float:
    """Return Σ_x [(Q D⁻¹ Qᵀ)⁻¹ − p pᵀ]_xx, D = diag(pᵀQ): total variance of the shares at n = 1.

    The truth is assumed to be the design prior p (spec 1.8, where Q is transposed). Entries p = 0
    stand for the limit p → 0. The result is infinite unless every share is identifiable.
    """
    return math.fsum(target_variances(weights, counts, None))


def target_variances(
    weights: Weights, counts: Sequence[int], targets: Targets | None
) -> list[float]:
    """Return the variance at n = 1 of each target's unbiased estimate, at the prior's shares.

    targets : rows W, exact, one number per answer; None for all shares.

    The variance of a target that is not estimable is infinite. For all shares (None) at deficient
    rank, all variances are infinite, even if single shares are estimable.
    """
    # The rank is exact: with a float rank, a tolerance would decide whether a variance is finite.
    size = rational.rank(weights)
    a, total, row_sum = len(weights), sum(counts), max(map(sum, weights))
    if size < a:
        return _deficient(weights, counts, targets, size)
    # At n = 1 the variance is the second moment of a target's scores minus the squared mean W·p.
    sampling = (
        [float(_share(row, counts) ** 2) for row in targets]
        if targets
        else [n * n / (total * total) for n in counts]
    )
    # The rank above is exact for any number of answers.
    if a > EXACT_ANSWERS:
        covariance = np.linalg.inv(_moments(weights, counts))
        W = np.eye(a) if targets is None else np.array([[float(v) for v in row] for row in targets])
        variances = np.sum(W @ covariance * W, axis=1)
        return [float(v) - s for v, s in zip(variances, sampling, strict=True)]
    positive = counts if all(counts) else [n << _RARE_SHIFT or 1 for n in counts]
    gram, _, scale = rational.normal_equations(weights, positive)
    # gram = Σ_y W_xy W_x'y · scale/u_y with u = total·row_sum·Qp, hence A = gram · total / (row_sum · scale).
    unit = Fraction(row_sum * scale, sum(positive))
    integers = None if targets is None else [rational.whole(row) for row in targets]
    exact = list(rational.inverse_forms(gram, integers))
    if targets is not None and integers is not None:
        factors = [_factor(row, target) for row, target in zip(integers, targets, strict=True)]
        exact = [v * factor**2 for v, factor in zip(exact, factors, strict=True)]
    return [_float(v * unit) - s for v, s in zip(exact, sampling, strict=True)]


def _float(value: Fraction) -> float:
    """Return the value as a float; inf if it is too large, as when all rows are nearly equal."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _share(row: Sequence[Fraction], counts: Sequence[int]) -> Fraction:
    return sum((v * n for v, n in zip(row, counts, strict=True)), Fraction(0)) / sum(counts)


def _factor(integers: Sequence[int], row: Sequence[Fraction]) -> Fraction:
    """Return the f for which row = f · integers; the two are proportional."""
    x = next(x for x, v in enumerate(row) if v)
    return row[x] / integers[x]


def _deficient(
    weights: Weights, counts: Sequence[int], targets: Targets | None, size: int
) -> list[float]:
    """Return the variances at deficient rank; inf for targets outside the span of Q's columns."""
    if targets is None:
        return [math.inf] * len(weights)
    columns = [list(column) for column in zip(*weights, strict=True)]
    inverse, variances = np.linalg.pinv(_moments(weights, counts), rcond=1e-12, hermitian=True), []
    for row in targets:
        w = np.array([float(v) for v in row])
        inside = rational.rank([*columns, rational.whole(row)]) == size
        variances.append(
            float(w @ inverse @ w) - float(_share(row, counts)) ** 2 if inside else math.inf
        )
    return variances


def _moments(weights: Weights, counts: Sequence[int]) -> NDArray[np.float64]:
    """Return A = Q D⁻¹ Qᵀ (row = truth) in floats; shares below 1e-12 are raised to 1e-12."""
    row_sum = max(map(sum, weights))
    Q = np.array([[w / row_sum for w in row] for row in weights])
    p = np.maximum(np.array(counts, dtype=np.float64) / sum(counts), _RARE_SHARE)
    return np.asarray((Q / (p @ Q)) @ Q.T, dtype=np.float64)
