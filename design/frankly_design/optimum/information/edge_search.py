# SPDX-License-Identifier: Apache-2.0
"""Local search along the edges of a base: moves between neighbouring vertices of growing worth.

The tangent steps of `ascent` never move an answer away from 0, where the information has slope −∞,
so they end at poor vertices of large bases. Here all neighbours of many vertices are valued at
once; if none is good enough, the search continues a few random edges away
(docs/maths/generation.md, claim 19). The search proves no bound.
"""

import numpy as np
from numpy.typing import NDArray

from frankly_design.notions.walk import Edges, Loosened
from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import linalg, special
from frankly_design.optimum.information.cone_base import ConeBase
from frankly_design.tables.limits import Limits
from frankly_design.tables.spread import directions, fractions

_SHAKES, _COPIES = 50, 4
"""Number of tries from random vertices before the search ends, and vertices per start in each."""
_FEWEST_EDGES, _DIFFERENT = 2, 5
"""Number of random edges from a start in a try; it cycles through this value and up to 4 more."""
_STEPS = 40
_KEPT = 2  # largest number of neighbours of a vertex that become columns in one step
_NO_GAIN = 1e-9
_OUTSIDE = 1e-10  # allowed violation of a row by a column; mixing returns the table to the cone
_MOST_ANSWERS, _MOST_WORK = 256, 2 * 10**7
"""Largest numbers of answers, and of multiplications for the edges of a vertex (about 5 ms)."""
_STARTS = 16  # number of start vertices of the first search if no columns in use are vertices
_TIGHT, _INDEPENDENT = 1e-8, 1e-9

_Tight = NDArray[np.int16]


class EdgeSearch:
    """Search over one base; deterministic for a given seed."""

    def __init__(self, base: ConeBase, rows: FloatArray, seed: int) -> None:
        """Find the first start vertices.

        rows : rows of the base with auxiliary variables, shape (m, answers + k).
        """
        mass = np.zeros(rows.shape[1])
        mass[: base.answers] = base.prior
        self._prior, self._polytope = base.prior, Loosened(rows, mass)
        self._sequence_index = seed  # index in the quasi-random sequence that selects edges
        self._tight: dict[bytes, _Tight] = {}  # tight rows that identify the columns found so far
        # Without auxiliary variables, columns in use serve as starts, and no others are needed.
        count = 0 if rows.shape[1] == base.answers else _STARTS
        firsts = [self._polytope.first(d) for d in directions(seed, count, rows.shape[1])]
        self._starts = [tight for first in firsts for tight in first]

    @classmethod
    def of(cls, base: ConeBase, seed: int) -> "EdgeSearch | None":
        """Return a search over the base; None if the edges of a vertex would take too long."""
        if base.answers > _MOST_ANSWERS:
            return None
        rows = base.lifted_rows()
        return cls(base, rows, seed) if rows.size * rows.shape[1] <= _MOST_WORK else None

    def columns(
        self, multipliers: FloatArray, used: FloatArray, least: float, limits: Limits
    ) -> FloatArray:
        """Return columns v worth more than `least` at the multipliers λ, shape (n, a).

        used : columns in use, shape (k, a), which serve as starts. With auxiliary variables, only
        columns that this search found can be starts.
        """
        known = [tight for column in used if (tight := self._rows_at(column)) is not None]
        starts = np.array(known or self._starts, dtype=np.int16)
        found: dict[bytes, _Tight] = {}
        for attempt in range(_SHAKES + 1):
            if found or not len(starts) or limits.out_of_time():
                break
            away = _FEWEST_EDGES + (attempt - 1) % _DIFFERENT if attempt else 0
            self._climb(self._moved(starts, away), multipliers, least, found)
        return self._inside(np.array(list(found.values()), dtype=np.int16))

    def _rows_at(self, column: FloatArray) -> _Tight | None:
        """Return the tight rows that identify a column; None if it is not known as a vertex."""
        name, polytope, d = _name(column), self._polytope, len(column) - 1
        if name in self._tight or len(polytope.p) > d + 1:
            return self._tight.get(name)
        near = np.flatnonzero(polytope.R @ column < _TIGHT)
        if len(near) >= d:
            # Rows that are independent of each other and of p, the best conditioned first.
            R, p = polytope.R[near], polytope.p
            across = R - np.outer(R @ p, p) / (p @ p)
            triangle, order = linalg.qr(across.T, mode="r", pivoting=True)
            sizes = np.abs(np.diag(triangle))
            if sizes[d - 1] > _INDEPENDENT * sizes[0]:
                self._tight[name] = np.sort(near[order[:d]]).astype(np.int16)
        return self._tight.get(name)

    def _edges(self, tight: _Tight) -> Edges | None:
        """Return the edges of the vertices; None if their rows are numerically dependent."""
        try:
            return self._polytope.edges(tight)
        except np.linalg.LinAlgError:
            return None

    def _moved(self, starts: _Tight, away: int) -> _Tight:
        """Return vertices that are `away` random edges from the starts, several per start."""
        if not away:
            return starts
        tight = np.repeat(starts, _COPIES, axis=0)
        chosen = fractions(self._sequence_index, len(tight), away) * tight.shape[1]
        self._sequence_index += len(tight)
        for edge in chosen.astype(np.intp).T:
            edges = self._edges(tight)
            if edges is None:
                return starts
            tight = edges.across(np.arange(len(tight)), edge)
        return tight

    def _climb(
        self, tight: _Tight, multipliers: FloatArray, least: float, found: dict[bytes, _Tight]
    ) -> None:
        """Move to the best neighbours until none is better; add those worth more than `least`."""
        for _ in range(_STEPS):
            edges = self._edges(tight)
            if edges is None:
                return
            worth = self._worth(edges.ends(), multipliers)
            worth[~np.isfinite(edges.end)] = -np.inf
            order = np.argsort(-worth, axis=1)[:, :_KEPT]
            n, k = np.nonzero(np.take_along_axis(worth, order, axis=1) > least)
            for rows in edges.across(n, order[n, k]):
                found[rows.tobytes()] = rows
            best = order[:, 0]
            gain = worth[np.arange(len(tight)), best] - self._worth(edges.V, multipliers)
            better = np.flatnonzero(gain > _NO_GAIN)
            if not len(better):
                return
            tight = np.unique(edges.across(better, best[better]), axis=0)

    def _worth(self, V: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the information of columns minus their price, shape (..., a + k) → (...)."""
        v = np.maximum(V[..., : len(self._prior)], 0.0)
        worth: FloatArray = special.xlogy(v, v) @ self._prior - v @ multipliers
        return worth

    def _inside(self, tight: _Tight) -> FloatArray:
        """Return the columns where these rows are tight without loosening, if other rows hold."""
        a, polytope = len(self._prior), self._polytope
        if not len(tight):
            return np.empty((0, a))
        B = np.empty((len(tight), len(polytope.p), len(polytope.p)))
        B[:, 0], B[:, 1:] = polytope.p, polytope.R[tight]
        first = np.zeros((len(polytope.p), 1))
        first[0] = 1.0
        try:
            V = np.linalg.solve(B, first)[:, :, 0]
        except np.linalg.LinAlgError:
            return np.empty((0, a))
        inside = (V @ polytope.R.T).min(axis=1) > -_OUTSIDE
        columns: FloatArray = np.maximum(V[inside, :a], 0.0)
        self._tight.update(zip(map(_name, columns), tight[inside], strict=True))
        return columns


def _name(column: FloatArray) -> bytes:
    return np.round(column * 1e7).astype(np.int64).tobytes()
