# SPDX-License-Identifier: Apache-2.0
"""Counts of reports that are sets of answers."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

_MASKS = 1 << 14  # masks per block
_ROWS = 1 << 18  # rows per block; counts up to 2^24 are exact in float32


@dataclass(frozen=True, slots=True)
class SetCounts:
    """Counts of n reports that are sets; counts of several batches can be added with +.

    pairs : pairs[x][z] is the number of sets that contain x and z, and pairs[x][x] the number that
        contain x.
    symbols : (mask, number of reports) of the sets, None if not stored. Only the
        maximum-likelihood shares and the scores of targets of several answers need them.

    Raises InvalidInput(counts_invalid) unless the table is square and symmetric, its entries are
    integers from 0 to n, and no pair occurs more often than either answer.
    """

    n: int
    pairs: tuple[tuple[int, ...], ...]
    symbols: tuple[tuple[int, int], ...] | None = None

    def __post_init__(self) -> None:
        if type(self.n) is not int or self.n < 0:
            raise InvalidInput(
                Problem.COUNTS_INVALID,
                "the number of reports is a whole number, 0 or more",
                "counts.n",
            )
        size = len(self.pairs)
        for x, row in enumerate(self.pairs):
            if len(row) != size or any(type(c) is not int or not 0 <= c <= self.n for c in row):
                raise InvalidInput(
                    Problem.COUNTS_INVALID,
                    f"each of the {size} rows has {size} whole numbers from 0 to n",
                    f"counts.pairs[{x}]",
                )
            if any(row[z] != self.pairs[z][x] or row[z] > row[x] for z in range(size)):
                raise InvalidInput(
                    Problem.COUNTS_INVALID,
                    "the table of pairs is symmetric, and no pair occurs more often than either answer",
                    f"counts.pairs[{x}]",
                )

    @classmethod
    def of_symbols(cls, answers: int, symbols: Mapping[int, int]) -> "SetCounts":
        """Return the counts from a mapping of masks, below 2^answers, to numbers of reports."""
        seen, width = sorted(symbols.items()), (answers + 7) // 8
        pairs = np.zeros((answers, answers), dtype=np.int64)
        for start in range(0, len(seen), _MASKS):
            masks, numbers = zip(*seen[start : start + _MASKS], strict=True)
            bytes_of = np.frombuffer(b"".join(m.to_bytes(width, "little") for m in masks), np.uint8)
            bits = np.unpackbits(
                bytes_of.reshape(-1, width), axis=1, count=answers, bitorder="little"
            ).astype(np.float64)
            # Exact: sums of whole numbers below 2^53.
            pairs += ((bits.T * np.array(numbers, dtype=np.float64)) @ bits).astype(np.int64)
        return cls(sum(symbols.values()), tuple(tuple(map(int, row)) for row in pairs), tuple(seen))

    @classmethod
    def of_vectors(cls, vectors: NDArray[np.uint8]) -> "SetCounts":
        """Return the counts of reports given as rows of 0 and 1, shape (n, answers).

        `symbols` is None.
        """
        pairs = np.zeros((vectors.shape[1],) * 2, dtype=np.int64)
        for start in range(0, len(vectors), _ROWS):
            # Matrix products are fastest in float32, which is exact for sums of this size.
            held = vectors[start : start + _ROWS].astype(np.float32)
            pairs += (held.T @ held).astype(np.int64)
        return cls(len(vectors), tuple(tuple(int(c) for c in row) for row in pairs))

    def __add__(self, other: "SetCounts") -> "SetCounts":
        added = zip(self.pairs, other.pairs, strict=True)
        pairs = tuple(tuple(a + b for a, b in zip(x, z, strict=True)) for x, z in added)
        if self.symbols is None or other.symbols is None:
            return SetCounts(self.n + other.n, pairs)
        symbols = Counter(dict(self.symbols)) + Counter(dict(other.symbols))
        return SetCounts(self.n + other.n, pairs, tuple(sorted(symbols.items())))
