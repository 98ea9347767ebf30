# SPDX-License-Identifier: Apache-2.0
"""Enumeration of all vertices around a base by walking along edges, many vertices at a time.

First, each inequality is loosened by a different tiny amount. The loosened polytope contains the
base, so a bound of a convex function over its vertices also holds on the base. The loosened
polytope is simple: each vertex has a − 1 tight inequalities, which identify it, and a − 1 edges.
The graph of a polytope is connected, so walking along every edge of every vertex reaches all
vertices. The walk gives up if two inequalities are so close along an edge that rounding hides
their order.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.rays import float_vertices
from frankly_design.tables.spread import fractions

LOOSER = 2e-9
"""Largest loosening of an inequality whose left side is scaled to 1 at the constant column."""
# Two inequalities closer than this along an edge cannot be ordered in doubles.
_APART = 1e-14
# Largest number of entries of a batch's arrays, which bounds the memory.
_BATCH = 2_000_000
_FLAT = 1e-11
_LEAST_SLACK = 1e-15  # a smaller slack is the rounding error of a row that is also tight
# A set of rows is stored as the bits of one integer.
_MAX_PAIRED_ROWS = 62
# Tolerances relative to the largest entry of a float vertex: a row with a slack below the first is
# tight; a violation up to the second is a rounding error.
_TIGHT, _ROUNDING = 1e-9, 1e-12


def vertices(
    rows: FloatArray,
    p: FloatArray,
    start: FloatArray,
    max_vertices: int,
    out_of_time: Callable[[], bool] = lambda: False,
) -> FloatArray | None:
    """Return all vertices of a polytope around {v ≥ 0 : rows·v ≥ 0, p·v = 1}.

    The arguments are those of `Walk` and `Walk.advance`; the result is None as for `Walk.advance`.
    """
    return Walk(rows, p, start).advance(max_vertices, out_of_time)


def base_vertices(rows: FloatArray, p: FloatArray, max_vertices: int) -> FloatArray | None:
    """Return the vertices of {v ≥ 0 : rows·v ≥ 0, p·v = 1}, shape (n, a), possibly with duplicates.

    rows : shape (m, a). p : shape (a,).

    The vertices are exact up to float rounding. Returns None if the base is unbounded, has more
    than `max_vertices` or is too degenerate.
    """
    walk = Walk(rows, p)
    return None if walk.advance(max_vertices) is None else walk.unloosened()


class Walk:
    """Walk over all vertices of a polytope around {v ≥ 0 : rows·v ≥ 0, p·v = 1}.

    Each inequality is loosened by at most `LOOSER`. The walk can be interrupted and continued.
    """

    def __init__(self, rows: FloatArray, p: FloatArray, start: FloatArray | None = None) -> None:
        """Find the first vertices.

        rows : shape (m, a), scaled here to 1 at the constant column where that is positive.
        p : shape (a,). start : generic vector of shape (a,), the direction of the first vertex;
        None to start from all vertices that are found quickly, which suits few answers.
        """
        self._polytope = polytope = Loosened(rows, p)
        self._size = max(1, _BATCH // (len(polytope.R) * len(p)))
        self._done: list[FloatArray] = []
        self._few, self._unloosened = start is None, list[FloatArray]()
        first = polytope.simple_vertices() if start is None else polytope.first(start)
        self._pending: list[bytes] = [tight.tobytes() for tight in first]
        self._visited = set(self._pending)
        # The walk must stop at an unbounded edge, or if rounding errors could hide an edge.
        self._stuck = not self._pending

    def advance(
        self, max_vertices: int, out_of_time: Callable[[], bool] = lambda: False
    ) -> FloatArray | None:
        """Return all vertices, shape (n, a), after more steps; None if the list is not complete.

        max_vertices : the walk pauses beyond this number. out_of_time : called between batches.

        A later call continues the walk. If the polytope is unbounded or too degenerate, every call
        returns None.
        """
        while self._pending and not self._stuck:
            if len(self._visited) > max_vertices or out_of_time():
                return None
            self._step()
        return None if self._stuck else np.vstack(self._done)

    def unloosened(self) -> FloatArray | None:
        """Return the points where each list of tight rows is tight without loosening, shape (n, a).

        If all points lie in the original polytope, they include all of its vertices
        (docs/maths/variance.md, claim 4). Otherwise the result is None.
        """
        V = np.vstack(self._unloosened)
        outside = np.min(V @ self._polytope.R.T / V.max(axis=1)[:, None]) < -_ROUNDING
        return None if outside else np.maximum(V, 0.0)

    def _step(self) -> None:
        """Find the neighbours of a batch of vertices."""
        batch, self._pending = self._pending[: self._size], self._pending[self._size :]
        tight = np.frombuffer(b"".join(batch), dtype=np.int16).reshape(len(batch), -1)
        step = self._polytope.neighbours(tight, paired=self._few and not self._done)
        if step is None:
            self._stuck = True
            return
        V, points, neighbours = step
        self._done.append(V)
        if self._few:
            self._unloosened.append(points)
        names, width = neighbours.tobytes(), len(batch[0])
        # A set of byte strings removes duplicates several times faster than `numpy.unique`.
        found = dict.fromkeys(names[j : j + width] for j in range(0, len(names), width))
        new = [name for name in found if name not in self._visited]
        self._visited.update(new)
        self._pending += new


def _unpaired(tight: NDArray[np.int16]) -> NDArray[np.intp]:
    """Return the indices of vertices with an edge that no other vertex in `tight` has.

    An edge is identified by all but one of a vertex's tight rows.
    """
    bits = np.int64(1) << tight.astype(np.int64)
    edges = (bits.sum(axis=1, keepdims=True) - bits).ravel()
    order = np.argsort(edges)
    again = np.diff(edges[order]) == 0
    alone = ~(np.append(again, False) | np.append(False, again))
    return np.unique(order[alone] // tight.shape[1])


class Loosened:
    """Loosened polytope {R·v ≥ −δ, p·v = 1}; the rows include v ≥ 0, and `offset` is δ."""

    def __init__(self, rows: FloatArray, p: FloatArray) -> None:
        R = np.vstack([np.eye(len(p)), rows])
        at_constant = R.sum(axis=1)
        size = np.abs(R).sum(axis=1)
        self.R = R / np.where(at_constant > 1e-9 * size, at_constant, size)[:, None]
        self.p = p
        # Distinct offsets make the polytope simple: at most a − 1 inequalities are tight at a
        # vertex.
        self.offset = 0.5 * LOOSER * (1 + fractions(0, len(R), 1)[:, 0])

    def simple_vertices(self) -> NDArray[np.int16]:
        """Return the tight rows of simple vertices of the base, shape (n, a − 1).

        Vertices with more than a − 1 tight rows are left out: loosening splits them.
        """
        V = float_vertices(self.p, self.R)
        tight = _TIGHT * V.max(axis=1, initial=0.0)[:, None] > V @ self.R.T
        simple = tight[tight.sum(axis=1) == len(self.p) - 1]
        return np.nonzero(simple)[1].astype(np.int16).reshape(-1, len(self.p) - 1)

    def first(self, cost: FloatArray) -> NDArray[np.int16]:
        """Return the tight rows of a vertex reached from the constant column in direction `cost`.

        The shape is (1, a − 1), or (0, a − 1) if the polytope is unbounded in that direction.
        """
        v = np.ones(len(self.p))
        tight: list[int] = []
        for _ in range(len(self.p) - 1):
            E = np.vstack([self.p, self.R[tight]])
            direction = cost - E.T @ np.linalg.lstsq(E.T, cost, rcond=None)[0]
            # A second projection removes the rounding error of the first.
            direction -= E.T @ np.linalg.lstsq(E.T, direction, rcond=None)[0]
            speed = self.R @ direction
            slack = self.R @ v + self.offset
            closing = speed < -_FLAT * np.abs(direction).max()
            closing[tight] = False
            if not closing.any():
                return np.empty((0, len(self.p) - 1), dtype=np.int16)
            times = np.where(closing, slack / np.where(closing, -speed, 1.0), np.inf)
            hit = int(np.argmin(times))
            v = v + times[hit] * direction
            tight.append(hit)
        return np.sort(np.array([tight], dtype=np.int16))

    def edges(self, tight: NDArray[np.int16]) -> "Edges":
        """Return the edges of the vertices with these tight rows, shape (n, d), d = a − 1.

        Raises numpy.linalg.LinAlgError if the rows of a vertex are dependent.
        """
        return self._edges(tight, *self._solved(tight))

    def _solved(self, tight: NDArray[np.int16]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (inverses of the equations of the vertices, vertices, slacks of the other rows).

        The slack of a tight row is infinite.
        """
        n, d = tight.shape
        B = np.empty((n, d + 1, d + 1))
        B[:, 0], B[:, 1:] = self.p, self.R[tight]
        inverse = np.linalg.inv(B)
        V = inverse[:, :, 0] - np.einsum("nij,nj->ni", inverse[:, :, 1:], self.offset[tight])
        slack = V @ self.R.T + self.offset
        slack[np.arange(n)[:, None], tight] = np.inf
        return inverse, V, slack

    def _edges(
        self, tight: NDArray[np.int16], inverse: FloatArray, V: FloatArray, slack: FloatArray
    ) -> "Edges":
        # Column k of the inverse is an edge: along it all tight rows except row k stay tight.
        along = inverse[:, :, 1:]
        along = along / np.abs(along).max(axis=1, keepdims=True)
        speed = np.matmul(self.R, along)  # (n, rows, d)
        each, edge = np.arange(len(tight))[:, None], np.arange(tight.shape[1])
        speed[each, tight] = 0.0
        # Share of the slack that one unit of the edge uses; the row with the largest share ends it.
        closing = np.where(speed < -_FLAT, -speed, 0.0)
        closing *= (1 / np.maximum(slack, _LEAST_SLACK))[:, :, None]
        hit = np.argmax(closing, axis=1)
        first = closing[each, hit, edge]
        closing[each, hit, edge] = 0.0
        with np.errstate(divide="ignore"):
            end, following_end = 1 / first, 1 / closing.max(axis=1)
        return Edges(tight, V, along, hit, end, slack.min(), (following_end - end).min())

    def neighbours(
        self, tight: NDArray[np.int16], *, paired: bool
    ) -> tuple[FloatArray, FloatArray, NDArray[np.int16]] | None:
        """Return (vertices with these tight rows, same vertices without loosening, neighbours).

        paired : True to skip vertices whose neighbours are all in `tight`.

        Returns None if rounding errors could make the list incomplete.
        """
        try:
            inverse, V, slack = self._solved(tight)
        except np.linalg.LinAlgError:
            return None
        points = inverse[:, :, 0]
        if slack.min() < _APART:
            return None
        kept: slice | NDArray[np.intp] = slice(None)
        if paired and len(self.R) <= _MAX_PAIRED_ROWS:
            kept = _unpaired(tight)
            if not len(kept):
                return V, points, tight[:0]
        edges = self._edges(tight[kept], inverse[kept], V[kept], slack[kept])
        # An unbounded edge, or a tie between two rows, would make the list incomplete.
        if edges.apart < _APART or not np.isfinite(edges.end).all():
            return None
        n, d = edges.tight.shape
        swapped = np.repeat(edges.tight[:, None], d, axis=1)
        swapped[:, np.arange(d), np.arange(d)] = edges.hit
        return V, points, np.sort(swapped.reshape(n * d, d), axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Edges of n vertices of a loosened polytope; edge k leaves tight row k.

    tight : shape (n, d). V : the vertices, shape (n, a). along : directions, shape (n, a, d).
    hit : rows that end the edges. end : lengths of the edges. Both have shape (n, d).
    least_slack : smallest slack of all rows that are not tight. apart : smallest distance, along an
    edge, between its end and the next row.
    """

    tight: NDArray[np.int16]
    V: FloatArray
    along: FloatArray
    hit: NDArray[np.intp]
    end: FloatArray
    least_slack: float
    apart: float

    def ends(self) -> FloatArray:
        """Return the vertices at the other ends, shape (n, d, a)."""
        moved: FloatArray = self.V[:, None] + self.end[:, :, None] * np.swapaxes(self.along, 1, 2)
        return moved

    def across(self, vertex: NDArray[np.intp], edge: NDArray[np.intp]) -> NDArray[np.int16]:
        """Return the tight rows at the ends of these edges of these vertices, sorted."""
        tight = self.tight[vertex]
        tight[np.arange(len(tight)), edge] = self.hit[vertex, edge]
        return np.sort(tight, axis=1)
