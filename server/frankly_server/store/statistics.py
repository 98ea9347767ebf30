# SPDX-License-Identifier: Apache-2.0
"""Counts that a report increments (sufficient statistics), as determined by its document.

Counts of two groups of reports are merged by addition. A report is counted by:

- one number per block: the symbol of a table, that of a product (row-major), or the bit mask of a
  small set (unary, subset);
- for a larger set, every pair of positions that it contains, including a position with itself;
- for two blocks that are tables or products, their pair of symbols, for cross-tabs.

An agreement block counts as a block without numbers, followed by one table per part, which counts
the reports that show the part. In this module, these tables are blocks too. A report increments at
most one count per block, at most MOST_SET_ROWS counts for its sets, and at most MOST_PAIRS counts
for pairs of blocks. Beyond these limits, sets and products have one count for all their symbols,
and pairs have none; their estimates read the reports instead.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from math import prod
from typing import Any, Final, TypeGuard

from frankly_design.tables.parts import (
    PartTable,
    are_shown_together,
    counted_blocks,
    counted_symbols,
    once_per_document,
)
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import (
    AnyMechanism,
    DenseMechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)
from frankly_protocol.mechanisms.radix import digits_of, number_of

NO_NUMBER: Final = -1
"""Symbol of the single count of a block whose symbols have no numbers."""

# The stored counts depend on these limits, so changing one requires a migration that recounts.
MOST_MASKED: Final = 10
"""Largest number of answers of a set that is counted by its bit mask (at most 2^10 counts).

The maximum-likelihood shares need these counts; pairs of positions are not enough.
"""
MOST_SET_ROWS: Final = 64 * 65 // 2
"""Largest number of pairs in all sets of one report: one unary question of 64 choices."""
MOST_PAIRS: Final = 16 * 15 // 2
"""Largest number of pairs of blocks that are counted: all pairs of 16 blocks."""
MOST_CELLS: Final = 64 * 64
"""Largest product of the numbers of symbols of two counted blocks: two questions of 64 choices."""
MOST_SYMBOLS: Final = 1 << 20
"""Largest number of symbols of a counted product.

`estimate.decoder.MAX_CELLS` refuses larger ones.
"""

Symbols = Sequence[Any]
Blocks = tuple[int, int]
"""(block, later block), or (block, block) for the positions of a set."""
Pair = tuple[int, int]
"""Symbols of the two blocks, or two positions in a set with the smaller first."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Counts that one document's reports increment.

    radices : per block, the sizes of the digits of its numbers (one digit unless the block is a
    product); empty if its symbols have no numbers. sets : blocks whose pairs of positions are
    counted. pairs : pairs of blocks (i < j) whose pairs of symbols are counted. mechanisms :
    mechanisms of the counted blocks.
    """

    radices: tuple[tuple[int, ...], ...]
    sets: tuple[int, ...]
    pairs: tuple[Blocks, ...]
    mechanisms: tuple[AnyMechanism, ...] = ()

    @staticmethod
    @once_per_document
    def of(document: SurveyDocument) -> "Layout":
        """Return the layout of a document."""
        mechanisms = tuple(block.mechanism for block in counted_blocks(document))
        radices = tuple(_radices(mechanism) for mechanism in mechanisms)
        sets, remaining_rows = [], MOST_SET_ROWS
        for i, mechanism in enumerate(mechanisms):
            if (
                not radices[i]
                and is_set(mechanism)
                and (rows := _pairs_held(mechanism)) <= remaining_rows
            ):
                sets.append(i)
                remaining_rows -= rows
        numbered = [i for i, sizes in enumerate(radices) if sizes and not is_set(mechanisms[i])]
        # Sorted by the later block, so that appending blocks to a survey does not change which
        # pairs of earlier blocks are counted.
        pairs = sorted(combinations(numbered, 2), key=lambda pair: (pair[1], pair[0]))
        pairs = [(i, j) for i, j in pairs if _is_pair_counted(mechanisms[i], mechanisms[j])]
        small = [(i, j) for i, j in pairs if prod(radices[i]) * prod(radices[j]) <= MOST_CELLS]
        return Layout(radices, tuple(sets), tuple(small[:MOST_PAIRS]), mechanisms)

    def covers(self, blocks: Sequence[int]) -> bool:
        """Return True if joint estimates of these blocks can be computed from counts alone."""
        if len(blocks) == 1:
            return bool(self.radices[blocks[0]]) or blocks[0] in self.sets
        return tuple(blocks) in self.pairs

    def numbers(self, symbols: Symbols) -> list[int | None]:
        """Return one number per block for symbols in JSON form.

        The number is NO_NUMBER for a block without numbers, and None for a part that the report
        does not show.
        """
        counted = counted_symbols(self.mechanisms, symbols)
        return [
            None if symbol is None else _number(sizes, symbol)
            for sizes, symbol in zip(self.radices, counted, strict=True)
        ]

    def parts(self, block: int, number: int) -> tuple[int, ...]:
        """Return the digits of a block's number: one per factor of a product, else the number."""
        return digits_of(number, self.radices[block])

    def pairs_of(
        self, symbols: Symbols, numbers: Sequence[int | None]
    ) -> Iterator[tuple[Blocks, Iterable[Pair]]]:
        """Yield the pairs that one report increments, by (block, other block).

        numbers : the numbers of `symbols`, as `numbers` returns them.
        """
        counted = counted_symbols(self.mechanisms, symbols) if self.sets else ()
        for i in self.sets:
            yield (i, i), combinations_with_replacement(members(counted[i]), 2)
        for i, j in self.pairs:
            first, second = numbers[i], numbers[j]
            if first is not None and second is not None:
                yield (i, j), ((first, second),)


@dataclass(frozen=True, slots=True)
class Layouts:
    """The layouts of one document: one, or one for each arm, by the arm that strata name.

    name : id of the document's arms; None without arms, and then the only arm is "".
    """

    name: str | None
    by_arm: Mapping[str, Layout]

    @classmethod
    def read(cls, envelope: bytes) -> "Layouts":
        """Return the layouts of the document in a stored signed envelope."""
        document = SurveyDocument.from_envelope(envelope)
        layouts = {one.arm or "": Layout.of(one) for one in document.versions}
        return cls(None if document.arms is None else document.arms.id, layouts)

    def arm(self, stratum: str) -> str:
        """Return the arm that a stratum names, "" without arms."""
        return "" if self.name is None else str(json.loads(stratum)[self.name])

    def of(self, stratum: str) -> Layout:
        """Return the layout of the reports of a stratum."""
        return self.by_arm[self.arm(stratum)]


def is_set(mechanism: AnyMechanism) -> TypeGuard[UnaryMechanism | SubsetMechanism]:
    """Return True if a symbol of this mechanism is a set of answers."""
    return isinstance(mechanism, UnaryMechanism | SubsetMechanism)


def is_masked(mechanism: AnyMechanism) -> bool:
    """Return True if a symbol is a set of at most MOST_MASKED answers, counted by its bit mask."""
    return is_set(mechanism) and mechanism.answers <= MOST_MASKED


def _is_pair_counted(first: AnyMechanism, second: AnyMechanism) -> bool:
    """Return True if a report can show both; some parts of a form never occur together."""
    if not isinstance(first, PartTable) or not isinstance(second, PartTable):
        return True
    if first.form is not second.form:
        return True
    return are_shown_together(first.form, (*first.parts, *second.parts))


def members(symbol: str) -> list[int]:
    """Return the positions that a set in JSON form contains, in increasing order."""
    mask, positions = int(symbol, 16), []
    while mask:
        lowest = mask & -mask  # the lowest set bit
        positions.append(lowest.bit_length() - 1)
        mask ^= lowest
    return positions


def _radices(mechanism: AnyMechanism) -> tuple[int, ...]:
    if isinstance(mechanism, DenseMechanism):
        return (mechanism.reports,)
    if is_set(mechanism) and is_masked(mechanism):
        return (1 << mechanism.answers,)
    if isinstance(mechanism, ProductMechanism) and mechanism.reports <= MOST_SYMBOLS:
        return tuple(factor.reports for factor in mechanism.factors)
    return ()


def _pairs_held(mechanism: UnaryMechanism | SubsetMechanism) -> int:
    """Return the largest number of pairs of positions in one set.

    All sets of a subset mechanism have the same size.
    """
    size = mechanism.size if isinstance(mechanism, SubsetMechanism) else mechanism.answers
    return size * (size + 1) // 2


def _number(sizes: Sequence[int], symbol: Any) -> int:
    if not sizes:
        return NO_NUMBER
    if type(symbol) is int:
        return symbol
    if isinstance(symbol, str):
        return int(symbol, 16)
    return number_of(map(int, symbol), sizes)  # as `ProductMechanism` numbers its answers
