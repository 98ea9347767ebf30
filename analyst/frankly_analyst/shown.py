# SPDX-License-Identifier: Apache-2.0
"""A figure as charts, tables and sentences show it: all of them round it in this one way."""

import math
from dataclasses import dataclass, replace
from typing import Final, Self

from frankly_analyst.plots import NUMBER, SHARE, figure
from frankly_analyst.rows import Estimate
from frankly_analyst.words import ENGLISH, Words

CONTRAST: Final = "contrast"
"""Choice of a wanted contrast, whose unit can be a share although it can be negative."""
_QUANTILES: Final = ("median", "quantile ")
"""How the names of quantiles of a scale begin."""
_TINY: Final = 1e-9
"""So that the binary error of a share such as 0.29 does not change its last digit."""
Range = tuple[float, float]
"""Smallest and largest possible value of a figure."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure, cut to what is possible, and its texts.

    estimate, low, high : None if unknown. text : of the estimate, "unknown" without one. low_text, high_text : ends of
    the interval, rounded outwards with as many digits as its width deserves, so that an interval in words
    contains the interval; "" without an interval. is_beyond : True if the whole interval lies beyond what is
    possible, so that its ends, if they were cut, would look like a figure without an error. words : the language.

    An unbiased estimate can lie outside what is possible. The nearest possible value is nearer to the
    truth, and an interval cut to what is possible contains the truth as often as before.
    """

    estimate: float | None
    low: float | None
    high: float | None
    text: str
    low_text: str
    high_text: str
    is_beyond: bool = False
    words: Words = ENGLISH

    @classmethod
    def of(
        cls,
        estimate: float | None,
        low: float | None,
        high: float | None,
        unit: str = SHARE,
        possible: Range | None = None,
    ) -> Self:
        """Return a figure as it is shown. possible : the range to which it is cut, None for none."""
        if estimate is None or low is None or high is None:
            value = _cut(estimate, possible)
            return cls(value, None, None, figure(value, unit), "", "")
        if possible is not None and (high < possible[0] or low > possible[1]):
            value = _cut(estimate, possible)
            return cls(value, None, None, figure(value, unit), "", "", is_beyond=True)
        value, low, high = (_cut(one, possible) or 0.0 for one in (estimate, low, high))
        scale, mark = (100, "%") if unit == SHARE else (1, "")
        digits = digits_of(scale * (high - low))
        return cls(
            value,
            low,
            high,
            _fixed(round(scale * value, digits), digits) + mark,
            _fixed(_floor(scale * low, digits), digits) + mark,
            _fixed(-_floor(-scale * high, digits), digits) + mark,
        )

    @classmethod
    def exact(cls, estimate: float, low: float, high: float) -> Self:
        """Return a figure that is one of a scale's numbers, such as a median, which is not rounded."""
        return cls(estimate, low, high, _plain(estimate), _plain(low), _plain(high))

    @classmethod
    def row(cls, row: Estimate, possible: Range | None = None) -> Self:
        """Return a row as it is shown. possible : the range of the scores of a mean, None if it is not known."""
        if _is_quantile(row) and not (row.estimate is None or row.low is None or row.high is None):
            return cls.exact(row.estimate, row.low, row.high)
        if row.unit == SHARE:
            possible = (0.0, 1.0)
        if row.choice == CONTRAST:
            possible = None
        return cls.of(row.estimate, row.low, row.high, row.unit, possible)

    def said_in(self, words: Words) -> Self:
        """Return this English figure in another language."""
        return replace(
            self,
            text=words.say("unknown") if self.estimate is None else words.figure(self.text),
            low_text=words.figure(self.low_text),
            high_text=words.figure(self.high_text),
            words=words,
        )

    @property
    def ends(self) -> str:
        """The interval as text, or why there is none; "" without an estimate."""
        if self.low_text:
            return self.words.say("ends", low=self.low_text, high=self.high_text)
        if self.is_beyond:
            return self.words.say("beyond")
        return "" if self.estimate is None else self.words.say("no_interval")


def digits_of(width: float) -> int:
    """Return how many decimals an interval of this width deserves, 0 to 6."""
    # A last digit is at most a tenth of the width, so that rounding outwards hardly widens the interval.
    return 2 if width <= 0 else min(6, max(0, math.floor(math.log10(100 / width) + _TINY)))


def _cut(value: float | None, possible: Range | None) -> float | None:
    if value is None or possible is None:
        return value
    return min(possible[1], max(possible[0], value))


def _floor(value: float, digits: int) -> float:
    return math.floor(value * 10.0**digits + _TINY) / 10.0**digits


def _fixed(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    # No minus sign at zero, which rounding can leave.
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "−")


def _is_quantile(row: Estimate) -> bool:
    # A combination can have any name, but then it has a standard error, which quantiles never have.
    return row.unit == NUMBER and row.se is None and row.choice.startswith(_QUANTILES)


def _plain(number: float) -> str:
    """Return a number of a scale, which has at most six decimals, with all its digits."""
    text = f"{number:.6f}".rstrip("0").rstrip(".")
    return text.removeprefix("-") if number == 0 else text.replace("-", "−")
