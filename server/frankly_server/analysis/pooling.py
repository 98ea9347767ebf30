# SPDX-License-Identifier: Apache-2.0
"""One estimate from several documents that asked the same question (DESIGN §6; BAD_INPUTS 50).

Raw counts of different documents are never added: each document is estimated with its own mechanism first. The
estimates are then averaged with weights that depend on the mechanisms and on n only, not on the answers, so the
average of unbiased estimates stays exactly unbiased: each version's weight is the inverse of its worst-case variance,
summed over the question's choices. One weight per version keeps shares adding up to one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from frankly_server.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Version:
    """What one document says about a question: targets are its choices, `margin` one half-width per choice."""

    estimate: Estimate
    margin: Sequence[float]


@dataclass(frozen=True, slots=True)
class Pooled:
    """Per choice: the unbiased value, standard errors and margin; over all versions together."""

    value: Sequence[float]
    se: Sequence[float]
    se_privacy: Sequence[float]
    se_sampling: Sequence[float]
    margin: Sequence[float]
    flags: Sequence[str]


def pool(versions: Sequence[Version]) -> Pooled:
    """Return the weighted average of one or more versions, whose respondents are different people."""
    weights = _weights(versions)
    choices = range(len(versions[0].margin))

    def average(of: Callable[[Version], Sequence[float]]) -> list[float]:
        return [fsum(w * of(version)[t] for w, version in zip(weights, versions, strict=True)) for t in choices]

    def spread(of: Callable[[Version], Sequence[float]]) -> list[float]:
        # Independent errors add in squares; margins are one multiple of them in every version, so they do as well.
        squares = [(w, of(version)) for w, version in zip(weights, versions, strict=True)]
        return [sqrt(fsum((w * error[t]) ** 2 for w, error in squares)) for t in choices]

    return Pooled(
        value=average(lambda version: version.estimate.unbiased),
        se=spread(lambda version: version.estimate.se),
        se_privacy=spread(lambda version: version.estimate.se_privacy),
        se_sampling=spread(lambda version: version.estimate.se_sampling),
        margin=spread(lambda version: version.margin),
        flags=tuple(dict.fromkeys(flag for version in versions for flag in version.estimate.flags)),
    )


def _weights(versions: Sequence[Version]) -> list[float]:
    if len(versions) == 1:
        return [1.0]
    precision = [1.0 / fsum(se**2 for se in version.estimate.worst_case_se) for version in versions]
    return [p / fsum(precision) for p in precision]
