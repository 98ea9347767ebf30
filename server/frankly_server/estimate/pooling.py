# SPDX-License-Identifier: Apache-2.0
"""One estimate from several that are independent and of the same truth: weights by inverse covariance (DESIGN §6).

Weights must not look at the answers, or the pooled estimate is biased. So the covariance is the one at the published
design prior, which the mechanism and n determine: Σ_v = (M_v − (Wp₀)(Wp₀)ᵀ)/n_v with M_v = E[d dᵀ] at p₀.
"""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from frankly_server.estimate import chernoff
from frankly_server.estimate.evidence import Evidence
from frankly_server.estimate.margins import Pairs, Values

FloatArray = NDArray[np.float64]


def matrices(covariances: Sequence[FloatArray]) -> list[FloatArray]:
    """Return B_v = (Σ_u Σ_u⁺)⁺ Σ_v⁺ on the common range, which sum to the identity there.

    Σ_v B_v x_v has the least variance, for every combination of the targets, of all unbiased combinations at these
    covariances (generalised least squares; Aitken 1935). Targets that sum to a constant make the Σ_v singular in the
    same direction; there the values agree, and the mean is taken.

    covariances : symmetric, shape (t, t), one for each estimate.
    """
    size = len(covariances[0])
    total = np.sum(covariances, axis=0)
    values, vectors = np.linalg.eigh(total)
    free = vectors[:, values > 1e-9 * max(float(values.max()), 1e-300)]
    fixed = np.eye(size) - free @ free.T
    precisions = [np.linalg.pinv(free.T @ C @ free, hermitian=True) for C in covariances]
    whole = np.linalg.pinv(np.sum(precisions, axis=0), hermitian=True)
    parts = [free @ (whole @ P) @ free.T + fixed / len(covariances) for P in precisions]
    return [np.asarray(part, dtype=np.float64) for part in parts]


def pooled(weights: Sequence[FloatArray], values: Sequence[FloatArray]) -> FloatArray:
    """Return Σ_v B_v x_v."""
    return np.asarray(np.sum([B @ x for B, x in zip(weights, values, strict=True)], axis=0), dtype=np.float64)


def combined_ends(values: Sequence[Values], ends: Sequence[Pairs]) -> Pairs:
    """Return ends of the sum of independent estimates from those of each (MOVER) [Zou and Donner 2008].

    The distances from the estimate add up in squares on either side, as half-widths do where they are multiples of
    standard errors; ends may be asymmetric. They must not be cut at what is possible: the distance to a cut end says
    nothing about how far the estimate may be off.
    """
    found: list[tuple[float, float] | None] = []
    for parts in zip(*(zip(v, e, strict=True) for v, e in zip(values, ends, strict=True)), strict=True):
        known = [(value, pair) for value, pair in parts if value is not None and pair is not None]
        if len(known) < len(parts):
            found.append(None)
            continue
        total = sum(value for value, _ in known)
        below = sqrt(sum((value - low) ** 2 for value, (low, _) in known))
        above = sqrt(sum((high - value) ** 2 for value, (_, high) in known))
        found.append((total - below, total + above))
    return tuple(found)


def kl_ends(parts: Sequence[Evidence], level: float) -> Pairs:
    """Return the Chernoff bounds of the sum of the parts' targets, which hold whatever the truth is in each part."""
    scores = [dict(zip(part.known, zip(part.scores(), part.W, strict=True), strict=True)) for part in parts]
    return tuple(
        chernoff.kl_of_sum([(*known[t], part.n) for known, part in zip(scores, parts, strict=True)], level)
        if all(t in known for known in scores)
        else None
        for t in range(len(parts[0].exact))
    )


def pooled_covariance(weights: Sequence[FloatArray], covariances: Sequence[FloatArray]) -> FloatArray:
    """Return Σ_v B_v C_v B_vᵀ: the estimates are of different people's reports, so they are independent."""
    return np.asarray(
        np.sum([B @ C @ B.T for B, C in zip(weights, covariances, strict=True)], axis=0), dtype=np.float64
    )
