# SPDX-License-Identifier: Apache-2.0
"""Branch and bound: a proven bound of the largest worth g(v) + |Zᵀv|² − ν·v over a base (spec 1.6).

In the coordinates z = L·v of the eigenvectors of ZZᵀ, scaled by the roots of its eigenvalues,
|Zᵀv|² = Σ z_k². On a box each z_k² and each term of g is below its secant, so a linear programme
bounds the box from above. Boxes are split in the coordinate with the largest gap between secant and
function, and shrunk by the reduced costs, as in `information.branch` (docs/maths/generation.md,
claims 4 to 6 and 18).
"""

from functools import partial

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special
from frankly_design.optimum.boxes import ENOUGH_COLUMNS, OpenBox, best_first, shrunk
from frankly_design.optimum.variance.column_base import ColumnBase
from frankly_design.optimum.variance.objective import Prices
from frankly_design.tables.limits import Limits
from frankly_design.tables.linear import Polytope

# rounding: keeps boxes slightly larger than the duality argument requires
_SAFETY = 1e-12
# Eigenvalues below this share of the largest count as 0; `lost` covers the difference.
_FLAT = 1e-14
_BYTES = 60
"""Memory of an open box per coordinate, in bytes, including overhead."""


class _Boxes:
    """Bounds of boxes; worths are relative to `scale`, coordinates to its root."""

    def __init__(
        self, polytope: Polytope, sigma: FloatArray, prices: Prices, rank: int, scale: float
    ) -> None:
        self._polytope, self.answers, self._rank = polytope, len(sigma), rank
        # The variables of the polytope are t = σ∘v, auxiliary variables, and z.
        self._per_t = 1 / sigma
        self._linear = np.zeros(len(polytope.low))
        self._linear[: self.answers] = -prices.nu * self._per_t / scale
        objective = prices.objective
        self._weights = objective.prior / scale if objective.informative else None

    def column(self, box: OpenBox) -> FloatArray:
        """Return the column v of the box's solution."""
        return box.x[: self.answers] * self._per_t

    def bound(self, tolerance: float, low: FloatArray, high: FloatArray) -> OpenBox | None:
        """Bound and shrink a box; return None if no point in it is worth more than `tolerance`."""
        cost, z = self._linear.copy(), slice(len(self._linear) - self._rank, None)
        cost[z] = low[z] + high[z]
        constant = -float(low[z] @ high[z])
        if self._weights is not None:
            slope, offset = self._secants(low, high)
            cost[: self.answers] += slope
            constant += offset
        support = self._polytope.farthest(cost, low, high)
        if support is None or support.bound + constant <= tolerance:
            return None
        worth = support.bound + constant
        low, high = shrunk(low, high, support, worth, tolerance, _SAFETY)
        return OpenBox(worth, low, high, support.x, self._widest(low, high, support.x))

    def _entropies(self, t: FloatArray) -> FloatArray:
        v = t[: self.answers] * self._per_t
        weights = np.zeros(self.answers) if self._weights is None else self._weights
        return np.asarray(weights * special.xlogy(v, v), dtype=np.float64)

    def _secants(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, float]:
        """Return the slopes in t of the secants of g's terms, and the sum of their constants."""
        at_low, at_high = self._entropies(low), self._entropies(high)
        width = (high - low)[: self.answers]
        slope = np.where(width > 0, (at_high - at_low) / np.where(width > 0, width, 1.0), 0.0)
        return slope, float(np.sum(at_low - slope * low[: self.answers]))

    def _widest(self, low: FloatArray, high: FloatArray, x: FloatArray) -> int:
        """Return the coordinate with the largest gap between secant and function at `x`."""
        x = np.clip(x, low, high)
        gaps = np.zeros(len(x))
        z = slice(len(x) - self._rank, None)
        gaps[z] = (x - low)[z] * (high - x)[z]
        if self._weights is not None:
            slope, _ = self._secants(low, high)
            rise = self._entropies(low) + slope * (x - low)[: self.answers]
            gaps[: self.answers] = rise - self._entropies(x)
        return int(np.argmax(gaps))


def bound(
    base: ColumnBase, prices: Prices, scale: float, tolerance: float, limits: Limits
) -> tuple[FloatArray, float] | None:
    """Return columns worth more than `tolerance`, shape (n, a), and a bound of every worth.

    scale : positive, about the size of the objective; numbers are computed relative to it.

    The bound is `tolerance` if that is proved for every column. It is larger if the search ended
    early: with enough columns, or at the limits. Returns None if the base has no programme.
    """
    L, lost = _coordinates(prices, scale)
    programme = base.with_coordinates(L)
    if programme is None:
        return None
    polytope, sigma = programme
    boxes = _Boxes(polytope, sigma, prices, len(L), scale)
    least = tolerance / scale - lost * _largest_square(base)
    if least <= 0:
        return None
    columns: list[FloatArray] = []
    largest = tolerance
    max_open = max(1000, limits.memory * 1_000_000 // (_BYTES * len(polytope.low)))
    search = best_first(partial(boxes.bound, least), polytope.low, polytope.high)
    for popped, (box, open_count) in enumerate(search, 1):
        v = boxes.column(box)
        if float(prices.worth(v[None])[0]) > tolerance:
            columns.append(v)
        if (
            len(columns) >= ENOUGH_COLUMNS
            or popped >= limits.boxes
            or open_count > max_open
            or limits.out_of_time()
        ):
            largest = scale * (box.bound + lost * _largest_square(base))
            break
    return np.array(columns).reshape(-1, base.answers), largest


def _coordinates(prices: Prices, scale: float) -> tuple[FloatArray, float]:
    """Return L with |Zᵀv|² = scale·|L·v|², and the largest eigenvalue that L leaves out."""
    values, vectors = np.linalg.eigh(prices.Z @ prices.Z.T / scale)
    used = values > _FLAT * values[-1]
    lost = float(np.max(np.abs(values[~used]), initial=0.0))
    return (vectors[:, used] * np.sqrt(values[used])).T, lost


def _largest_square(base: ColumnBase) -> float:
    """Return an upper bound of |v|² on the base."""
    return float(sum(base.highest(unit) ** 2 for unit in np.eye(base.answers)))
