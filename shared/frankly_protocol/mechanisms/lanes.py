# SPDX-License-Identifier: Apache-2.0
"""SIMD within a register: many comparisons in one integer, in constant time.

A lane is a field of bits with a spare bit on top, which is set before the subtraction x − t. The
spare bit stays set exactly if x ≥ t, and no lane borrows from the next one, because x + 2^bits ≥ t.
So one subtraction compares all lanes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

_DIGIT = bytes(b"10"[byte & 1] for byte in range(256))
"""Translation of flag bytes to binary digits: flag 0, below the threshold, becomes digit 1."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Rows of thresholds 0 ≤ t ≤ 2^bits, equally long, to compare with a number 0 ≤ u < 2^bits.

    An extra lane on top has the threshold 0, which every number reaches: the integer whose bits
    are counted then always has the same size, so counting takes the same time however many
    thresholds are reached.

    ones : 1 in every lane. spare : the top bit of every lane. rows : the thresholds, one per lane.
    """

    ones: int
    spare: int
    rows: tuple[int, ...]

    @classmethod
    def of(cls, bits: int, rows: Sequence[Sequence[int]]) -> Self:
        """Pack the rows; lanes are whole bytes, so packing takes linear time."""
        width, lanes = -(-(bits + 1) // 8), len(rows[0]) + 1
        packed = tuple(
            int.from_bytes(b"".join(t.to_bytes(width, "little") for t in row), "little")
            for row in rows
        )
        ones = int.from_bytes((b"\1" + bytes(width - 1)) * lanes, "little")
        return cls(ones, ones << bits, packed)

    def passed(self, u: int, row: int) -> int:
        """Return the number of thresholds ≤ u; `row` is an element of `rows`, not its index."""
        return ((u * self.ones | self.spare) - row & self.spare).bit_count() - 1


@dataclass(frozen=True, slots=True)
class Fields:
    """k numbers of `bits` bits in one integer, lowest first, each with its own threshold.

    Numbers at even and at odd positions are compared separately, so that the place of the next
    number is free for the spare bit: two subtractions compare all numbers. As in `Thresholds`, the
    threshold of an extra lane on top is always reached, so all intermediate integers have the same
    size.

    even : mask of the numbers at even positions. spare : the bit above each of them. rows : for each
    row, the thresholds at the even positions and those at the odd positions.
    """

    bits: int
    k: int
    even: int
    spare: int
    rows: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, bits: int, k: int, own: int, other: int) -> Self:
        """Return k rows: row i has threshold `own` for number i, `other` for the others.

        Both are from 0 to 2^bits.
        """
        width, pairs = 2 * bits, -(-k // 2)
        ones = sum(1 << width * i for i in range(pairs))
        common, extra = ones * other, [(own - other) << width * i for i in range(pairs)]
        rows = (
            ((common, common + extra[i // 2]) if i % 2 else (common + extra[i // 2], common))
            for i in range(k)
        )
        return cls(
            bits, k, ones * ((1 << bits) - 1), (ones | 1 << width * pairs) << bits, tuple(rows)
        )

    def below(self, u: int, row: int) -> int:
        """Return a mask with bit i set where number i is below its threshold in this row."""
        even, odd = self.rows[row]
        reached = ((u & self.even | self.spare) - even & self.spare) >> self.bits
        reached |= (u >> self.bits & self.even | self.spare) - odd & self.spare
        # The lowest bit of each number is now its flag. In bytes or binary digits, the flags have a
        # fixed distance, so one slice extracts all of them without a loop.
        if self.bits % 8:
            digits = f"{reached:b}"[-self.bits * self.k :][self.bits - 1 :: self.bits]
            return int(digits, 2) ^ (1 << self.k) - 1
        step = self.bits // 8
        flags = reached.to_bytes((self.k + 3) * step, "little")[step * (self.k - 1) :: -step]
        return int(flags.translate(_DIGIT), 2)
