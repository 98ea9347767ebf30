# SPDX-License-Identifier: Apache-2.0
"""Comparing many numbers at once, inside one large integer: the work is the same whatever the outcome.

A lane is a field of bits with a spare one on top. With the spare bits set, x − t keeps a lane's spare bit exactly where
x ≥ t, and lanes never borrow from each other, as x + 2^bits ≥ t. So one subtraction compares every lane.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Rows of thresholds 0 ≤ t ≤ 2^bits, all rows equally long, to compare one number 0 ≤ u < 2^bits with.

    ones : 1 in every lane. spare : the top bit of every lane. rows : the thresholds, one to a lane.
    """

    ones: int
    spare: int
    rows: tuple[int, ...]

    @classmethod
    def of(cls, bits: int, rows: Sequence[Sequence[int]]) -> Self:
        """Pack the rows; lanes take whole bytes, which makes packing linear."""
        width, lanes = -(-(bits + 1) // 8), len(rows[0])
        packed = tuple(int.from_bytes(b"".join(t.to_bytes(width, "little") for t in row), "little") for row in rows)
        ones = int.from_bytes((b"\1" + bytes(width - 1)) * lanes, "little")
        return cls(ones, ones << bits, packed)

    def passed(self, u: int, row: int) -> int:
        """Return how many thresholds of a row are at most u."""
        return ((u * self.ones | self.spare) - self.rows[row] & self.spare).bit_count()


@dataclass(frozen=True, slots=True)
class Fields:
    """k numbers of `bits` bits each, side by side in one integer, lowest first, all compared with one threshold."""

    bits: int
    k: int
    even: int
    spare: int
    threshold: int

    @classmethod
    def of(cls, bits: int, k: int, threshold: int) -> Self:
        """Prepare for a threshold from 0 to 2^bits."""
        ones = sum(1 << 2 * bits * i for i in range(-(-k // 2)))
        return cls(bits, k, ones * ((1 << bits) - 1), ones << bits, ones * threshold)

    def below(self, u: int) -> int:
        """Return a mask with bit i set where number i is below the threshold.

        Every second number lends its place to its neighbour as a spare bit, so two subtractions compare all.
        """
        reached = (((u & self.even) | self.spare) - self.threshold & self.spare) >> self.bits
        reached |= ((u >> self.bits & self.even) | self.spare) - self.threshold & self.spare
        # One flag at the foot of each number; written in digits, every so manieth of them is a flag.
        step, base = (self.bits // 4, "x") if self.bits % 4 == 0 else (self.bits, "b")
        flags = f"{reached:0{step * self.k}{base}}"[-step * self.k :][step - 1 :: step]
        return int(flags, 2) ^ (1 << self.k) - 1
