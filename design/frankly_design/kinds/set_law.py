# SPDX-License-Identifier: Apache-2.0
"""Law of reports that are sets of answers: the probabilities that a set contains some answers."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from frankly_protocol.mechanisms import SubsetMechanism, UnaryMechanism

from frankly_design.numeric.arrays import FloatArray
from frankly_design.tables.objectives import Targets

SetMechanism = UnaryMechanism | SubsetMechanism


class SetLaw(ABC):
    """Law of the sets that a mechanism reports.

    set_size : number of answers in every set; None if it varies.
    """

    mechanism: Any

    @property
    @abstractmethod
    def set_size(self) -> int | None:
        """Number of answers in every set; None if it varies."""

    @property
    @abstractmethod
    def inclusion(self) -> tuple[Fraction, Fraction]:
        """(q1, q0): the probabilities that the set contains the true, and another, answer."""

    @property
    @abstractmethod
    def pair_inclusion(self) -> tuple[float, float, float, float]:
        """(p, q, A, B) of `target_variances`."""

    @property
    @abstractmethod
    def odds(self) -> tuple[int, int]:
        """Q(set|x) for an x in the set and for one outside it, up to one factor per set."""

    @abstractmethod
    def held_together(self, m: int) -> tuple[float, float]:
        """Return P(m specific answers are in the set): (without the truth, with the truth)."""

    @abstractmethod
    def log_chances(self, size: int) -> tuple[float, float]:
        """Return ln P of one set of this size: (with the truth in it, with the truth outside it)."""

    @property
    def is_informative(self) -> bool:
        """False if a set contains the truth as often as any other answer."""
        q1, q0 = self.inclusion
        return q1 != q0

    def contrast_moments(self) -> tuple[float, float]:
        """Return (s, t) with E[D_u D_v | x] = s Σ_z u_z v_z + t u_x v_x.

        D_u = Σ_z u_z 1[z in set]/(q1 − q0) is the decoded value for weights u; u and v sum to 0. Let
        A be the probability that two specific false answers are in the set, and B the probability
        for a false answer and the truth. Since Σ_{z ≠ z'} u_z v_z' = −Σ u_z v_z, only q0 − A and
        q1 − q0 − 2(B − A) remain.
        """
        q1, q0 = map(float, self.inclusion)
        without, with_truth = self.held_together(2)
        k = q1 - q0
        return (q0 - without) / k**2, (k - 2 * (with_truth - without)) / k**2

    def columns(self, masks: Sequence[int]) -> FloatArray:
        """Return Q(mask|·) for each mask up to a factor per mask, shape (answers, masks).

        A column has two values: one for the answers in the set and one for the others.
        """
        held = np.array(
            [[mask >> x & 1 for mask in masks] for x in range(self.mechanism.answers)], dtype=bool
        )
        within, without = self.odds
        largest = max(within, without)
        columns = np.where(held, within / largest, without / largest)
        # With probabilities of 0 or 1 the column of the empty or the full set may be all zeros. Such
        # a set carries no information about the truth, so its column is constant.
        columns[:, ~columns.any(axis=0)] = 1.0
        return np.asarray(columns, dtype=np.float64)

    def matrix(self) -> FloatArray:
        """Return Q, shape (answers, reports), columns in the order of `symbols()`.

        The caller limits the number of reports.
        """
        return _matrix(self.mechanism)

    def target_variances(self, truth: FloatArray, targets: Targets | None) -> list[float]:
        """Return the variance of each target's estimate at n = 1, inf if it cannot be estimated.

        targets : rows of weights over the answers; None for the shares.

        The estimate counts how often each answer is in the reported sets. For a target w with mean
        w̄ and u = w − w̄, a set is decoded to w̄ + Σ_x u_x 1[x in set]/(p−q), whose variance is
        Σ_x u_x² (λ_x − A − 2(B−A) p_x)/(p−q)² − (Σ_x u_x p_x)². Here p_x is the share of x
        (`truth`), and λ_x the probability that the set contains x; given the truth, that probability
        is p if x is the truth and q if it is not. A and B are the probabilities that the set
        contains two given answers if none, or one, of them is the truth (docs/maths/estimator.md,
        claim 12).
        """
        p, q, pair_none, pair_one = self.pair_inclusion
        a: int = self.mechanism.answers
        if p == q:
            return [math.inf] * (a if targets is None else len(targets))
        spread = q + (p - q) * truth - pair_none - 2 * (pair_one - pair_none) * truth
        # The shares sum to 1, so the mean of w is decoded without error.
        if targets is None:  # u is the identity minus 1/a, which is not built explicitly
            squares = (1 - 2 / a) * spread + spread.sum() / a**2
            means = truth - truth.sum() / a
        else:
            w = np.array(targets, dtype=np.float64)
            u = w - w.mean(axis=1, keepdims=True)
            squares, means = u**2 @ spread, u @ truth
        return [float(v) for v in squares / (p - q) ** 2 - means**2]


def log(value: float) -> float:
    """Return ln(value), −∞ for 0."""
    return math.log(value) if value else -math.inf


def log_power(chance: float, number: int) -> float:
    """Return number · ln(chance), 0 for number 0 or less."""
    return number * log(chance) if number > 0 else 0.0


@lru_cache(maxsize=64)
def _matrix(mechanism: SetMechanism) -> FloatArray:
    rows = [
        [float(mechanism.probability(y, x)) for y in mechanism.symbols()]
        for x in range(mechanism.answers)
    ]
    return np.array(rows, dtype=np.float64)
