# SPDX-License-Identifier: Apache-2.0
"""One table from several documents: each estimated with its own mechanism, then pooled (DESIGN §6; BAD_INPUTS 50).

Raw counts of different documents are never added. The pooled estimate of a target is the weighted mean of its
estimates. Each document has one weight for it, so that it lies between them, whatever the truths are (ADR 0010).

- `respondents`, the default: weights n_v/n, for the mean over all respondents. The weights add up shares to 1.
- `inverse-variance`: weights by 1/variance at the published design priors, for the least variance if the truths are
  equal. They differ between targets, so that shares need not add up to 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

from frankly_server.analysis.pooling import Part
from frankly_server.analysis.request import INVERSE_VARIANCE, Request
from frankly_server.analysis.versions import DIFFER, homogeneity_of, inverse_variance_weights, respondents_weights
from frankly_server.estimate import Estimate, estimate
from frankly_server.estimate.evidence import Evidence
from frankly_server.estimate.margins import Pairs, Values
from frankly_server.estimate.pooling import combined_ends, kl_ends, weighted_root, weighted_sum
from frankly_server.estimate.target_ends import cut

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pooled:
    """Figures per target, None where some part cannot tell; `covariance` likewise.

    ends : [low, high] by the method asked for; uncut : by `score`, before they are cut. few : fewer than 5 informative
    reports in every part. estimates, weights : of each part, and of its targets in the mean. versions_p : of the test
    that all versions have equal truths, None for one version.
    """

    n: int
    value: Values
    se: Values
    se_privacy: Values
    se_sampling: Values
    worst_case_se: Values
    up: Values
    down: Values
    ends: Pairs
    uncut: Pairs
    few: tuple[bool, ...]
    covariance: FloatArray | None
    estimates: tuple[Estimate, ...]
    weights: tuple[Values, ...]
    versions_p: float | None
    flags: tuple[str, ...]

    @property
    def single(self) -> Estimate | None:
        """The estimate, if there is only one."""
        return self.estimates[0] if len(self.estimates) == 1 else None


def pool(parts: Sequence[Part], request: Request) -> Pooled:
    """Return the weighted mean of one or more parts, whose respondents are different people."""
    found = [
        estimate(
            part.mechanism,
            part.counts,
            design_prior=part.design_prior,
            targets=part.targets,
            census=request.census,
            population=request.population,
            level=request.level,
            # kl stands in for these where they do not exist.
            methods=(request.method, "kl") if request.method in ("exact", "sequence") else (request.method,),
        )
        for part in parts
    ]
    if len(found) == 1:
        return _alone(found[0], request.method)
    _require_poolable(request)
    weigh = inverse_variance_weights if request.weights == INVERSE_VARIANCE else respondents_weights
    weights, seen = weigh(parts), [part.evidence(part.targets) for part in parts]
    test = homogeneity_of(parts, seen, found)
    values = [each.unbiased for each in found]
    uncut = combined_ends(weights, values, [each.margins.uncut for each in found])
    if request.method == "kl":
        ends = kl_ends([_scaled(part, weight) for part, weight in zip(parts, weights, strict=True)], request.level)
    elif request.method == "score":
        ends = _cut(uncut, weighted_sum(weights, values), weights, parts)
    else:
        ends = combined_ends(weights, values, [each.margins.ends(request.method, each.unbiased) for each in found])
    differ = ["versions_differ"] if test is not None and test.p < DIFFER else []
    return Pooled(
        n=sum(each.n for each in found),
        value=weighted_sum(weights, values),
        se=weighted_root(weights, [each.se for each in found]),
        se_privacy=weighted_root(weights, [each.se_privacy for each in found]),
        se_sampling=weighted_root(weights, [each.se_sampling for each in found]),
        worst_case_se=weighted_root(weights, [each.worst_case_se for each in found]),
        up=weighted_sum(weights, [each.poisoning.up for each in found]),
        down=weighted_sum(weights, [each.poisoning.down for each in found]),
        ends=ends,
        uncut=uncut,
        few=_everywhere("few_informative", found),
        covariance=_covariance(weights, [each.covariance for each in found]),
        estimates=tuple(found),
        weights=tuple(weights),
        versions_p=None if test is None else test.p,
        flags=tuple(dict.fromkeys(["pooled", *differ, *(flag for each in found for flag in each.flags)])),
    )


def _cut(uncut: Pairs, values: Values, weights: Sequence[Values], parts: Sequence[Part]) -> Pairs:
    """Return the score intervals of weighted means that are shown."""
    found: list[tuple[float, float] | None] = [None] * len(uncut)
    for t, (ends, value) in enumerate(zip(uncut, values, strict=True)):
        if ends is not None and value is not None:
            rows = [[float(w[t] or 0) * float(v) for v in p.targets[t]] for w, p in zip(weights, parts, strict=True)]
            possible = [sum(end(row) for row in rows) for end in (min, max)]
            found[t] = cut(ends, value, np.array(possible))
    return tuple(found)


def _scaled(part: Part, weight: Values) -> Evidence:
    """Return the evidence of a part for its targets times their weights."""
    return part.evidence(
        tuple(tuple(Fraction(w or 0) * v for v in row) for w, row in zip(weight, part.targets, strict=True))
    )


def _alone(found: Estimate, method: str) -> Pooled:
    return Pooled(
        n=found.n,
        value=found.unbiased,
        se=found.se,
        se_privacy=found.se_privacy,
        se_sampling=found.se_sampling,
        worst_case_se=found.worst_case_se,
        up=found.poisoning.up,
        down=found.poisoning.down,
        ends=found.margins.ends(method, found.unbiased),
        uncut=found.margins.uncut,
        few=_everywhere("few_informative", [found]),
        covariance=_covariance([(1.0,) * len(found.unbiased)], [found.covariance]),
        estimates=(found,),
        weights=((1.0,) * len(found.unbiased),),
        versions_p=None,
        flags=found.flags,
    )


def _require_poolable(request: Request) -> None:
    if request.population is not None:
        words = "several versions are pooled, whose respondents are different parts of it: leave the population out"
        raise InvalidInput(Problem.UNSUPPORTED, words, "population")
    if request.method in ("exact", "sequence"):
        words = "several versions are pooled, for which this interval is not known: use kl, or by=version"
        raise InvalidInput(Problem.UNSUPPORTED, words, "method")


def _everywhere(flag: str, found: Sequence[Estimate]) -> tuple[bool, ...]:
    """Return, per target, whether every estimate has the flag there."""
    return tuple(all(flag in flags for flags in each) for each in zip(*(e.row_flags for e in found), strict=True))


def _covariance(weights: Sequence[Values], covariances: Sequence[tuple[Values, ...] | None]) -> FloatArray | None:
    """Return the covariance of the weighted mean: the parts are reports of different people, so independent."""
    total: FloatArray | None = None
    for weight, covariance in zip(weights, covariances, strict=True):
        if covariance is None:
            return None
        w = np.array(weight, dtype=np.float64)
        scaled = np.outer(w, w) * np.array(covariance, dtype=np.float64)
        total = scaled if total is None else total + scaled
    return total
