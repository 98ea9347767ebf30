# SPDX-License-Identifier: Apache-2.0
"""Strengths of a protection in words, for the wizard: what a level means for one respondent."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Final

from frankly_server.surveys.definition import BlockDefinition
from frankly_server.surveys.preview import LEVELS, LevelRow

_WORDS: Final = (
    "Extremely strong",
    "Very strong",
    "Strong",
    "Fairly strong",
    "Moderate",
    "Weak",
    "Very weak",
)
_OF_ODDS: Final = ("ldp", "secret-ldp", "rldp")
_OF_BELIEF: Final = ("lip", "srlip")


@dataclass(frozen=True, slots=True)
class Strength:
    """A level with its meaning.

    epsilon : nats. sure : largest probability, in percent and rounded up, of one of two values of the
    secret after the report, if they were equally likely before. factor : largest change of their
    odds, rounded up. Both are None under a notion that does not bound them by epsilon alone.
    margin : share at the planned number of reports, None if it is unknown.
    """

    epsilon: str
    words: str
    sure: str | None
    factor: str | None
    margin: float | None


def strengths(block: BlockDefinition, rows: Iterable[LevelRow]) -> list[Strength]:
    """Return the levels that the wizard offers, weakest last.

    rows : margins by level, as far as they are known (`preview.by_level`).
    """
    margins = {Decimal(row.epsilon): row.margin for row in rows}
    return [
        Strength(level, words, sure, factor, margins.get(Decimal(level)))
        for level, words in zip(LEVELS, _WORDS, strict=True)
        for sure, factor in [meaning(level, block.notion)]
    ]


def meaning(epsilon: str, notion: str | None) -> tuple[str, str] | tuple[None, None]:
    """Return the largest certainty in percent from even odds, and the largest change of the odds.

    Under LDP the odds change by at most e^ε, so that 1/2 grows to at most e^ε/(1 + e^ε). Under LIP
    each of the two beliefs changes by at most e^ε instead, under the prior of the counts; their
    odds change by at most the square, from even odds too. Both are rounded up.
    """
    factor = Decimal(epsilon).exp()
    if notion in _OF_BELIEF:
        factor **= 2
    elif notion not in _OF_ODDS:
        return None, None
    sure = factor / (1 + factor)
    return (
        f"{(sure * 100).quantize(Decimal(1), ROUND_CEILING)}",
        f"{factor.quantize(Decimal('0.1'), ROUND_CEILING)}",
    )
