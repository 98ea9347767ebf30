# SPDX-License-Identifier: Apache-2.0
"""Optimum for equally likely answers under LDP of the answer: a mixture of subset selections.

Averaging a mechanism over all permutations of the answers does not raise a convex objective with
the same symmetry. So there is an optimum with A = λ(I − J/a) + J, where all entries of J are 1. For
Z = A⁻¹Wᵀ and ν ∝ p, the worth of a column depends only on the number k of its entries E: the a − 1
worths for k = 1 … a − 1 prove the bound.
"""

from itertools import combinations
from math import comb

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import optimize
from frankly_design.optimum.variance.column_base import ColumnBase
from frankly_design.optimum.variance.generation import VarianceOptimum
from frankly_design.optimum.variance.master import inverse_times
from frankly_design.optimum.variance.objective import Objective, Prices
from frankly_design.optimum.variance.proof import VarianceCertificate
from frankly_design.tables.spread import fractions

# Each subset is a report. Beyond this number, cyclic shifts of a few subsets give fewer reports.
_MAX_SUBSETS = 1000
_EQUAL = 1e-12
_ROUNDING = 1e-13


def applies(base: ColumnBase, objective: Objective) -> bool:
    """Return True for LDP of the answer if all permutations of the answers are symmetries."""
    K, p = objective.W.T @ objective.W, base.prior
    off = K[~np.eye(len(p), dtype=bool)]
    constant_parts = (np.ptp(values) <= 1e-12 * np.abs(K).max() for values in (np.diag(K), off))
    alpha = float(K[0, 0] - off[0])
    return (
        base.ratio is not None
        and base.ratio > 1
        and bool(np.ptp(p) <= 1e-12)
        and all(constant_parts)
        and alpha > 1e-9 * float(np.abs(K).max())
    )


def best_size(base: ColumnBase, objective: Objective) -> tuple[int, float]:
    """Return (size of the best subset selection, bound) without listing subsets.

    The objective must not include information, so that a single size is best, and `applies` must be
    True. The bound is that of `optimum`.
    """
    V = _by_count(base.answers, base.ratio or 1.0)
    curvature = (np.sum(V**2, axis=1) - base.answers) / (base.answers - 1)
    size = int(np.argmax(curvature)) + 1
    certificate, _ = _proved(base, objective, V, float(curvature[size - 1]))
    return size, certificate.bound - objective.constant()


def most_informative_size(answers: int, ratio: float) -> tuple[int, float]:
    """Return (size of the most informative subset selection, bound of the information in nats).

    The gain of a column depends only on its number of entries E, so at prices λ ∝ 1 the largest
    gain bounds the information of every mechanism.
    """
    V = _by_count(answers, ratio)
    gains = np.mean(V * np.log(V), axis=1)
    size = int(np.argmax(gains)) + 1
    return size, float(gains[size - 1]) * (1 + _ROUNDING)


def optimum(base: ColumnBase, objective: Objective) -> VarianceOptimum:
    """Return the optimum with an exact certificate; |Wp|² is subtracted from value and bound.

    `applies` must be True.
    """
    a, ratio = base.answers, base.ratio or 1.0
    V = _by_count(a, ratio)
    curvature = (np.sum(V**2, axis=1) - a) / (a - 1)  # λ of each subset selection
    gains = objective.gains(V)
    K = objective.W.T @ objective.W
    shares = _mixture(curvature, gains, float(K[0, 0] - K[0, 1]) * (a - 1))
    certificate, Z = _proved(base, objective, V, float(shares @ curvature))
    columns, theta = [], []
    for k in np.flatnonzero(shares > 0):
        inside, weights = balanced_subsets(a, int(k) + 1)
        U = np.where(inside, ratio, 1.0)
        columns.append(U / (U @ base.prior)[:, None])
        theta.append(shares[k] * weights)
    offset = objective.constant()
    value = float(np.sum(objective.W.T * Z)) - float(shares @ gains) - offset
    return VarianceOptimum(
        np.vstack(columns), np.concatenate(theta), value, certificate.bound - offset, certificate
    )


def _proved(
    base: ColumnBase, objective: Objective, V: FloatArray, level: float
) -> tuple[VarianceCertificate, FloatArray]:
    """Return the certificate of A = level·(I − J/a) + J, and Z = A⁻¹Wᵀ."""
    a = base.answers
    Z = inverse_times(level * np.eye(a) + (1 - level / a), objective.W)
    prices = Prices(objective, Z, np.zeros(a))
    largest_worth = float(np.max(prices.worth(V)))
    raised = prices.raised(largest_worth + _ROUNDING * abs(largest_worth))
    return VarianceCertificate(raised, True, "counts"), Z


def _by_count(a: int, ratio: float) -> FloatArray:
    """Return one column for each number of entries E, 1 … a − 1, shape (a − 1, a)."""
    U = np.where(np.arange(a) < np.arange(1, a)[:, None], ratio, 1.0)
    return np.asarray(U / U.mean(axis=1, keepdims=True), dtype=np.float64)


def _mixture(curvature: FloatArray, gains: FloatArray, weight: float) -> FloatArray:
    """Minimise weight/Σ s_kλ_k − Σ s_k g_k over shares s; an optimum mixes at most two counts."""
    n = len(curvature)
    i, j = np.triu_indices(n)
    rise, gain = curvature[j] - curvature[i], gains[j] - gains[i]
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.sqrt(-weight * rise / gain)
        share = np.clip(np.nan_to_num((level - curvature[i]) / rise, nan=0.0), 0.0, 1.0)
    # The ends of each pair are compared too: if the stationary point is outside, an end is best.
    i, j = np.tile(i, 3), np.tile(j, 3)
    share = np.concatenate([share, np.zeros(len(share)), np.ones(len(share))])
    values = (
        weight / ((1 - share) * curvature[i] + share * curvature[j])
        - (1 - share) * gains[i]
        - share * gains[j]
    )
    best = int(np.argmin(values))
    shares = np.zeros(n)
    shares[i[best]] += 1 - share[best]
    shares[j[best]] += share[best]
    return shares


def balanced_subsets(a: int, k: int) -> tuple[FloatArray, FloatArray]:
    """Return k-subsets of a answers, with weights of sum 1, that cover all pairs equally often.

    The result contains all subsets if there are few, otherwise the cyclic shifts of evenly spread
    ones. How often the shifts of a subset cover a pair depends only on the distance between its
    answers. Non-negative least squares finds weights that cover all distances equally often.

    Returns
    -------
    (shape (n, a) of booleans, shape (n,))
    """
    if comb(a, k) <= _MAX_SUBSETS:
        inside = np.zeros((comb(a, k), a), dtype=bool)
        for row, subset in zip(inside, combinations(range(a), k), strict=True):
            row[list(subset)] = True
        return inside, np.full(len(inside), 1 / len(inside))
    count = 4 * a
    while True:
        seeds = np.argsort(fractions(0, count, a), axis=1) < k
        pair_counts = np.array(
            [[np.sum(s & np.roll(s, d)) for d in range(1, a // 2 + 1)] for s in seeds]
        ).T
        system = np.vstack([pair_counts / k, np.ones(count)])
        target = np.append(np.full(a // 2, (k - 1) / (a - 1)), 1.0)
        weights, residual = optimize.nnls(system, target)
        if residual < _EQUAL * count:
            break
        # Too few subsets cannot cover all distances equally often, so more are added.
        count *= 2
    used = np.flatnonzero(weights > 0)
    inside = np.vstack([np.roll(seeds[used], d, axis=1) for d in range(a)])
    return inside, np.tile(weights[used] / weights[used].sum(), a) / a
