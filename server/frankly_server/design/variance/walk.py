# SPDX-License-Identifier: Apache-2.0
"""All vertices of a base, by walking along its edges, many at a time.

Every inequality is first loosened by a tiny amount of its own. The loosened polytope contains the base, so what holds
on its vertices for a convex function holds on the base; and it is simple, so a vertex is the set of its a − 1 tight
inequalities and has exactly a − 1 edges. The graph of a polytope is connected: walking along every edge of every vertex
found reaches all of them. The walk gives up where two inequalities meet too closely to tell which comes first.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from frankly_server.design.linear import FloatArray
from frankly_server.design.variance.spread import fractions

LOOSER = 2e-9
"""No inequality is loosened by more, at the scale where it is 1 for the constant column."""
_APART = 1e-14
_BATCH = 2_000_000
_FLAT = 1e-11


def vertices(
    rows: FloatArray, p: FloatArray, start: FloatArray, most: int, out_of_time: Callable[[], bool] = lambda: False
) -> FloatArray | None:
    """Return all vertices of a polytope around {v ≥ 0 : rows·v ≥ 0, p·v = 1}, at most `LOOSER` larger in every row.

    Parameters
    ----------
    rows : shape (m, a), scaled here to 1 at the constant column where that is positive. p : shape (a,).
    start : a cost vector of shape (a,) that is generic; the walk begins where it is largest on a simplex's path.
    most : how many vertices to list at most. out_of_time : asked between batches.

    Returns
    -------
    shape (n, a), or None: too many, unbounded, too degenerate, or out of time.
    """
    walk = _Walk(rows, p)
    first = walk.first(start)
    if first is None:
        return None
    seen: set[bytes] = {first.tobytes()}
    frontier, found = first[None], []
    size = max(1, _BATCH // (len(walk.R) * len(p)))
    while len(frontier):
        following = []
        for i in range(0, len(frontier), size):
            if out_of_time():
                return None
            moved = walk.neighbours(frontier[i : i + size])
            if moved is None:
                return None
            V, tight = moved
            found.append(V)
            for key in np.unique(tight, axis=0):
                name = key.tobytes()
                if name not in seen:
                    seen.add(name)
                    following.append(key)
            if len(seen) > most:
                return None
        frontier = np.array(following)
    return np.vstack(found)


class _Walk:
    """The loosened polytope {R·v ≥ −δ, p·v = 1}."""

    def __init__(self, rows: FloatArray, p: FloatArray) -> None:
        a = len(p)
        R = np.vstack([np.eye(a), rows])
        at_constant = R.sum(axis=1)
        size = np.abs(R).sum(axis=1)
        self.R = R / np.where(at_constant > 1e-9 * size, at_constant, size)[:, None]
        self.p = p
        self.offset = 0.5 * LOOSER * (1 + fractions(0, len(R), 1)[:, 0])

    def first(self, cost: FloatArray) -> NDArray[np.int16] | None:
        """Return the tight rows of one vertex: from the constant column along `cost`, facet after facet."""
        v = np.ones(len(self.p))
        tight: list[int] = []
        for _ in range(len(self.p) - 1):
            E = np.vstack([self.p, self.R[tight]])
            direction = cost - E.T @ np.linalg.lstsq(E.T, cost, rcond=None)[0]
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
        """Return (the vertices with these tight rows, the tight rows of all their neighbours)."""
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
        edges = inverse[:, :, 1:]
        edges = edges / np.abs(edges).max(axis=1, keepdims=True)
        speed = np.matmul(self.R, edges)  # (n, rows, d)
        speed[np.arange(n)[:, None], tight.astype(np.intp)] = 0.0
        with np.errstate(divide="ignore"):
            times = np.where(speed < -_FLAT, slack[:, :, None] / -speed, np.inf)
        hit = np.argmin(times, axis=1)
        nearest = np.take_along_axis(times, hit[:, None], axis=1)[:, 0]
        np.put_along_axis(times, hit[:, None], np.inf, axis=1)
        if slack.min() < _APART or not np.isfinite(nearest).all() or (times.min(axis=1) - nearest).min() < _APART:
            return None
        swapped = np.repeat(tight[:, None], d, axis=1)
        swapped[:, np.arange(d), np.arange(d)] = hit
        return V, np.sort(swapped.reshape(n * d, d), axis=1)
