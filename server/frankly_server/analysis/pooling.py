# SPDX-License-Identifier: Apache-2.0
"""One estimate from several documents that asked the same question (DESIGN §6; BAD_INPUTS 50).

Raw counts of different documents are never added: each document is estimated with its own mechanism first. The
estimates are then averaged with one weight per document that does not depend on the answers, so the average of unbiased
estimates stays exactly unbiased, and shares still add up to one.

- Respondents drawn from one population: every document estimates the same shares. Its weight is the inverse of its
  worst-case variance, summed over the question's choices, which the mechanism and n determine.
- A census: the respondents of each document are a part of the population, so the weight is that part, n over all n.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from frankly_server.estimate import Estimate

Figures = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Version:
    """What one document says about a question: targets are its choices, `margin` one half-width per choice."""

    estimate: Estimate
    margin: Figures


@dataclass(frozen=True, slots=True)
class Pooled:
    """Per choice: the unbiased value, standard errors and margin; None where some version cannot tell."""

    value: Figures
    se: Figures
    se_privacy: Figures
    se_sampling: Figures
    margin: Figures
    flags: Sequence[str]


def pool(versions: Sequence[Version], *, census: bool) -> Pooled:
    """Return the weighted average of one or more versions, whose respondents are different people."""
    weights = _shares([version.estimate.n if census else _precision(version.estimate) for version in versions])

    def combined(of: Callable[[Version], Figures], how: Callable[[list[float]], float]) -> list[float | None]:
        columns = zip(*(of(version) for version in versions), strict=True)
        return [
            None if None in column else how([w * v for w, v in zip(weights, column, strict=True) if v is not None])
            for column in columns
        ]

    return Pooled(
        value=combined(lambda version: version.estimate.unbiased, fsum),
        se=combined(lambda version: version.estimate.se, _root_sum_of_squares),
        se_privacy=combined(lambda version: version.estimate.se_privacy, _root_sum_of_squares),
        se_sampling=combined(lambda version: version.estimate.se_sampling, _root_sum_of_squares),
        # One and the same multiple of the standard error in every version, so margins combine as errors do.
        margin=combined(lambda version: version.margin, _root_sum_of_squares),
        flags=tuple(dict.fromkeys(flag for version in versions for flag in version.estimate.flags)),
    )


def _precision(estimate: Estimate) -> float:
    variance = fsum(se**2 for se in estimate.worst_case_se if se is not None)
    return 1 / variance if variance else 0.0


def _shares(weights: Sequence[float]) -> list[float]:
    if len(weights) == 1 or not any(weights):
        return [1 / len(weights)] * len(weights)
    return [weight / fsum(weights) for weight in weights]


def _root_sum_of_squares(errors: list[float]) -> float:
    """Errors of different people's reports are independent."""
    return sqrt(fsum(error**2 for error in errors))
