# SPDX-License-Identifier: Apache-2.0
"""Branch and bound: a certified bound of max Σ_x φ_x(t_x) − κ·t over a base (spec 1.6).

κ are the prices. φ_x(t) = w_x t ln(t/σ_x) is convex, so on a box it lies below its secant, and the
linear programme with secants in place of φ bounds the box from above. Boxes are split in the
coordinate with the largest gap between secant and function. The reduced costs of a box's programme
shrink it: a point at distance δ from the side that they favour is worth at most
bound − |reduced|·δ. Proofs: docs/maths/generation.md, claims 4 to 6.
"""

import heapq
from dataclasses import dataclass

import numpy as np

from frankly_server.design.optimum.information.ascent import climb, worth_of
from frankly_server.design.optimum.information.cone_base import ConeBase
from frankly_server.design.optimum.information.gains import Information
from frankly_server.design.tables.limits import Limits
from frankly_server.design.tables.linear import FloatArray

# rounding: keeps boxes slightly larger than the duality argument requires
_SAFETY = 1e-9
_ENOUGH_COLUMNS = 8
"""A search ends without a proof once it has this many columns: they change the prices first."""
# A search that has found a column ends after this many boxes without another one.
_PATIENCE = 40
# Local search starts at the points of this many boxes, and later only at points that are worth more
# than the tolerance.
_SEARCHED_BOXES = 10


@dataclass(frozen=True, slots=True)
class _OpenBox:
    """Open box: its bound, the solution `t` of its programme, and the secants (slope, constant)."""

    bound: float
    low: FloatArray
    high: FloatArray
    t: FloatArray
    slope: FloatArray
    constant: FloatArray


def bound(
    base: ConeBase,
    gain: Information,
    prices: FloatArray,
    tolerance: float,
    limits: Limits,
    boxes: int,
) -> tuple[FloatArray, float]:
    """Return columns worth more than `tolerance`, shape (n, a), and a bound of every worth.

    The bound is `tolerance` itself if that is proved for every column. It is larger if the search
    ended early: with enough columns, or because time, memory or `boxes` ran out.
    """
    root = _box(base, gain, prices, tolerance, base.low, base.high)
    # The counter in the tuples breaks ties of equal bounds, because boxes cannot be compared.
    heap: list[tuple[float, int, _OpenBox]] = []
    if root is not None:
        heap.append((-root.bound, 0, root))
    columns: list[FloatArray] = []
    pushed = popped = last_success = 0
    # An open box takes about 48·a + 400 bytes: five float arrays of length a and their overhead.
    max_open = max(1000, limits.memory * 1_000_000 // (48 * base.answers + 400))
    # Best first: when the search is cut short, the largest open bound bounds every column.
    while heap:
        _, _, box = heapq.heappop(heap)
        popped += 1
        if popped <= _SEARCHED_BOXES or worth_of(gain, prices, box.t) > tolerance:
            t, worth = climb(base, gain, prices, box.t)
            if worth > tolerance and not any(
                np.allclose(t, column, rtol=0, atol=1e-9) for column in columns
            ):
                columns.append(t)
                last_success = popped
        enough = len(columns) >= _ENOUGH_COLUMNS or (columns and popped - last_success > _PATIENCE)
        if enough or popped >= boxes or len(heap) > max_open or limits.out_of_time():
            return np.array(columns).reshape(-1, base.answers), box.bound
        for low, high in _halves(gain, box):
            child = _box(base, gain, prices, tolerance, low, high)
            if child is not None:
                pushed += 1
                heapq.heappush(heap, (-child.bound, pushed, child))
    return np.array(columns).reshape(-1, base.answers), tolerance


def _box(
    base: ConeBase,
    gain: Information,
    prices: FloatArray,
    tolerance: float,
    low: FloatArray,
    high: FloatArray,
) -> _OpenBox | None:
    """Bound a box and shrink it; return None if nothing in it is worth more than `tolerance`."""
    slope, constant = gain.secant(low, high)
    support = base.support(slope - prices, low, high)
    if support is None:
        return None
    worth = support.bound + float(np.sum(constant))
    if worth <= tolerance:
        return None
    # A point worth more than the tolerance lies within room/|reduced| of the side that the reduced
    # cost favours, so the box shrinks to that part.
    room, reduced = worth - tolerance + _SAFETY, support.reduced
    span = room / np.maximum(np.abs(reduced), _SAFETY)
    at_low, at_high = reduced < -_SAFETY, reduced > _SAFETY
    shrunk_high = np.where(at_low, np.minimum(high, low + span), high)
    shrunk_low = np.where(at_high, np.maximum(low, high - span), low)
    return _OpenBox(worth, shrunk_low, shrunk_high, support.x, slope, constant)


def _halves(
    gain: Information,
    box: _OpenBox,
) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """Split a box at its `t`, where the gap between a secant and its function is largest."""
    gaps = box.slope * box.t + box.constant - gain.terms(box.t)
    x = int(np.argmax(gaps))
    at = float(box.t[x])
    low, high = float(box.low[x]), float(box.high[x])
    # Each half loses at least 0.1% of the width, so that finitely many boxes suffice.
    margin = 1e-3 * (high - low)
    at = min(max(at, low + margin), high - margin)
    below, above = box.high.copy(), box.low.copy()
    below[x], above[x] = at, at
    return (box.low, below), (above, box.high)
