# SPDX-License-Identifier: Apache-2.0
"""The unary kind: one bit for every answer, each randomised on its own (OUE: Wang et al. 2017; Funnel eq. 27-29)."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb
from typing import ClassVar

from frankly_protocol.mechanisms.base import (
    MAX_BITS,
    MAX_SET_ANSWERS,
    MIN_BITS,
    RandomBits,
    SetSymbols,
    draw,
    invalid,
    mask_of,
    require_whole,
    unknown,
)
from frankly_protocol.mechanisms.lanes import Fields


@dataclass(frozen=True, slots=True)
class UnaryMechanism(SetSymbols):
    """Bit x of the report is 1 with chance keep/2^bits for the true answer, flip/2^bits for any other, independently.

    Parameters
    ----------
    bits : 4 to 48. answers : 2 to 1000 (a survey's block holds at most 256).
    keep, flip : whole numbers from 0 to 2^bits, not equal: equal ones would say nothing.

    A symbol is the set of the answers whose bit is 1, as a bit mask; in JSON ⌈answers/4⌉ hex digits.

    Raises
    ------
    InvalidInput(weights_invalid), naming the parameter.
    """

    kind: ClassVar[str] = "unary"
    PARAMS: ClassVar[tuple[str, ...]] = ("bits", "answers", "keep", "flip")

    bits: int
    answers: int
    keep: int
    flip: int
    # For every answer at once, when the first is asked for: a row of its own would be a trace of who was asked.
    _fields: list[Fields] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_whole(self.bits, MIN_BITS, MAX_BITS, "bits")
        require_whole(self.answers, 2, MAX_SET_ANSWERS, "answers")
        require_whole(self.keep, 0, self.denominator, "keep")
        require_whole(self.flip, 0, self.denominator, "flip")
        if self.keep == self.flip:
            raise invalid("keep and flip must differ: otherwise the report says nothing", "flip")

    @property
    def denominator(self) -> int:
        """2^bits, what keep and flip are parts of."""
        return 1 << self.bits

    @property
    def reports(self) -> int:
        """How many symbols can be sent; 2^answers unless a chance is 0 or 1."""
        return sum(self._sets_of_size(size) for size in range(self.answers + 1))

    @property
    def sends_unchanged(self) -> bool:
        """Whether every report has one possible truth only."""
        return {self.keep, self.flip} == {0, self.denominator}

    @property
    def guess(self) -> Fraction:
        """Chance that the best guess from a report is right, all answers being equally likely.

        With keep above flip one guesses an answer whose bit is 1, if there is one: Σ over sets B ≠ ∅ of Q(B|x ∈ B) is
        k/f·(1 − (1 − f)^a), and Q(∅|x) is (1 − k)·(1 − f)^(a − 1). With keep below flip, the same with 0 for 1.
        """
        D, a = self.denominator, self.answers
        k, f = (self.keep, self.flip) if self.keep > self.flip else (D - self.keep, D - self.flip)
        found: Fraction = Fraction(k, f) * (D**a - (D - f) ** a) if f else Fraction(k * a * D ** (a - 1))
        nobody: int = (D - k) * (D - f) ** (a - 1)
        whole: int = a * D**a
        return (found + nobody) / whole

    def sample(self, truth: int, randbits: RandomBits = secrets.randbits) -> int:
        """Draw the symbol to send for `truth`; RandomnessError if the operating system gives no bits.

        All bits are decided by one draw, `bits` of it each from the lowest on, and one comparison each: the same steps
        on numbers of the same size, whichever answer is true.
        """
        if not self._fields:
            self._fields.append(Fields.of(self.bits, self.answers, self.keep, self.flip))
        return self._fields[0].below(draw(self.bits * self.answers, randbits), truth)

    def probability(self, symbol: int, x: int) -> Fraction:
        """Return Q(symbol|x) exactly."""
        return Fraction(self._chance(symbol.bit_count(), symbol >> x & 1), self.denominator**self.answers)

    def symbols(self) -> Iterator[int]:
        """Yield every symbol that can be sent, in the order of the masks; there may be 2^answers of them."""
        return (mask for mask in range(1 << self.answers) if self._can_be_sent(mask))

    def check_symbol(self, value: object, field: str = "y") -> int:
        """Read the JSON form of a symbol; InvalidInput(y_type or symbol_unknown) that never repeats it."""
        mask = mask_of(value, self.answers, field)
        if not self._can_be_sent(mask):
            raise unknown("the symbol is none that this block's mechanism can send", field)
        return mask

    def _chance(self, ones: int, own: int) -> int:
        """Return 2^(bits·answers) · Q of a set of so many answers, with the true one among them or not."""
        D = self.denominator
        others = ones - own
        if not 0 <= others < self.answers:
            return 0
        mine = self.keep if own else D - self.keep
        rest: int = self.flip**others * (D - self.flip) ** (self.answers - 1 - others)
        return mine * rest

    def _can_be_sent(self, mask: int) -> bool:
        ones = mask.bit_count()
        return bool(self._sent(ones, 1) or self._sent(ones, 0))

    def _sent(self, ones: int, own: int) -> bool:
        """Tell whether `_chance` is positive, without making its large powers."""
        D, others = self.denominator, ones - own
        return (
            0 <= others < self.answers
            and (self.keep if own else D - self.keep) > 0
            and (self.flip > 0 or others == 0)
            and (self.flip < D or others == self.answers - 1)
        )

    def _sets_of_size(self, size: int) -> int:
        return comb(self.answers, size) if self._sent(size, 1) or self._sent(size, 0) else 0
