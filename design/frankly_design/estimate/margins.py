# SPDX-License-Identifier: Apache-2.0
"""Margins of error at a confidence level: methods, factors and their results (spec 8.4)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

Values = tuple[float | None, ...]
Pairs = tuple[tuple[float, float] | None, ...]

METHODS = (
    "score",
    "kl",
    "exact",
    "clt",
    "chebyshev",
    "chebyshev_plugin",
    "simultaneous",
    "simultaneous_plugin",
    "sequence",
)
DEFAULT = "score"
OF_TWO_ENDS = ("score", "kl", "exact", "sequence")


@dataclass(frozen=True, slots=True)
class Margins:
    """Margins per target: ends [low, high] for `OF_TWO_ENDS`, half-widths for the others.

    Unknown margins are None.

    score : at each end, the wider of the score interval (Wilson's, for scores of two values) and
    the
        normal interval; cut to the possible values or to the estimate, whichever is further out.
        The width is 0 only if the variance is 0 under every truth.
    uncut : `score` before it is cut, for combinations of several estimates.
    kl : Chernoff bound, valid at every n and all true shares.
    exact : Clopper-Pearson, for scores of two values and independent reports; None if there is no
        such target.
    clt : normal approximation.
    chebyshev : Chebyshev's factor times the worst-case standard error; valid at every n and every
        truth.
    chebyshev_plugin : Chebyshev's factor times the estimated standard error, which is *not*
        guaranteed (at n = 50, ε = 4 and a true share of 0 it covers 60%).
    simultaneous : the normal factor of the largest deviation of all targets, times the worst-case
        standard error.
    simultaneous_plugin : the same with the estimated standard error; narrower, but not guaranteed
        at small n.
    sequence : valid at all n simultaneously, for pages that are watched while reports arrive.
    """

    score: Pairs
    uncut: Pairs
    kl: Pairs
    exact: Pairs | None
    clt: Values
    chebyshev: Values
    chebyshev_plugin: Values
    simultaneous: Values
    simultaneous_plugin: Values
    sequence: Pairs

    def ends(self, method: str, estimates: Values) -> Pairs:
        """Return [low, high] of each target by any method.

        estimates : centres of the intervals, used for methods with half-widths.
        """
        margins = getattr(self, method)
        if method in OF_TWO_ENDS:
            return (None,) * len(estimates) if margins is None else margins
        halves = zip(estimates, margins, strict=True)
        return tuple(
            None if v is None or half is None else (v - half, v + half) for v, half in halves
        )


def require_level(level: object, field: str = "level") -> float:
    """Return a confidence level strictly between 0 and 1. Raises InvalidInput(confidence_range)."""
    # float() would accept True and the text "0.95".
    number = None if isinstance(level, bool | str) else _as_float(level)
    if number is None or not 0 < number < 1:
        raise InvalidInput(
            Problem.CONFIDENCE_RANGE, "the level lies strictly between 0 and 1: use 0.95", field
        )
    return number


def normal_quantile(level: float, targets: int = 1) -> float:
    """Return z with P(|Z| ≤ z) = level, or P(every |Z_t| ≤ z) ≥ level for several targets.

    The factor for several targets is Bonferroni's.
    """
    # The lower tail is used, because 1 − tail would lose digits at high levels.
    return -NormalDist().inv_cdf((1 - level) / (2 * targets))


def widened(
    value: float, ends: tuple[float, float], se: float, z: float, wider: float
) -> tuple[float, float]:
    """Return a score interval at the quantile `wider`, or an outer bound of it, from the one at z.

    A distance of a score interval is that of the normal interval, which is linear in the quantile,
    plus an excess. The excess grows at most like the cube of the quantile, the sum like its square.
    """
    normal, times = z * se, wider / max(z, 1e-9)
    below, above = (
        min(wider * se + times**3 * max(0.0, distance - normal), times**2 * max(distance, normal))
        for distance in (value - ends[0], ends[1] - value)
    )
    return value - below, value + above


def chebyshev_factor(level: float) -> float:
    """Return k with 1/k² = 1 − level: √20 = 4.472 at 95% (the thesis rounds to 4.5, erratum 9.5)."""
    return 1 / math.sqrt(1 - level)


def times(factor: float, values: Sequence[float | None]) -> Values:
    """Return the values times a factor; None stays None."""
    return tuple(None if value is None else factor * value for value in values)


def _as_float(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
