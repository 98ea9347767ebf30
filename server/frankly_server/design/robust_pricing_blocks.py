# SPDX-License-Identifier: Apache-2.0
"""The parts of an RLDP column that belong to one secret, and where they can have corners (docs/maths/generation.md).

With L the lower bounds of one secret, f = 1 − ΣL > 0, U(q) = L·q + f·max q and W(q) = L·q + f·min q, the part q of a
column lies in {q ≥ 0 : W(q) ≥ least, U(q) ≤ most}. At its vertices every entry is m or M ≥ m, but one at most.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from frankly_protocol.audit import Claim
from numpy.typing import NDArray
from scipy.special import xlogy

from frankly_server.design.linear import FloatArray

_LEAST_FREE, _LEAST_MASS = 1e-4, 1e-6
_MOST_VALUES, _MOST_ENTRIES = 8, 40_000_000


class Block:
    """One secret's part of the columns.

    lower : L, shape (k,), entries ≥ 0. free : f = 1 − ΣL > 0.
    """

    def __init__(self, lower: FloatArray, free: float) -> None:
        self.lower, self.free = lower, free

    @cached_property
    def _inside(self) -> NDArray[np.bool_]:
        """Every set of values, shape (2^k, k): set i holds the value u if bit u of i is set."""
        k = len(self.lower)
        return (np.arange(1 << k)[:, None] >> np.arange(k) & 1).astype(np.bool_)

    def at(
        self, inside: NDArray[np.bool_], least: FloatArray, most: FloatArray
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return two points for each set T of values, M on T and m elsewhere, and whether they are there.

        inside : shape (v, n, k). least, most : shape (v,), 0 < least ≤ most. Shapes (v, 2n, k) and (v, 2n). With
        w = L(T): if both sides can be met, M − m = (most − least)/f and m = least − w·(M − m) ≥ 0, the second point is
        not there; else m = 0, and the first meets `most`, the second `least`.
        """
        w = inside @ self.lower
        width = ((most - least) / self.free)[:, None]
        m = least[:, None] - w * width
        light = m >= 0
        high = np.where(light, m + width, most[:, None] / (w + self.free))
        low = np.where(light, m, 0.0)
        second = np.where(light, 0.0, least[:, None] / np.where(light, 1.0, w))
        points = [np.where(inside, high[..., None], low[..., None]), inside * second[..., None]]
        return np.concatenate(points, axis=1), np.concatenate([np.ones_like(light), ~light], axis=1)

    def corners(self, least: FloatArray, most: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return points that include all vertices, and which are there; shapes (v, n, k) and (v, n).

        Those of `at` for every T, and those with m = 0 that meet both sides with one more entry between 0 and M.
        """
        inside = self._inside
        points, present = self.at(np.broadcast_to(inside, (len(least), *inside.shape)), least, most)
        light = ~present[:, len(inside) :]
        ever = present.any(axis=0)
        points, present = points[:, ever], present[:, ever]
        width = ((most - least) / self.free)[:, None]
        m = least[:, None] - (inside @ self.lower) * width
        for u in np.flatnonzero(self.lower):
            T = np.flatnonzero(~inside[:, u])
            there = light[:, T] & ~light[:, T | 1 << u]  # too light alone, too heavy with u
            T, there = T[there.any(axis=0)], there[:, there.any(axis=0)]
            between = inside[T] * width[..., None]
            between[..., u] = np.clip(m[:, T] / self.lower[u], 0.0, width)
            points, present = np.concatenate([points, between], axis=1), np.concatenate([present, there], axis=1)
        return points, present

    def turns(self, ratio: float, *, last: bool) -> FloatArray:
        """Return the v in (1, E) where vertices begin or end to exist: of `corners(v, E)` or, if last, `(1, E·v)`."""
        w = self._inside @ self.lower
        w = w[w > 0]
        v = (w + self.free) / (w * ratio) if last else w * ratio / (w + self.free)
        return np.unique(v[(v > 1) & (v < ratio)])


@dataclass(frozen=True, slots=True)
class Corners:
    """The corners of one secret's part at every turn v, as one of the others (0) and as the last (1).

    points : shape (2, turns, n, values). present : shape (2, turns, n), false where there are fewer. entropy, mass :
    p·q ln q and p·q of each, the same shape.
    """

    points: FloatArray
    present: NDArray[np.bool_]
    entropy: FloatArray
    mass: FloatArray

    @classmethod
    def of(cls, block: Block, turns: FloatArray, ratio: float, prior: FloatArray) -> "Corners":
        """List the corners for these turns; prior : p of the secret's answers, shape (values,)."""
        one = np.ones_like(turns)
        # both roles at once: as one of the others, then as the last
        points, there = block.corners(np.concatenate([turns, one]), np.concatenate([one, turns]) * ratio)
        return cls.listed(points, there, prior)

    @classmethod
    def listed(cls, points: FloatArray, there: NDArray[np.bool_], prior: FloatArray) -> "Corners":
        """Take points for every turn as one of the others, then for every turn as the last; shape (2·turns, n, k)."""
        shape = (2, len(points) // 2, points.shape[1])
        points, there = points.reshape(*shape, -1), there.reshape(shape)
        return cls(points, there, xlogy(points, points) @ prior, points @ prior)

    @property
    def reach(self) -> tuple[float, float]:
        """The least and the largest mass."""
        return float(np.min(self.mass[self.present])), float(np.max(self.mass[self.present]))


def list_corners(claim: Claim, prior: FloatArray) -> list[Corners] | None:
    """List the corners of an rldp claim, secret by secret; None where they are too many or the numbers too extreme.

    prior : p of the answers, shape (secrets · values,).
    """
    blocks = blocks_of(claim)
    if blocks is None or claim.level is None or len(blocks[0].lower) > _MOST_VALUES:
        return None
    ratio, values = claim.level[0] / claim.level[1], len(blocks[0].lower)
    turns = _turns(blocks, ratio, diagonal=claim.diagonal)
    if 4 * len(turns) * len(blocks) * 2**values * values > _MOST_ENTRIES:
        return None
    parts = prior.reshape(len(blocks), values)
    found = [Corners.of(block, turns, ratio, part) for block, part in zip(blocks, parts, strict=True)]
    return found if sum(corners.reach[0] for corners in found) > _LEAST_MASS else None


def blocks_of(claim: Claim) -> list[Block] | None:
    """Return the parts of an rldp claim, None where they are ill-conditioned or nothing couples them."""
    bounds = claim.lower_bounds or ()
    exact = [[Fraction(n, d) for n, d in row] for row in bounds]
    free = [float(1 - sum(row, Fraction(0))) for row in exact]
    if min(free) < _LEAST_FREE or (len(bounds) < 2 and not claim.diagonal):
        return None
    return [Block(np.array([float(L) for L in row]), f) for row, f in zip(exact, free, strict=True)]


def _turns(blocks: list[Block], ratio: float, *, diagonal: bool) -> FloatArray:
    """Return every v at which a column can be an extreme ray; with the s = s' rows, v = 1 is all there is."""
    if diagonal:
        return np.ones(1)
    found = [block.turns(ratio, last=last) for block in blocks for last in (False, True)]
    return np.unique(np.concatenate([[1.0], *found, [ratio]]))
