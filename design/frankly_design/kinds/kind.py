# SPDX-License-Identifier: Apache-2.0
"""What differs by the kind of a mechanism: how reports are counted and decoded, and its figures.

There is one class for each kind, in a file of its own, and `registry` finds it. Estimates, plans and
the server ask this class; they do not ask which kind a mechanism is.
"""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import index
from typing import Any, ClassVar, Protocol

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, Mechanism, columns
from frankly_protocol.mechanisms.base import MAX_ANSWERS, MAX_REPORTS
from frankly_protocol.problems import Problem

from frankly_design.kinds.decoder import Decoder, Targets
from frankly_design.kinds.evidence import Evidence
from frankly_design.kinds.set_counts import SetCounts
from frankly_design.kinds.set_law import SetMechanism
from frankly_design.notions.prior import Prior
from frankly_design.numeric.arrays import FloatArray, IntArray
from frankly_design.tables import objectives
from frankly_design.tables.limits import Poll, no_poll

Rows = Sequence[Sequence[int]]
"""Integers proportional to Q(symbol|x), row = truth, with equal row sums."""
Checked = list[int] | SetCounts | dict[tuple[int, ...], int]
Tally = Sequence[int] | Mapping[tuple[int, ...], int] | SetCounts
"""Counts in the form that `estimate` accepts for the kind of mechanism."""
Stored = Mapping[tuple[int, ...], int]
"""Number of reports by the keys that `Counted.keys` gives."""
Ends = tuple[Fraction, Fraction]


def invalid_counts(detail: str, field: str = "counts") -> InvalidInput:
    """Return the error for counts that are not those of the mechanism."""
    return InvalidInput(Problem.COUNTS_INVALID, detail, field)


def whole_numbers(reports: Iterable[Any]) -> dict[int, int]:
    """Return how often each report occurs. Raises InvalidInput(counts_invalid) unless all are integers."""
    try:
        return Counter(map(index, reports))
    except TypeError:
        raise invalid_counts(
            "reports are whole numbers, as `sample` returns them", "reports"
        ) from None


@dataclass(frozen=True)  # no slots: some kinds cache properties in their `__dict__`
class Counted(ABC):
    """How the symbols of a block's mechanism are counted.

    is_set : True if a symbol is a set of answers.
    """

    is_set: ClassVar[bool] = False

    mechanism: Any

    @property
    @abstractmethod
    def digits(self) -> tuple[int, ...]:
        """Sizes of the digits of a symbol's number; empty if symbols have no numbers."""

    @property
    def most_pairs(self) -> int:
        """Largest number of pairs of positions in a symbol that is a set, else 0."""
        return 0

    @abstractmethod
    def number(self, symbol: Any) -> int:
        """Return the number of a symbol in JSON form. Only for symbols that have numbers."""

    def symbol_of(self, number: int) -> Any:
        """Return the symbol in JSON form that has a number."""
        return self.mechanism.symbol_json(number)

    def keys(self, symbol: Any) -> list[tuple[int, ...]]:
        """Return the keys under which a symbol in JSON form is stored, if it is counted alone."""
        return [self.parts(symbol)]

    def parts(self, symbol: Any) -> tuple[int, ...]:
        """Return a symbol in JSON form as integers: one, or one for each factor."""
        return (self.mechanism.check_symbol(symbol),)


class Estimable(ABC):
    """A source of reports from which shares are estimated: one mechanism, or several together.

    mechanism : the mechanism, or several as `joint.Joint`. is_set : True if a symbol is a set of
    answers, and the counts are those of pairs of answers.
    """

    is_set: ClassVar[bool] = False

    mechanism: Any

    @property
    @abstractmethod
    def answers(self) -> int:
        """Number of answers."""

    @property
    @abstractmethod
    def factors(self) -> tuple[Mechanism, ...]:
        """Mechanisms of the parts of an answer, which are randomised independently."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of counts that are published."""

    @abstractmethod
    def index(self, key: Sequence[int]) -> int:
        """Return the position of a stored key in the list of published counts. Not for sets."""

    @abstractmethod
    def counts(self, n: int, stored: Stored) -> Tally:
        """Return the counts of n reports as `estimate` takes them, from stored ones."""

    @abstractmethod
    def checked(self, counts: Tally) -> Checked:
        """Return counts in the form of this kind.

        Raises InvalidInput: counts_invalid, or unsupported for a product with too many reports.
        """

    @abstractmethod
    def evidence(
        self, counts: Checked, targets: Targets, prior: tuple[int, ...] | None
    ) -> Evidence:
        """Return the evidence about targets from checked counts."""

    @abstractmethod
    def nothing_yet(self) -> Checked:
        """Return the counts of zero reports."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """Exact rank of Q."""

    def decoder(self, targets: Targets, prior: tuple[int, ...] | None) -> Decoder | None:
        """Return the exact decoder of single symbols; None if sets of answers are among them."""
        return None

    @abstractmethod
    def separately(self, prior: tuple[int, ...]) -> "list[tuple[Kind, tuple[int, ...]]]":
        """Return the mechanisms whose decoders multiply to that of all shares, each with its prior.

        prior : counts of the (joint) answers.
        """


class Kind(Counted, Estimable):
    """A mechanism with everything that differs by its kind."""

    @property
    def answers(self) -> int:
        return int(self.mechanism.answers)

    @property
    def factors(self) -> tuple[Mechanism, ...]:
        return (self.mechanism,)

    @abstractmethod
    def count(self, reports: Iterable[Any]) -> Tally:
        """Return the counts of reports as `sample` draws them.

        Raises InvalidInput(counts_invalid) for a report that the mechanism cannot send.
        """

    def separately(self, prior: tuple[int, ...]) -> "list[tuple[Kind, tuple[int, ...]]]":
        return [(self, prior)]

    @property
    @abstractmethod
    def law_json(self) -> dict[str, Any]:
        """The law in integers, as published with counts."""

    @abstractmethod
    def share_rows(self, prior: tuple[int, ...]) -> Sequence[Sequence[Fraction] | None]:
        """Return the exact decoder of each share; None for one that cannot be estimated."""

    @property
    @abstractmethod
    def basis(self) -> list[list[Fraction]]:
        """Reduced echelon basis of the combinations of shares that can be estimated."""

    @property
    def rows(self) -> Rows | None:
        """The table in integers; None if it has more than 4096 reports or 256 answers.

        Columns are in the order of `symbols()`, without symbols of probability 0.
        """
        mechanism = self.mechanism
        if mechanism.reports > MAX_REPORTS or mechanism.answers > MAX_ANSWERS:
            return None
        # A symbol of probability 0 would be an empty column, which the measures cannot handle.
        occurring = [column for column in columns(mechanism).values() if any(column)]
        common = math.lcm(*(chance.denominator for column in occurring for chance in column))
        return list(
            zip(*([int(chance * common) for chance in column] for column in occurring), strict=True)
        )

    def information_and_hamming(self, prior: Prior, poll: Poll = no_poll) -> tuple[float, float]:
        """Return (information in nats, Hamming error), both nan if the table is too large to list."""
        rows = self.rows
        if rows is None:
            return math.nan, math.nan
        return objectives.information(rows, prior.shares, poll), objectives.hamming(
            rows, prior.shares
        )

    def variances(self, prior: Prior, targets: objectives.Targets | None) -> list[float]:
        """Return the variance at n = 1 of each target's estimate (default: each share).

        The variance is inf for targets that cannot be estimated, and nan for products with too many
        reports to list. Sets are decoded from the number of sets that contain each answer; a decoder
        that scores every set could have a slightly smaller variance for an uneven prior.
        """
        rows = self.rows
        if rows is None:
            return [math.nan] * (self.answers if targets is None else len(targets))
        return objectives.target_variances(rows, prior.shares, targets)

    def variance_at(self, truth: FloatArray) -> float | None:
        """Return the total variance of the shares at n = 1 in closed form; None if there is none.

        truth : the true shares, shape (answers,).
        """
        return None

    def tables(self, prior: FloatArray) -> list[tuple[Rows, FloatArray]]:
        """Return (table, prior of its answers) of independent factors; empty if too large to list."""
        rows = self.rows
        return [] if rows is None else [(rows, prior)]

    def names(self, answers: Sequence[Any]) -> list[str]:
        """Return a name for each symbol that can be sent. answers : labels of the answers, for sets."""
        return [str(self.mechanism.symbol_json(symbol)) for symbol in self.mechanism.symbols()]


class Factor(Protocol):
    """What `joint` needs of the mechanism of a single block.

    Its decoded values are linear in a statistic of `width` integers per symbol. identifiable : True
    if every share of the block is identifiable.
    """

    width: int
    identifiable: bool

    @property
    def mechanism(self) -> DenseMechanism | SetMechanism:
        """Return the block's mechanism."""

    @property
    def decoder(self) -> list[list[Fraction]]:
        """Return the exact decoder of the statistic, shape (answers, width)."""

    @property
    def ends(self) -> list[Ends]:
        """Return the least and the largest decoded value of each answer."""

    @property
    def condition(self) -> float:
        """Return the condition number of Q, at least 1."""

    def knows(self, symbol: int) -> bool:
        """Return True if the mechanism can send this symbol."""

    def features(self, symbols: Sequence[int]) -> IntArray:
        """Return the statistic, shape (width, symbols)."""

    def values(self, symbols: Sequence[int]) -> FloatArray:
        """Return the decoded values, shape (answers, symbols)."""

    def columns(self, symbols: Sequence[int]) -> FloatArray:
        """Return Q(symbol|·), each column up to a factor, shape (answers, symbols)."""

    def moments(self) -> FloatArray:
        """Return E[d dᵀ|x] of the decoded values d, shape (answers, answers, answers), x first."""

    def law(self) -> FloatArray:
        """Return Q, shape (answers, reports)."""


class FactorKind(Kind):
    """A kind whose symbols are decoded by themselves, so that it can be a block of a joint table."""

    @abstractmethod
    def factor(self, prior: tuple[int, ...] | None) -> Factor:
        """Return the factor. prior : counts of the answers; None for the uniform prior."""
