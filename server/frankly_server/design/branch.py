# SPDX-License-Identifier: Apache-2.0
"""Branch and bound for pricing information: a certified bound of max Σ_x φ_x(t_x) − κ·t over the base (DESIGN §2).

φ_x(t) = w_x t ln(t/σ_x) is convex, so on a box it lies below its secant; the linear programme with secants in place of
φ bounds the box from above. Boxes are split where a secant is farthest from its function. The reduced costs of a box's
programme shrink it: a point off a bound by δ is worth at most bound − |reduced|·δ.
"""

import heapq
from dataclasses import dataclass

import numpy as np

from frankly_server.design.ascent import climb, worth_of
from frankly_server.design.base import Base
from frankly_server.design.gains import Information
from frankly_server.design.limits import Limits
from frankly_server.design.linear import FloatArray

_SAFETY = 1e-9
_ENOUGH = 8
"""So many better columns end a search that has proved nothing yet: new prices will serve it better."""
_PATIENCE = 40
_SEARCHED = 10


@dataclass(frozen=True, slots=True)
class _Box:
    """A box that may still hold a column worth more: its bound, where the bound is attained, and the widest gap."""

    bound: float
    low: FloatArray
    high: FloatArray
    t: FloatArray
    slope: FloatArray
    constant: FloatArray


def bound(
    base: Base, gain: Information, prices: FloatArray, tolerance: float, limits: Limits, boxes: int
) -> tuple[FloatArray, float]:
    """Return (columns worth more than `tolerance`, shape (n, a); a bound of what any column of the base is worth).

    The bound is `tolerance` itself where no column is worth more; larger if better columns were found, or if time or
    memory ran out.
    """
    first = _box(base, gain, prices, tolerance, base.low, base.high)
    heap: list[tuple[float, int, _Box]] = []
    if first is not None:
        heap.append((-first.bound, 0, first))
    found: list[FloatArray] = []
    made = popped = last = 0
    most = max(1000, limits.memory * 1_000_000 // (48 * base.answers + 400))
    while heap:
        _, _, box = heapq.heappop(heap)
        popped += 1
        if popped <= _SEARCHED or worth_of(gain, prices, box.t) > tolerance:
            t, worth = climb(base, gain, prices, box.t)
            if worth > tolerance and not any(np.allclose(t, other, rtol=0, atol=1e-9) for other in found):
                found.append(t)
                last = popped
        enough = len(found) >= _ENOUGH or (found and popped - last > _PATIENCE)
        if enough or popped >= boxes or len(heap) > most or limits.out_of_time():
            return np.array(found).reshape(-1, base.answers), box.bound
        for low, high in _halves(gain, box):
            part = _box(base, gain, prices, tolerance, low, high)
            if part is not None:
                made += 1
                heapq.heappush(heap, (-part.bound, made, part))
    return np.array(found).reshape(-1, base.answers), tolerance


def _box(
    base: Base, gain: Information, prices: FloatArray, tolerance: float, low: FloatArray, high: FloatArray
) -> _Box | None:
    """Bound a box and shrink it; None if nothing in it is worth more than `tolerance`."""
    slope, constant = gain.secant(low, high)
    found = base.support(slope - prices, low, high)
    if found is None:
        return None
    worth = found.bound + float(np.sum(constant))
    if worth <= tolerance:
        return None
    room, reduced = worth - tolerance + _SAFETY, found.reduced
    span = room / np.maximum(np.abs(reduced), _SAFETY)
    at_low, at_high = reduced < -_SAFETY, reduced > _SAFETY
    shrunk_high = np.where(at_low, np.minimum(high, low + span), high)
    shrunk_low = np.where(at_high, np.maximum(low, high - span), low)
    return _Box(worth, shrunk_low, shrunk_high, found.x, slope, constant)


def _halves(gain: Information, box: _Box) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """Split where the bound is attained, at the answer whose secant lies farthest above its function there."""
    gaps = box.slope * box.t + box.constant - gain.terms(box.t)
    x = int(np.argmax(gaps))
    at = float(box.t[x])
    low, high = float(box.low[x]), float(box.high[x])
    margin = 1e-3 * (high - low)
    at = min(max(at, low + margin), high - margin)
    below, above = box.high.copy(), box.low.copy()
    below[x], above[x] = at, at
    return (box.low, below), (above, box.high)
