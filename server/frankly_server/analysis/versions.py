# SPDX-License-Identifier: Apache-2.0
"""Pooled versions of a survey: weights of their estimates and a homogeneity test (ADR 0010)."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from frankly_server.analysis.part import Part
from frankly_server.estimate import Estimate
from frankly_server.estimate.estimator import nothing_yet
from frankly_server.estimate.evidence import Evidence
from frankly_server.estimate.margins import Values
from frankly_server.estimate.pooling import Homogeneity, homogeneity
from frankly_server.estimate.projection import onto_simplex

FloatArray = NDArray[np.float64]

DIFFER: Final = 0.05
"""Versions are flagged as different below this p-value; nothing else depends on it."""
_CONSTANT = 1e-12
"""A variance below this fraction of the second moment is a rounding error of a constant target."""


def respondents_weights(parts: Sequence[Part]) -> list[Values]:
    """Return, per part and target, n_v/n: the weighted mean is that of all respondents."""
    total = sum(part.respondents for part in parts)
    return [(part.respondents / total,) * len(part.targets) for part in parts]


def inverse_variance_weights(parts: Sequence[Part]) -> list[Values]:
    """Return, per part and target, weights proportional to 1/variance at the published design prior.

    They do not depend on the answers, so the weighted mean stays unbiased if the truths are equal.
    A target that some part does not identify, or that does not vary, is weighted by respondents.
    """
    sizes = [float(part.n) for part in parts]
    columns = []
    for variances in zip(*map(_prior_variances, parts), strict=True):
        precisions = [1 / v for v in variances if v is not None]
        precisions = precisions if len(precisions) == len(parts) else sizes
        columns.append([precision / sum(precisions) for precision in precisions])
    return [tuple(row) for row in zip(*columns, strict=True)]


def homogeneity_of(
    parts: Sequence[Part], evidences: Sequence[Evidence], estimates: Sequence[Estimate]
) -> Homogeneity | None:
    """Return the test that several versions have equal truths, None if there is nothing to compare.

    The test assumes independent draws even in a census, because a population that is split by
    chance has different shares in its parts. evidences, estimates : one per part.
    """
    identifiable = sorted(set.intersection(*(set(evidence.known) for evidence in evidences)))
    values = [
        np.array([float(estimate.unbiased[t] or 0) for t in identifiable]) for estimate in estimates
    ]
    shares = _common_shares(parts, evidences)
    covariances = []
    for evidence in evidences:
        places = [evidence.known.index(t) for t in identifiable]
        covariances.append(_covariance(evidence, shares)[np.ix_(places, places)])
    return homogeneity(values, covariances) if identifiable else None


def _covariance(evidence: Evidence, shares: FloatArray | None) -> FloatArray:
    """Return the covariance of the estimates for independent draws, at `shares` of the answers.

    Without shares the covariance is estimated.
    """
    if shares is None:
        moments, covariance = evidence.moment(), evidence.spread() / (evidence.n - 1)
    else:
        mean = evidence.W @ shares
        moments = evidence.moment_at(shares)
        covariance = (moments - np.outer(mean, mean)) / evidence.n
    # The variance of a constant target is a rounding error, from which the test would compute a
    # difference.
    varies = np.diagonal(covariance) * evidence.n > _CONSTANT * np.diagonal(moments)
    return np.asarray(np.where(np.outer(varies, varies), covariance, 0.0), dtype=np.float64)


def _common_shares(parts: Sequence[Part], evidences: Sequence[Evidence]) -> FloatArray | None:
    """Return shares of the answers pooled from all versions; None if their questions differ.

    With covariances at these shares the test keeps its nominal size at a few hundred reports:
    estimated covariances are too small where the estimates are extreme by chance. Versions are
    weighted by precision, because a noisy one would otherwise dominate the error of the mean.
    """
    shares = [evidence.shares for evidence in evidences]
    if len({part.question_keys for part in parts}) > 1 or any(row is None for row in shares):
        return None
    rows = [[float(share or 0) for share in row or ()] for row in shares]
    return onto_simplex(
        np.average(
            np.array(rows),
            axis=0,
            weights=[evidence.n / _variance(evidence) for evidence in evidences],
        )
    )


def _variance(evidence: Evidence) -> float:
    """Return the summed variance of one report's shares under uniform answers.

    It is at least the variance of the answers, so never 0. It does not depend on the targets, or on
    whether the survey is a census.
    """
    even = np.full(evidence.answers, 1 / evidence.answers)
    return float(np.trace(evidence.share_moments(even)) - even @ even)


def _prior_variances(part: Part) -> list[float | None]:
    """Return the variance of each target's estimate at the design prior; None if unknown or 0."""
    evidence = nothing_yet(part.mechanism, part.targets, part.design_prior)
    prior = np.array([float(n) for n in part.design_prior])
    p = prior / prior.sum()
    moments = np.diagonal(evidence.moment_at(p))
    variances = moments - (evidence.W @ p) ** 2
    by_target: list[float | None] = [None] * len(part.targets)
    for t, variance, moment in zip(evidence.known, variances, moments, strict=True):
        by_target[t] = float(variance) / part.n if variance > _CONSTANT * moment else None
    return by_target
