# SPDX-License-Identifier: Apache-2.0
"""Relative completion of a form's parts: whether reports show them as often as devices draw them.

A device draws the parts before anybody answers, with published chances. If giving up does not
depend on the plan, the reports show every part as often as its chance says (docs/maths/forms.md,
claim 11). Only the proportions can be known: how many plans were drawn is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from frankly_protocol.mechanisms import AgreementMechanism

from frankly_server.arrays import FloatArray
from frankly_server.estimate.chernoff import Ends
from frankly_server.estimate.effects import chi_squared, wald
from frankly_server.estimate.intervals import Variance, score
from frankly_server.estimate.margins import normal_quantile

LEAST_EXPECTED: Final = 5
"""With fewer expected reports about a part, or without it, χ² is too far from the law of the
statistic [Cochran 1954]."""
_CONSTANT = 1e-12
_SHARE: Final = Variance(0, 1, 1)  # n times the variance of a share θ: θ − θ²


@dataclass(frozen=True, slots=True)
class PartCompletion:
    """One part's completion.

    chance : that a plan has the part. relative : the share of reports that show it, divided by
    `chance`; 1 is the mean of the parts, weighted by their chances. ends : interval of `relative`
    at the requested level. kept : lower bound, at the requested level, of its completion relative
    to the part that is completed most often.
    """

    chance: float
    relative: float
    ends: Ends
    kept: float


@dataclass(frozen=True, slots=True)
class Completion:
    """Completion of a form's parts, and the χ² test that it is the same for all of them.

    statistic, freedom, p : None if some part has fewer than `LEAST_EXPECTED` expected reports, or
    if every plan has the same parts.
    """

    parts: tuple[PartCompletion, ...]
    statistic: float | None
    freedom: int | None
    p: float | None


def completion(
    form: AgreementMechanism, shown: Sequence[int], n: int, level: float, kept_level: float
) -> Completion:
    """Return the completion of the parts of `n` ≥ 1 reports.

    shown : number of reports that show each part. level : of the intervals and kept_level : of the
    lower bounds, between 0 and 1.
    """
    moments, covariance = plan_moments(form)
    chances: list[float] = moments.tolist()
    z, tail = normal_quantile(level), NormalDist().inv_cdf(kept_level)
    parts = []
    for i, (count, chance) in enumerate(zip(shown, chances, strict=True)):
        low, high = score(count / n, n, _SHARE, z)
        # The part that is completed most often is one of the others, or this one. So the least of
        # the bounds of all pairs holds as often as a single one.
        kept = min(
            (
                _lowest_ratio(count, other, tail) * other_chance / chance
                for j, (other, other_chance) in enumerate(zip(shown, chances, strict=True))
                if j != i
            ),
            default=1.0,
        )
        ends = low / chance, high / chance
        parts.append(PartCompletion(chance, count / n / chance, ends, min(1.0, kept)))
    variances = np.diagonal(covariance)
    # Parts that every report shows vary by rounding errors only.
    varies = variances > _CONSTANT
    test = wald((np.array(shown) - n * moments)[varies], n * covariance[np.ix_(varies, varies)])
    # h(1 − h) is below the smaller of a chance h and its complement.
    if test is None or n * variances[varies].min() < LEAST_EXPECTED:
        return Completion(tuple(parts), None, None, None)
    return Completion(tuple(parts), *test, chi_squared(*test))


def plan_moments(form: AgreementMechanism) -> tuple[FloatArray, FloatArray]:
    """Return the chance that a plan has each part, and the covariance of these events."""
    size = len(form.parts)
    together = np.zeros((size, size))
    for component in form.components:
        each, both = np.zeros(size), np.zeros((size, size))
        for pool in component.pools:
            each[list(pool.parts)] = pool.pick / len(pool.parts)
        both += np.outer(each, each)
        for pool in component.pools:
            # Parts of one pool are drawn without replacement.
            pair = pool.pick * (pool.pick - 1) / max(1, len(pool.parts) * (len(pool.parts) - 1))
            both[np.ix_(pool.parts, pool.parts)] = pair
        np.fill_diagonal(both, each)
        together += component.chance / (1 << form.bits) * both
    chances = np.diagonal(together).copy()
    return chances, together - np.outer(chances, chances)


def _lowest_ratio(count: int, other: int, z: float) -> float:
    """Return a lower bound of the ratio of two expected numbers of reports.

    If no report shows both parts, `count` is binomial given the sum, and this is the lower end of
    Wilson's interval. Reports that show both only make the difference less variable.
    """
    n = count + other
    if n == 0:
        return 0.0
    low = max(0.0, score(count / n, n, _SHARE, z)[0])
    return low / (1 - low)
