# SPDX-License-Identifier: Apache-2.0
"""Pooled versions of a survey: weights of their estimates and a homogeneity test (ADR 0010)."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from frankly_design.estimate import Estimate
from frankly_design.estimate.estimator import nothing_yet
from frankly_design.estimate.margins import Values
from frankly_design.estimate.pooling import Homogeneity, homogeneity
from frankly_design.kinds.evidence import Evidence
from frankly_design.kinds.projection import onto_simplex
from frankly_design.numeric.arrays import FloatArray

from frankly_server.analysis.part import Part

DIFFER: Final = 0.05
"""Versions are flagged as different if the p-value is below this; it has no other effect."""
_CONSTANT = 1e-12
"""A variance below this fraction of the second moment is the rounding error of a constant."""


def respondents_weights(parts: Sequence[Part]) -> list[Values]:
    """Return n_v/n per part and target, which gives the mean over all respondents."""
    total = sum(part.respondents for part in parts)
    return [(part.respondents / total,) * len(part.targets) for part in parts]


def inverse_variance_weights(parts: Sequence[Part]) -> list[Values]:
    """Return, per part and target, weights proportional to 1/variance at the published design prior.

    The weights do not depend on the answers, so the weighted mean is unbiased if the true values
    are equal. A target that is constant, or that some part does not identify, is weighted by
    respondents.
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
    """Return the test that several versions have equal true values; None if no test is possible.

    The test assumes independent draws even in a census, because the parts of a randomly split
    population have different shares. evidences, estimates : one per part.
    """
    identifiable = sorted(set.intersection(*(set(evidence.known) for evidence in evidences)))
    values = [
        np.array([float(estimate.unbiased[t] or 0) for t in identifiable]) for estimate in estimates
    ]
    shares = common_shares(parts, evidences)
    covariances = []
    for evidence in evidences:
        places = [evidence.known.index(t) for t in identifiable]
        covariances.append(covariance_at(evidence, shares)[np.ix_(places, places)])
    return homogeneity(values, covariances) if identifiable else None


def covariance_at(
    evidence: Evidence, shares: FloatArray | None, sampling: float = 1.0
) -> FloatArray:
    """Return the covariance of the estimates at `shares` of the answers.

    Without shares the covariance is estimated, for independent draws.

    sampling : share of the sampling variance that remains, 1 for independent draws.
    """
    if shares is None:
        moments, covariance = evidence.moment(), evidence.spread() / (evidence.n - 1)
    else:
        mean = evidence.W @ shares
        moments = evidence.moment_at(shares)
        subtracted = sampling * np.outer(mean, mean)
        if sampling < 1:
            subtracted = subtracted + (1 - sampling) * (evidence.W * shares) @ evidence.W.T
        covariance = (moments - subtracted) / evidence.n
    # The variance of a constant target is only a rounding error; the test would report a
    # difference because of it.
    varies = np.diagonal(covariance) * evidence.n > _CONSTANT * np.diagonal(moments)
    return np.asarray(np.where(np.outer(varies, varies), covariance, 0.0), dtype=np.float64)


def common_shares(parts: Sequence[Part], evidences: Sequence[Evidence]) -> FloatArray | None:
    """Return shares of the answers pooled from all versions; None if their questions differ.

    With covariances at these shares the test has its nominal size even for a few hundred reports;
    estimated covariances are too small where estimates are extreme by chance. Versions are weighted
    by precision, because otherwise a noisy version would dominate the error of the mean.
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

    The sum is at least the variance of the answers, so never 0. It depends neither on the targets
    nor on whether the survey is a census.
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
