# SPDX-License-Identifier: Apache-2.0
"""Privacy notions as rows r·q ≥ 0 in floats, computed from their definitions without the engine's code."""

import itertools
from collections.abc import Iterator

import numpy as np
from frankly_protocol.audit import Claim


def definition_rows(claims: tuple[Claim, ...], answers: int) -> np.ndarray:
    """Return all rows of all claims, of shape (m, answers)."""
    rows = [row for claim in claims for row in _rows(claim, answers)]
    return np.array(rows).reshape(-1, answers)


def _rows(claim: Claim, a: int) -> Iterator[np.ndarray]:
    E = np.inf if claim.level is None else claim.level[0] / claim.level[1]
    unit = np.eye(a)
    if claim.notion == "ldp":
        yield from (E * unit[x] - unit[y] for x, y in itertools.permutations(range(a), 2))
    elif claim.notion == "metric-ldp":
        yield from (
            E * n / d * unit[z] - unit[x]
            for x, row in enumerate(claim.levels or ())
            for z, (n, d) in ((z, ratio) for z, ratio in enumerate(row) if ratio)
        )
    elif claim.notion == "rldp":
        corners = _corners(claim, a)
        for s, t in itertools.product(range(len(corners)), repeat=2):
            if s != t or claim.diagonal:
                yield from (E * B - A for A in corners[s] for B in corners[t])
    elif claim.notion == "dpv":
        N = np.array(claim.joint, dtype=float)
        yield E * N.sum(axis=0) / N.sum() - N[claim.sensitive or 0] / N.sum()
    elif claim.notion == "secret-ldp":
        N = np.array(claim.joint, dtype=float)
        conditional = N / N.sum(axis=1, keepdims=True)
        yield from (
            E * conditional[s] - conditional[t] for s, t in itertools.permutations(range(len(N)), 2)
        )
    else:
        low = (
            E
            if claim.notion != "alip"
            else np.inf
            if claim.low_level is None
            else np.divide(*claim.low_level)
        )
        for N in _conditioned(claim, a):
            average = N.sum(axis=0) / N.sum()
            for row in N[N.sum(axis=1) > 0]:
                conditional = row / row.sum()
                yield from (
                    r
                    for r in (E * average - conditional, low * conditional - average)
                    if np.all(np.isfinite(r))
                )


def _conditioned(claim: Claim, a: int) -> Iterator[np.ndarray]:
    """Yield the prior given every x_J; for lip and alip only with empty J."""
    N = np.array(claim.joint, dtype=float)
    sizes = claim.attributes or ()
    values = np.array(list(np.ndindex(*sizes))) if sizes else np.zeros((a, 0), dtype=int)
    for size in range(len(sizes) + 1):
        for J in itertools.combinations(range(len(sizes)), size):
            for fixed in itertools.product(*(range(sizes[j]) for j in J)):
                inside = np.all(values[:, list(J)] == np.array(fixed, dtype=int), axis=1)
                if (N * inside).sum() > 0:
                    yield N * inside


def _corners(claim: Claim, a: int) -> list[list[np.ndarray]]:
    bounds = [[n / d for n, d in row] for row in claim.lower_bounds or ()]
    size = len(bounds[0])
    corners = []
    for s, row in enumerate(bounds):
        placed = np.zeros(a)
        placed[s * size : (s + 1) * size] = row
        corners.append([placed + (1 - sum(row)) * np.eye(a)[s * size + u] for u in range(size)])
    return corners
