# SPDX-License-Identifier: Apache-2.0
"""Factors of a joint table: what `joint` needs of the mechanism of a single block."""

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

from frankly_protocol.mechanisms import DenseMechanism

from frankly_design.kinds.kind import Kind
from frankly_design.kinds.set_law import SetMechanism
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


class FactorKind(Kind):
    """A kind whose symbols are decoded by themselves, so that it can be a block of a joint table."""

    @abstractmethod
    def factor(self, prior: tuple[int, ...] | None) -> Factor:
        """Return the factor. prior : counts of the answers; None for the uniform prior."""
