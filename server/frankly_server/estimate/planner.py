# SPDX-License-Identifier: Apache-2.0
"""Before anything is collected: how many reports a margin needs, what margin a number of reports gives (DESIGN §6).

A margin planned here is kept whatever the true shares turn out to be: it is the factor of the level times the
worst-case standard error (docs/maths/worst_case.md), for the worst of the targets.
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
"""More reports than there are people."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a plan rests on.

    level : confidence, in (0, 1). method : "clt" (normal factor) or "chebyshev" (holds at every n). population : N, if
    respondents are drawn without replacement from N people; n = N is a census. subgroup : the share of respondents that
    the estimate is about, in (0, 1]; population counts the whole, not the subgroup. response_rate : of those invited,
    in (0, 1].
    """

    level: float = 0.95
    method: Method = "clt"
    population: int | None = None
    subgroup: float = 1.0
    response_rate: float = 1.0

    @property
    def factor(self) -> float:
        """What the standard error is multiplied by."""
        return normal_quantile(self.level) if self.method == "clt" else chebyshev_factor(self.level)

    def invited(self, n: int) -> int:
        """Return how many people to ask for n reports."""
        return math.ceil(n / self.response_rate - 1e-9)


class Plan:
    """The worst-case precision of one mechanism for some targets, at any number of reports."""

    def __init__(self, mechanism: Mechanism, targets: Targets, prior: tuple[int, ...] | None, setting: Setting) -> None:
        """Raises InvalidInput(not_identifiable) if a target cannot be estimated at all."""
        found = nothing_yet(mechanism, targets, prior)
        if len(found.known) < len(targets):
            words = "some targets cannot be estimated from this mechanism's reports, however many there are"
            raise InvalidInput(Problem.NOT_IDENTIFIABLE, words, "targets")
        self.setting = setting
        self._moments, self._W = found.truth_moments(), found.W

    def margins(self, n: int) -> list[float]:
        """Return the half-width of every target at n reports, of which the subgroup's share counts."""
        inside = n * self.setting.subgroup
        sampling = self._sampling(n)
        worst = [
            worst_case_variance(linear_part(moments, w, sampling), w, sampling)
            for moments, w in zip(self._moments, self._W, strict=True)
        ]
        return [self.setting.factor * math.sqrt(max(0.0, v) / inside) for v in worst]

    def margin(self, n: int) -> float:
        """Return the widest of them."""
        return max(self.margins(n))

    def reports(self, margin: float) -> int:
        """Return the least n with a margin at most `margin`.

        Raises InvalidInput(unsupported) if even everybody's reports do not give it.
        """
        most = self.setting.population or MOST
        if self.margin(most) > margin:
            words = (
                f"even {most} reports give a margin of {self.margin(most):.2g}: take a higher level or a wider margin"
            )
            raise InvalidInput(Problem.UNSUPPORTED, words, "margin")
        return _least(lambda n: self.margin(n) <= margin, 1, most)

    def with_setting(self, **changes: object) -> "Plan":
        """Return the same plan under another setting."""
        other = object.__new__(Plan)
        other.__dict__.update(self.__dict__)
        other.setting = replace(self.setting, **changes)  # type: ignore[arg-type]
        return other

    def _sampling(self, n: int) -> float:
        """Return the share of the sampling variance that remains, the subgroup being drawn from its own people."""
        if self.setting.population is None:
            return 1.0
        people, drawn = self.setting.population * self.setting.subgroup, n * self.setting.subgroup
        return max(0.0, (people - drawn) / max(1.0, people - 1))


def _least(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the least whole number in [low, high] where a property that stays true begins to hold."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def least_level(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """Return the least of the levels low … high (in thousandths of a nat) where `holds` begins, None if nowhere."""
    return _least(holds, low, high) if holds(high) else None
