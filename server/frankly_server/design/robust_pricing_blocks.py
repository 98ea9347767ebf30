# SPDX-License-Identifier: Apache-2.0
"""The parts of an RLDP column that belong to one secret, and where they can have corners (docs/maths/generation.md).

With L the lower bounds of one secret, f = 1 − ΣL > 0, U(q) = L·q + f·max q and W(q) = L·q + f·min q, the part q of a
column lies in {q ≥ 0 : W(q) ≥ least, U(q) ≤ most}. At its vertices every entry is m or M ≥ m, but one at most.
"""

from dataclasses import dataclass
from fractions import Fraction

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
        k = len(lower)
        self._inside = (np.arange(1 << k)[:, None] >> np.arange(k) & 1).astype(np.bool_)
        self._weight = self._inside @ lower

    def corners(self, least: FloatArray, most: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return points of the part that include all its vertices, and which are there; 0 < least ≤ most, shape (v,).

        Shapes (v, n, k) and (v, n). The entries of a set T are M, those of the others m. With w = L(T): if both sides
        are met, M − m = (most − least)/f and m = least − w·(M − m), where that is ≥ 0; else m = 0 and one side is met,
        or both and one more entry lies between 0 and M.
        """
        w, f, inside = self._weight, self.free, self._inside
        width = ((most - least) / f)[:, None]
        m = least[:, None] - w * width
        light = m >= 0
        high = np.where(light, m + width, most[:, None] / (w + f))
        both_or_most = np.where(inside, high[..., None], np.where(light, m, 0.0)[..., None])
        heavy = np.flatnonzero(~light.all(axis=0))
        at_least = inside[heavy] * (least[:, None] / w[heavy])[..., None]
        points, present = [both_or_most, at_least], [np.ones_like(light), ~light[:, heavy]]
        for u in np.flatnonzero(self.lower):
            T = np.flatnonzero(~inside[:, u])
            there = light[:, T] & ~light[:, T | 1 << u]
            T, there = T[there.any(axis=0)], there[:, there.any(axis=0)]
            between = inside[T] * width[..., None]
            between[..., u] = np.clip(m[:, T] / self.lower[u], 0.0, width)
            points.append(between)
            present.append(there)
        return np.concatenate(points, axis=1), np.concatenate(present, axis=1)

    def turns(self, ratio: float, *, last: bool) -> FloatArray:
        """Return the v in (1, E) where vertices begin or end to exist: of `corners(v, E)` or, if last, `(1, E·v)`."""
        w = self._weight[self._weight > 0]
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
        shape = (2, len(turns), points.shape[1])
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
    blocks = _blocks(claim)
    if blocks is None or claim.level is None:
        return None
    ratio, values = claim.level[0] / claim.level[1], len(blocks[0].lower)
    turns = _turns(blocks, ratio, diagonal=claim.diagonal)
    if 4 * len(turns) * len(blocks) * 2**values * values > _MOST_ENTRIES:
        return None
    parts = prior.reshape(len(blocks), values)
    found = [Corners.of(block, turns, ratio, part) for block, part in zip(blocks, parts, strict=True)]
    return found if sum(corners.reach[0] for corners in found) > _LEAST_MASS else None


def _blocks(claim: Claim) -> list[Block] | None:
    bounds = claim.lower_bounds or ()
    exact = [[Fraction(n, d) for n, d in row] for row in bounds]
    free = [float(1 - sum(row, Fraction(0))) for row in exact]
    few = len(bounds[0]) <= _MOST_VALUES
    if not few or min(free) < _LEAST_FREE or (len(bounds) < 2 and not claim.diagonal):
        return None
    return [Block(np.array([float(L) for L in row]), f) for row, f in zip(exact, free, strict=True)]


def _turns(blocks: list[Block], ratio: float, *, diagonal: bool) -> FloatArray:
    """Return every v at which a column can be an extreme ray; with the s = s' rows, v = 1 is all there is."""
    if diagonal:
        return np.ones(1)
    found = [block.turns(ratio, last=last) for block in blocks for last in (False, True)]
    return np.unique(np.concatenate([[1.0], *found, [ratio]]))
