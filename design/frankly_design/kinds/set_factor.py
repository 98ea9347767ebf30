# SPDX-License-Identifier: Apache-2.0
"""Sets of answers as a factor of a joint table."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from frankly_design.kinds.factor import Ends
from frankly_design.kinds.set_law import SetLaw
from frankly_design.numeric.arrays import FloatArray, IntArray


class SetFactor:
    """Factor of a mechanism that reports sets of answers.

    The statistic is the constant 1 and the indicators of the answers in the set. The decoder is
    that of the single block (`sets`), so the margins of the joint table are the block's estimates.
    """

    def __init__(self, law: SetLaw) -> None:
        self.mechanism, self._law = law.mechanism, law
        self.width = self.mechanism.answers + 1
        self._q1, self._q0 = law.inclusion
        self.identifiable = law.is_informative

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
        low, high = sorted(
            reach if self._law.set_size is None else (-self._q0 / k, (1 - self._q0) / k)
        )
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
        return self._law.set_size in (None, symbol.bit_count())

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
        return self._law.columns(symbols)

    def moments(self) -> FloatArray:
        """See Factor."""
        # s and t as in `contrast_moments`. A share is 1/size plus a contrast (see `sets`); the
        # matrix u of the contrasts is symmetric.
        size, (s, t) = self.mechanism.answers, self._law.contrast_moments()
        u = np.eye(size) - 1 / size
        squares = s * (u @ u) + t * u[:, :, None] * u[:, None, :]
        return np.asarray(
            squares + (u[:, :, None] + u[:, None, :] + 1 / size) / size, dtype=np.float64
        )

    def law(self) -> FloatArray:
        """See Factor."""
        return self._law.matrix()
