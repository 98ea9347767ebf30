# SPDX-License-Identifier: Apache-2.0
"""Chances that a symbol fits an answer to one question, exactly.

A symbol *fits* an answer to a question if no other answer to it makes the symbol more likely, where
all answers to the block's other questions are equally likely. A symbol that fits every answer says
nothing about the question on its own, and nothing at all if that holds for all answers to the other
questions. The browser SDK has the same in fits.js and agreement.js.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

_MAX_WORK = 1 << 18
"""Largest number of additions for one question; larger tables have no `Fit`."""

Range = tuple[Fraction, Fraction]
"""Least and largest chance over all answers to the block."""
ALWAYS: Range = (Fraction(1), Fraction(1))
NEVER: Range = (Fraction(0), Fraction(0))


@dataclass(frozen=True, slots=True)
class Fit:
    """Chances of what is sent about one question.

    own : the symbol fits the true answer, but not every answer. other : it fits a given other
    answer, but not every answer. silent : it says nothing about the question, whatever the answers
    to others are. is_joint : some symbol says something only together with other answers.
    """

    own: Range
    other: Range
    silent: Range
    is_joint: bool = False

    @property
    def is_plain(self) -> bool:
        """True if every symbol has a single possible answer to the question."""
        return self.own[0] == 1 and self.other[1] == 0


PLAIN = Fit(ALWAYS, NEVER, NEVER)
"""Of an answer that is sent unchanged."""
SILENT = Fit(NEVER, NEVER, ALWAYS)
"""Of a question about which nothing is sent."""


def enumerated(
    columns: Iterable[Sequence[int]], choices: int, after: int, denominator: int
) -> Fit | None:
    """Return the Fit of one question from the weight of every symbol given every answer.

    choices : number of the question's choices. after : number of joint answers to later questions.
    """
    hits: list[list[int]] = [[] for _ in range(choices)]
    silent: list[int] = []
    work, is_joint = 0, False
    for column in columns:
        if not silent:
            silent, hits = [0] * len(column), [[0] * len(column) for _ in hits]
        sums = [0] * choices
        for x, weight in enumerate(column):
            sums[x // after % choices] += weight
        most = max(sums)
        best = [a for a, total in enumerate(sums) if total == most]
        work += len(column) * (1 + len(best))
        if work > _MAX_WORK:
            return None
        rows = [hits[a] for a in best]
        if len(best) == choices:
            is_constant = all(
                weight == column[x - x // after % choices * after]
                for x, weight in enumerate(column)
            )
            rows, is_joint = [silent] * is_constant, is_joint or not is_constant
        for row in rows:
            for x, weight in enumerate(column):
                row[x] += weight
    own = [hits[x // after % choices][x] for x in range(len(silent))]
    other = [
        row[x] for a, row in enumerate(hits) for x in range(len(row)) if x // after % choices != a
    ]
    a, b, c = (_range(weights, denominator) for weights in (own, other, silent))
    return Fit(a, b, c, is_joint)


def _range(weights: Sequence[int], denominator: int) -> Range:
    return Fraction(min(weights), denominator), Fraction(max(weights), denominator)


def symmetric(answers: int, size: int, inside: Fraction) -> Fit:
    """Return the Fit of a random set of one size that contains the truth with a given chance."""
    if inside * answers == size:
        return SILENT
    # A given other answer is in the set.
    beside = (inside * (size - 1) + (1 - inside) * size) / (answers - 1)
    if inside * answers < size:  # then the set's complement fits
        inside, beside = 1 - inside, 1 - beside
    return Fit((inside, inside), (beside, beside), NEVER)
