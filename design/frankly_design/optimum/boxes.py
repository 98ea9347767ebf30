# SPDX-License-Identifier: Apache-2.0
"""Branch and bound over boxes: best-first search, shrinking and splitting.

Proofs: docs/maths/generation.md, claims 4 to 6.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.tables.linear import Support

ENOUGH_COLUMNS = 8
"""A search ends without a proof once it has this many columns, because they change the prices."""

Corners = tuple[FloatArray, FloatArray]
"""Lower and upper corner of a box."""


@dataclass(frozen=True, slots=True)
class OpenBox:
    """Open box: a bound of the worth inside, corners, and the solution `x` of its programme.

    widest : coordinate with the largest gap between a secant and its function at `x`.
    """

    bound: float
    low: FloatArray
    high: FloatArray
    x: FloatArray
    widest: int

    def halves(self) -> list[Corners]:
        """Split at `x` in the coordinate `widest`."""
        k = self.widest
        # Each half is at least 0.1% narrower than the box, so finitely many boxes suffice.
        margin = 1e-3 * (self.high[k] - self.low[k])
        at = min(max(self.x[k], self.low[k] + margin), self.high[k] - margin)
        below, above = self.high.copy(), self.low.copy()
        below[k], above[k] = at, at
        return [(self.low, below), (above, self.high)]


def best_first(
    bounded: Callable[[FloatArray, FloatArray], OpenBox | None], low: FloatArray, high: FloatArray
) -> Iterator[tuple[OpenBox, int]]:
    """Yield the open box of the largest bound and the number of other open boxes, then split it.

    bounded : returns the open part of a box, or None if no point in it is worth enough.

    If the caller stops early, the last bound holds for all open boxes. At the end none is open.
    """
    # The counter in the tuples breaks ties between equal bounds, because boxes cannot be compared.
    heap: list[tuple[float, int, OpenBox]] = []
    serial, parts = count(), [(low, high)]
    while True:
        for corners in parts:
            if (part := bounded(*corners)) is not None:
                heapq.heappush(heap, (-part.bound, next(serial), part))
        if not heap:
            return
        _, _, box = heapq.heappop(heap)
        yield box, len(heap)
        parts = box.halves()


def shrunk(
    low: FloatArray,
    high: FloatArray,
    support: Support,
    worth: float,
    tolerance: float,
    safety: float,
) -> Corners:
    """Return the part of a box in which a point can be worth more than `tolerance`.

    worth : bound of the box, above the tolerance. safety : margin for rounding errors, by which
    boxes stay larger than the duality argument requires.
    """
    # A point worth more than the tolerance is within room/|reduced| of the side that the reduced
    # cost favours, so the box shrinks to that range.
    room, reduced = worth - tolerance + safety, support.reduced
    span = room / np.maximum(np.abs(reduced), safety)
    shrunk_high = np.where(reduced < -safety, np.minimum(high, low + span), high)
    shrunk_low = np.where(reduced > safety, np.maximum(low, high - span), low)
    return shrunk_low, shrunk_high
