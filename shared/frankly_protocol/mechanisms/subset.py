# SPDX-License-Identifier: Apache-2.0
"""The subset kind: a random set of fixed size that contains the truth with a fixed probability.

Sources: Ye and Barg 2018; Wang et al. 2016.
"""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import ClassVar

from frankly_protocol.mechanisms.base import (
    MAX_BITS,
    MAX_SET_ANSWERS,
    MIN_BITS,
    RandomBits,
    Sentence,
    draw,
    draw_below,
    mask_of,
    require_whole,
    unknown,
)
from frankly_protocol.mechanisms.fit import Fit, symmetric
from frankly_protocol.mechanisms.numbered import SetShape, SetSymbols


@dataclass(frozen=True, slots=True)
class SubsetMechanism(SetSymbols):
    """A random set of `size` answers, which contains the truth with chance inside/2^bits.

    Parameters
    ----------
    bits : 4 to 48.
    answers : 2 to 1000.
    size : 1 to answers − 1.
    inside : 0 to 2^bits.

    A symbol is the set as a bit mask; in JSON ⌈answers/4⌉ hex digits.

    Raises
    ------
    InvalidInput(weights_invalid), naming the parameter.
    """

    kind: ClassVar[str] = "subset"
    PARAMS: ClassVar[tuple[str, ...]] = ("bits", "answers", "size", "inside")
    HAS_ONE_SIZE: ClassVar[bool] = True

    bits: int
    answers: int
    size: int
    inside: int
    # For each answer x, the masks of all other answers, then its own. Every mask has one extra top
    # bit, so all have the same length and the time to add them does not depend on the answer. All
    # rows are computed at the first use: a cache of single rows would reveal which answers have
    # been given.
    _rows: list[tuple[tuple[int, ...], ...]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        require_whole(self.bits, MIN_BITS, MAX_BITS, "bits")
        require_whole(self.answers, 2, MAX_SET_ANSWERS, "answers")
        require_whole(self.size, 1, self.answers - 1, "size")
        require_whole(self.inside, 0, self.denominator, "inside")

    @property
    def reports(self) -> int:
        return comb(self.answers, self.size)

    @property
    def sends_unchanged(self) -> bool:
        return (self.size, self.inside) in ((1, self.denominator), (self.answers - 1, 0))

    @property
    def guess(self) -> Fraction:
        """Chance that the best guess from a report is right, under a uniform prior.

        The best guess is an answer in the set, or one outside it.
        """
        D, outside_size = self.denominator, self.answers - self.size
        return max(
            Fraction(self.inside, D * self.size), Fraction(D - self.inside, D * outside_size)
        )

    @property
    def sentences(self) -> Iterator[Sentence]:
        inside = Fraction(self.inside, self.denominator)
        yield Sentence("subset", {"n": self.size, "answers": self.answers}, {"chance": inside})

    @property
    def fit(self) -> Fit:
        return symmetric(self.answers, self.size, Fraction(self.inside, self.denominator))

    @property
    def set_shape(self) -> SetShape:
        D, size, i = self.denominator, self.size, self.inside
        return SetShape(i * (self.answers - size), (D - i) * size, size, D * (self.answers - 1))

    def sample(self, truth: int, randbits: RandomBits = secrets.randbits) -> int:
        """Draw the symbol to send for `truth`.

        Raises RandomnessError if the operating system provides no random bits. `size` of the other
        answers are drawn without replacement (Fisher-Yates shuffle with rejection sampling); if the
        truth is to be inside, it replaces the last of them. The work depends on the random bits,
        not on the truth: the shuffle runs on places 0 … answers − 2, and their answers are looked
        up at the end.
        """
        if not self._rows:  # a single append, so that other threads see either all rows or none
            masks = [1 << self.answers | 1 << x for x in range(self.answers)]
            self._rows.append(
                tuple(tuple(masks[:x] + masks[x + 1 :] + [masks[x]]) for x in range(self.answers))
            )
        last = self.answers - 1
        inside = draw(self.bits, randbits) < self.inside
        # Places, not answers, so that the same steps run whichever answer is true.
        places = list(range(last))
        for i in range(self.size):
            j = i + draw_below(last - i, randbits)
            places[i], places[j] = places[j], places[i]
        chosen = places[: self.size]
        chosen[-1] = (chosen[-1], last)[inside]  # the truth is last in its row
        # The extra top bit of every mask is in the sum `size` times; the subtraction removes it.
        return sum(map(self._rows[0][truth].__getitem__, chosen)) - (self.size << self.answers)

    def probability(self, symbol: int, x: int) -> Fraction:
        if symbol.bit_count() != self.size:
            return Fraction(0)
        if symbol >> x & 1:
            return Fraction(self.inside, self.denominator * comb(self.answers - 1, self.size - 1))
        return Fraction(
            self.denominator - self.inside, self.denominator * comb(self.answers - 1, self.size)
        )

    def symbols(self) -> Iterator[int]:
        return (
            sum(1 << x for x in chosen) for chosen in combinations(range(self.answers), self.size)
        )

    def check_symbol(self, value: object, field: str = "y") -> int:
        mask = mask_of(value, self.answers, field)
        if mask.bit_count() != self.size:
            raise unknown(f"a symbol of this block is a set of {self.size} answers", field)
        return mask
