# SPDX-License-Identifier: Apache-2.0
"""What is counted of a report, by its document alone: all that estimates and two-way tables need, merging by addition.

- A table's symbol, a product's as one number (row-major), a small set's (unary, subset) as its bit mask: once.
- A larger set's members: every pair of positions it holds, a position with itself included.
- Two blocks of tables or products: their pair of symbols, for cross-tabs.

A report writes at most one row a block, MOST_SET_ROWS for its sets, and MOST_PAIRS for pairs of blocks. What lies
beyond is not counted, for the document as a whole and known beforehand: it is read from the reports instead.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from math import prod
from typing import Any, Final

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.mechanisms import DenseMechanism, Mechanism, ProductMechanism, SubsetMechanism

NO_NUMBER: Final = -1
"""Stands for all the symbols together of a block whose symbols are no numbers."""

# What is stored follows from these: changing one needs a migration that counts again.
MOST_MASKED: Final = 10
"""Answers of which the sets themselves are counted, 2^10 at most: the likeliest shares need them whole."""
MOST_SET_ROWS: Final = 64 * 65 // 2
"""Pairs of positions a report's sets hold at most: one unary question of 64 choices, the most a question has."""
MOST_PAIRS: Final = 16 * 15 // 2
"""Pairs of blocks: all pairs of the first 16."""
MOST_CELLS: Final = 64 * 64
"""Symbols of one block times symbols of the other: two questions of 64 choices."""
MOST_SYMBOLS: Final = 1 << 20
"""Symbols of a product; estimates of larger ones are refused anyway (`estimate.decoder.MAX_CELLS`)."""

Symbols = Sequence[Any]
Blocks = tuple[int, int]
"""(block, later block), or twice the block of a set."""
Pair = tuple[int, int]
"""Symbols of the two blocks; two positions in a set, the smaller first."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What is counted of one document's reports.

    radices : per block the sizes of a number's parts (one unless it is a product), empty if its symbols are no
    numbers. sets : blocks whose pairs of positions are counted. pairs : pairs of blocks (i < j) whose symbols are.
    """

    radices: tuple[tuple[int, ...], ...]
    sets: tuple[int, ...]
    pairs: tuple[Blocks, ...]

    @classmethod
    def of(cls, document: SurveyDocument) -> "Layout":
        """Return the layout of a document."""
        mechanisms = [block.mechanism for block in document.blocks]
        radices = tuple(_radices(mechanism) for mechanism in mechanisms)
        sets, left = [], MOST_SET_ROWS
        for i, mechanism in enumerate(mechanisms):
            if not radices[i] and is_set(mechanism) and (rows := _most_pairs(mechanism)) <= left:
                sets.append(i)
                left -= rows
        numbers = [i for i, sizes in enumerate(radices) if sizes and not is_set(mechanisms[i])]
        # By the later block: what is counted of the first blocks does not depend on how many follow.
        every = sorted(combinations(numbers, 2), key=lambda pair: (pair[1], pair[0]))
        small = [(i, j) for i, j in every if prod(radices[i]) * prod(radices[j]) <= MOST_CELLS]
        return cls(radices, tuple(sets), tuple(small[:MOST_PAIRS]))

    @classmethod
    def read(cls, envelope: bytes) -> "Layout":
        """Return the layout of the document in a signed envelope as it is stored."""
        return cls.of(SurveyDocument.parse(Envelope.from_bytes(envelope, SURVEY_TYPE).payload))

    def covers(self, blocks: Sequence[int]) -> bool:
        """Tell whether what estimates over these blocks together need is counted."""
        if len(blocks) == 1:
            return bool(self.radices[blocks[0]]) or blocks[0] in self.sets
        return tuple(blocks) in self.pairs

    def numbers(self, symbols: Symbols) -> list[int]:
        """Return one number per block for symbols in their JSON form; NO_NUMBER where there is none."""
        return [_number(sizes, symbol) for sizes, symbol in zip(self.radices, symbols, strict=True)]

    def parts(self, block: int, number: int) -> tuple[int, ...]:
        """Return the parts that a number of this block was made of: one per factor of a product, else itself."""
        found = []
        for size in reversed(self.radices[block]):
            number, part = divmod(number, size)
            found.append(part)
        return tuple(reversed(found))

    def pairs_of(self, symbols: Symbols, numbers: Sequence[int]) -> Iterator[tuple[Blocks, Iterable[Pair]]]:
        """Yield (block, other block) and every pair in them that these symbols, of these `numbers`, add one to."""
        for i in self.sets:
            yield (i, i), combinations_with_replacement(members(symbols[i]), 2)
        for i, j in self.pairs:
            yield (i, j), ((numbers[i], numbers[j]),)


def is_set(mechanism: Mechanism) -> bool:
    """Tell whether a symbol of this mechanism is a set of answers."""
    return not isinstance(mechanism, DenseMechanism | ProductMechanism)


def is_masked(mechanism: Mechanism) -> bool:
    """Tell whether a symbol is a set of so few answers that it is counted whole, by its bit mask."""
    return is_set(mechanism) and mechanism.answers <= MOST_MASKED


def members(symbol: str) -> list[int]:
    """Return the positions a set in its JSON form holds, the least first."""
    mask, found = int(symbol, 16), []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return found


def _radices(mechanism: Mechanism) -> tuple[int, ...]:
    if isinstance(mechanism, DenseMechanism):
        return (mechanism.reports,)
    if is_masked(mechanism):
        return (1 << mechanism.answers,)
    if isinstance(mechanism, ProductMechanism) and mechanism.reports <= MOST_SYMBOLS:
        return tuple(factor.reports for factor in mechanism.factors)
    return ()


def _most_pairs(mechanism: Mechanism) -> int:
    most = mechanism.size if isinstance(mechanism, SubsetMechanism) else mechanism.answers
    return most * (most + 1) // 2


def _number(sizes: Sequence[int], symbol: Any) -> int:
    if not sizes:
        return NO_NUMBER
    if type(symbol) is int:
        return symbol
    if isinstance(symbol, str):
        return int(symbol, 16)
    number = 0
    for size, part in zip(sizes, symbol, strict=True):
        number = number * size + int(part)
    return number
