# SPDX-License-Identifier: Apache-2.0
"""Whether reports that are sets (unary, subset) can come from their mechanism, from counts of answers and of pairs.

How often a pair is in the set together follows from the shares: P(x, z) = A + (B − A)(p_x + p_z), with A if neither is
the truth and B if one of them is. With the unbiased shares put in for p, the residual of a pair is a mean over reports
of a function whose expectation is 0 under every truth, so a quadratic form of all residuals in the inverse of their
covariance (at the nearest shares; it needs how often four answers are together, known in closed form) is χ² with as
many degrees of freedom as that has rank: a(a − 1)/2 for unary, a(a − 3)/2 for subset, the sets of which have one size.
The number of answers in a unary set, whose law does not depend on the truth at all, is a second test beside it.
"""

from math import erfc, sqrt

import numpy as np
from frankly_protocol.mechanisms import SubsetMechanism
from numpy.typing import NDArray
from scipy import stats

from frankly_server.estimate.set_law import SetMechanism, chances, held_together

FloatArray = NDArray[np.float64]

MOST_ANSWERS = 24
"""Pairs are looked at among so many answers, the most frequent ones: the covariance has the square of their number."""
_LEAST_EXPECTED = 5.0
"""Below so many expected sets that hold a given pair, its residual is far from normal."""


def set_fit(mechanism: SetMechanism, n: int, pairs: FloatArray, p: FloatArray) -> float | None:
    """Return the p-value, None where nothing can be tested.

    pairs : counts, shape (answers, answers), how often each answer was in a set on the diagonal. p : shares on the
    simplex near the truth, at which covariances are taken. Of two tests the smaller p-value is doubled (Bonferroni).
    """
    found = [v for v in (_of_sizes(mechanism, n, pairs), _of_pairs(mechanism, n, pairs, p)) if v is not None]
    return min(1.0, len(found) * min(found)) if found else None


def _of_sizes(mechanism: SetMechanism, n: int, pairs: FloatArray) -> float | None:
    if isinstance(mechanism, SubsetMechanism):
        return None
    q1, q0 = map(float, chances(mechanism))
    others = mechanism.answers - 1
    mean, variance = q1 + others * q0, q1 * (1 - q1) + others * q0 * (1 - q0)
    seen = float(np.trace(pairs))
    if variance == 0:
        return 1.0 if seen == round(n * mean) else 0.0
    return erfc(abs(seen - n * mean) / sqrt(2 * n * variance))


def _of_pairs(mechanism: SetMechanism, n: int, pairs: FloatArray, p: FloatArray) -> float | None:
    without, with_truth = held_together(mechanism, 2)
    if n * min(without, 1 - without) < _LEAST_EXPECTED:
        return None
    chosen = np.sort(np.argsort(-np.diagonal(pairs), kind="stable")[:MOST_ANSWERS])
    rates, q = pairs[np.ix_(chosen, chosen)] / n, p[chosen]
    q1, q0 = map(float, chances(mechanism))
    slope = (with_truth - without) / (q1 - q0)
    left, right = np.triu_indices(len(chosen), 1)
    members = np.zeros((len(left), len(chosen)))
    members[np.arange(len(left)), left] = members[np.arange(len(left)), right] = 1
    # Residuals are `mixing` times (single rates, pair rates), less a constant.
    mixing = np.hstack([-slope * members, np.eye(len(left))])
    residual = rates[left, right] - without - slope * (members @ (np.diagonal(rates) - q0))
    spread = _covariance(mechanism, np.vstack([np.eye(len(chosen)), members]), q)
    # What is below rounding of these variances is a residual that cannot differ from 0.
    return _quadratic(residual, mixing @ spread @ mixing.T / n, float(np.diagonal(spread).max()) / n)


def _covariance(mechanism: SetMechanism, groups: FloatArray, p: FloatArray) -> FloatArray:
    """Return the covariance of "all of the group are in the set" for every two groups of one or two answers.

    groups : 0 or 1, shape (groups, answers). Of two groups together the union counts: m answers, of which one is the
    truth with the sum of their shares.
    """
    without, with_truth = np.array([(1.0, 1.0), *(held_together(mechanism, m) for m in range(1, 5))]).T
    shared = groups @ groups.T
    sizes = np.diagonal(shared)
    union = np.rint(sizes[:, None] + sizes[None, :] - shared).astype(int)
    held = groups @ p
    truth_in = held[:, None] + held[None, :] - (groups * p) @ groups.T
    single = np.rint(sizes).astype(int)
    mean = without[single] + (with_truth - without)[single] * held
    both = without[union] + (with_truth - without)[union] * truth_in
    return np.asarray(both - np.outer(mean, mean), dtype=np.float64)


def _quadratic(residual: FloatArray, spread: FloatArray, scale: float) -> float | None:
    values, vectors = np.linalg.eigh((spread + spread.T) / 2)
    used = values > 1e-9 * scale
    if not used.any():
        return None
    along = vectors[:, used].T @ residual
    return float(stats.chi2.sf(float(np.sum(along**2 / values[used])), int(used.sum())))
