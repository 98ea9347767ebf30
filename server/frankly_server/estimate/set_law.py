# SPDX-License-Identifier: Apache-2.0
"""The law of reports that are sets of answers (unary, subset): who is in the set, alone and together."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import perm

import numpy as np
from frankly_protocol.mechanisms import SubsetMechanism, UnaryMechanism
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
SetMechanism = UnaryMechanism | SubsetMechanism


def chances(mechanism: SetMechanism) -> tuple[Fraction, Fraction]:
    """Return (q1, q0): the chances that the true answer, and another one, is in the set."""
    if isinstance(mechanism, UnaryMechanism):
        return Fraction(mechanism.keep, mechanism.denominator), Fraction(mechanism.flip, mechanism.denominator)
    inside = Fraction(mechanism.inside, mechanism.denominator)
    # Without the truth all `size` places go to the others, with it one fewer: on average size − inside of them.
    return inside, (mechanism.size - inside) / (mechanism.answers - 1)


def held_together(mechanism: SetMechanism, m: int) -> tuple[float, float]:
    """Return the chances that m given answers are all in the set: the truth not among them, and among them."""
    if isinstance(mechanism, UnaryMechanism):
        q1, q0 = map(float, chances(mechanism))
        return q0**m, q1 * q0 ** (m - 1)
    inside, others, size = mechanism.inside / mechanism.denominator, mechanism.answers - 1, mechanism.size

    def placed(places: int, wanted: int) -> float:
        """Return the chance that a uniform set of so many of the others holds all the wanted ones."""
        return perm(places, wanted) / perm(others, wanted) if wanted <= others else 0.0

    return inside * placed(size - 1, m) + (1 - inside) * placed(size, m), inside * placed(size - 1, m - 1)


def contrast_moments(mechanism: SetMechanism) -> tuple[float, float]:
    """Return (s, t) with E[D_u D_v | x] = s Σ_z u_z v_z + t u_x v_x, where D_u = Σ_z u_z 1[z in set]/(q1 − q0).

    u, v : weights that sum to 0. Two other answers are in the set together with chance A, an answer and the truth with
    chance B. Since Σ_{z ≠ z'} u_z v_z' = −Σ u_z v_z, only q0 − A and q1 − q0 − 2(B − A) are left of these chances.
    """
    q1, q0 = map(float, chances(mechanism))
    without, with_truth = held_together(mechanism, 2)
    k = q1 - q0
    return (q0 - without) / k**2, (k - 2 * (with_truth - without)) / k**2


def set_columns(mechanism: SetMechanism, masks: Sequence[int]) -> FloatArray:
    """Return Q(mask|·) for each mask up to a factor of its own, shape (answers, masks).

    Two values each: all answers in the set are alike, and all others. unary: in against out as keep (1 − flip) against
    (1 − keep) flip; subset: as inside (answers − size) against (1 − inside) size.
    """
    held = np.array([[mask >> x & 1 for mask in masks] for x in range(mechanism.answers)], dtype=bool)
    D = mechanism.denominator
    if isinstance(mechanism, UnaryMechanism):
        within, without = mechanism.keep * (D - mechanism.flip), (D - mechanism.keep) * mechanism.flip
    else:
        within = mechanism.inside * (mechanism.answers - mechanism.size)
        without = (D - mechanism.inside) * mechanism.size
    largest = max(within, without)
    found = np.where(held, within / largest, without / largest)
    # A bit whose chance is 0 or 1 for all but the truth: the sets that do not show the truth are alike for all.
    found[:, ~found.any(axis=0)] = 1.0
    return np.asarray(found, dtype=np.float64)


@lru_cache(maxsize=64)
def set_law(mechanism: SetMechanism) -> FloatArray:
    """Return Q, shape (answers, reports), symbols in their own order; the caller sees to it that they are few."""
    rows = [[float(mechanism.probability(y, x)) for y in mechanism.symbols()] for x in range(mechanism.answers)]
    return np.array(rows, dtype=np.float64)
