# SPDX-License-Identifier: Apache-2.0
"""Reports with which random parts of them are large enough: in an arm, in a group, about a question."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from frankly_design.numeric.lazy import special

SURE: Final = 0.95
"""Chance with which planned results are shown."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the reports that has to be large enough.

    chance : in (0, 1], that a report belongs to it, independently of other reports. least : the least number of
    its reports, at least 1.
    """

    chance: float
    least: int


def chance_of_fewer(part: Part, n: int) -> float:
    """Return the chance that fewer than `part.least` of n reports belong to the part (exact binomial tail)."""
    if n < part.least:
        return 1.0
    if part.chance >= 1:
        return 0.0
    return 1.0 - float(special.betainc(part.least, n - part.least + 1, part.chance))


def is_sure(parts: Iterable[Part], n: int) -> bool:
    """Return True if all parts of n reports are large enough with the chance SURE, however they depend."""
    return sum(chance_of_fewer(part, n) for part in parts) <= 1 - SURE


def sure_reports(parts: Iterable[Part]) -> int:
    """Return the least n with `is_sure`; 1 without parts."""
    parts = tuple(parts)
    low = high = max((part.least for part in parts), default=1)
    while not is_sure(parts, high):
        low, high = high + 1, 2 * high
    while low < high:
        middle = (low + high) // 2
        if is_sure(parts, middle):
            high = middle
        else:
            low = middle + 1
    return high
