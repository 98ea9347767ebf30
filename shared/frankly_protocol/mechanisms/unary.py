# SPDX-License-Identifier: Apache-2.0
"""The unary kind: one independently randomised bit for every answer.

Sources: OUE, Wang et al. 2017; Funnel eq. 27-29.
"""

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
    Sentence,
    draw,
    invalid,
    mask_of,
    require_whole,
    unknown,
)
from frankly_protocol.mechanisms.fit import Fit
from frankly_protocol.mechanisms.lanes import Fields
from frankly_protocol.mechanisms.numbered import SetShape, SetSymbols


@dataclass(frozen=True, slots=True)
class UnaryMechanism(SetSymbols):
    """Independent bits: bit x is 1 with chance keep/2^bits for the true x, flip/2^bits for others.

    Parameters
    ----------
    bits : 4 to 48.
    answers : 2 to 1000.
    keep, flip : two different whole numbers from 0 to 2^bits; if equal, reports would reveal nothing.

    A symbol is the set of the answers whose bit is 1, as a bit mask; in JSON ⌈answers/4⌉ hex
    digits.

    Raises
    ------
    InvalidInput(weights_invalid), naming the parameter.
    """

    kind: ClassVar[str] = "unary"
    PARAMS: ClassVar[tuple[str, ...]] = ("bits", "answers", "keep", "flip")
    HAS_ONE_SIZE: ClassVar[bool] = False

    bits: int
    answers: int
    keep: int
    flip: int
    # All rows are computed at the first use: a cache of single rows would reveal which answers have
    # been given.
    _fields: list[Fields] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_whole(self.bits, MIN_BITS, MAX_BITS, "bits")
        require_whole(self.answers, 2, MAX_SET_ANSWERS, "answers")
        require_whole(self.keep, 0, self.denominator, "keep")
        require_whole(self.flip, 0, self.denominator, "flip")
        if self.keep == self.flip:
            raise invalid("keep and flip must differ: otherwise the report reveals nothing", "flip")

    @property
    def reports(self) -> int:
        return sum(self._sets_of_size(size) for size in range(self.answers + 1))

    @property
    def sends_unchanged(self) -> bool:
        return {self.keep, self.flip} == {0, self.denominator}

    @property
    def guess(self) -> Fraction:
        """Chance that the best guess from a report is right, under a uniform prior.

        With keep above flip, the best guess is an answer whose bit is 1, if there is one: Σ over
        sets B ≠ ∅ of Q(B|x ∈ B) is k/f·(1 − (1 − f)^a), and Q(∅|x) is (1 − k)·(1 − f)^(a − 1). With
        keep below flip, 0 and 1 are exchanged.
        """
        D, a = self.denominator, self.answers
        # Exchanging 0 and 1 in every bit turns keep < flip into the other case.
        k, f = (self.keep, self.flip) if self.keep > self.flip else (D - self.keep, D - self.flip)
        right_if_set: Fraction = (
            Fraction(k, f) * (D**a - (D - f) ** a) if f else Fraction(k * a * D ** (a - 1))
        )
        right_if_empty: int = (D - k) * (D - f) ** (a - 1)
        total: int = a * D**a
        return (right_if_set + right_if_empty) / total

    @property
    def sentences(self) -> Iterator[Sentence]:
        D = self.denominator
        chances = {"keep": Fraction(self.keep, D), "flip": Fraction(self.flip, D)}
        yield Sentence("unary", chances=chances)

    @property
    def fit(self) -> Fit:
        D, a = self.denominator, self.answers
        keep, flip = Fraction(self.keep, D), Fraction(self.flip, D)
        full, empty = keep * flip ** (a - 1), (1 - keep) * (1 - flip) ** (a - 1)
        if keep < flip:  # then the bits that are off fit
            keep, flip, full, empty = 1 - keep, 1 - flip, empty, full
        own, other, silent = keep - full, flip - full, full + empty
        return Fit((own, own), (other, other), (silent, silent))

    @property
    def set_shape(self) -> SetShape:
        D, k, f = self.denominator, self.keep, self.flip
        # f = 0: only the true answer's bit can be 1. f = D: all other bits are always 1.
        size = {0: 1, D: self.answers - 1}.get(f)
        return SetShape(k * (D - f), (D - k) * f, size, D * D)

    def sample(self, truth: int, randbits: RandomBits = secrets.randbits) -> int:
        """Draw the symbol to send for `truth`.

        Raises RandomnessError if the operating system provides no random bits. One draw supplies
        `bits` random bits per answer, lowest first; each number is compared once, so the time does
        not depend on the answer.
        """
        # Two threads may both append: the two values are equal, and only the first is read.
        if not self._fields:
            self._fields.append(Fields.of(self.bits, self.answers, self.keep, self.flip))
        return self._fields[0].below(draw(self.bits * self.answers, randbits), truth)

    def probability(self, symbol: int, x: int) -> Fraction:
        return Fraction(
            self._chance(symbol.bit_count(), symbol >> x & 1), self.denominator**self.answers
        )

    def symbols(self) -> Iterator[int]:
        return (mask for mask in range(1 << self.answers) if self._can_be_sent(mask))

    def check_symbol(self, value: object, field: str = "y") -> int:
        mask = mask_of(value, self.answers, field)
        if not self._can_be_sent(mask):
            raise unknown("the symbol is not one that this block's mechanism can send", field)
        return mask

    def _chance(self, ones: int, true_bit: int) -> int:
        """Return 2^(bits·answers) · Q of a set of `ones` answers.

        `true_bit` is 1 if the true answer is in the set.
        """
        D = self.denominator
        false_ones = ones - true_bit
        if not 0 <= false_ones < self.answers:
            return 0
        true_weight = self.keep if true_bit else D - self.keep
        false_weight: int = self.flip**false_ones * (D - self.flip) ** (
            self.answers - 1 - false_ones
        )
        return true_weight * false_weight

    def _can_be_sent(self, mask: int) -> bool:
        ones = mask.bit_count()
        return bool(self._is_possible(ones, 1) or self._is_possible(ones, 0))

    def _is_possible(self, ones: int, true_bit: int) -> bool:
        """Return True if `_chance` is positive, without computing its large powers."""
        D, false_ones = self.denominator, ones - true_bit
        # If flip is 0 or 2^bits, the other bits are all 0 or all 1.
        return (
            0 <= false_ones < self.answers
            and (self.keep if true_bit else D - self.keep) > 0
            and (self.flip > 0 or false_ones == 0)
            and (self.flip < D or false_ones == self.answers - 1)
        )

    def _sets_of_size(self, size: int) -> int:
        return (
            comb(self.answers, size)
            if self._is_possible(size, 1) or self._is_possible(size, 0)
            else 0
        )
