# SPDX-License-Identifier: Apache-2.0
"""Privacy level of a whole report: as factors for people, in nats for JSON; all rounded up."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from frankly_protocol.audit import DEVICE_CAP, ReportLevel, ln_up

ANSWERS: Final = "the answers themselves, or anything else"
"""Label of the last line of a table, whose bound holds for any prior knowledge."""
HEADERS: Final = ("about", "belief, at most", "odds, at most", "odds by the public answers alone")


@dataclass(frozen=True, slots=True)
class LevelFactors:
    """Factors by which a whole report can change beliefs about one secret; "∞" without a bound.

    belief, odds : by the randomised answers, given the public ones. strata_odds : by the public
    answers alone; None in the line about the answers themselves.
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
    level: ReportLevel,
    *,
    has_strata: bool,
) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return headers and rows of `level_factors`; the last column is left out without strata."""
    width = len(HEADERS) if has_strata else len(HEADERS) - 1
    rows = [
        (factors.about, *map(_factor, (factors.belief, factors.odds, factors.strata_odds)))
        for factors in level_factors(level)
    ]
    return HEADERS[:width], [row[:width] for row in rows]


def cost_words(level: ReportLevel) -> str:
    """Return a sentence about the cost of answering, for pages and commands."""
    budget = f"of a device's budget, {DEVICE_CAP} nats unless its app sets another"
    # An infinite cost uses up the budget of every device.
    if level.cost.odds is None:
        return f"Answering costs all {budget}, for ever."
    return f"Answering costs {ln_up(level.cost.odds)} nats {budget}."


def report_json(level: ReportLevel) -> dict[str, Any]:
    """Return the level in nats as decimal texts, "inf" without a bound; `odds` bound log-odds."""
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


def times(ratio: Fraction | None) -> str:
    """Return a factor with two decimals, rounded up; "∞" for None."""
    if ratio is None:
        return "∞"
    # Ceiling division: a factor is never shown too small.
    hundredths = -(-ratio.numerator * 100 // ratio.denominator)
    return f"{hundredths // 100}.{hundredths % 100:02}"
