# SPDX-License-Identifier: Apache-2.0
"""Figures made of estimates: linear combinations, which stay unbiased, and ratios, which do not (DESIGN §6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

UNSURE = 3.0
"""A denominator less than so many standard errors from zero makes a ratio unusable by the delta method."""


@dataclass(frozen=True, slots=True)
class Derived:
    """value with its standard error; flags: delta_method, denominator_unsure."""

    value: float
    se: float
    flags: tuple[str, ...] = ()


def lincom(weights: Sequence[float], values: Sequence[float], covariance: Sequence[Sequence[float]]) -> Derived:
    """Return Σ w_i v_i and its standard error √(wᵀCw): exactly unbiased if the values are."""
    w, C = np.asarray(weights, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
    return Derived(float(w @ np.asarray(values)), sqrt(max(0.0, float(w @ C @ w))))


def ratio(values: tuple[float, float], covariance: Sequence[Sequence[float]]) -> Derived:
    """Return a/b and its standard error by the delta method, √(C_aa − 2 r C_ab + r² C_bb)/|b| with r = a/b.

    Flagged `delta_method` always, for it is biased by about C_bb/b² of itself; `denominator_unsure` if |b| is below
    three standard errors, where even that says nothing. Raises ZeroDivisionError if b is 0.
    """
    top, bottom = values
    r = top / bottom
    (aa, ab), (_, bb) = covariance
    se = sqrt(max(0.0, aa - 2 * r * ab + r * r * bb)) / abs(bottom)
    unsure = abs(bottom) < UNSURE * sqrt(max(0.0, bb))
    return Derived(r, se, ("delta_method", "denominator_unsure") if unsure else ("delta_method",))
