# SPDX-License-Identifier: Apache-2.0
"""Symbols as they are counted; without numerical libraries, because every command imports this."""

from collections.abc import Iterator
from typing import Final

NO_NUMBER: Final = -1
"""Symbol of the single count of a block whose symbols have no numbers."""


def members(symbol: str) -> list[int]:
    """Return the positions that a set in JSON form contains, in increasing order."""
    return list(_positions(int(symbol, 16)))


def _positions(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask  # the lowest set bit
        yield lowest.bit_length() - 1
        mask ^= lowest
