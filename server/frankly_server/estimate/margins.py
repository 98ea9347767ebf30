# SPDX-License-Identifier: Apache-2.0
"""Margins of error at a confidence level, from standard errors (DESIGN §6)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

Values = tuple[float | None, ...]
Pairs = tuple[tuple[float, float] | None, ...]

METHODS = (
    "clt", "chebyshev", "chebyshev_plugin", "hoeffding", "exact", "simultaneous", "simultaneous_plugin", "sequence",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Margins:
    """Half-widths per target, None where unknown; `exact` and `sequence` are ends [low, high].

    exact : Clopper-Pearson, for scores of two values and independent reports; None unless there is such a target. clt :
    normal approximation. chebyshev : holds at every n and every truth, from the worst-case standard error.
    chebyshev_plugin : Chebyshev's factor on the estimated standard error; *not* guaranteed (at n = 50, ε = 4 and a true
    share of 0 it covers 60%). hoeffding : holds at every n and every truth. simultaneous : for all targets at once, the
    normal factor of their largest deviation on the worst-case error. simultaneous_plugin : the same on the estimated
    error, narrower and not guaranteed at small n. sequence : holds at all n at once, for pages that people watch.
    """

    exact: Pairs | None
    clt: Values
    chebyshev: Values
    chebyshev_plugin: Values
    hoeffding: Values
    simultaneous: Values
    simultaneous_plugin: Values
    sequence: Pairs

    def half_widths(self, method: str) -> Values | None:
        """Return the half-widths of a method that has some; None for `exact` and `sequence`."""
        return None if method in ("exact", "sequence") else getattr(self, method)


def require_level(level: object, field: str = "level") -> float:
    """Return a confidence level strictly between 0 and 1. Raises InvalidInput(confidence_range)."""
    number = None if isinstance(level, bool | str) else _as_float(level)
    if number is None or not 0 < number < 1:
        raise InvalidInput(Problem.CONFIDENCE_RANGE, "the level lies strictly between 0 and 1: use 0.95", field)
    return number


def normal_quantile(level: float, targets: int = 1) -> float:
    """Return z with P(|Z| ≤ z) = level, or, for several targets, the level of each so that all hold (Bonferroni)."""
    return -NormalDist().inv_cdf((1 - level) / (2 * targets))


def chebyshev_factor(level: float) -> float:
    """Return k with 1/k² = 1 − level: √20 = 4.472 at 95% (the thesis rounds to 4.5, DESIGN §9.5)."""
    return 1 / math.sqrt(1 - level)


def times(factor: float, values: Sequence[float | None]) -> Values:
    """Return the multiples of values, None where there is none."""
    return tuple(None if value is None else factor * value for value in values)


def _as_float(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
