# SPDX-License-Identifier: Apache-2.0
"""Figures of a question: what is wanted of it, and the mean, distribution and quantiles of a scale.

Survey files, the design of forms, plans and estimates all take a question's wanted figure from here.

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
from math import isqrt
from typing import Any, Final

from frankly_protocol.blocks import Question
from frankly_protocol.questions import CONTRAST, DISTRIBUTION, MEAN, decimal_text

MEDIAN: Final = "median"
QUANTILE: Final = "quantile "
"""Prefix of the name of any other quantile; the level follows."""
UP_TO: Final = "up to "
"""Prefix of the name of a cumulative share; the number follows."""
_OFF: Final = Fraction(1, 8)
"""Distance of a ratio from its value at the expected shares for which a design allows, in its range."""
_OF_CUTS: Final = ("few_informative", "exact_not_available", "score_instead")

Weights = tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number about a question: the sum of the shares times `weights`, divided by that with `over`.

    weights : one for each choice. over : None for no division. is_number : False for a share.
    """

    name: str
    weights: Weights
    over: Weights | None = None
    is_number: bool = False


def wanted_figures(question: Question) -> tuple[Figure, ...]:
    """Return the figures for which a question is asked; () for the shares of its choices."""
    wanted = question.wanted
    if wanted is None:
        return ()
    if wanted.figure == CONTRAST:
        is_number = any(abs(number) > 1 for number in wanted.numbers)
        return (Figure(CONTRAST, wanted.numbers, is_number=is_number),)
    scale = Scale.of(question)
    if wanted.figure == DISTRIBUTION:
        return _in_order(question) if scale is None else scale.distribution
    return () if scale is None or scale.are_ranges else (scale.mean,)


def _in_order(question: Question) -> tuple[Figure, ...]:
    """Return the share up to each choice without a role but the last one, in their order."""
    answers = [i for i, choice in enumerate(question.choices) if choice.role is None]
    over = tuple(Fraction(int(choice.role is None)) for choice in question.choices)
    names = [choice.id for choice in question.choices]
    return up_to_each(answers, names, over if 0 in over else None)


def mean(scores: Weights, over: Weights | None) -> Figure:
    """Return the mean of scores. over : 1 for choices that are answers, else 0; None if all are."""
    return Figure(MEAN, scores, over, is_number=True)


def up_to_each(
    answers: Sequence[int], names: Sequence[str], over: Weights | None
) -> tuple[Figure, ...]:
    """Return the share of each answer but the last one, with all before it.

    answers : positions of the answers in their order. names : of all choices. over : as in `mean`.
    """
    return tuple(
        Figure(
            UP_TO + names[last],
            tuple(Fraction(int(i in answers[: k + 1])) for i in range(len(names))),
            over,
        )
        for k, last in enumerate(answers[:-1])
    )


@dataclass(frozen=True, slots=True)
class DesignRows:
    """Weights whose variances a design adds up.

    rows : one for each wanted figure; None for the shares of all choices. denominators : at most one
    row, for the denominator of ratios. weight : of their variances beside those of other questions:
    1/range², so that the unit of the scores has no effect.
    """

    rows: tuple[Weights, ...] | None
    denominators: tuple[Weights, ...] = ()
    weight: Fraction = Fraction(1)

    @classmethod
    def of(cls, figures: Sequence[Figure], prior: Sequence[int]) -> "DesignRows":
        """Return the rows for wanted figures; () for the shares of all choices.

        prior : expected counts of the choices. The variance of a ratio a/b is close to that of
        (a − ρb)/b with ρ its value and b the denominator at the prior (the delta method). At other
        shares, where the ratio is ρ + d, the variance of d·b/b is added: the row of the denominator
        stands for d = 1/8 of the range of every ratio (docs/maths/forms.md, claim 5).
        """
        rows = tuple(linear_row(figure, prior) for figure in figures)
        if not figures:
            return cls(None)
        # All figures of a question have the same denominator and the same range.
        span, over = span_of(figures[0]), figures[0].over
        if over is None:
            return cls(rows, (), 1 / span**2)
        distance = _OFF * span * isqrt(len(rows) * 10**6) / 10**3
        below = _at(over, prior)
        return cls(rows, (tuple(distance * w / below for w in over),), 1 / span**2)


def number_span(figures: Sequence[Figure]) -> Fraction | None:
    """Return the range of a question's wanted number over its answers; None if it is no number."""
    spans = [span_of(figure) for figure in figures if figure.is_number]
    return max(spans) if spans else None


def span_of(figure: Figure) -> Fraction:
    """Return the largest minus the smallest weight of the choices that count."""
    over = figure.over or (Fraction(1),) * len(figure.weights)
    values = [w for w, counts in zip(figure.weights, over, strict=True) if counts]
    return max(values) - min(values)


def linear_row(figure: Figure, prior: Sequence[int]) -> Weights:
    """Return the weights of (a − ρb)/b at the prior's shares, where the figure a/b is ρ.

    Without a denominator b is 1, the sum of all shares: the variance is that of the figure.
    """
    over = figure.over or (Fraction(1),) * len(figure.weights)
    below = _at(over, prior)
    ratio = _at(figure.weights, prior) / below
    return tuple((a - ratio * b) / below for a, b in zip(figure.weights, over, strict=True))


def _at(weights: Weights, prior: Sequence[int]) -> Fraction:
    return sum((w * n for w, n in zip(weights, prior, strict=True)), Fraction(0)) / sum(prior)


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

    @property
    def mean(self) -> "Figure":
        """The mean of the numbers; not for ranges."""
        return mean(tuple(number or Fraction(0) for number in self.by_choice), self.over)

    @property
    def distribution(self) -> tuple["Figure", ...]:
        """The share up to each number but the last one, whose share is 1."""
        figures = []
        for number, following in pairwise(self.numbers):
            # A range ends where the next one begins.
            end = following - 1 if self.are_ranges else number
            weights = tuple(Fraction(int(v is not None and v <= number)) for v in self.by_choice)
            figures.append(Figure(UP_TO + decimal_text(end), weights, self.over))
        return tuple(figures)

    @property
    def figures(self) -> tuple["Figure", ...]:
        """The mean, if there is one, and the distribution."""
        return self.distribution if self.are_ranges else (self.mean, *self.distribution)

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
