# SPDX-License-Identifier: Apache-2.0
"""Pricing: search for the columns of largest worth g(v) + |Zᵀv|² − ν·v over the base.

g is the information of a column. The worth is convex in v, so its maximum is at a vertex. If the
vertices can be listed, all are evaluated. Otherwise a local search maximises the linearised worth
repeatedly, and `proof` bounds the worth of columns that the search missed.
"""

from typing import Protocol

import numpy as np

from frankly_design.notions.walk import LOOSER, Walk
from frankly_design.numeric.arrays import FloatArray, IntArray
from frankly_design.optimum.variance.column_base import ColumnBase
from frankly_design.optimum.variance.objective import Prices
from frankly_design.optimum.variance.patterns import (
    FEW_ANSWERS,
    MOST_ANSWERS,
    blocks,
    of_one_target,
)
from frankly_design.tables.limits import Limits
from frankly_design.tables.spread import directions

MAX_VERTICES = 1_000_000
MOST_WORK = 6 * 10**9
"""Largest number of operations of a walk (about 20 s): rows × dimensions² for each vertex."""
_STEPS = 50
_SAME = 1e-7
_TINY = 1e-300


class VariancePricer(Protocol):
    """Search for the columns of largest worth.

    exact : True if no column of the base has a larger worth than the returned value; False if the
        value is only the largest found.
    route : name of the method, in one word.
    """

    exact: bool
    route: str

    def price(self, prices: Prices, used: FloatArray, /) -> tuple[FloatArray, float]:
        """Return (columns v of largest worth, shape (n, a), descending; the largest worth).

        used : columns in use, from which a search may start.
        """
        ...


def pricer_for(
    base: ColumnBase, limits: Limits, seed: int = 0, targets: int | None = None
) -> VariancePricer:
    """Return the best pricer for the base, an exact one if possible.

    targets : number of targets, if it is the same for all prices, else None.
    """
    if base.rays is not None:
        return _Rays(base.rays)
    if base.ratio is not None:
        if targets == 1 and base.answers > FEW_ANSWERS and base.prior.min() > 0:
            return _Line(base.ratio)
        if base.answers <= MOST_ANSWERS:
            return _Patterns(base.ratio)
        return _LocalSearch(base, limits, seed)
    V = base_vertices(base, limits, seed)
    return _LocalSearch(base, limits, seed) if V is None else _VertexPricer(base, V)


def base_vertices(base: ColumnBase, limits: Limits, seed: int = 0) -> FloatArray | None:
    """Return the vertices of a polytope around the base (`walk.vertices`); None if too many."""
    return VertexList(base, limits, seed).within(MOST_WORK)


class VertexList:
    """List of the vertices of a polytope around a base, which a walk extends step by step."""

    def __init__(self, base: ColumnBase, limits: Limits, seed: int = 0) -> None:
        self._limits, self._answers = limits, base.answers
        self._walk: Walk | None = None
        rows = base.lifted
        if rows is None:
            return
        generic, mass = directions(seed, 1, rows.shape[1])[0], np.zeros(rows.shape[1])
        mass[: base.answers] = base.prior
        self._walk = Walk(rows, mass, generic)
        self._work_each = len(rows) * len(mass) ** 2
        # The list and the arrays derived from it take 32 bytes per entry; the limit is in MB.
        self._most = min(MAX_VERTICES, limits.memory * 1_000_000 // (32 * len(mass)))

    def within(self, work: int) -> FloatArray | None:
        """Return the vertices, shape (n, answers), if `work` operations from the start list them.

        Returns None otherwise; a later call with more work continues. The walk may use half of the
        time; the rest is for the search.
        """
        if self._walk is None:
            return None
        most = min(self._most, work // self._work_each)
        V = self._walk.advance(most, self._limits.half_time)
        return None if V is None else V[:, : self._answers]


class _Rays:
    """Pricer of a base whose extreme points are all listed."""

    exact, route = True, "rays"

    def __init__(self, rays: FloatArray) -> None:
        self._rays = rays

    def price(self, prices: Prices, _used: FloatArray, /) -> tuple[FloatArray, float]:
        worth = prices.worth(self._rays)
        best = _best_and_unlike(prices, self._rays, worth)
        return self._rays[best], float(worth[best[0]])


class _Patterns:
    """Pricer of LDP of the answer, over all patterns of 1 and E."""

    exact, route = True, "patterns"

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio

    def price(self, prices: Prices, _used: FloatArray, /) -> tuple[FloatArray, float]:
        batches = list(blocks(prices, self._ratio))
        worth, V = np.concatenate([w for w, _ in batches]), np.vstack([v for _, v in batches])
        best = np.argsort(-worth, kind="stable")[: _columns_per_round(V.shape[1])]
        columns = V[best]
        if len(V) < len(best) * 4:
            # `blocks` yields only the best column of each block of 2^11 patterns. For few answers
            # these are not enough, so neighbours of the best columns are added.
            columns = self._around(columns[: max(1, len(columns) // 4)], prices)
        return columns, float(worth[best[0]])

    def _around(self, columns: FloatArray, prices: Prices) -> FloatArray:
        """Return the columns and variants with one or two flipped answers, by descending worth."""
        a = columns.shape[1]
        inside = columns > columns.min(axis=1, keepdims=True) * (1 + 1e-9)
        single = np.eye(a, dtype=bool)
        i, j = np.triu_indices(a, 1)
        flips = np.vstack([np.zeros((1, a), dtype=bool), single, single[i] | single[j]])
        patterns = (inside[:, None] ^ flips).reshape(-1, a)
        U = np.where(np.unique(patterns, axis=0), self._ratio, 1.0)
        V = U / (U @ prices.objective.prior)[:, None]
        return np.asarray(
            V[np.argsort(-prices.worth(V), kind="stable")[: _columns_per_round(a)]],
            dtype=np.float64,
        )


class _Line:
    """Pricer of LDP of the answer for one target, over all patterns (`patterns.of_one_target`)."""

    exact, route = True, "line"

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio

    def price(self, prices: Prices, _used: FloatArray, /) -> tuple[FloatArray, float]:
        V, worth = of_one_target(prices, self._ratio)
        best = np.argsort(-worth, kind="stable")[: _columns_per_round(V.shape[1])]
        return V[best], float(worth[best[0]])


class _VertexPricer:
    """Pricer over all vertices of a slightly larger polytope; returns vertices of the base."""

    exact, route = True, "vertices"

    def __init__(self, base: ColumnBase, V: FloatArray) -> None:
        self._base, self._V = base, V

    def price(self, prices: Prices, _used: FloatArray, /) -> tuple[FloatArray, float]:
        worth = prices.worth(self._V, LOOSER)
        best = _best_and_unlike(prices, self._V, worth)
        # A vertex of the larger polytope can be outside the base by up to 2e-9 and must not enter a
        # mechanism; it is replaced by the vertex of the base in the same direction.
        columns = [self._base.maximise(prices.slope(np.maximum(v, 0.0))) for v in self._V[best]]
        return np.array(columns), float(worth[best[0]])


class _LocalSearch:
    """Local search from many starts; deterministic for a given seed."""

    exact, route = False, "search"

    def __init__(self, base: ColumnBase, limits: Limits, seed: int) -> None:
        self._base, self._limits, self._used = base, limits, seed

    def price(self, prices: Prices, used: FloatArray, /) -> tuple[FloatArray, float]:
        a = self._base.answers
        profitable: list[FloatArray] = []
        largest_worth = -np.inf
        visited: set[bytes] = set()
        for start in self._starts(prices, used):
            if self._limits.out_of_time() or len(profitable) >= _columns_per_round(a):
                break
            v = self._climb(prices, start)
            # Different starts often end at the same vertex; the rounded entries identify it.
            name = np.round(v / _SAME).astype(np.int64).tobytes()
            if name not in visited:
                visited.add(name)
                worth = float(prices.worth(v[None])[0])
                largest_worth = max(largest_worth, worth)
                if worth > 0:
                    profitable.append(v)
        columns = np.array(profitable).reshape(-1, a)
        return columns[np.argsort(-prices.worth(columns), kind="stable")], largest_worth

    def _starts(self, prices: Prices, used: FloatArray) -> list[FloatArray]:
        """Return eigenvectors of ZZᵀ, slopes at used columns, and evenly spread directions."""
        a = self._base.answers
        # The worth grows fastest along the leading eigenvectors of its quadratic part.
        _, vectors = np.linalg.eigh(prices.Z @ prices.Z.T)
        spread = directions(self._used, 2 * a, a)
        self._used += 2 * a
        from_used = [prices.slope(v) for v in used[:: max(1, len(used) // (2 * a))]]
        return [*vectors.T, *-vectors.T, *from_used, *spread, *np.eye(a)]

    def _climb(self, prices: Prices, direction: FloatArray) -> FloatArray:
        v = self._base.maximise(direction)
        worth = float(prices.worth(v[None])[0])
        for _ in range(_STEPS):
            # The worth is convex, so it does not decrease at a maximum of its tangent.
            following = self._base.maximise(prices.slope(v))
            next_worth = float(prices.worth(following[None])[0])
            if next_worth <= worth + 1e-13 * abs(worth):
                break
            v, worth = following, next_worth
        return v


def _best_and_unlike(prices: Prices, V: FloatArray, worth: FloatArray) -> IntArray:
    """Return the index of the column of largest worth, and of others of positive worth.

    Columns of the largest worths alone are often nearly equal, and all but one of them useless. So
    a worth counts less by the largest cos² of the angle between Zᵀ(v − 1) and those chosen before.
    """
    best = [int(np.argmax(worth))]
    candidates = np.flatnonzero(worth > 0)
    U = (V[candidates] - 1) @ prices.Z
    U /= np.maximum(np.linalg.norm(U, axis=1), _TINY)[:, None]
    unlike = worth[candidates].copy()
    chosen = int(np.searchsorted(candidates, best[0]))
    while len(best) < min(len(candidates), _columns_per_round(V.shape[1])):
        unlike = np.minimum(unlike, worth[candidates] * (1 - (U @ U[chosen]) ** 2))
        unlike[chosen] = -1.0
        chosen = int(np.argmax(unlike))
        best.append(int(candidates[chosen]))
    return np.array(best)


def _columns_per_round(answers: int) -> int:
    """Return the number of columns to add per round."""
    return max(2 * answers + 4, answers * answers // 4)
