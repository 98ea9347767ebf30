# SPDX-License-Identifier: Apache-2.0
"""The dense kind: a table of integer weights, sampled exactly (spec 2.1, 2.5)."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from math import prod
from typing import Any, ClassVar

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.base import (
    MAX_ANSWERS,
    MAX_BITS,
    MAX_REPORTS,
    MIN_BITS,
    RandomBits,
    Shape,
    draw,
    invalid,
    require_keys,
    unknown,
)
from frankly_protocol.mechanisms.fit import ALWAYS, Fit, Range, enumerated
from frankly_protocol.mechanisms.lanes import Thresholds
from frankly_protocol.mechanisms.numbered import Numbered
from frankly_protocol.problems import Problem

Weights = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class DenseMechanism(Numbered):
    """Q(y|x) = weights[x][y] / 2^bits, by definition.

    Parameters
    ----------
    bits : 4 to 48. The server publishes tables of 48 bits; with fewer, tests can enumerate every
        draw.
    weights : one row per answer (2 to 256), one column per report (at most 4096); whole numbers ≥
        0, each row sums to 2^bits, and no column is all zero.

    Raises
    ------
    InvalidInput(weights_invalid), naming the parameter or the row.
    """

    kind: ClassVar[str] = "dense"
    PARAMS: ClassVar[tuple[str, ...]] = ("bits", "weights")
    SHAPE: ClassVar[str] = "weights"

    bits: int
    weights: Weights
    # All rows are computed at the first use: a cache of single rows would reveal which answers have
    # been given.
    _thresholds: list[Thresholds] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if type(self.bits) is not int or not MIN_BITS <= self.bits <= MAX_BITS:
            raise invalid(f"bits must be a whole number from {MIN_BITS} to {MAX_BITS}", "bits")
        if not 2 <= len(self.weights) <= MAX_ANSWERS:
            raise invalid(f"a mechanism has 2 to {MAX_ANSWERS} rows", "weights")
        width = len(self.weights[0])
        if not 1 <= width <= MAX_REPORTS:
            raise invalid(f"a mechanism has 1 to {MAX_REPORTS} columns", "weights")
        for x, row in enumerate(self.weights):
            self._check_row(row, width, f"weights[{x}]")
        # An all-zero column would give 0/0 in every ratio of the verifier.
        if not all(any(column) for column in zip(*self.weights, strict=True)):
            raise invalid("a report that is never sent must not have a column", "weights")

    def _check_row(self, row: tuple[int, ...], width: int, field: str) -> None:
        if len(row) != width:
            raise invalid(f"every row needs {width} columns", field)
        if any(type(w) is not int or w < 0 for w in row):
            raise invalid("weights are whole numbers, zero or more", field)
        if sum(row) != self.denominator:
            raise invalid(f"the row does not sum to 2^{self.bits}", field)

    @property
    def denominator(self) -> int:
        """2^bits, the sum of every row."""
        return 1 << self.bits

    @property
    def thresholds(self) -> Thresholds:
        """The cumulative sums of every row, packed for comparison with a draw."""
        if not self._thresholds:
            # The last threshold is 2^bits, which no draw reaches.
            self._thresholds.append(
                Thresholds.of(self.bits, [tuple(accumulate(row)) for row in self.weights])
            )
        return self._thresholds[0]

    @property
    def answers(self) -> int:
        """The number of possible answers (rows)."""
        return len(self.weights)

    @property
    def reports(self) -> int:
        """The number of symbols that can be sent (columns)."""
        return len(self.weights[0])

    @property
    def sends_unchanged(self) -> bool:
        """True if every report has a single possible truth, so that it reveals the answer."""
        return all(sum(map(bool, column)) == 1 for column in zip(*self.weights, strict=True))

    @property
    def guess(self) -> Fraction:
        """Chance of the best guess from a report under a uniform prior: Σ_y max_x Q(y|x) / a."""
        best = sum(max(column) for column in zip(*self.weights, strict=True))
        return Fraction(best, self.denominator * self.answers)

    @property
    def is_random(self) -> bool:
        """True if chance decides the symbol of some answer."""
        return any(sum(map(bool, row)) > 1 for row in self.weights)

    @property
    def named(self) -> Range | None:
        """The smallest and the largest chance on the diagonal.

        None unless the diagonal is the strict maximum of every column.
        """
        if self.sends_unchanged:
            return ALWAYS
        if self.reports != self.answers:
            return None
        # A symbol names an answer only if it is more likely under it than under any other.
        for y, column in enumerate(zip(*self.weights, strict=True)):
            if any(w >= column[y] for x, w in enumerate(column) if x != y):
                return None
        chances = [self.probability(x, x) for x in range(self.answers)]
        return min(chances), max(chances)

    @property
    def symbol_shape(self) -> Shape:
        """The largest symbol."""
        return self.longest_symbol_json()

    @classmethod
    def tables_of(cls, params: Mapping[str, Any], /) -> list[Any]:
        """Return the tables among unread parameters, whose form is checked first."""
        return [params["weights"]]

    def random_fits(self, sizes: Sequence[int]) -> list[Fit | None]:
        """Return the Fit of every question from the chances of all symbols."""
        columns, D = list(zip(*self.weights, strict=True)), self.denominator
        return [enumerated(columns, size, prod(sizes[q + 1 :]), D) for q, size in enumerate(sizes)]

    def probability(self, y: int, x: int) -> Fraction:
        """Return Q(y|x) exactly."""
        return Fraction(self.weights[x][y], self.denominator)

    def sample(self, truth: int, randbits: RandomBits = secrets.randbits) -> int:
        """Draw the symbol to send for `truth`, exactly from the published row.

        Every cumulative threshold is compared, so the time does not depend on the draw. There is no
        fallback: raises RandomnessError if the operating system provides no random bits.
        """
        thresholds = self.thresholds
        return thresholds.passed(draw(self.bits, randbits), thresholds.rows[truth])

    def symbols(self) -> Iterator[int]:
        """Yield every symbol, in the order of the columns."""
        return iter(range(self.reports))

    def check_symbol(self, value: object, field: str = "y") -> int:
        """Read the JSON form of a symbol.

        Raises InvalidInput(y_type or symbol_unknown), which never repeats the value.
        """
        if type(value) is not int or value < 0:
            raise InvalidInput(Problem.Y_TYPE, "a symbol of this block is a whole number", field)
        if value >= self.reports:
            raise unknown(f"the symbols of this block are 0 to {self.reports - 1}", field)
        return value

    def symbol_json(self, symbol: int) -> int:
        """Return the JSON form of a symbol."""
        return symbol

    def longest_symbol_json(self) -> int:
        """Return the JSON form of a longest symbol; reports are padded to its length."""
        return self.reports - 1

    def params_json(self) -> dict[str, Any]:
        """Return the parameters in their JSON form."""
        return {"bits": self.bits, "weights": [list(row) for row in self.weights]}

    @classmethod
    def from_params(cls, data: object, field: str = "params") -> "DenseMechanism":
        """Read the parameters; raises InvalidInput(weights_invalid), naming the parameter or row."""
        params = require_keys(data, cls.PARAMS, field)
        weights = params["weights"]
        if not isinstance(weights, list) or not all(isinstance(row, list) for row in weights):
            raise invalid("expected a table of whole numbers", "weights")
        return cls(params["bits"], tuple(map(tuple, weights)))
