# SPDX-License-Identifier: Apache-2.0
"""Pooling of independent estimates: weighted sums, intervals and a test of equal true values."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt

import numpy as np

from frankly_design.estimate import chernoff
from frankly_design.estimate.margins import Pairs, Values
from frankly_design.kinds.evidence import Evidence
from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special

_RANK_TOLERANCE = 1e-11
"""Eigenvalues below this fraction of the largest are treated as 0.

Shares sum to 1, so their covariance has an eigenvalue that is exactly 0, or in floats about 1e-16
of the largest.
"""


@dataclass(frozen=True, slots=True)
class Homogeneity:
    """Result of the test that several estimates have equal true values.

    statistic : T, see `homogeneity`.
    freedom : degrees of freedom.
    p : p-value.
    """

    statistic: float
    freedom: int
    p: float


def homogeneity(
    values: Sequence[FloatArray], covariances: Sequence[FloatArray]
) -> Homogeneity | None:
    """Return T = Σ_v (x_v − x̄)ᵀC_v⁺(x_v − x̄) with its p-value; None without degrees of freedom.

    x_v is the estimate of version v, and C_v its covariance. The mean x̄ = (Σ_v C_v⁺)⁺ Σ_v C_v⁺x_v
    is weighted by inverse covariances. The degrees of freedom are the sum of the ranks of the C_v
    minus the rank of Σ_v C_v⁺: (V − 1)(k − 1) for V versions of k shares [generalised least
    squares, Aitken 1935; Cochran 1954].

    values : one vector per version.
    covariances : one matrix per version, computed under equal true values.
    """
    # Values are divided by their standard errors; otherwise the rank threshold would drop targets
    # with small weights.
    scale = np.sqrt(np.sum([np.diagonal(C) for C in covariances], axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    values = [x / scale for x in values]
    covariances = [C / np.outer(scale, scale) for C in covariances]
    precisions, ranks = zip(*map(pseudo_inverse, covariances), strict=True)
    pooled, rank = pseudo_inverse(np.sum(precisions, axis=0))
    freedom = sum(ranks) - rank
    # No comparison is possible for one version, or without a common estimable combination.
    if freedom < 1:
        return None
    mean = pooled @ np.sum([P @ x for P, x in zip(precisions, values, strict=True)], axis=0)
    statistic = fsum(
        float((x - mean) @ P @ (x - mean)) for P, x in zip(precisions, values, strict=True)
    )
    return Homogeneity(statistic, freedom, float(special.chdtrc(freedom, statistic)))


def weighted_sum(weights: Sequence[Values], values: Sequence[Values]) -> Values:
    """Return Σ_v w_v x_v per target, None where a term is unknown."""
    sums: list[float | None] = []
    for weight, column in zip(zip(*weights, strict=True), zip(*values, strict=True), strict=True):
        terms = [
            w * v for w, v in zip(weight, column, strict=True) if w is not None and v is not None
        ]
        # fsum rounds only once, so the result does not depend on the order of the versions.
        sums.append(fsum(terms) if len(terms) == len(column) else None)
    return tuple(sums)


def weighted_root(weights: Sequence[Values], errors: Sequence[Values]) -> Values:
    """Return √Σ_v w_v²s_v² per target, None where a term is unknown."""
    squares = weighted_sum([_squares(w) for w in weights], [_squares(s) for s in errors])
    return tuple(None if v is None else sqrt(v) for v in squares)


def combined_ends(
    weights: Sequence[Values], values: Sequence[Values], ends: Sequence[Pairs]
) -> Pairs:
    """Return the ends of a weighted sum from those of its terms (MOVER) [Zou and Donner 2008].

    On each side, the squares of the weighted distances from the estimate are added, as for standard
    errors; the ends may be asymmetric. A negative weight swaps the sides of its term. The ends must
    not be cut to the possible values, because the distance to a cut end does not measure the error
    of the estimate.
    """
    below, above = (
        weighted_root(
            weights,
            [_distances(w, v, e, side) for w, v, e in zip(weights, values, ends, strict=True)],
        )
        for side in (0, 1)
    )
    total = weighted_sum(weights, values)
    return tuple(
        None if v is None or down is None or up is None else (v - down, v + up)
        for v, down, up in zip(total, below, above, strict=True)
    )


def kl_ends(parts: Sequence[Evidence], level: float) -> Pairs:
    """Return Chernoff bounds of the sums of the parts' targets, valid for any true shares.

    An entry is None if its target is not identifiable in some part.
    """
    scores = [
        dict(zip(part.known, zip(part.scores(), part.W, strict=True), strict=True))
        for part in parts
    ]
    return tuple(
        chernoff.kl_of_sum(
            [(*known[t], part.n) for known, part in zip(scores, parts, strict=True)], level
        )
        if all(t in known for known in scores)
        else None
        for t in range(len(parts[0].exact))
    )


def pseudo_inverse(symmetric: FloatArray) -> tuple[FloatArray, int]:
    """Return the pseudo-inverse of a covariance or precision matrix, and its rank."""
    values, vectors = np.linalg.eigh(symmetric)
    # 1e-300 gives a matrix of zeros rank 0 instead of a division by zero.
    positive = values > _RANK_TOLERANCE * max(float(values.max(initial=0.0)), 1e-300)
    inverse = (vectors[:, positive] / values[positive]) @ vectors[:, positive].T
    return np.asarray(inverse, dtype=np.float64), int(positive.sum())


def _squares(values: Values) -> Values:
    return tuple(None if v is None else v * v for v in values)


def _distances(weights: Values, values: Values, ends: Pairs, side: int) -> Values:
    """Return the distance from each value to the end that lowers or raises its weighted term.

    side : 0 for down, 1 for up.
    """
    return tuple(
        None if v is None or pair is None else pair[side if (w or 0) >= 0 else 1 - side] - v
        for w, v, pair in zip(weights, values, ends, strict=True)
    )
