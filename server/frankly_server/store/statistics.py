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
from typing import TYPE_CHECKING, Any, Final

from frankly_design.kinds.parts import (
    are_drawn_together,
    counted_blocks,
    counted_symbols,
    form_of,
    once_per_document,
)
from frankly_design.kinds.symbols import NO_NUMBER, members
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import AnyMechanism
from frankly_protocol.mechanisms.radix import digits_of

if TYPE_CHECKING:
    from frankly_design.kinds.kind import Counted

# The stored counts depend on these limits and on those of the kinds (`Counted.digits`), so changing
# one requires a migration that recounts.
MOST_SET_ROWS: Final = 64 * 65 // 2
"""Largest number of pairs in all sets of one report: one unary question of 64 choices."""
MOST_PAIRS: Final = 16 * 15 // 2
"""Largest number of pairs of blocks that are counted: all pairs of 16 blocks."""
MOST_CELLS: Final = 64 * 64
"""Largest product of the numbers of symbols of two counted blocks: two questions of 64 choices."""
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
    counted. pairs : pairs of blocks (i < j) whose pairs of symbols are counted. kinds : of the
    mechanisms of the counted blocks, which are in `mechanisms`.
    """

    radices: tuple[tuple[int, ...], ...]
    sets: tuple[int, ...]
    pairs: tuple[Blocks, ...]
    kinds: "tuple[Counted, ...]"
    mechanisms: tuple[AnyMechanism, ...]

    @staticmethod
    @once_per_document
    def of(document: SurveyDocument) -> "Layout":
        """Return the layout of a document."""
        # Kinds need numerical libraries, which commands that count nothing do not load.
        from frankly_design.kinds.registry import counted_of  # noqa: PLC0415

        kinds = tuple(counted_of(block.mechanism) for block in counted_blocks(document))
        radices = tuple(kind.digits for kind in kinds)
        sets, remaining_rows = [], MOST_SET_ROWS
        for i, kind in enumerate(kinds):
            if kind.is_set and not radices[i] and kind.most_pairs <= remaining_rows:
                sets.append(i)
                remaining_rows -= kind.most_pairs
        numbered = [i for i, kind in enumerate(kinds) if radices[i] and not kind.is_set]
        # Sorted by the later block, so that appending blocks to a survey does not change which
        # pairs of earlier blocks are counted.
        pairs = sorted(combinations(numbered, 2), key=lambda pair: (pair[1], pair[0]))
        pairs = [(i, j) for i, j in pairs if _is_pair_counted(kinds[i], kinds[j])]
        small = [(i, j) for i, j in pairs if prod(radices[i]) * prod(radices[j]) <= MOST_CELLS]
        mechanisms = tuple(kind.mechanism for kind in kinds)
        return Layout(radices, tuple(sets), tuple(small[:MOST_PAIRS]), kinds, mechanisms)

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
        counted = self.symbols(symbols)
        return [
            None if symbol is None else kind.number(symbol) if sizes else NO_NUMBER
            for kind, sizes, symbol in zip(self.kinds, self.radices, counted, strict=True)
        ]

    def symbols(self, symbols: Symbols) -> list[Any]:
        """Return a report's symbol for every counted block; None for a part that it does not show."""
        return counted_symbols(self.mechanisms, symbols)

    def parts(self, block: int, number: int) -> tuple[int, ...]:
        """Return the digits of a block's number: one per factor of a product, else the number."""
        return digits_of(number, self.radices[block])

    def pairs_of(
        self, symbols: Symbols, numbers: Sequence[int | None]
    ) -> Iterator[tuple[Blocks, Iterable[Pair]]]:
        """Yield the pairs that one report increments, by (block, other block).

        numbers : the numbers of `symbols`, as `numbers` returns them.
        """
        counted = self.symbols(symbols) if self.sets else ()
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


def _is_pair_counted(first: "Counted", second: "Counted") -> bool:
    """Return True if a report can show both; some parts of a form never occur together."""
    form = form_of(first.mechanism)
    if form is None or form is not form_of(second.mechanism):
        return True
    return are_drawn_together(first.mechanism, second.mechanism)
