# SPDX-License-Identifier: Apache-2.0
"""A second implementation of every notion's definition, in floats.

It shares no code with the engine or the verifier, so both can be checked against it.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations, product

import numpy as np
from frankly_protocol.audit import Claim
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def rows(claims: Sequence[Claim], answers: int) -> FloatArray:
    """Return r, shape (m, answers); the claims hold if r·q ≥ 0 for every report's column q."""
    matrix = np.vstack([row for claim in claims for row in _RULES[claim.notion](claim, answers)])
    size = np.max(np.abs(matrix), axis=1, keepdims=True)
    return np.asarray(matrix / np.where(size > 0, size, 1.0))


def _ldp(claim: Claim, answers: int) -> Iterator[FloatArray]:
    unit = np.eye(answers)
    yield np.array(
        [_ratio(claim.level) * unit[x] - unit[z] for x, z in permutations(range(answers), 2)]
    )


def _secret_ldp(claim: Claim, _: int) -> Iterator[FloatArray]:
    conditional = _conditional(_joint(claim))[0]
    yield np.array(
        [
            _ratio(claim.level) * conditional[s] - conditional[t]
            for s, t in permutations(range(len(conditional)), 2)
        ]
    )


def _lip(claim: Claim, _: int) -> Iterator[FloatArray]:
    yield from _near(_joint(claim), _ratio(claim.level), _ratio(claim.level))


def _alip(claim: Claim, _: int) -> Iterator[FloatArray]:
    yield from _near(_joint(claim), _ratio(claim.low_level), _ratio(claim.level))


def _srlip(claim: Claim, _: int) -> Iterator[FloatArray]:
    """Yield the rows of every x_J: each attribute is fixed to a value or unknown (None)."""
    joint, sizes = _joint(claim), claim.attributes or ()
    places = np.array(list(product(*(range(size) for size in sizes))))
    for fixed in product(*((None, *range(size)) for size in sizes)):
        fits = np.all([(places[:, i] == v) | (v is None) for i, v in enumerate(fixed)], axis=0)
        present = joint * fits
        present = present[present.sum(axis=1) > 0]
        if len(present) > 1:
            yield from _near(present, _ratio(claim.level), _ratio(claim.level))


def _rldp(claim: Claim, answers: int) -> Iterator[FloatArray]:
    """Yield the rows; each vertex of D_s is L_s with the remaining mass added to one value."""
    bounds = np.array([[n / d for n, d in row] for row in claim.lower_bounds or ()])
    size = bounds.shape[1]
    corners = []
    for s, row in enumerate(bounds):
        block = np.zeros((size, answers))
        block[:, s * size : (s + 1) * size] = row + (1 - row.sum()) * np.eye(size)
        corners.append(block)
    E = _ratio(claim.level)
    for s, t in product(range(len(bounds)), repeat=2):
        if s != t or claim.diagonal:
            yield (E * corners[t][None, :] - corners[s][:, None]).reshape(-1, answers)


def _dpv(claim: Claim, _: int) -> Iterator[FloatArray]:
    joint = _joint(claim)
    yield (_ratio(claim.level) * joint.sum(axis=0) - joint[claim.sensitive or 0])[None]


_RULES = {
    "ldp": _ldp,
    "secret-ldp": _secret_ldp,
    "lip": _lip,
    "alip": _alip,
    "srlip": _srlip,
    "rldp": _rldp,
    "dpv": _dpv,
}


def _joint(claim: Claim) -> FloatArray:
    return np.array(claim.joint, dtype=np.float64)


def _ratio(level: tuple[int, int] | None) -> float:
    return float("inf") if level is None else level[0] / level[1]


def _conditional(joint: FloatArray) -> tuple[FloatArray, FloatArray]:
    return joint / joint.sum(axis=1, keepdims=True), joint.sum(axis=0) / joint.sum()


def _near(joint: FloatArray, low: float, high: float) -> Iterator[FloatArray]:
    conditional, average = _conditional(joint)
    if np.isfinite(high):
        yield high * average - conditional
    if np.isfinite(low):
        yield low * conditional - average
