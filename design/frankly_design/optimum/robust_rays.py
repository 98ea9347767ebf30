# SPDX-License-Identifier: Apache-2.0
"""All extreme rays of a cone with one claim of rldp, from the corners of each secret's part.

A ray is scaled as in `information.robust_pricing`: the secret `last` has the least average 1, the
others have the least average v. Parts are corners at this v, and v is 1, E, or a turn of one of the
parts. So the rays are products of short lists (docs/maths/generation.md, claims 14 and 22); the
double description method and a walk along edges would pass through far more points than these.
Rows of other claims then cut the cone one by one (claim 23).
"""

from collections.abc import Iterator

import numpy as np
from frankly_protocol.audit import Claim
from numpy.typing import NDArray

from frankly_design.notions.cones import Cone, rows_of
from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.information.robust_pricing_blocks import (
    MAX_VALUES,
    MIN_MASS,
    SecretBlock,
    blocks_of,
)
from frankly_design.tables.limits import Limits

MOST_RAYS = 1_000_000
BoolArray = NDArray[np.bool_]

_LOOSER = 1e-12
"""Relative increase of E, so that the points surround the cone in spite of their rounding."""
_SAME = 1e-9
_SINGULAR = 1e-12
"""Singular value of tight rows, largest entry 1, below which they are dependent."""
_CHUNK = 1000
_MOST_PAIRS, _MOST_POINTS = 4_000_000, 6000
"""Largest numbers of pairs on both sides of a row, and of points whose rank is computed (0.3 s)."""
_BYTES = 32
"""Bytes per entry of the list, with the arrays computed from it."""


def listed(cone: Cone, prior: FloatArray, limits: Limits) -> FloatArray | None:
    """Return points v, p·v = 1, shape (n, a), whose hull contains all columns of the cone.

    They are columns of the cone at a level higher by 1e-12, all extreme ones among them.

    None without one claim of rldp, if there are too many, or if the numbers are too extreme.
    """
    robust = [claim for claim in cone.claims if claim.notion == "rldp"]
    if len(robust) != 1:
        return None
    V = _of_robust(robust[0], prior, limits)
    others = [
        row
        for claim in cone.claims
        if claim is not robust[0]
        for row in rows_of(claim, cone.answers)
    ]
    if V is None or not others:
        return V
    tight = np.vstack([_scaled(rows_of(robust[0], cone.answers)), np.eye(cone.answers)])
    return _cut(V, tight, _scaled(others) + _LOOSER * prior, limits)


def _scaled(rows: list[list[int]]) -> FloatArray:
    return np.array([[n / max(map(abs, row)) for n in row] for row in rows])


def _of_robust(claim: Claim, prior: FloatArray, limits: Limits) -> FloatArray | None:
    blocks = blocks_of(claim)
    if blocks is None or claim.level is None or len(blocks[0].lower) > MAX_VALUES:
        return None
    ratio = claim.level[0] / claim.level[1] * (1 + _LOOSER)
    most = min(MOST_RAYS, limits.memory * 1_000_000 // (_BYTES * len(prior)))
    families, count = [], 0
    for parts in _families(blocks, ratio, diagonal=claim.diagonal):
        count += int(np.prod([float(len(part)) for part in parts]))
        if count > most or limits.out_of_time():
            return None
        families.append(parts)
    q = np.vstack([_products(parts) for parts in families])
    mass = q @ prior
    return None if mass.min() < MIN_MASS else np.asarray(q / mass[:, None], dtype=np.float64)


def _cut(V: FloatArray, tight: FloatArray, rows: FloatArray, limits: Limits) -> FloatArray | None:
    """Return the extreme points of the hull of V that satisfy all `rows`; None if too many.

    tight : rows of which a − 1 are tight at each extreme point of the hull, shape (m, a).

    A step of the double description method: new extreme points lie on edges that a row cuts.
    The two ends of an edge have a − 2 tight rows in common; pairs that only do so too are kept, as
    they do no harm.
    """
    answers = V.shape[1]
    extreme = _extreme(V, tight, limits)
    for row in rows:
        if extreme is None:
            return None
        V = extreme
        side = V @ row
        above, below = np.flatnonzero(side > 0), np.flatnonzero(side < 0)
        if len(above) * len(below) > _MOST_PAIRS:
            return None
        if len(below):
            T = _are_tight(V, tight).astype(np.float32)
            i, j = np.nonzero(T[above] @ T[below].T >= answers - 2)
            i, j = above[i], below[j]
            crossed = side[i][:, None] * V[j] - side[j][:, None] * V[i]
            V = np.vstack([V[side >= 0], crossed / (side[i] - side[j])[:, None]])
        tight = np.vstack([tight, row])
        extreme = _extreme(V, tight, limits) if len(below) else V
    return extreme


def _are_tight(V: FloatArray, tight: FloatArray) -> BoolArray:
    return np.asarray(np.abs(V @ tight.T) <= _SAME * V.max(axis=1)[:, None])


def _extreme(V: FloatArray, tight: FloatArray, limits: Limits) -> FloatArray | None:
    """Return the points that may be extreme, each once: their tight rows have rank a − 1 at least.

    None if they are too many, or once half of the time is over.
    """
    _, first = np.unique(np.round(V / _SAME), axis=0, return_index=True)
    V, answers = V[np.sort(first)], V.shape[1]
    T = _are_tight(V, tight)
    enough = T.sum(axis=1) >= answers - 1
    V, T = V[enough], T[enough]
    if len(V) > _MOST_POINTS:
        return None
    ranked = [np.empty(0)]
    for i in range(0, len(V), _CHUNK):
        if limits.half_time():
            return None
        values = np.linalg.svd(T[i : i + _CHUNK, :, None] * tight, compute_uv=False)
        ranked.append(values[:, answers - 2])
    return np.asarray(V[np.concatenate(ranked) > _SINGULAR], dtype=np.float64)


def _families(
    blocks: list[SecretBlock], ratio: float, *, diagonal: bool
) -> Iterator[list[FloatArray]]:
    """Yield lists of the parts of each secret; the rays are among the products of these lists."""
    yield [_corners(block, 1.0, ratio) for block in blocks]
    if diagonal:
        return
    for last in range(len(blocks)):
        # v = E leaves the other secrets no choice: all their entries are E.
        others = [np.full((1, len(block.lower)), ratio) for block in blocks]
        others[last] = _last_corners(blocks[last], ratio**2)
        yield others
        for s, block in enumerate(blocks):
            for v, corner in zip(*block.turns(ratio, last=s == last), strict=True):
                parts = [
                    _last_corners(other, ratio * v) if t == last else _corners(other, v, ratio)
                    for t, other in enumerate(blocks)
                    if t != s
                ]
                yield [*parts[:s], corner[None], *parts[s:]]


def _corners(block: SecretBlock, lower_side: float, upper_side: float) -> FloatArray:
    points, present = block.corners(np.array([lower_side]), np.array([upper_side]))
    return np.asarray(points[0][present[0]], dtype=np.float64)


def _last_corners(block: SecretBlock, upper_side: float) -> FloatArray:
    """Return the corners of the last secret's part, whose least average is 1."""
    points = _corners(block, 1.0, upper_side)
    least = points @ block.lower + block.free * points.min(axis=1)
    return np.asarray(points[least <= 1 + _SAME], dtype=np.float64)


def _products(parts: list[FloatArray]) -> FloatArray:
    """Return all columns with one part from each list, shape (product of the lengths, a)."""
    chosen = np.indices([len(part) for part in parts]).reshape(len(parts), -1)
    return np.hstack([part[i] for part, i in zip(parts, chosen, strict=True)])
