# SPDX-License-Identifier: Apache-2.0
"""Scales: numbers assigned to a question's choices, with mean, distribution and quantiles.

A choice has a score, or a range with a known smallest number. Choices with a role ("prefer not to
say", "does not apply") have no number: all figures refer to people whose answer has a number.

The quantile at q, for q = 1/2 the median, is the smallest number v with F(v) ≥ q, where F(v) is the
share of answers up to v. Its interval follows from the intervals of F: it begins at the first v
whose upper end reaches q, and ends at the number after the last v whose lower end is below q. The
interval misses the quantile on one side only if the interval of F at one fixed v misses F(v) on
that side (docs/maths/margins.md, claim 14).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from frankly_protocol.blocks import Question
from frankly_protocol.questions import decimal_text

MEAN: Final = "mean"
MEDIAN: Final = "median"
QUANTILE: Final = "quantile "
"""Prefix of the name of any other quantile; the level follows."""
UP_TO: Final = "up to "
"""Prefix of the name of a cumulative share; the number follows."""
_OF_CUTS: Final = ("few_informative", "exact_not_available", "score_instead")

Weights = tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers of a question's choices.

    by_choice : the number of each choice, None for a choice with a role. are_ranges : True if the
    numbers are the smallest numbers of ranges, which have no mean.
    """

    by_choice: tuple[Fraction | None, ...]
    are_ranges: bool

    @classmethod
    def of(cls, question: Question) -> "Scale | None":
        """Return the scale of a question, None if it has fewer than two different numbers."""
        scores = tuple(choice.score for choice in question.choices)
        lows = tuple(
            None if choice.low is None else Fraction(choice.low) for choice in question.choices
        )
        numbers = next((values for values in (scores, lows) if len(set(values) - {None}) > 1), None)
        return None if numbers is None else cls(numbers, are_ranges=numbers is lows)

    @property
    def numbers(self) -> list[Fraction]:
        """The different numbers, in increasing order."""
        return sorted({number for number in self.by_choice if number is not None})

    @property
    def over(self) -> Weights | None:
        """Weights of the answers that have a number; None if all have one."""
        if None not in self.by_choice:
            return None
        return tuple(Fraction(int(number is not None)) for number in self.by_choice)

    def named_weights(self) -> dict[str, Weights]:
        """Return the weights of the mean, if there is one, and of the share up to each number.

        The last number is left out, because its cumulative share is 1.
        """
        numbers = self.numbers
        named = {}
        if not self.are_ranges:
            named[MEAN] = tuple(number or Fraction(0) for number in self.by_choice)
        for number, following in pairwise(numbers):
            # A range ends where the next one begins.
            end = following - 1 if self.are_ranges else number
            named[UP_TO + decimal_text(end)] = tuple(
                Fraction(int(v is not None and v <= number)) for v in self.by_choice
            )
        return named

    def quantile(self, cuts: Sequence[Mapping[str, Any]], level: float) -> dict[str, Any] | None:
        """Return the figures of a quantile from the rows of the distribution, in order.

        level : share of the answers up to the quantile, ½ for the median.

        For ranges, the numbers are the smallest of each range. Returns None if a row has no
        estimate.
        """
        numbers, last = [float(number) for number in self.numbers], len(cuts)
        if last + 1 < len(numbers) or any(cut["estimate"] is None for cut in cuts):
            return None
        # The cumulative share of the last number is 1. A share without an interval can be any
        # value.
        shares = [*(cut["estimate"] for cut in cuts), 1.0]
        lows = [-1.0 if cut["low"] is None else cut["low"] for cut in cuts]
        highs = [*(2.0 if cut["high"] is None else cut["high"] for cut in cuts), 1.0]
        value = numbers[next(i for i, share in enumerate(shares) if share >= level)]
        low = numbers[next(i for i, high in enumerate(highs) if high >= level)]
        high = numbers[max((i + 1 for i, end in enumerate(lows) if end < level), default=0)]
        flags = [flag for flag in _OF_CUTS if any(flag in cut["flags"] for cut in cuts)]
        return {
            "estimate": value,
            "low": low,
            "high": high,
            "margin": max(value - low, high - value),
            "method": cuts[0]["method"],
            "flags": flags,
        }
