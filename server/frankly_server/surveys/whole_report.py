# SPDX-License-Identifier: Apache-2.0
"""The level of a whole report, for people (factors) and for machines (nats); every figure is rounded up."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from frankly_protocol.audit import DEVICE_CAP, ReportLevel, ln_up

ANSWERS: Final = "the answers themselves, or anything else"
"""The last line of a table: the bound that holds whatever is known."""
HEADERS: Final = ("about", "belief, at most", "odds, at most", "odds by the public answers alone")


@dataclass(frozen=True, slots=True)
class Telling:
    """Factors by which everything that is sent can change what is believed about one thing; "∞" without a bound.

    belief, odds : given the public answers. strata_odds : by the public answers alone; None about the answers.
    """

    about: str
    belief: str
    odds: str
    strata_odds: str | None


def tellings(level: ReportLevel) -> Sequence[Telling]:
    """Return one line for each protected secret, then one for the answers themselves."""
    found = [
        Telling(name, times(secret.level), times(secret.odds), times(secret.strata_odds))
        for name, secret in level.secrets.items()
    ]
    return [*found, Telling(ANSWERS, times(level.answers.odds), times(level.answers.odds), None)]


def telling_rows(level: ReportLevel, *, has_strata: bool) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return the headers and the lines of `tellings` as a table; without public questions it has no column for them."""
    width = len(HEADERS) if has_strata else len(HEADERS) - 1
    rows = [(told.about, *map(_factor, (told.belief, told.odds, told.strata_odds))) for told in tellings(level)]
    return HEADERS[:width], [row[:width] for row in rows]


def cost_words(level: ReportLevel) -> str:
    """Return what answering costs, in the words of every page and command that tells it."""
    budget = f"of a device's budget, {DEVICE_CAP} nats unless its app sets another"
    if level.cost.odds is None:
        return f"Answering costs all {budget}, for ever."
    return f"Answering costs {ln_up(level.cost.odds)} nats {budget}."


def report_json(level: ReportLevel) -> dict[str, Any]:
    """Return the level in nats as decimal texts, "inf" without a bound; `odds` is nats of log-odds."""
    return {
        "secrets": {
            name: {"level": ln_up(secret.level), "odds": ln_up(secret.odds), "strata_odds": ln_up(secret.strata_odds)}
            for name, secret in level.secrets.items()
        },
        "answers": {"level": ln_up(level.answers.level), "odds": ln_up(level.answers.odds)},
        "cost": ln_up(level.cost.odds),
    }


def _factor(shown: str | None) -> str:
    return "–" if shown is None else f"×{shown}"


def times(ratio: Fraction | None) -> str:
    """Return a factor with two decimals, rounded up; "∞" for None."""
    if ratio is None:
        return "∞"
    hundredths = -(-ratio.numerator * 100 // ratio.denominator)
    return f"{hundredths // 100}.{hundredths % 100:02}"
