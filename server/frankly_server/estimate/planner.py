# SPDX-License-Identifier: Apache-2.0
"""Planning of sample sizes: reports for a margin, and the margin at n reports (spec 8.8).

A planned margin holds for all true shares: it is the factor of the level times the worst-case
standard error (docs/maths/worst_case.md), for the worst of the targets.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

from frankly_server.estimate.decoder import Targets
from frankly_server.estimate.estimator import nothing_yet
from frankly_server.estimate.margins import chebyshev_factor, normal_quantile
from frankly_server.estimate.worst_case import linear_part, worst_case_variance

FloatArray = NDArray[np.float64]
Method = Literal["clt", "chebyshev"]

MOST = 10**12
"""Largest number of reports considered, more than the population of the Earth."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Assumptions of a plan.

    level : confidence level, in (0, 1).
    method : "clt" (normal factor) or "chebyshev" (holds at every n).
    population : N, if respondents are drawn without replacement from N people, of whom the subgroup
        is a part; n = N is a census.
    subgroup : share of the respondents that the estimate is about, in (0, 1].
    response_rate : share of the invited people who respond, in (0, 1].
    """

    level: float = 0.95
    method: Method = "clt"
    population: int | None = None
    subgroup: float = 1.0
    response_rate: float = 1.0

    @property
    def factor(self) -> float:
        """Return the factor from standard error to margin."""
        return normal_quantile(self.level) if self.method == "clt" else chebyshev_factor(self.level)

    def invited(self, n: int) -> int:
        """Return the number of people to invite for n reports."""
        # rounding: 21 / 0.7 is just above 30 in floats, and would be rounded up to 31
        return math.ceil(n / self.response_rate - 1e-9)


class Plan:
    """Worst-case precision of one mechanism for some targets, at any number of reports."""

    def __init__(
        self,
        mechanism: Mechanism,
        targets: Targets,
        prior: tuple[int, ...] | None,
        setting: Setting,
    ) -> None:
        """Compute the decoder and its moments.

        Raises InvalidInput(not_identifiable) if some target cannot be estimated.
        """
        evidence = nothing_yet(mechanism, targets, prior)
        if len(evidence.known) < len(targets):
            message = "some targets cannot be estimated from this mechanism's reports, however many there are"
            raise InvalidInput(Problem.NOT_IDENTIFIABLE, message, "targets")
        self.setting = setting
        self._moments, self._W = evidence.truth_moments(), evidence.W

    def margins(self, n: float) -> list[float]:
        """Return every target's half-width at n reports, of which the subgroup's are used.

        n may be an expected number.
        """
        # Only reports of the subgroup carry information about it.
        inside = n * self.setting.subgroup
        sampling = self._sampling(n)
        worst = [
            worst_case_variance(linear_part(moments, w, sampling), w, sampling)
            for moments, w in zip(self._moments, self._W, strict=True)
        ]
        return [self.setting.factor * math.sqrt(max(0.0, v) / inside) for v in worst]

    def margin(self, n: float) -> float:
        """Return the widest half-width of all targets at n reports."""
        return max(self.margins(n))

    def reports(self, margin: float) -> int:
        """Return the least n with a margin of at most `margin`.

        Raises InvalidInput(unsupported) if the margin is wider even with a report from everyone in
        the population, or with `MOST` reports if no population is set.
        """
        largest = self.setting.population or MOST
        if self.margin(largest) > margin:
            message = (
                f"even {largest} reports give a margin of {self.margin(largest):.2g}: "
                "use a larger epsilon or a wider margin"
            )
            raise InvalidInput(Problem.UNSUPPORTED, message, "margin")
        # Bisection works because the worst-case margin falls with n, as 1/n and `_sampling` do.
        return _least(lambda n: self.margin(n) <= margin, 1, largest)

    def with_setting(self, **changes: object) -> "Plan":
        """Return the same plan under another setting, without solving the decoder again."""
        # The evidence does not depend on the setting, and __init__ would compute it again.
        plan = object.__new__(Plan)
        plan.__dict__.update(self.__dict__)
        plan.setting = replace(self.setting, **changes)  # type: ignore[arg-type]
        return plan

    def _sampling(self, n: float) -> float:
        """Return the share of the sampling variance that remains (finite population correction).

        A subgroup's respondents are drawn from the subgroup's part of the population.
        """
        if self.setting.population is None:
            return 1.0
        # max(1, people − 1): a population of one person must not divide by zero.
        people, drawn = self.setting.population * self.setting.subgroup, n * self.setting.subgroup
        return max(0.0, (people - drawn) / max(1.0, people - 1))


def _least(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the least integer in [low, high] at which a monotone property holds, by bisection."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def least_level(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """Return the least level in low … high, in thousandths of a nat, at which a property holds.

    The property must be monotone. Returns None if it does not hold at `high`.
    """
    return _least(holds, low, high) if holds(high) else None
