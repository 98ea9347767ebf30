# SPDX-License-Identifier: Apache-2.0
"""Test of fit for reports that are sets (unary, subset), from counts of pairs of answers.

The probability that a set contains the answers x and z is P(x, z) = A + (B − A)(p_x + p_z), where A
is this probability if neither answer is the truth, and B if one of them is. With the unbiased
shares instead of p, the residual of a pair is a mean over reports of a function whose expectation
is 0 under every truth. So the quadratic form of all residuals in the inverse of their covariance is
approximately χ². The covariance is computed at shares on the simplex and needs the probability that
a set contains four specific answers, which has a closed form. The degrees of freedom are the rank
of the covariance: a(a − 1)/2 for unary, a(a − 3)/2 for subset, whose sets have a fixed size. A
second test uses the number of answers in a unary set, whose distribution does not depend on the
truth.
"""

from math import erfc, sqrt

import numpy as np

from frankly_design.kinds.set_law import SetLaw
from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special

MOST_ANSWERS = 24
"""Only pairs of at most this many of the most frequent answers are tested: 276 pairs."""
_LEAST_EXPECTED = 5.0
"""Smallest expected number of sets with, and without, a pair for approximately normal residuals."""


def set_fit(law: SetLaw, n: int, pairs: FloatArray, p: FloatArray) -> float | None:
    """Return the p-value of the test of fit, None if no test is possible.

    pairs : counts of pairs in sets, shape (answers, answers); the diagonal counts single answers.
    p : shares on the simplex near the truth, used for the covariances.

    If both tests apply, the smaller p-value is doubled (Bonferroni).
    """
    tests = _of_sizes(law, n, pairs), _of_pairs(law, n, pairs, p)
    p_values = [value for value in tests if value is not None]
    return min(1.0, len(p_values) * min(p_values)) if p_values else None


def _of_sizes(law: SetLaw, n: int, pairs: FloatArray) -> float | None:
    if law.set_size is not None:
        return None
    q1, q0 = map(float, law.inclusion)
    false_answers = law.mechanism.answers - 1
    mean = q1 + false_answers * q0
    variance = q1 * (1 - q1) + false_answers * q0 * (1 - q0)
    total_size = float(np.trace(pairs))
    # Without noise (q1 and q0 are 0 or 1) all sets have the same size, so other totals are
    # impossible.
    if variance == 0:
        return 1.0 if total_size == round(n * mean) else 0.0
    return erfc(abs(total_size - n * mean) / sqrt(2 * n * variance))


def _of_pairs(law: SetLaw, n: int, pairs: FloatArray, p: FloatArray) -> float | None:
    without, with_truth = law.held_together(2)
    if n * min(without, 1 - without) < _LEAST_EXPECTED:
        return None
    chosen = np.sort(np.argsort(-np.diagonal(pairs), kind="stable")[:MOST_ANSWERS])
    rates, q = pairs[np.ix_(chosen, chosen)] / n, p[chosen]
    q1, q0 = map(float, law.inclusion)
    slope = (with_truth - without) / (q1 - q0)
    left, right = np.triu_indices(len(chosen), 1)
    members = np.zeros((len(left), len(chosen)))
    members[np.arange(len(left)), left] = members[np.arange(len(left)), right] = 1
    # Residuals are `mixing` times the vector of single rates and pair rates, minus a constant.
    mixing = np.hstack([-slope * members, np.eye(len(left))])
    residual = rates[left, right] - without - slope * (members @ (np.diagonal(rates) - q0))
    spread = _covariance(law, np.vstack([np.eye(len(chosen)), members]), q)
    # rounding: a variance within the rounding error of the rates is treated as 0.
    return _quadratic(
        residual, mixing @ spread @ mixing.T / n, float(np.diagonal(spread).max()) / n
    )


def _covariance(law: SetLaw, groups: FloatArray, p: FloatArray) -> FloatArray:
    """Return the covariance of the events that groups of one or two answers are in the set.

    groups : 0 or 1, shape (groups, answers).
    p : shares of the answers, shape (answers,).

    Two groups are in the set iff their union is in the set. The probability that the truth is in a
    union is the sum of the shares of its answers.
    """
    without, with_truth = np.array([(1.0, 1.0), *(law.held_together(m) for m in range(1, 5))]).T
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
    return float(special.chdtrc(int(used.sum()), float(np.sum(along**2 / values[used]))))
