# SPDX-License-Identifier: Apache-2.0
"""The watchdog's mechanisms as printed in Lift, for comparison only: they can break their promise.

Complete merging does not check its merged group, and only other groups can be merged into the last group of Algorithm
1, so both can end with a group that breaks its levels (errata 21). `frankly_design.families.lift` corrects this.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from frankly_design.families.lift.groups import Partition, Watched
from frankly_design.notions.lift_criteria import criterion
from frankly_design.notions.prior import Prior
from frankly_protocol.audit import level_for
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Risk = Callable[[float, float], float]
"""ω of a group from its Λ and Ψ."""


def sum_of_lifts(largest: float, least: float) -> float:
    """Return ω = Λ + Ψ, the risk printed in §4.1 (errata 22)."""
    return largest + least


def sum_of_changes(largest: float, least: float) -> float:
    """Return ω = Λ + 1/Ψ, the risk that reproduces the paper's figures."""
    return largest + (1 / least if least > 0 else np.inf)


@dataclass(frozen=True)
class Printed:
    """Result of a printed algorithm. broken : True if a group breaks the levels, decided in integers."""

    partition: Partition
    broken: bool


def watched(prior: Prior, low: Fraction, high: Fraction) -> Watched:
    """Return the criterion (ε_l, ε_u)-ALIP under a prior; levels in nats."""
    return Watched(prior, criterion(prior.masses, level_for(low), level_for(high)))


def complete_merging(case: Watched) -> Printed:
    """Merge all answers of high risk into one report, without checking it  [Lift §3.1.1]."""
    low, high = case.split()
    return _judged(case, low, [high] if high else [])


def subset_merging(case: Watched, risk: Risk = sum_of_changes) -> Printed:
    """Run Algorithm 1 as the text of §4.1 describes it."""
    low, high = case.split()
    groups: list[list[int]] = []
    while high:
        group = [max(high, key=lambda x: _risk(case, [x], risk))]
        high = [x for x in high if x not in group]
        while high and not case.keeps(group):
            partner = _safest(case, group, [[x] for x in high], risk)
            group, high = group + partner, [x for x in high if x not in partner]
        groups.append(group)
    while len(groups) > 1 and not case.keeps(groups[-1]):
        *complete_groups, last = groups
        partner = _safest(case, last, complete_groups, risk)
        groups = [group for group in complete_groups if group is not partner] + [last + partner]
    return _judged(case, low, groups)


def _judged(case: Watched, low: Sequence[int], groups: Sequence[Sequence[int]]) -> Printed:
    broken = not all(case.keeps(group) for group in groups)
    return Printed(Partition(tuple(low), tuple(tuple(group) for group in groups)), broken)


def _safest(
    case: Watched, group: list[int], candidates: Sequence[list[int]], risk: Risk
) -> list[int]:
    return min(candidates, key=lambda candidate: _risk(case, group + candidate, risk))


def _risk(case: Watched, group: Sequence[int], risk: Risk) -> float:
    counts = np.array(case.secret_counts(group), dtype=float)
    lift = counts / counts.sum() / (np.array(case.prior.masses) / case.prior.total)
    return risk(float(lift.max()), float(lift.min()))
