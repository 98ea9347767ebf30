# SPDX-License-Identifier: Apache-2.0
"""Local search for the column of largest worth.

A convex function attains its maximum over a polytope at a vertex, so the search visits vertices.
The search proves no bound (docs/maths/generation.md, claim 3).
"""

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.information.cone_base import ConeBase
from frankly_design.optimum.information.gains import Gain

# Without this threshold, rounding errors could make the search cycle between equivalent vertices.
_NO_GAIN = 1e-13
_STEPS = 50


def climb(
    base: ConeBase, gain: Gain, prices: FloatArray, start: FloatArray
) -> tuple[FloatArray, float]:
    """Return (vertex, worth) after repeated maximisation of the linearised gain(t) − prices·t.

    The tangent is below the convex gain, so no step lowers the worth.
    """
    # The start need not be a vertex and may be slightly outside; the first vertex replaces it.
    t, value = start, -np.inf
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
