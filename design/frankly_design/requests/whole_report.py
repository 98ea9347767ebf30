# SPDX-License-Identifier: Apache-2.0
"""Privacy level of a complete report: factors for people, nats for JSON, all rounded up."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import Any, Final

from frankly_protocol.audit import DEVICE_CAP, ReportLevel, ln_up
from frankly_protocol.audit.bounds import times

ANSWERS: Final = "the answers themselves, or anything else"
"""Label of the last line of a table, whose bound holds for any prior knowledge."""
HEADERS: Final = ("about", "belief, at most", "odds, at most", "odds by the public answers alone")


@dataclass(frozen=True, slots=True)
class LevelFactors:
    """Factors by which a report can change beliefs about one secret; "∞" if unbounded.

    belief, odds : factors of the randomised answers, given the public ones. strata_odds : factor of
    the public answers alone; None in the line about the answers themselves.
    """

    about: str
    belief: str
    odds: str
    strata_odds: str | None


def level_factors(level: ReportLevel) -> Sequence[LevelFactors]:
    """Return one line for each protected secret, then one for the answers themselves."""
    rows = [
        LevelFactors(name, times(secret.level), times(secret.odds), times(secret.strata_odds))
        for name, secret in level.secrets.items()
    ]
    return [
        *rows,
        LevelFactors(ANSWERS, times(level.answers.odds), times(level.answers.odds), None),
    ]


def level_table(
    level: ReportLevel, *, has_strata: bool
) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return headers and rows of `level_factors`; without strata the last column is left out."""
    width = len(HEADERS) if has_strata else len(HEADERS) - 1
    rows = [
        (factors.about, *map(_factor, (factors.belief, factors.odds, factors.strata_odds)))
        for factors in level_factors(level)
    ]
    return HEADERS[:width], [row[:width] for row in rows]


def cost_words(level: ReportLevel) -> str:
    """Return a sentence about the cost of answering, for pages and commands."""
    # An infinite cost exhausts the budget of any device.
    if level.cost.odds is None:
        return (
            f"Answering permanently uses up a device's whole budget ({DEVICE_CAP} nats unless its app "
            "sets another)."
        )
    budget = f"of a device's budget, {DEVICE_CAP} nats unless its app sets another"
    return f"Answering costs {ln_up(level.cost.odds)} nats {budget}."


def cost_share_words(level: ReportLevel) -> str:
    """Return the sentence of `cost_words` without nats, for people who have not met them."""
    every = "what a device allows in all surveys together, unless its app sets another limit"
    if level.cost.odds is None:
        return f"Answering uses up for good all of {every}."
    # rounding: up, like every cost.
    percent = ceil(100 * Decimal(ln_up(level.cost.odds)) / Decimal(DEVICE_CAP))
    if percent > 100:
        return f"Answering costs more than {every}."
    return f"Answering uses up {percent}% of {every}. When all is used up, the device answers no further survey."


def report_json(level: ReportLevel) -> dict[str, Any]:
    """Return the level in nats as decimal texts, "inf" if unbounded; `odds` bound log-odds."""
    return {
        "secrets": {
            name: {
                "level": ln_up(secret.level),
                "odds": ln_up(secret.odds),
                "strata_odds": ln_up(secret.strata_odds),
            }
            for name, secret in level.secrets.items()
        },
        "answers": {"level": ln_up(level.answers.level), "odds": ln_up(level.answers.odds)},
        "cost": ln_up(level.cost.odds),
    }


def _factor(factor: str | None) -> str:
    return "–" if factor is None else f"×{factor}"
