# SPDX-License-Identifier: Apache-2.0
"""Local search for the best column: a convex function has its maximum at a vertex of the base."""

import numpy as np

from frankly_server.design.base import Base
from frankly_server.design.gains import Gain
from frankly_server.design.linear import FloatArray

_NO_GAIN = 1e-13
_STEPS = 50


def climb(base: Base, gain: Gain, prices: FloatArray, start: FloatArray) -> tuple[FloatArray, float]:
    """Maximise the linearised gain(t) − prices·t again and again; return the vertex reached and what it is worth."""
    t, value = start, -np.inf  # the start itself is no vertex, perhaps not even quite inside
    for _ in range(_STEPS):
        vertex = base.vertex(gain.slope(t) - prices)
        worth = worth_of(gain, prices, vertex)
        if worth <= value + _NO_GAIN:
            break
        t, value = vertex, worth
    return t, value


def worth_of(gain: Gain, prices: FloatArray, t: FloatArray) -> float:
    """Return gain(t) − prices·t for one column, shape (a,)."""
    return float(gain.values(t[None])[0] - prices @ t)
