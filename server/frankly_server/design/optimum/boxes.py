# SPDX-License-Identifier: Apache-2.0
"""Boxes of branch and bound: shrinking and splitting (docs/maths/generation.md, claims 4 to 6)."""

from dataclasses import dataclass

import numpy as np

from frankly_server.arrays import FloatArray
from frankly_server.design.tables.linear import Support

Corners = tuple[FloatArray, FloatArray]
"""Lower and upper corner of a box."""


@dataclass(frozen=True, slots=True)
class OpenBox:
    """Open box: corners, a bound on the worth inside, and the solution `x` of its programme."""

    bound: float
    low: FloatArray
    high: FloatArray
    x: FloatArray

    def halves(self, gaps: FloatArray) -> tuple[Corners, Corners]:
        """Split at `x` in the coordinate with the largest gap between a secant and its function."""
        k = int(np.argmax(gaps))
        # Each half is at least 0.1% narrower than the box, so finitely many boxes suffice.
        margin = 1e-3 * (self.high[k] - self.low[k])
        at = min(max(self.x[k], self.low[k] + margin), self.high[k] - margin)
        below, above = self.high.copy(), self.low.copy()
        below[k], above[k] = at, at
        return (self.low, below), (above, self.high)


def shrunk(
    low: FloatArray,
    high: FloatArray,
    support: Support,
    worth: float,
    tolerance: float,
    safety: float,
) -> OpenBox:
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
    return OpenBox(worth, shrunk_low, shrunk_high, support.x)
