# SPDX-License-Identifier: Apache-2.0
"""Pooling of a table over several documents, each estimated with its own mechanism (spec 8.1).

Raw counts of different documents are never added. The pooled estimate of a target is the weighted
mean of the documents' estimates. Each document has one weight per target, so the mean always lies
between the estimates (ADR 0010).

- `respondents`, the default: weights n_v/n, for the mean over all respondents. Pooled shares add
  up to 1.
- `inverse-variance`: weights by 1/variance at the published design priors, for the least variance
  if the true values are equal. Weights differ between targets, so pooled shares need not sum to 1.

Versions that asked different questions are not pooled (bad input 50).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from frankly_analyst.request import INVERSE_VARIANCE
from frankly_design.estimate import Estimate, estimate
from frankly_design.estimate.margins import Pairs, Values
from frankly_design.estimate.poisoning import Poisoning
from frankly_design.estimate.pooling import combined_ends, kl_ends, weighted_root, weighted_sum
from frankly_design.estimate.target_ends import cut
from frankly_design.kinds.evidence import Evidence
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.part import Part
from frankly_server.analysis.request import Request
from frankly_server.analysis.versions import (
    DIFFER,
    homogeneity_of,
    inverse_variance_weights,
    respondents_weights,
)

BETA: Final = Fraction(1, 100)
"""Share of fake reports that the poisoning columns assume; the columns grow as β/(1−β)."""
_OF_ONE_PART: Final = (
    "projected",
    "projected_interval",
    "mle",
    "mle_interval",
    "design_effect",
    "privacy_cost",
    "efficiency",
    "informative",
)
"""Figures per target that are not defined for a weighted mean."""


@dataclass(frozen=True, slots=True)
class Pooled:
    """Weighted mean of the parts' estimates.

    mean : figures of the mean per target, None if a part does not identify the target. With several
        parts, figures that are not defined for a mean, such as projected shares, are None, and rank
        and margins are those of the first part. The pooled intervals are in `ends`.
    ends : [low, high] by the requested method. uncut : intervals by `score`, before they are cut at
        the possible values.
    estimates, weights : each part's estimate, and the weights of its targets in the mean.
    versions_p : p-value of the test that all versions have equal true values; None for one version.
    is_population : True for groups weighted by their sizes, whose true values may differ.
    """

    mean: Estimate
    ends: Pairs
    uncut: Pairs
    estimates: tuple[Estimate, ...]
    weights: tuple[Values, ...]
    versions_p: float | None = None
    is_population: bool = False


def pool(parts: Sequence[Part], request: Request) -> Pooled:
    """Return the weighted mean of one or more parts, whose reports must be from different people.

    Raises InvalidInput(unsupported) if several parts are pooled with a population, or by a method
    that has no pooled interval.
    """
    results = [_estimated(part, request) for part in parts]
    # A single version has all figures, including those that a weighted mean lacks.
    if len(results) == 1:
        (alone,) = results
        ends = alone.margins.ends(request.method, alone.unbiased)
        return Pooled(alone, ends, alone.margins.uncut, (alone,), ((1.0,) * len(ends),))
    # Checked only for several versions; a single version has no such limits.
    _require_poolable(request)
    weigh = inverse_variance_weights if request.weights == INVERSE_VARIANCE else respondents_weights
    weights, evidence = weigh(parts), [part.evidence(part.targets) for part in parts]
    test = homogeneity_of(parts, evidence, results)
    ends, uncut = _ends(parts, results, weights, request)
    differ = ["versions_differ"] if test is not None and test.p < DIFFER else []
    own_flags = [flag for result in results for flag in result.flags]
    mean = replace(
        _mean(weights, results), flags=tuple(dict.fromkeys(["pooled", *differ, *own_flags]))
    )
    p = None if test is None else test.p
    return Pooled(mean, ends, uncut, tuple(results), tuple(weights), p)


def weigh_groups(
    groups: Sequence[tuple[Sequence[Part], Pooled]], shares: Sequence[float], request: Request
) -> Pooled:
    """Return Σ W_g x_g over groups, for a population in which their shares W_g are known.

    The weight of a part is W_g times its weight within its group, so all figures of a mean of parts
    hold here too. Figures about fakes are None: a fake report chooses its group, so all of them may be
    in the one with the largest weight per report.

    groups : parts of each group, with the result of `pool` for them. shares : W_g, which sum to 1.
    request : with a method that has a pooled interval, which excludes `exact` and `sequence`.
    """
    parts = [part for of_group, _ in groups for part in of_group]
    results = [estimate for _, pooled in groups for estimate in pooled.estimates]
    weights = [
        tuple(None if w is None else share * w for w in of_part)
        for share, (_, pooled) in zip(shares, groups, strict=True)
        for of_part in pooled.weights
    ]
    ends, uncut = _ends(parts, results, weights, request)
    unknown: Values = (None,) * len(ends)
    means = [pooled.mean for _, pooled in groups]
    mean = replace(
        _mean(weights, results),
        poisoning=Poisoning(unknown, unknown),
        # Estimates that are impossible together in one group can be possible in the population.
        flags=tuple(
            dict.fromkeys(f for mean in means for f in mean.flags if f != "outside_simplex")
        ),
        # Flags that any group has: a small sample of a large group dominates the error.
        row_flags=tuple(
            tuple(dict.fromkeys(flag for of_group in flags for flag in of_group))
            for flags in zip(*(mean.row_flags for mean in means), strict=True)
        ),
    )
    return Pooled(mean, ends, uncut, tuple(results), tuple(weights), is_population=True)


def _ends(
    parts: Sequence[Part], results: Sequence[Estimate], weights: Sequence[Values], request: Request
) -> tuple[Pairs, Pairs]:
    """Return the intervals of a weighted mean by the requested method, and by `score` without a cut."""
    values = [result.unbiased for result in results]
    uncut = combined_ends(weights, values, [result.margins.uncut for result in results])
    # The Chernoff bound of the weighted sum itself is narrower than the sum of the parts' bounds.
    if request.method == "kl":
        pairs = zip(parts, weights, strict=True)
        return kl_ends([scaled(part, weight) for part, weight in pairs], request.level), uncut
    if request.method == "score":
        return _cut(uncut, weighted_sum(weights, values), weights, parts), uncut
    ends = [result.margins.ends(request.method, result.unbiased) for result in results]
    return combined_ends(weights, values, ends), uncut


def _mean(weights: Sequence[Values], results: Sequence[Estimate]) -> Estimate:
    """Return the figures of the weighted mean of several estimates."""
    unknown: Any = (None,) * len(weights[0])
    return replace(
        results[0],
        n=sum(result.n for result in results),
        unbiased=weighted_sum(weights, [result.unbiased for result in results]),
        covariance=_covariance(weights, [result.covariance for result in results]),
        se=weighted_root(weights, [result.se for result in results]),
        se_privacy=weighted_root(weights, [result.se_privacy for result in results]),
        se_sampling=weighted_root(weights, [result.se_sampling for result in results]),
        worst_case_se=weighted_root(weights, [result.worst_case_se for result in results]),
        poisoning=Poisoning(
            up=weighted_sum(weights, [result.poisoning.up for result in results]),
            down=weighted_sum(weights, [result.poisoning.down for result in results]),
        ),
        **dict.fromkeys(_OF_ONE_PART, unknown),
        mle_gap=None,
        fit_p=None,
        # Only flags that every part has: one flagged part says little about the mean of several.
        row_flags=tuple(
            tuple(flag for flag in flags[0] if all(flag in others for others in flags))
            for flags in zip(*(result.row_flags for result in results), strict=True)
        ),
    )


def _cut(uncut: Pairs, values: Values, weights: Sequence[Values], parts: Sequence[Part]) -> Pairs:
    """Return the score intervals of weighted means, cut at the possible values."""
    intervals: list[tuple[float, float] | None] = [None] * len(uncut)
    for t, (ends, value) in enumerate(zip(uncut, values, strict=True)):
        if ends is not None and value is not None:
            rows = [
                [float(w[t] or 0) * float(v) for v in p.targets[t]]
                for w, p in zip(weights, parts, strict=True)
            ]
            possible = [sum(end(row) for row in rows) for end in (min, max)]
            intervals[t] = cut(ends, value, np.array(possible))
    return tuple(intervals)


def scaled(part: Part, weight: Values) -> Evidence:
    """Return the evidence of a part for its targets times their weights."""
    return part.evidence(
        tuple(
            tuple(Fraction(w or 0) * v for v in row)
            for w, row in zip(weight, part.targets, strict=True)
        )
    )


def _estimated(part: Part, request: Request) -> Estimate:
    population, census = part.frame(request.population, census=request.census)
    fake_share = part.fake_share(BETA)
    result = estimate(
        part.mechanism,
        part.counts,
        design_prior=part.design_prior,
        targets=part.targets,
        census=census,
        population=population,
        level=request.level,
        beta=fake_share or Fraction(0),
        # kl replaces these two methods where they have no interval.
        methods=(request.method, "kl")
        if request.method in ("exact", "sequence")
        else (request.method,),
    )
    if fake_share is not None:
        return result
    unbounded = (None,) * len(part.targets)
    return replace(result, poisoning=Poisoning(unbounded, unbounded))


def _require_poolable(request: Request) -> None:
    if request.population is not None:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "each of the pooled versions covers an unknown part of the population: leave the "
            "population out",
            "population",
        )
    if request.method in ("exact", "sequence"):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "this method has no interval for pooled versions: use kl, or by=version",
            "method",
        )


def _covariance(
    weights: Sequence[Values], covariances: Sequence[tuple[Values, ...] | None]
) -> tuple[Values, ...] | None:
    """Return the covariance of the weighted mean; None if a part's covariance is unknown.

    The covariances are added, because reports of different people are independent.
    """
    total = np.zeros((len(weights[0]),) * 2)
    for weight, covariance in zip(weights, covariances, strict=True):
        # Replacing an unknown covariance with 0 would make the covariance of the mean too small.
        if covariance is None:
            return None
        w = np.array(weight, dtype=np.float64)
        total = total + np.outer(w, w) * np.array(covariance, dtype=np.float64)
    return tuple(map(tuple, total.tolist()))
