# SPDX-License-Identifier: Apache-2.0
"""Branch and bound: a certified bound of max Σ_x φ_x(t_x) − κ·t over a base (spec 1.6).

κ are the prices. φ_x(t) = w_x t ln(t/σ_x) is convex, so on a box it is below its secant, and the
linear programme with secants instead of φ bounds the box from above. Boxes are split in the
coordinate with the largest gap between secant and function. The reduced costs of a box's programme
shrink the box: a point at distance δ from the side that they favour is worth at most
bound − |reduced|·δ. Proofs: docs/maths/generation.md, claims 4 to 6.
"""

from functools import partial

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.boxes import ENOUGH_COLUMNS, OpenBox, best_first, shrunk
from frankly_design.optimum.information.ascent import climb, worth_of
from frankly_design.optimum.information.cone_base import ConeBase
from frankly_design.optimum.information.gains import Information
from frankly_design.tables.limits import Limits

# rounding: keeps boxes slightly larger than the duality argument requires
_SAFETY = 1e-9
# After its first column, a search ends if this many boxes give no further column.
_PATIENCE = 40
# The local search starts at the points of this many boxes, and later only at points that are worth
# more than the tolerance.
_SEARCHED_BOXES = 10


def bound(
    base: ConeBase,
    gain: Information,
    prices: FloatArray,
    tolerance: float,
    limits: Limits,
    boxes: int,
) -> tuple[FloatArray, float]:
    """Return columns worth more than `tolerance`, shape (n, a), and a bound of every worth.

    The bound is `tolerance` if that is proved for every column. It is larger if the search ended
    early: with enough columns, or because time, memory or `boxes` ran out.
    """
    columns: list[FloatArray] = []
    largest, last_success = tolerance, 0
    # An open box takes at most about 48·a + 400 bytes: float arrays of length a and overhead.
    max_open = max(1000, limits.memory * 1_000_000 // (48 * base.answers + 400))
    search = best_first(partial(_box, base, gain, prices, tolerance), base.low, base.high)
    for popped, (box, open_count) in enumerate(search, 1):
        if popped <= _SEARCHED_BOXES or worth_of(gain, prices, box.x) > tolerance:
            t, worth = climb(base, gain, prices, box.x)
            if worth > tolerance and not any(
                np.allclose(t, column, rtol=0, atol=1e-9) for column in columns
            ):
                columns.append(t)
                last_success = popped
        enough = len(columns) >= ENOUGH_COLUMNS or (columns and popped - last_success > _PATIENCE)
        if enough or popped >= boxes or open_count > max_open or limits.out_of_time():
            largest = box.bound
            break
    return np.array(columns).reshape(-1, base.answers), largest


def _box(
    base: ConeBase,
    gain: Information,
    prices: FloatArray,
    tolerance: float,
    low: FloatArray,
    high: FloatArray,
) -> OpenBox | None:
    """Narrow, bound and shrink a box; return None if no point in it exceeds `tolerance`."""
    narrowed = base.narrowed(low, high)
    if narrowed is None:
        return None
    low, high = narrowed
    slope, constant = gain.secant(low, high)
    support = base.support(slope - prices, low, high)
    if support is None:
        return None
    worth = support.bound + float(np.sum(constant))
    if worth <= tolerance:
        return None
    low, high = shrunk(low, high, support, worth, tolerance, _SAFETY)
    gaps = slope * support.x + constant - gain.terms(support.x)
    return OpenBox(worth, low, high, support.x, int(np.argmax(gaps)))
