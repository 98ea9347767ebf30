# SPDX-License-Identifier: Apache-2.0
"""One estimate from several independent ones: their weighted mean, its ends, and a test that their truths are equal."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, stats

from frankly_server.estimate.chernoff import Ends, kl, within
from frankly_server.estimate.margins import Pairs, Values
from frankly_server.estimate.scores import Score, ScoreLaw

FloatArray = NDArray[np.float64]

_RANK = 1e-11
"""Eigenvalues below this fraction of the largest are 0.

Shares add up to 1, so their covariance has one that is 0 in exact arithmetic and about 1e-16 of the largest in floats.
"""


@dataclass(frozen=True, slots=True)
class Homogeneity:
    """A test that several estimates have equal truths: the statistic, its degrees of freedom, and the p-value."""

    statistic: float
    freedom: int
    p: float


def homogeneity(values: Sequence[FloatArray], covariances: Sequence[FloatArray]) -> Homogeneity | None:
    """Return T = Σ_v (x_v − x̄)ᵀΣ_v⁺(x_v − x̄) with its p-value by χ²; None if there is nothing to compare.

    x̄ = (Σ_v Σ_v⁺)⁺ Σ_v Σ_v⁺x_v is the inverse-covariance mean. The degrees of freedom are Σ_v rank Σ_v less the rank of
    Σ_v Σ_v⁺: (V − 1)(k − 1) for V versions of k shares [generalised least squares, Aitken 1935; Cochran 1954].

    values : one vector per version. covariances : of each, if the truths are equal.
    """
    precisions, ranks = zip(*map(_inverse, covariances), strict=True)
    together, rank = _inverse(np.sum(precisions, axis=0))
    freedom = sum(ranks) - rank
    if freedom < 1:
        return None
    mean = together @ np.sum([P @ x for P, x in zip(precisions, values, strict=True)], axis=0)
    statistic = fsum(float((x - mean) @ P @ (x - mean)) for P, x in zip(precisions, values, strict=True))
    return Homogeneity(statistic, freedom, float(stats.chi2.sf(statistic, freedom)))


def weighted_sum(weights: Sequence[Values], values: Sequence[Values]) -> Values:
    """Return Σ_v w_v x_v per target, None where some part is not known."""
    found: list[float | None] = []
    for weight, column in zip(zip(*weights, strict=True), zip(*values, strict=True), strict=True):
        terms = [w * v for w, v in zip(weight, column, strict=True) if w is not None and v is not None]
        found.append(fsum(terms) if len(terms) == len(column) else None)
    return tuple(found)


def weighted_root(weights: Sequence[Values], errors: Sequence[Values]) -> Values:
    """Return √Σ_v w_v²s_v² per target, None where some part is not known."""
    squares = weighted_sum([_squares(w) for w in weights], [_squares(s) for s in errors])
    return tuple(None if v is None else sqrt(v) for v in squares)


def combined_ends(weights: Sequence[Values], values: Sequence[Values], ends: Sequence[Pairs]) -> Pairs:
    """Return ends of the weighted sum of independent estimates from those of each (MOVER) [Zou and Donner 2008].

    The distances from the estimate, times the weights, add up in squares on either side, as half-widths do where they
    are multiples of standard errors; ends may be asymmetric. A part that was cut at what is possible beyond its own
    estimate adds 0.
    """
    below = weighted_root(weights, [_distances(v, e, 0) for v, e in zip(values, ends, strict=True)])
    above = weighted_root(weights, [_distances(v, e, 1) for v, e in zip(values, ends, strict=True)])
    total = weighted_sum(weights, values)
    return tuple(
        None if v is None or down is None or up is None else (v - down, v + up)
        for v, down, up in zip(total, below, above, strict=True)
    )


def pooled_kl(
    weights: Sequence[float], sizes: Sequence[int], scores: Sequence[Score], w: Sequence[FloatArray], level: float
) -> Ends:
    """Return ends of one target's weighted mean that hold at every n and every truth.

    The mean is that of all n reports, each score times weight_v·n/n_v. Reports are independent and need not be alike,
    so they are treated as those of one mechanism whose answers are pairs (version, answer); the bound is over all
    distributions of these, of which the true one is one.

    weights, sizes, scores, w : of each version: its weight, n_v, its score, the target's weights over its answers.
    """
    n = sum(sizes)
    scales = [weight * n / size for weight, size in zip(weights, sizes, strict=True)]
    laws = [_law(score, row) for score, row in zip(scores, w, strict=True)]
    reach = [[scale * end for end in score.reach] for scale, score in zip(scales, scores, strict=True)]
    mean = fsum(weight * score.mean for weight, score in zip(weights, scores, strict=True))
    listed = [law for law in laws if law is not None]
    law = _joined(scales, listed) if len(listed) == len(laws) else None
    together = Score(mean, (min(low for low, _ in reach), max(high for _, high in reach)), law=law)
    ends = kl(together, np.concatenate([scale * row for scale, row in zip(scales, w, strict=True)]), n, level)
    return within(ends, np.concatenate(w))


def _law(score: Score, w: FloatArray) -> ScoreLaw | None:
    """Return a score's law; that of a score of two values follows from its mean, which is w_x for answer x."""
    if score.two is None:
        return score.law
    (low, low_1), (high, high_1) = score.two.low, score.two.high
    chance = np.clip((w - low) / (high - low), 0.0, 1.0)
    return ScoreLaw(np.array([low, high]), np.array([low_1, high_1]), np.stack([1 - chance, chance], axis=1))


def _joined(scales: Sequence[float], laws: Sequence[ScoreLaw]) -> ScoreLaw:
    """Return the law whose answers and groups are those of all laws, one after another, groups by their values."""
    low = np.concatenate([scale * law.low for scale, law in zip(scales, laws, strict=True)])
    high = np.concatenate([scale * law.high for scale, law in zip(scales, laws, strict=True)])
    chances = linalg.block_diag(*(law.chances for law in laws))
    order = np.argsort(low, kind="stable")
    return ScoreLaw(low[order], high[order], chances[:, order])


def _inverse(symmetric: FloatArray) -> tuple[FloatArray, int]:
    """Return the pseudo-inverse of a covariance or precision, and its rank."""
    values, vectors = np.linalg.eigh(symmetric)
    kept = values > _RANK * max(float(values.max(initial=0.0)), 1e-300)
    return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T, dtype=np.float64), int(kept.sum())


def _squares(values: Values) -> Values:
    return tuple(None if v is None else v * v for v in values)


def _distances(values: Values, ends: Pairs, side: int) -> Values:
    """Return how far the lower (0) or upper (1) end is from each value."""
    sign = 2 * side - 1
    return tuple(
        None if v is None or pair is None else max(0.0, sign * (pair[side] - v))
        for v, pair in zip(values, ends, strict=True)
    )
