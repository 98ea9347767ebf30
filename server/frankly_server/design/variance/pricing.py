# SPDX-License-Identifier: Apache-2.0
"""Pricing: the columns worth most, max over the base of g(v) + |Zᵀv|² − ν·v, a convex function of v.

Where the base can be listed, every vertex is looked at and the largest worth is known exactly. Elsewhere a local search
finds columns (maximise the linearised worth, repeat), and `proof` bounds what it may have missed.
"""

from typing import Protocol

import numpy as np

from frankly_server.design.limits import Limits
from frankly_server.design.linear import FloatArray
from frankly_server.design.variance.base import Base
from frankly_server.design.variance.objective import Prices
from frankly_server.design.variance.patterns import MOST_ANSWERS, blocks
from frankly_server.design.variance.spread import directions
from frankly_server.design.variance.walk import LOOSER, vertices

MOST_VERTICES = 150_000
_STEPS = 50
_SAME = 1e-7


class Pricer(Protocol):
    """Finds columns.

    exact : whether `most` is the largest worth on the whole base; else it is only the largest one found.
    route : how, in one word.
    """

    exact: bool
    route: str

    def price(self, prices: Prices, used: FloatArray, /) -> tuple[FloatArray, float]:
        """Return (columns v that are worth most, shape (n, a), dearest first; the largest worth).

        used : columns in use, from which a search may start.
        """
        ...


def pricer_for(base: Base, limits: Limits, seed: int = 0) -> Pricer:
    """Return the most exact pricer that the base allows."""
    if base.rays is not None:
        return _Rays(base.rays)
    if base.ratio is not None:
        return _Patterns(base.ratio) if base.answers <= MOST_ANSWERS else _Search(base, limits, seed)
    if base.rows is not None:
        generic = directions(seed, 1, base.answers)[0]
        most = min(MOST_VERTICES, limits.memory * 1_000_000 // (32 * base.answers))
        V = vertices(base.rows, base.prior, generic, most, limits.out_of_time)
        if V is not None:
            return _Vertices(base, V)
    return _Search(base, limits, seed)


class _Rays:
    """All extreme points are listed."""

    exact, route = True, "rays"

    def __init__(self, rays: FloatArray) -> None:
        self._rays = rays

    def price(self, prices: Prices, _used: FloatArray, /) -> tuple[FloatArray, float]:
        worth = prices.worth(self._rays)
        best = np.argsort(-worth, kind="stable")[: _count(self._rays.shape[1])]
        return self._rays[best], float(worth[best[0]])


class _Patterns:
    """LDP of the answer: all patterns of 1 and E."""

    exact, route = True, "patterns"

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio

    def price(self, prices: Prices, _used: FloatArray, /) -> tuple[FloatArray, float]:
        found = list(blocks(prices, self._ratio))
        worth, V = np.concatenate([w for w, _ in found]), np.vstack([v for _, v in found])
        best = np.argsort(-worth, kind="stable")[: _count(V.shape[1])]
        columns = V[best]
        if len(V) < len(best) * 4:  # few blocks show few columns: look around the best ones
            columns = self._around(columns[: max(1, len(columns) // 4)], prices)
        return columns, float(worth[best[0]])

    def _around(self, columns: FloatArray, prices: Prices) -> FloatArray:
        """Return these columns, and those with one answer or a pair of answers changed, dearest first."""
        a = columns.shape[1]
        inside = columns > columns.min(axis=1, keepdims=True) * (1 + 1e-9)
        single = np.eye(a, dtype=bool)
        i, j = np.triu_indices(a, 1)
        flips = np.vstack([np.zeros((1, a), dtype=bool), single, single[i] | single[j]])
        every = (inside[:, None] ^ flips).reshape(-1, a)
        U = np.where(np.unique(every, axis=0), self._ratio, 1.0)
        V = U / (U @ prices.objective.prior)[:, None]
        return np.asarray(V[np.argsort(-prices.worth(V), kind="stable")[: _count(a)]], dtype=np.float64)


class _Vertices:
    """All vertices of a slightly larger polytope, each with a vertex of the base beside it."""

    exact, route = True, "vertices"

    def __init__(self, base: Base, V: FloatArray) -> None:
        self._base, self._V = base, V

    def price(self, prices: Prices, _used: FloatArray, /) -> tuple[FloatArray, float]:
        worth = prices.worth(self._V, LOOSER)
        best = np.argsort(-worth, kind="stable")[: _count(self._base.answers)]
        # The loosened vertex is outside by 1e-9; the base's own vertex in the same direction is not.
        columns = [self._base.maximise(prices.slope(np.maximum(v, 0.0))) for v in self._V[best]]
        return np.array(columns), float(worth[best[0]])


class _Search:
    """Local search from many starts, the same ones for the same seed."""

    exact, route = False, "search"

    def __init__(self, base: Base, limits: Limits, seed: int) -> None:
        self._base, self._limits, self._used = base, limits, seed

    def price(self, prices: Prices, used: FloatArray, /) -> tuple[FloatArray, float]:
        a = self._base.answers
        found: list[FloatArray] = []
        most = -np.inf
        tried: set[bytes] = set()
        for start in self._starts(prices, used):
            if self._limits.out_of_time() or len(found) >= _count(a):
                break
            v = self._climb(prices, start)
            name = np.round(v / _SAME).astype(np.int64).tobytes()
            if name not in tried:
                tried.add(name)
                worth = float(prices.worth(v[None])[0])
                most = max(most, worth)
                if worth > 0:
                    found.append(v)
        columns = np.array(found).reshape(-1, a)
        return columns[np.argsort(-prices.worth(columns), kind="stable")], most

    def _starts(self, prices: Prices, used: FloatArray) -> list[FloatArray]:
        """Return directions: eigenvectors of ZZᵀ, from columns in use, evenly spread ones, single answers."""
        a = self._base.answers
        _, vectors = np.linalg.eigh(prices.Z @ prices.Z.T)
        spread = directions(self._used, 2 * a, a)
        self._used += 2 * a
        around = [prices.slope(v) for v in used[:: max(1, len(used) // (2 * a))]]
        return [*vectors.T, *-vectors.T, *around, *spread, *np.eye(a)]

    def _climb(self, prices: Prices, direction: FloatArray) -> FloatArray:
        v = self._base.maximise(direction)
        worth = float(prices.worth(v[None])[0])
        for _ in range(_STEPS):
            following = self._base.maximise(prices.slope(v))
            better = float(prices.worth(following[None])[0])
            if better <= worth + 1e-13 * abs(worth):
                break
            v, worth = following, better
        return v


def _count(answers: int) -> int:
    """How many columns to add per round."""
    return max(2 * answers + 4, answers * answers // 4)
