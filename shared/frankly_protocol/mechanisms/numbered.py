# SPDX-License-Identifier: Apache-2.0
"""What the kinds have in common whose truth is the number of a joint answer.

A set of answers, as a symbol, is a bit mask in memory (bit x represents answer x) and hex of fixed
length in JSON.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms.base import (
    MAX_SET_ANSWERS,
    Sentence,
    Shape,
    mask_json,
    require_keys,
)
from frankly_protocol.mechanisms.fit import ALWAYS, PLAIN, Fit, Range

if TYPE_CHECKING:
    from frankly_protocol.mechanisms.agreement import AgreementMechanism

_MAX_LISTED = 64
"""Largest number of chances to list; larger tables are in the signed document."""


class _Law(Protocol):
    """What every kind has that uses `Numbered`; its methods rely on no more."""

    SHAPE: ClassVar[str]

    @property
    def answers(self) -> int: ...

    @property
    def reports(self) -> int: ...

    @property
    def sends_unchanged(self) -> bool: ...

    def random_fits(self, sizes: Sequence[int]) -> list[Fit | None]:
        """Return the Fit of every question, for a mechanism that does not send answers unchanged."""
        ...


class Numbered:
    """Mixin of the kinds whose joint answers are numbered, row-major, the last question fastest.

    MOST_QUESTIONS, MOST_COUNTS : of a block. OPTIONAL : fields that a block may leave out. SHAPE :
    the parameter that determines the number of answers. as_form : None, no kind of these is a form.
    """

    __slots__ = ()
    MOST_QUESTIONS: ClassVar[int] = 16
    MOST_COUNTS: ClassVar[int] = MAX_SET_ANSWERS
    OPTIONAL: ClassVar[frozenset[str]] = frozenset()
    as_form: ClassVar["AgreementMechanism | None"] = None

    @property
    def numbered(self) -> Self:
        """The mechanism itself."""
        return self

    @property
    def is_random(self: _Law) -> bool:
        """True if chance decides the symbol of some answer."""
        return not self.sends_unchanged

    @property
    def blind_guess(self: _Law) -> Fraction:
        """Chance that a guess at all answers is right without a report, under a uniform prior."""
        return Fraction(1, self.answers)

    @property
    def named(self: _Law) -> Range | None:
        """The smallest and the largest chance that a symbol names the true answer.

        None unless every symbol corresponds to one answer.
        """
        return ALWAYS if self.sends_unchanged else None

    @property
    def sentences(self: _Law) -> Iterator[Sentence]:
        """Sentences on the law: the chances of all symbols, if they are few."""
        # A larger table would distract from the sentences about the promises.
        if self.answers * self.reports > _MAX_LISTED:
            yield Sentence("many_symbols", {"n": self.reports})
        else:
            yield Sentence("symbols", lists_symbols=True)

    @classmethod
    def tables_of(cls, _params: Mapping[str, Any], /) -> list[Any]:
        """Return the tables among unread parameters, whose form is checked first: none."""
        return []

    def counts_of(self: _Law, sizes: Sequence[int]) -> int:
        """Return the number of prior counts of a block whose questions have these many choices.

        Raises DocumentRejected("weights") if the mechanism's answers are not those of the questions.
        """
        # Each kind of mechanism limits its answers itself.
        answers = prod(sizes)
        if self.answers != answers:
            raise DocumentRejected(
                "weights",
                f"{answers} joint answers need a mechanism with as many answers",
                self.SHAPE,
            )
        return answers

    def truth_of(self, positions: Mapping[int, int], sizes: Sequence[int]) -> int:
        """Return the number of the joint answer with these positions of choices by question."""
        row = 0
        for i, position in positions.items():
            row = row * sizes[i] + position
        return row

    def fits(self: _Law, sizes: Sequence[int]) -> list[Fit | None]:
        """Return the Fit of every question; None where it would take too long to compute.

        sizes : the number of choices of each question.
        """
        return [PLAIN] * len(sizes) if self.sends_unchanged else self.random_fits(sizes)


@dataclass(frozen=True, slots=True)
class SetShape:
    """The column of a report B, a set of answers: `on` for x in B and `off` for others.

    Both are up to a factor that depends only on |B|. size : |B|, or None if it may be any. scale :
    the larger of the two over it is the chance, given x, of an x in B (or outside B) with another
    answer on the other side.
    """

    on: int
    off: int
    size: int | None
    scale: int


class SetSymbols(Numbered):
    """Mixin of the kinds whose symbols are sets of answers, represented as bit masks.

    In JSON a symbol is ⌈answers/4⌉ hex digits.
    """

    __slots__ = ()
    PARAMS: ClassVar[tuple[str, ...]]
    SHAPE: ClassVar[str] = "answers"
    HAS_ONE_SIZE: ClassVar[bool]
    """True if by definition the sets of all reports have one size."""
    bits: int
    answers: int

    @property
    def denominator(self) -> int:
        """2^bits, the denominator of the chances."""
        return 1 << self.bits

    def symbol_json(self, symbol: int) -> str:
        return mask_json(symbol, self.answers)

    def longest_symbol_json(self) -> str:
        return mask_json(0, self.answers)

    def params_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.PARAMS}

    @classmethod
    def from_params(cls, data: object, field: str = "params") -> Self:
        return cls(**require_keys(data, cls.PARAMS, field))

    @property
    def symbol_shape(self) -> Shape:
        """A sentence on the number of hex digits."""
        return Sentence("hex_digits", {"n": len(self.longest_symbol_json())})

    def random_fits(self, sizes: Sequence[int]) -> list[Fit | None]:
        """Return the Fit of a single question; that of one of several questions is not computed."""
        return [self.fit] if len(sizes) == 1 else [None] * len(sizes)

    @property
    def set_shape(self) -> SetShape:
        """The shape of the columns of all reports."""
        raise NotImplementedError

    @property
    def fit(self) -> Fit:
        """The Fit of the block's only question."""
        raise NotImplementedError
