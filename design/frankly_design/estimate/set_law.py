# SPDX-License-Identifier: Apache-2.0
"""Law of reports that are sets (unary, subset): probabilities that a set contains some answers."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import perm

import numpy as np
from frankly_protocol.mechanisms import SubsetMechanism, UnaryMechanism

from frankly_design.numeric.arrays import FloatArray

SetMechanism = UnaryMechanism | SubsetMechanism


def chances(mechanism: SetMechanism) -> tuple[Fraction, Fraction]:
    """Return (q1, q0): the probabilities that the set contains the true, and another, answer."""
    if isinstance(mechanism, UnaryMechanism):
        return Fraction(mechanism.keep, mechanism.denominator), Fraction(
            mechanism.flip, mechanism.denominator
        )
    inside = Fraction(mechanism.inside, mechanism.denominator)
    # The other answers have all `size` places if the set lacks the truth, otherwise one fewer: on
    # average size − inside.
    return inside, (mechanism.size - inside) / (mechanism.answers - 1)


def held_together(mechanism: SetMechanism, m: int) -> tuple[float, float]:
    """Return P(m specific answers are in the set): (without the truth, with the truth)."""
    if isinstance(mechanism, UnaryMechanism):
        q1, q0 = map(float, chances(mechanism))
        return q0**m, q1 * q0 ** (m - 1)
    inside, size = mechanism.inside / mechanism.denominator, mechanism.size
    false_answers = mechanism.answers - 1

    def placed(places: int, m: int) -> float:
        """Return P(m specific false answers are in a uniform set of `places` false answers)."""
        return perm(places, m) / perm(false_answers, m) if m <= false_answers else 0.0

    return inside * placed(size - 1, m) + (1 - inside) * placed(size, m), inside * placed(
        size - 1, m - 1
    )


def contrast_moments(mechanism: SetMechanism) -> tuple[float, float]:
    """Return (s, t) with E[D_u D_v | x] = s Σ_z u_z v_z + t u_x v_x.

    D_u = Σ_z u_z 1[z in set]/(q1 − q0) is the decoded value for weights u; u and v sum to 0. Let A
    be the probability that two specific false answers are in the set, and B the probability for a
    false answer and the truth. Since Σ_{z ≠ z'} u_z v_z' = −Σ u_z v_z, only q0 − A and
    q1 − q0 − 2(B − A) remain.
    """
    q1, q0 = map(float, chances(mechanism))
    without, with_truth = held_together(mechanism, 2)
    k = q1 - q0
    return (q0 - without) / k**2, (k - 2 * (with_truth - without)) / k**2


def set_columns(mechanism: SetMechanism, masks: Sequence[int]) -> FloatArray:
    """Return Q(mask|·) for each mask up to a factor per mask, shape (answers, masks).

    A column has two values: one for the answers in the set and one for the others. Their ratio is
    keep (1 − flip) : (1 − keep) flip for unary, and inside (answers − size) : (1 − inside) size for
    subset.
    """
    held = np.array(
        [[mask >> x & 1 for mask in masks] for x in range(mechanism.answers)], dtype=bool
    )
    D = mechanism.denominator
    if isinstance(mechanism, UnaryMechanism):
        within = mechanism.keep * (D - mechanism.flip)
        without = (D - mechanism.keep) * mechanism.flip
    else:
        within = mechanism.inside * (mechanism.answers - mechanism.size)
        without = (D - mechanism.inside) * mechanism.size
    largest = max(within, without)
    columns = np.where(held, within / largest, without / largest)
    # With probabilities of 0 or 1 the column of the empty or the full set may be all zeros. Such a
    # set carries no information about the truth, so its column is constant.
    columns[:, ~columns.any(axis=0)] = 1.0
    return np.asarray(columns, dtype=np.float64)


@lru_cache(maxsize=64)
def set_law(mechanism: SetMechanism) -> FloatArray:
    """Return Q, shape (answers, reports), columns in the order of `symbols()`.

    The caller limits the number of reports.
    """
    rows = [
        [float(mechanism.probability(y, x)) for y in mechanism.symbols()]
        for x in range(mechanism.answers)
    ]
    return np.array(rows, dtype=np.float64)
