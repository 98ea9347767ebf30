# SPDX-License-Identifier: Apache-2.0
"""Enumeration of all vertices around a base by a walk along edges, many vertices at a time.

Every inequality is first loosened by a different tiny amount. The loosened polytope contains the
base, so a bound of a convex function over its vertices holds on the base. It is also simple: each
vertex has a − 1 tight inequalities, which identify it, and a − 1 edges. The graph of a polytope is
connected, so walking along every edge of every vertex reaches all vertices. The walk gives up if
two inequalities are so close along an edge that it cannot decide which comes first.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from frankly_server.design.tables.linear import FloatArray
from frankly_server.design.tables.spread import fractions

LOOSER = 2e-9
"""Largest loosening of an inequality whose left side is scaled to 1 at the constant column."""
# Two inequalities closer than this along an edge cannot be ordered in doubles.
_APART = 1e-14
# Largest number of entries of a batch's arrays, which bounds the memory.
_BATCH = 2_000_000
_FLAT = 1e-11


def vertices(
    rows: FloatArray,
    p: FloatArray,
    start: FloatArray,
    max_vertices: int,
    out_of_time: Callable[[], bool] = lambda: False,
) -> FloatArray | None:
    """Return all vertices of a polytope around {v ≥ 0 : rows·v ≥ 0, p·v = 1}.

    Each inequality is loosened by at most `LOOSER`.

    Parameters
    ----------
    rows : shape (m, a), scaled here to 1 at the constant column where that is positive.
    p : shape (a,).
    start : generic vector of shape (a,), the direction of the walk to the first vertex.
    max_vertices : the walk gives up beyond this number.
    out_of_time : called between batches.

    Returns
    -------
    shape (n, a); None if there are too many vertices, the polytope is unbounded or too degenerate,
    or time is up.
    """
    walk = _Walk(rows, p)
    first = walk.first(start)
    if first is None:
        return None
    visited: set[bytes] = {first.tobytes()}
    frontier, vertex_batches = first[None], []
    size, width = max(1, _BATCH // (len(walk.R) * len(p))), first.nbytes
    while len(frontier):
        following: list[bytes] = []
        for i in range(0, len(frontier), size):
            if out_of_time():
                return None
            step = walk.neighbours(frontier[i : i + size])
            if step is None:
                return None
            V, tight = step
            vertex_batches.append(V)
            names = tight.tobytes()
            # A set of byte strings removes duplicates several times faster than `numpy.unique` does.
            found = dict.fromkeys(names[j : j + width] for j in range(0, len(names), width))
            new = [name for name in found if name not in visited]
            visited.update(new)
            following += new
            if len(visited) > max_vertices:
                return None
        frontier = np.frombuffer(b"".join(following), dtype=first.dtype).reshape(-1, len(first))
    return np.vstack(vertex_batches)


class _Walk:
    """Loosened polytope {R·v ≥ −δ, p·v = 1}, with δ in `offset`."""

    def __init__(self, rows: FloatArray, p: FloatArray) -> None:
        a = len(p)
        R = np.vstack([np.eye(a), rows])
        at_constant = R.sum(axis=1)
        size = np.abs(R).sum(axis=1)
        self.R = R / np.where(at_constant > 1e-9 * size, at_constant, size)[:, None]
        self.p = p
        # Distinct offsets make the polytope simple: no vertex lies on more than a − 1 inequalities.
        self.offset = 0.5 * LOOSER * (1 + fractions(0, len(R), 1)[:, 0])

    def first(self, cost: FloatArray) -> NDArray[np.int16] | None:
        """Return the tight rows of a vertex, reached from the constant column in direction `cost`.

        Returns None if the polytope is unbounded in that direction.
        """
        v = np.ones(len(self.p))
        tight: list[int] = []
        for _ in range(len(self.p) - 1):
            E = np.vstack([self.p, self.R[tight]])
            direction = cost - E.T @ np.linalg.lstsq(E.T, cost, rcond=None)[0]
            # A second projection removes the rounding error of the first one.
            direction -= E.T @ np.linalg.lstsq(E.T, direction, rcond=None)[0]
            speed = self.R @ direction
            slack = self.R @ v + self.offset
            closing = speed < -_FLAT * np.abs(direction).max()
            closing[tight] = False
            if not closing.any():
                return None
            times = np.where(closing, slack / np.where(closing, -speed, 1.0), np.inf)
            hit = int(np.argmin(times))
            v = v + times[hit] * direction
            tight.append(hit)
        return np.sort(np.array(tight, dtype=np.int16))

    def neighbours(self, tight: NDArray[np.int16]) -> tuple[FloatArray, NDArray[np.int16]] | None:
        """Return (vertices with these tight rows, tight rows of all their neighbours).

        Returns None if rounding errors could make the list incomplete.
        """
        n, d = tight.shape
        B = np.empty((n, d + 1, d + 1))
        B[:, 0], B[:, 1:] = self.p, self.R[tight]
        try:
            inverse = np.linalg.inv(B)
        except np.linalg.LinAlgError:
            return None
        V = inverse[:, :, 0] - np.einsum("nij,nj->ni", inverse[:, :, 1:], self.offset[tight])
        slack = V @ self.R.T + self.offset
        np.put_along_axis(slack, tight.astype(np.intp), np.inf, axis=1)
        if slack.min() < _APART:
            return None
        # Column k of the inverse is an edge: along it only tight row k does not stay tight.
        edges = inverse[:, :, 1:]
        edges = edges / np.abs(edges).max(axis=1, keepdims=True)
        speed = np.matmul(self.R, edges)  # (n, rows, d)
        speed[np.arange(n)[:, None], tight.astype(np.intp)] = 0.0
        # Share of the slack that one unit of the edge uses up; the largest share is used up first.
        closing = np.where(speed < -_FLAT, -speed, 0.0)
        closing *= (1 / slack)[:, :, None]
        hit = np.argmax(closing, axis=1)
        first = np.take_along_axis(closing, hit[:, None], axis=1)[:, 0]
        np.put_along_axis(closing, hit[:, None], 0.0, axis=1)
        # An edge without end, or a tie between two rows, would make the list incomplete.
        with np.errstate(divide="ignore"):
            end, following_end = 1 / first, 1 / closing.max(axis=1)
        if not np.isfinite(end).all() or (following_end - end).min() < _APART:
            return None
        swapped = np.repeat(tight[:, None], d, axis=1)
        swapped[:, np.arange(d), np.arange(d)] = hit
        return V, np.sort(swapped.reshape(n * d, d), axis=1)
