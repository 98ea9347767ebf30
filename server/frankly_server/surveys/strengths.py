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
_LIP_LIKE: Final = ("lip", "srlip")


@dataclass(frozen=True, slots=True)
class Strength:
    """A level with its meaning.

    epsilon : nats. sure : largest probability, in percent and rounded up, of one of two answers after
    the report, if they were equally likely before. factor : e^epsilon, rounded up. margin :
    share at the planned number of reports, None if it is unknown.
    """

    epsilon: str
    words: str
    sure: str
    factor: str
    margin: float | None


def strengths(block: BlockDefinition, rows: Iterable[LevelRow]) -> list[Strength]:
    """Return the levels that the wizard offers, weakest last.

    rows : margins by level, as far as they are known (`preview.by_level`).
    """
    margins = {Decimal(row.epsilon): row.margin for row in rows}
    lip_like = block.notion in _LIP_LIKE
    return [
        Strength(level, words, *meaning(level, lip_like=lip_like), margins.get(Decimal(level)))
        for level, words in zip(LEVELS, _WORDS, strict=True)
    ]


def meaning(epsilon: str, *, lip_like: bool) -> tuple[str, str]:
    """Return the largest certainty in percent from even odds, and the factor e^epsilon.

    Under LDP the odds change by at most e^ε, so that 1/2 grows to at most e^ε/(1 + e^ε). lip_like :
    each of the two beliefs changes by at most e^ε instead, so that 1/2 grows to at most
    min(e^ε/2, 1 − e^-ε/2). Both are rounded up.
    """
    factor = Decimal(epsilon).exp()
    sure = min(factor / 2, 1 - 1 / (2 * factor)) if lip_like else factor / (1 + factor)
    return (
        f"{(sure * 100).quantize(Decimal(1), ROUND_CEILING)}",
        f"{factor.quantize(Decimal('0.1'), ROUND_CEILING)}",
    )
