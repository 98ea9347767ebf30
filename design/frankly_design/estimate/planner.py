# SPDX-License-Identifier: Apache-2.0
"""Planning of sample sizes: reports for a margin, and the margin at n reports (spec 8.8).

A planned margin is valid for all true shares: it is the factor of the level times the worst-case
standard error (docs/maths/worst_case.md), for the worst target. With a power, the margin is the
difference that a test detects (docs/maths/comparisons.md, claim 10). For guessed shares it is
computed from the variance at these shares. With a `Correction` it is that of figures corrected for
people who answer at random (docs/maths/validity.md, claim 27).
"""

import math
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from itertools import repeat
from statistics import NormalDist
from typing import Literal

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism
from frankly_protocol.problems import Problem

from frankly_design.estimate.estimator import nothing_yet
from frankly_design.estimate.margins import chebyshev_factor, normal_quantile
from frankly_design.estimate.worst_case import linear_part, worst_case_variance
from frankly_design.kinds.decoder import Targets
from frankly_design.numeric.arrays import FloatArray

Method = Literal["clt", "chebyshev", "simultaneous"]
Against = Literal["groups", "value"]
Margins = Callable[[int], list[float]]
"""Half-widths at a number of reports."""

_CONSTANT = 1e-12
"""A variance below this fraction of the second moment is the rounding error of a constant."""
MOST = 10**12
"""Largest number of reports in a plan, more than the population of the Earth."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Assumptions of a plan.

    level : confidence level, in (0, 1).
    method : "clt" (normal factor), "chebyshev" (valid at every n), or "simultaneous" (Bonferroni's
        normal factor for all targets).
    population : N, if respondents are drawn without replacement from N people, including the
        subgroup; n = N is a census.
    subgroup : share of the respondents that the estimate is about, in (0, 1].
    response_rate : share of the invited people who respond, in (0, 1].
    power : None, or the probability with which a two-sided test at 1 − level detects the margin.
    The
        margin is then a difference: between two groups or waves of n reports each ("groups"), or
        between the share and a fixed "value". At least ½, so that rejections on the wrong side are
        rare.
    """

    level: float = 0.95
    method: Method = "clt"
    population: int | None = None
    subgroup: float = 1.0
    response_rate: float = 1.0
    power: float | None = None
    against: Against = "groups"

    def factor(self, targets: int) -> float:
        """Return the factor from standard error to margin. targets : number of targets."""
        if self.method == "chebyshev":
            return chebyshev_factor(self.level)
        z = normal_quantile(self.level, targets if self.method == "simultaneous" else 1)
        if self.power is None:
            return z
        # The difference is detected if its estimate exceeds z standard errors.
        detected = z + NormalDist().inv_cdf(self.power)
        return detected * math.sqrt(2) if self.against == "groups" else detected

    def invited(self, n: int) -> int:
        """Return the number of people to invite for n reports."""
        # rounding: 21 / 0.7 is just above 30 in floats, and would be rounded up to 31
        return math.ceil(n / self.response_rate - 1e-9)


@dataclass(frozen=True, slots=True)
class Correction:
    """How figures are corrected for people who answer at random.

    law : their chance of each answer, shape (answers,). random : λ, the guessed share of these people,
    in [0, 1). excess : n·Var κ̂ − 2n·Cov(t, κ̂)/(θ − ρ) with n the reports about the figure.
    """

    law: FloatArray
    random: float
    excess: float


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
            raise InvalidInput(
                Problem.NOT_IDENTIFIABLE,
                "some targets cannot be estimated from this mechanism's reports, however many there are",
                "targets",
            )
        self.setting = setting
        self._moments, self._W = evidence.truth_moments(), evidence.W

    def margins(self, n: float) -> list[float]:
        """Return every target's half-width at n reports, using only those of the subgroup.

        n : may be an expected (non-integer) number.
        """
        sampling = self._sampling(n)
        worst = [
            worst_case_variance(linear_part(moments, w, sampling), w, sampling)
            for moments, w in zip(self._moments, self._W, strict=True)
        ]
        return self._half_widths(worst, n)

    def margins_at(self, shares: FloatArray, n: float) -> list[float]:
        """Return every target's half-width at n reports if the true shares are these."""
        sampling = self._sampling(n)
        variances = [
            float(linear_part(moments, w, sampling) @ shares) - sampling * float(w @ shares) ** 2
            for moments, w in zip(self._moments, self._W, strict=True)
        ]
        return self._half_widths(variances, n)

    def corrected_margins(
        self, correction: Correction, n: float, shares: FloatArray | None = None
    ) -> list[float]:
        """Return every figure's half-width at n reports, corrected for random answers.

        By the delta method: n times the variance of t − ρ − (θ − ρ)κ̂, over κ². Of a finite population
        only what the answers of attentive people add to it gets smaller. shares : those of the
        attentive people; without them the half-widths hold for all shares.
        """
        random, kept, sampling = correction.random, 1 - correction.random, self._sampling(n)
        variances = []
        for moments, w in zip(self._moments, self._W, strict=True):
            rho = float(w @ correction.law)
            # κm·p + λm·r − (κθ + λρ)² + C(θ − ρ)² − (1 − s)κ(w²·p − θ²), by powers of θ = w·p.
            linear = kept * linear_part(moments, w, sampling)
            linear = linear - 2 * (kept * random + correction.excess) * rho * w
            square = kept**2 - correction.excess - (1 - sampling) * kept
            constant = random * float(moments @ correction.law)
            constant += (correction.excess - random**2) * rho**2
            if shares is None:
                largest = worst_case_variance(linear, w, square)
            else:
                largest = float(linear @ shares) - square * float(w @ shares) ** 2
            variances.append((largest + constant) / kept**2)
        return self._half_widths(variances, n)

    def under(self, setting: Setting) -> "Plan":
        """Return the plan of the same mechanism and targets under another setting."""
        plan = copy(self)
        plan.setting = setting
        return plan

    def in_the_clear(self) -> "Plan":
        """Return the plan of the same targets if every answer is sent as it is."""
        plan = copy(self)
        plan._moments = self._W**2  # noqa: SLF001 - of the same class
        return plan

    def corrected_factor(self, random: FloatArray, variance: float) -> float:
        """Return the largest standard error of a corrected figure over that of the uncorrected one.

        The largest of all targets and true shares, if nobody answers at random; inf if a target has an
        estimate without error. random : chance of each answer at random, shape (answers,). variance : of
        κ̂, times the number of reports about the targets (docs/maths/validity.md, claim 16).
        """
        off = (self._W - (self._W @ random)[:, None]) ** 2
        spread = self._moments - self._W**2
        # A convex function of the shares over a concave one is largest where everybody answers alike.
        exact = spread <= _CONSTANT * np.maximum(1.0, self._moments)
        ratios = np.where(exact, np.where(off > 0, np.inf, 0.0), off / np.where(exact, 1.0, spread))
        return math.sqrt(1 + variance * float(ratios.max()))

    def _half_widths(self, variances: list[float], n: float) -> list[float]:
        # Only reports of the subgroup carry information about it.
        inside, factor = n * self.setting.subgroup, self.setting.factor(len(variances))
        return [factor * math.sqrt(max(0.0, v) / inside) for v in variances]

    def margin(self, n: float) -> float:
        """Return the widest half-width of all targets at n reports."""
        return max(self.margins(n))

    def reports(self, margin: float) -> int:
        """Return the least n with a margin of at most `margin`. Raises as `least_reports` does."""
        return least_reports(self.margins, repeat(margin), self.setting)

    def _sampling(self, n: float) -> float:
        """Return the share of the sampling variance that remains (finite population correction).

        The respondents of a subgroup are drawn from the people of the subgroup.
        """
        if self.setting.population is None:
            return 1.0
        # max(1, people − 1) avoids a division by zero for a population of one person.
        people, drawn = self.setting.population * self.setting.subgroup, n * self.setting.subgroup
        return max(0.0, (people - drawn) / max(1.0, people - 1))


def reaches(margins: Iterable[float], goals: Iterable[float]) -> bool:
    """Return True if every margin is at most its goal. goals : as many, or endless."""
    return all(margin <= goal for margin, goal in zip(margins, goals, strict=False))


def least_reports(margins: Margins, goals: Iterable[float], setting: Setting) -> int:
    """Return the least n at which the margins reach their goals.

    Raises InvalidInput(unsupported) if a margin is wider even with a report from everyone in
    the population, or with `MOST` reports if no population is set.
    """
    largest = setting.population or MOST
    pairs = zip(margins(largest), goals, strict=False)
    too_wide = [margin for margin, goal in pairs if margin > goal]
    if too_wide:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"even {largest} reports give a margin of {max(too_wide):.2g}: "
            "use a larger epsilon or a wider margin",
            "margin",
        )
    # Bisection works because a margin decreases in n, as 1/n and `Plan._sampling` do.
    return _least(lambda n: reaches(margins(n), goals), 1, largest)


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
    """Return the least level in [low, high], in thousandths of a nat, at which a property holds.

    The property must be monotone. Returns None if it does not hold at `high`.
    """
    return _least(holds, low, high) if holds(high) else None
