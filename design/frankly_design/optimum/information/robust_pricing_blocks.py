# SPDX-License-Identifier: Apache-2.0
"""Corners of the part of an RLDP column that belongs to one secret.

Let L be the lower bounds of one secret and f = 1 − ΣL > 0. The largest and the smallest average of
its part q are U(q) = L·q + f·max q and W(q) = L·q + f·min q. The part is in
{q ≥ 0 : W(q) ≥ lower side, U(q) ≤ upper side}. At a vertex every entry except at most one is m or
M ≥ m (docs/maths/generation.md, claim 14).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from frankly_protocol.audit import Claim
from numpy.typing import NDArray

from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special

# Corners are divided by f, and columns by their mass. Below these sizes the float errors would
# exceed the safety margin of the bounds.
_MIN_FREE, MIN_MASS = 1e-4, 1e-6
# The number of corners grows like 2^values; larger tables use general branch and bound.
MAX_VALUES, _MAX_ENTRIES = 8, 40_000_000


class SecretBlock:
    """Constraints on the part of the columns that belongs to one secret.

    lower : L, shape (k,), entries ≥ 0.
    free : f = 1 − ΣL > 0.
    """

    def __init__(self, lower: FloatArray, free: float) -> None:
        self.lower, self.free = lower, free

    @cached_property
    def _inside(self) -> NDArray[np.bool_]:
        """All sets of values, shape (2^k, k): set i contains the value u if bit u of i is set."""
        k = len(self.lower)
        return (np.arange(1 << k)[:, None] >> np.arange(k) & 1).astype(np.bool_)

    def at(
        self, inside: NDArray[np.bool_], lower_side: FloatArray, upper_side: FloatArray
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return (two points per set T of values, M on T and m elsewhere; mask of existing points).

        inside : the sets T, shape (v, n, k).
        lower_side, upper_side : shape (v,), 0 < lower ≤ upper.

        Shapes of the results: (v, 2n, k) and (v, 2n). With w = L(T): if both sides can be tight,
        M − m = (upper − lower)/f and m = lower − w·(M − m) ≥ 0, and there is no second point.
        Otherwise m = 0; the upper side is tight at the first point, the lower side at the second.
        """
        w = inside @ self.lower
        width = ((upper_side - lower_side) / self.free)[:, None]
        m = lower_side[:, None] - w * width
        light = m >= 0
        high = np.where(light, m + width, upper_side[:, None] / (w + self.free))
        low = np.where(light, m, 0.0)
        second = np.where(light, 0.0, lower_side[:, None] / np.where(light, 1.0, w))
        points = [np.where(inside, high[..., None], low[..., None]), inside * second[..., None]]
        return np.concatenate(points, axis=1), np.concatenate([np.ones_like(light), ~light], axis=1)

    def corners(
        self, lower_side: FloatArray, upper_side: FloatArray
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return (points that include all vertices, mask of existing points).

        Their shapes are (v, n, k) and (v, n). These are the points of `at` for every T, and points
        with m = 0 at which both sides are tight and one more entry is between 0 and M.
        """
        inside = self._inside
        points, present = self.at(
            np.broadcast_to(inside, (len(lower_side), *inside.shape)), lower_side, upper_side
        )
        light = ~present[:, len(inside) :]
        used = present.any(axis=0)
        points, present = points[:, used], present[:, used]
        width = ((upper_side - lower_side) / self.free)[:, None]
        m = lower_side[:, None] - (inside @ self.lower) * width
        for u in np.flatnonzero(self.lower):
            T = np.flatnonzero(~inside[:, u])
            exists = light[:, T] & ~light[:, T | 1 << u]  # too light without u, too heavy with it
            T, exists = T[exists.any(axis=0)], exists[:, exists.any(axis=0)]
            between = inside[T] * width[..., None]
            between[..., u] = np.clip(m[:, T] / self.lower[u], 0.0, width)
            points = np.concatenate([points, between], axis=1)
            present = np.concatenate([present, exists], axis=1)
        return points, present

    def turns(self, ratio: float, *, last: bool) -> tuple[FloatArray, FloatArray]:
        """Return the v in (1, E) at which vertices of `corners(v, E)` appear or vanish, and these.

        ratio : E.
        last : consider the vertices of `corners(1, E·v)` instead.

        Shapes (n,) and (n, k). Whatever kind of vertex appears or vanishes is then M on a set T of
        values and 0 elsewhere, with both sides tight.
        """
        w = self._inside @ self.lower
        inside, w = self._inside[w > 0], w[w > 0]
        v = (w + self.free) / (w * ratio) if last else w * ratio / (w + self.free)
        between = (v > 1) & (v < ratio)
        inside, v, w = inside[between], v[between], w[between]
        high = (1.0 if last else v) / w
        return v, inside * high[:, None]


@dataclass(frozen=True, slots=True)
class Corners:
    """Corners of one secret's part at every breakpoint v, in both roles: other (0) and last (1).

    points : shape (2, breakpoints, n, values).
    present : shape (2, breakpoints, n), false for padding.
    entropy, mass : Σ p·q ln q and p·q of each point, shape (2, breakpoints, n).
    """

    points: FloatArray
    present: NDArray[np.bool_]
    entropy: FloatArray
    mass: FloatArray

    @classmethod
    def of(
        cls, block: SecretBlock, breakpoints: FloatArray, ratio: float, prior: FloatArray
    ) -> "Corners":
        """Return all corners at these breakpoints. prior : p of the answers, shape (values,)."""
        ones = np.ones_like(breakpoints)
        # One call covers both roles; role 0 comes first.
        points, present = block.corners(
            np.concatenate([breakpoints, ones]), np.concatenate([ones, breakpoints]) * ratio
        )
        return cls.listed(points, present, prior)

    @classmethod
    def listed(cls, points: FloatArray, present: NDArray[np.bool_], prior: FloatArray) -> "Corners":
        """Return corners from points of shape (2·breakpoints, n, k), those of role 0 first."""
        shape = (2, len(points) // 2, points.shape[1])
        points, present = points.reshape(*shape, -1), present.reshape(shape)
        return cls(points, present, special.xlogy(points, points) @ prior, points @ prior)

    @property
    def reach(self) -> tuple[float, float]:
        """Smallest and largest mass."""
        return float(np.min(self.mass[self.present])), float(np.max(self.mass[self.present]))


def list_corners(claim: Claim, prior: FloatArray) -> list[Corners] | None:
    """Return the corners of an rldp claim per secret; None if too many or too extreme.

    prior : p of the answers, shape (secrets · values,).
    """
    blocks = blocks_of(claim)
    if blocks is None or claim.level is None or len(blocks[0].lower) > MAX_VALUES:
        return None
    ratio, values = claim.level[0] / claim.level[1], len(blocks[0].lower)
    breakpoints = _breakpoints(blocks, ratio, diagonal=claim.diagonal)
    if 4 * len(breakpoints) * len(blocks) * 2**values * values > _MAX_ENTRIES:
        return None
    priors = prior.reshape(len(blocks), values)
    by_secret = [
        Corners.of(block, breakpoints, ratio, p) for block, p in zip(blocks, priors, strict=True)
    ]
    return by_secret if sum(corners.reach[0] for corners in by_secret) > MIN_MASS else None


def blocks_of(claim: Claim) -> list[SecretBlock] | None:
    """Return the blocks of an rldp claim; None if some f is tiny, or if the claim has no rows."""
    bounds = claim.lower_bounds or ()
    exact = [[Fraction(n, d) for n, d in row] for row in bounds]
    free = [float(1 - sum(row, Fraction(0))) for row in exact]
    if min(free) < _MIN_FREE or (len(bounds) < 2 and not claim.diagonal):
        return None
    lower = [np.array([float(L) for L in row]) for row in exact]
    return [SecretBlock(L, f) for L, f in zip(lower, free, strict=True)]


def _breakpoints(blocks: list[SecretBlock], ratio: float, *, diagonal: bool) -> FloatArray:
    """Return all v at which a column can be an extreme ray; with `diagonal` only v = 1."""
    if diagonal:
        return np.ones(1)
    breakpoints = [block.turns(ratio, last=last)[0] for block in blocks for last in (False, True)]
    return np.unique(np.concatenate([[1.0], *breakpoints, [ratio]]))
