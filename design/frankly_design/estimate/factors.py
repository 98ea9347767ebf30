# SPDX-License-Identifier: Apache-2.0
"""Factors of a joint table: decoders for the symbols of a single block, see `joint`."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np
from frankly_protocol.mechanisms import DenseMechanism, UnaryMechanism

from frankly_design.estimate.decoder import decoder, shares
from frankly_design.estimate.set_law import (
    SetMechanism,
    chances,
    contrast_moments,
    set_columns,
    set_law,
)
from frankly_design.numeric.arrays import FloatArray, IntArray

Ends = tuple[Fraction, Fraction]


class Factor(Protocol):
    """Mechanism whose decoded values are linear in a statistic of `width` integers per symbol.

    identifiable : True if every share of the block is identifiable.
    """

    width: int
    identifiable: bool

    @property
    def mechanism(self) -> DenseMechanism | SetMechanism:
        """Return the block's mechanism."""

    @property
    def decoder(self) -> list[list[Fraction]]:
        """Return the exact decoder of the statistic, shape (answers, width)."""

    @property
    def ends(self) -> list[Ends]:
        """Return the least and the largest decoded value of each answer."""

    @property
    def condition(self) -> float:
        """Return the condition number of Q, at least 1."""

    def knows(self, symbol: int) -> bool:
        """Return True if the mechanism can send this symbol."""

    def features(self, symbols: Sequence[int]) -> IntArray:
        """Return the statistic, shape (width, symbols)."""

    def values(self, symbols: Sequence[int]) -> FloatArray:
        """Return the decoded values, shape (answers, symbols)."""

    def columns(self, symbols: Sequence[int]) -> FloatArray:
        """Return Q(symbol|·), each column up to a factor, shape (answers, symbols)."""

    def moments(self) -> FloatArray:
        """Return E[d dᵀ|x] of the decoded values d, shape (answers, answers, answers), x first."""

    def law(self) -> FloatArray:
        """Return Q, shape (answers, reports)."""


class TableFactor:
    """Factor of a table; the statistic of a symbol is its indicator vector."""

    def __init__(self, mechanism: DenseMechanism, prior: tuple[int, ...] | None) -> None:
        self.mechanism, self.width = mechanism, mechanism.reports
        solved = decoder(mechanism, shares(mechanism.answers), prior)
        self.decoder = [list(row) for row in solved.rows if row is not None]
        self.identifiable = len(self.decoder) == mechanism.answers
        self._Q = np.array(mechanism.weights, dtype=np.float64) / mechanism.denominator
        self._V = np.array([[float(v) for v in row] for row in self.decoder])

    @property
    def ends(self) -> list[Ends]:
        """See Factor."""
        return [(min(row), max(row)) for row in self.decoder]

    @property
    def condition(self) -> float:
        """See Factor."""
        return float(np.linalg.cond(self._Q))

    def knows(self, symbol: int) -> bool:
        """See Factor."""
        return 0 <= symbol < self.width

    def features(self, symbols: Sequence[int]) -> IntArray:
        """See Factor."""
        return np.eye(self.width, dtype=np.int64)[:, list(symbols)]

    def values(self, symbols: Sequence[int]) -> FloatArray:
        """See Factor."""
        return np.asarray(self._V[:, list(symbols)], dtype=np.float64)

    def columns(self, symbols: Sequence[int]) -> FloatArray:
        """See Factor."""
        return np.asarray(self._Q[:, list(symbols)], dtype=np.float64)

    def moments(self) -> FloatArray:
        """See Factor."""
        # E[d_c d_d | x]: pairs of decoded values, weighted by the probability of the report.
        return np.asarray(
            np.einsum("xy,cy,dy->xcd", self._Q, self._V, self._V, optimize=True), dtype=np.float64
        )

    def law(self) -> FloatArray:
        """See Factor."""
        return self._Q


class SetFactor:
    """Factor of a mechanism that reports sets of answers.

    The statistic is the constant 1 and the indicators of the answers in the set. The decoder is
    that of the single block (`sets`), so the margins of the joint table are the block's estimates.
    """

    def __init__(self, mechanism: SetMechanism) -> None:
        self.mechanism, self.width = mechanism, mechanism.answers + 1
        self._q1, self._q0 = chances(mechanism)
        self.identifiable, self._unary = self._q1 != self._q0, isinstance(mechanism, UnaryMechanism)

    @cached_property
    def decoder(self) -> list[list[Fraction]]:
        """See Factor."""
        k, size = self._q1 - self._q0, self.mechanism.answers
        even = Fraction(1, size)
        return [[even, *((int(x == z) - even) / k for z in range(size))] for x in range(size)]

    @property
    def ends(self) -> list[Ends]:
        """See Factor."""
        k = self._q1 - self._q0
        size = self.mechanism.answers
        # The extreme sets of a unary mechanism: only this answer, or all answers except this one.
        reach = [Fraction(1, size) + s * (1 - Fraction(1, size)) / k for s in (1, -1)]
        low, high = sorted(reach if self._unary else (-self._q0 / k, (1 - self._q0) / k))
        return [(low, high)] * size

    @property
    def condition(self) -> float:
        """See Factor."""
        # Q scales every contrast by q1 − q0, and the shares are known to sum to 1.
        return max(1.0, 1 / abs(float(self._q1 - self._q0)))

    def knows(self, symbol: int) -> bool:
        """See Factor."""
        if not 0 <= symbol < 1 << self.mechanism.answers:
            return False
        return (
            isinstance(self.mechanism, UnaryMechanism) or symbol.bit_count() == self.mechanism.size
        )

    def features(self, symbols: Sequence[int]) -> IntArray:
        """See Factor."""
        held = [[mask >> x & 1 for mask in symbols] for x in range(self.mechanism.answers)]
        return np.array([[1] * len(symbols), *held], dtype=np.int64)

    def values(self, symbols: Sequence[int]) -> FloatArray:
        """See Factor."""
        decoder = np.array([[float(v) for v in row] for row in self.decoder])
        return np.asarray(decoder @ self.features(symbols), dtype=np.float64)

    def columns(self, symbols: Sequence[int]) -> FloatArray:
        """See Factor."""
        return set_columns(self.mechanism, symbols)

    def moments(self) -> FloatArray:
        """See Factor."""
        # s and t as in `contrast_moments`. A share is 1/size plus a contrast (see `sets`); the
        # matrix u of the contrasts is symmetric.
        size, (s, t) = self.mechanism.answers, contrast_moments(self.mechanism)
        u = np.eye(size) - 1 / size
        squares = s * (u @ u) + t * u[:, :, None] * u[:, None, :]
        return np.asarray(
            squares + (u[:, :, None] + u[:, None, :] + 1 / size) / size, dtype=np.float64
        )

    def law(self) -> FloatArray:
        """See Factor."""
        return set_law(self.mechanism)
