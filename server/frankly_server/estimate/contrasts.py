# SPDX-License-Identifier: Apache-2.0
"""Figures made of estimates: linear combinations, which stay unbiased, and ratios, which do not (DESIGN §6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Derived:
    """value with its standard error."""

    value: float
    se: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """value, its standard error by the delta method, and the ends of its interval; None if that is unbounded."""

    value: float
    se: float
    ends: Ends | None


def lincom(weights: Sequence[float], values: Sequence[float], covariance: Sequence[Sequence[float]]) -> Derived:
    """Return Σ w_i v_i and its standard error √(wᵀCw): exactly unbiased if the values are."""
    w, C = np.asarray(weights, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
    return Derived(float(w @ np.asarray(values)), sqrt(max(0.0, float(w @ C @ w))))


def lincom_ends(
    weights: Sequence[float],
    values: Sequence[float],
    covariance: Sequence[Sequence[float]],
    reaches: Sequence[Ends],
    z: float,
) -> Ends:
    """Return an interval of Σ w_i v_i from those of the v_i, no narrower than the normal one [Zou and Donner 2008].

    The distance of each end is made of the v_i's own distances as a standard error is made of theirs, with the same
    correlations. Where a variance is estimated as 0 no correlation is known, and the distances simply add.

    reaches : how far each v_i's interval reaches below and above it. z : normal quantile of the same level.
    """
    found, w, C = lincom(weights, values, covariance), np.asarray(weights, dtype=np.float64), np.asarray(covariance)
    spread = np.sqrt(np.maximum(0.0, np.diagonal(C)))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.clip(C / np.outer(spread, spread), -1.0, 1.0)
    worst = np.sign(np.outer(w, w))
    correlation = np.where(np.outer(spread, spread) > 0, correlation, worst)
    np.fill_diagonal(correlation, 1.0)
    below, above = (
        sqrt(max(0.0, float(part @ correlation @ part)))
        for part in (
            w * [pair[side if w_i > 0 else 1 - side] for w_i, pair in zip(w, reaches, strict=True)] for side in (0, 1)
        )
    )
    return found.value - max(below, z * found.se), found.value + max(above, z * found.se)


def ratio(values: tuple[float, float], covariance: Sequence[Sequence[float]], ends: tuple[Ends, Ends]) -> Ratio:
    """Return a/b with an interval from those of a and of b, by Fieller's method [Fieller 1954; Donner and Zou 2012].

    The interval holds every ρ for which the interval of a − ρb holds 0. The distances of that interval's ends from its
    estimate follow from the distances for a and b and from their correlation, as standard errors do; they may be
    different below and above. With normal intervals this is Fieller's own. It is unbounded if and only if the interval
    of b holds 0.

    values : a and b. covariance : of both. ends : intervals of both. Raises ZeroDivisionError if b is 0.
    """
    top, bottom = values
    value = top / bottom
    (aa, ab), (_, bb) = covariance
    se = sqrt(max(0.0, aa - 2 * value * ab + value * value * bb)) / abs(bottom)
    correlation = min(max(ab / sqrt(aa * bb), -1.0), 1.0) if aa > 0 and bb > 0 else 0.0
    of, over = (reach(v, pair) for v, pair in zip(values, ends, strict=True))
    if bottom < 0:
        top, bottom, of, over = -top, -bottom, of[::-1], over[::-1]
    if over[0] >= bottom:
        return Ratio(value, se, None)
    high = _upper(top, of[1], bottom, over, correlation)
    low = -_upper(-top, of[0], bottom, over, -correlation)
    return Ratio(value, se, (low, high))


def reach(value: float, ends: Ends) -> Ends:
    """Return the distances of the ends below and above a value."""
    return max(0.0, value - ends[0]), max(0.0, ends[1] - value)


def _upper(top: float, above: float, bottom: float, over: Ends, correlation: float) -> float:
    """Return the largest ρ with ρb − a ≤ √(u² − 2ρ·r·u·v + ρ²v²), for b > 0.

    u : how far the interval of a reaches above a. v : how far that of b reaches below b, or, for ρ < 0, above b.
    """
    if top < 0 and -top > above:
        # The end lies between a/b and 0: both sides squared differ in sign there, so there is one root.
        roots = _roots(top, above, bottom, over[1], correlation)
        return min((root for root in roots if top / bottom <= root <= 0), default=top / bottom)
    return max(_roots(top, above, bottom, over[0], correlation))


def _roots(top: float, u: float, bottom: float, v: float, correlation: float) -> tuple[float, ...]:
    """Return the roots of (b² − v²)ρ² − 2(ab − r·u·v)ρ + a² − u²."""
    square, half, constant = bottom**2 - v**2, top * bottom - correlation * u * v, top**2 - u**2
    # rounding: the discriminant is that of an equation with a root, so it is below 0 by rounding only
    far = half + np.copysign(sqrt(max(0.0, half**2 - square * constant)), half)
    if far == 0:
        return (0.0,)
    return (constant / far, far / square) if square != 0 else (constant / far,)
