# SPDX-License-Identifier: Apache-2.0
"""Strengths of a protection: the named stops of the slider, which mean the same under every notion.

A stop bounds how much a report can change the odds between two answers, or two values of the secret; if only
one answer is sensitive, how much the odds of this answer against any other can grow.
"""

from decimal import ROUND_CEILING, Decimal
from typing import Final

from frankly_design.notions.declared.registry import DECLARED

STOPS: Final = ("0.25", "0.5", "1", "1.5", "2", "3", "4")
"""Bounds on the odds in nats of log-odds, the strongest protection first."""
WORDS: Final = (
    "Extremely strong",
    "Very strong",
    "Strong",
    "Fairly strong",
    "Moderate",
    "Weak",
    "Very weak",
)
"""The names of the stops, in the same order."""
FACTORS: Final = tuple(
    f"{Decimal(nats).exp().quantize(Decimal('0.01'), ROUND_CEILING)}" for nats in STOPS
)
"""The largest changes of the odds at the stops, rounded up, in the same order."""


def level_at(stop: int, notion: str) -> str:
    """Return the level of a notion at a stop, in nats.

    Under LIP a level bounds each of two beliefs, so that their odds are bounded by twice the level;
    under the other notions with one level it bounds the odds themselves.
    """
    nats = Decimal(STOPS[stop])
    return f"{(nats / 2 if _bounds(notion) == 'belief' else nats).normalize():f}"


def stop_of(epsilon: str | None, notion: str | None) -> int | None:
    """Return the stop that a level is at or next to; None for a notion without a bound on the odds alone.

    A level between two stops counts as the weaker one, so that a name never says too much.
    """
    if epsilon is None or notion is None or _bounds(notion) is None:
        return None
    levels = [Decimal(level_at(stop, notion)) for stop in range(len(STOPS))]
    return next(
        (stop for stop, level in enumerate(levels) if Decimal(epsilon) <= level), len(levels) - 1
    )


def _bounds(notion: str) -> str | None:
    return DECLARED[notion].bounds if notion in DECLARED else None


def strength_of(epsilon: str | None, notion: str | None) -> str | None:
    """Return the name of a level; None as in `stop_of`."""
    stop = stop_of(epsilon, notion)
    return None if stop is None else WORDS[stop]
