# SPDX-License-Identifier: Apache-2.0
"""Several versions in one table: a test that their truths are equal, and the weights of their estimates (ADR 0010)."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from frankly_server.analysis.pooling import Part
from frankly_server.estimate import Estimate
from frankly_server.estimate.estimator import nothing_yet
from frankly_server.estimate.evidence import Evidence
from frankly_server.estimate.margins import Values
from frankly_server.estimate.pooling import Homogeneity, homogeneity
from frankly_server.estimate.projection import onto_simplex

FloatArray = NDArray[np.float64]

DIFFER: Final = 0.05
"""Versions are flagged as different below this p-value. It decides nothing else."""
_CONSTANT = 1e-12
"""A variance below this fraction of the second moment is 0: the target is the same whatever people answer."""


def respondents_weights(parts: Sequence[Part]) -> list[Values]:
    """Return, per part and target, n_v/n: the weighted mean is that of all respondents."""
    total = sum(part.n for part in parts)
    return [(part.n / total,) * len(part.targets) for part in parts]


def inverse_variance_weights(parts: Sequence[Part]) -> list[Values]:
    """Return, per part and target, weights proportional to 1/variance at the published design prior.

    They do not depend on the answers, so the weighted mean stays unbiased where the truths are equal. A target that
    some part cannot tell, or that does not vary, weighs by respondents.
    """
    sizes = [float(part.n) for part in parts]
    columns = []
    for variances in zip(*map(_prior_variances, parts), strict=True):
        precisions = [1 / v for v in variances if v is not None]
        precisions = precisions if len(precisions) == len(parts) else sizes
        columns.append([precision / sum(precisions) for precision in precisions])
    return [tuple(row) for row in zip(*columns, strict=True)]


def homogeneity_of(parts: Sequence[Part], seen: Sequence[Evidence], found: Sequence[Estimate]) -> Homogeneity | None:
    """Return the test that several versions have equal truths, None if there is nothing to compare.

    It is about independent draws, also in a census: people of one kind who are split by chance differ too. seen,
    found : the evidence and the estimate of each part.
    """
    known = sorted(set.intersection(*(set(each.known) for each in seen)))
    values = [np.array([float(each.unbiased[t] or 0) for t in known]) for each in found]
    shares = _common_shares(parts, seen)
    covariances = []
    for each in seen:
        places = [each.known.index(t) for t in known]
        covariances.append(_covariance(each, shares)[np.ix_(places, places)])
    return homogeneity(values, covariances) if known else None


def _covariance(evidence: Evidence, shares: FloatArray | None) -> FloatArray:
    """Return the covariance of the estimates of independent draws, at given shares of the answers or as estimated.

    A target that does not vary has none: what rounding leaves of its variance must not count as a difference.
    """
    if shares is None:
        moments, covariance = evidence.moment(), evidence.spread() / (evidence.n - 1)
    else:
        mean = evidence.W @ shares
        moments = evidence.moment_at(shares)
        covariance = (moments - np.outer(mean, mean)) / evidence.n
    varies = np.diagonal(covariance) * evidence.n > _CONSTANT * np.diagonal(moments)
    return np.asarray(np.where(np.outer(varies, varies), covariance, 0.0), dtype=np.float64)


def _common_shares(parts: Sequence[Part], seen: Sequence[Evidence]) -> FloatArray | None:
    """Return shares of the answers from all versions together; None if their answers are not the same.

    With covariances at these shares the test keeps its size at a few hundred reports: estimated covariances are small
    where the estimates are by chance extreme. Versions weigh by precision, since a noisy one would spoil the mean.
    """
    shares = [each.shares for each in seen]
    if len({part.asked for part in parts}) > 1 or any(each is None for each in shares):
        return None
    rows = [[float(share or 0) for share in each or ()] for each in shares]
    return onto_simplex(np.average(np.array(rows), axis=0, weights=[each.n / _variance(each) for each in seen]))


def _variance(evidence: Evidence) -> float:
    """Return the variance of one report's shares, all summed, where all answers are equally common.

    It is that of the answers at least, so never 0; neither the targets nor a census matter.
    """
    even = np.full(evidence.answers, 1 / evidence.answers)
    return float(np.trace(evidence.share_moments(even)) - even @ even)


def _prior_variances(part: Part) -> list[float | None]:
    """Return the variance of each target's estimate at the design prior, None if it is unknown or 0."""
    evidence = nothing_yet(part.mechanism, part.targets, part.design_prior)
    prior = np.array([float(n) for n in part.design_prior])
    p = prior / prior.sum()
    moments = np.diagonal(evidence.moment_at(p))
    variances = moments - (evidence.W @ p) ** 2
    found: list[float | None] = [None] * len(part.targets)
    for t, variance, moment in zip(evidence.known, variances, moments, strict=True):
        found[t] = float(variance) / part.n if variance > _CONSTANT * moment else None
    return found
