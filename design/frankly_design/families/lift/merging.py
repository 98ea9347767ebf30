# SPDX-License-Identifier: Apache-2.0
"""Watchdog with subset merging: high-risk answers are merged into several small groups.

This is Algorithm 1 of the Lift paper as described in its §4.1, with the risk of erratum 9.22.
"""

from collections.abc import Sequence

from frankly_design.families.lift.groups import Group, Partition, Watched
from frankly_design.families.lift.mixture import Table
from frankly_design.notions.lift_criteria import Level, Measure


def subset_merging(
    joint: Sequence[Sequence[int]],
    low_level: Level | None,
    level: Level | None,
    *,
    measure: Measure = "lift",
    order: int = 2,
) -> Table:
    """Return the mechanism as integers, row = truth, rows summing to 2^48.

    Every report meets the criterion. Parameters and errors as in `complete_merging.watchdog`.
    """
    watched = Watched.of(joint, low_level, level, measure, order)
    return subsets(watched).merged(watched.prior.answers)


def subsets(watched: Watched) -> Partition:
    """Return the answers sent unchanged, and the groups of Algorithm 1.

    A group starts with the riskiest answer (line 5). While it breaks the criterion (line 6), the
    answer that gives it the least risk is added (line 7). If no answers remain for the last group,
    `Watched.repaired` enlarges it (lines 12-14).
    """
    low, high = watched.split()
    groups: list[Group] = []
    while high:
        group: Group = (watched.riskiest(high),)
        high.remove(group[0])
        # A group is complete as soon as it meets the criterion: small groups leave more answers
        # distinguishable.
        while high and not watched.keeps(group):
            (partner,) = watched.safest(group, [(x,) for x in high])
            high.remove(partner)
            group = (*group, partner)
        groups.append(group)
    return watched.repaired(low, groups)
