# SPDX-License-Identifier: Apache-2.0
"""Partition of the answers into unchanged ones and merged groups, for all watchdog mechanisms."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from frankly_design.families.lift.mixture import Table
from frankly_design.notions.lift_criteria import Criterion, Level, Measure, criterion
from frankly_design.notions.prior import Prior
from frankly_design.numeric.arrays import FloatArray
from frankly_design.tables.quantise import BITS

Group = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Partition:
    """Partition into answers sent unchanged and groups of the remaining answers.

    alone : answers sent unchanged.
    groups : each group meets the criterion if it is sent as one report.
    """

    alone: Group
    groups: tuple[Group, ...]

    def merged(self, answers: int) -> Table:
        """Return the mechanism that sends every group as one report, each row summing to 2^48."""
        reports = [*((x,) for x in self.alone), *self.groups]
        columns = [
            [(1 << BITS) if x in group else 0 for x in range(answers)]
            for group in map(set, reports)
        ]
        return tuple(zip(*columns, strict=True))


@dataclass(frozen=True, slots=True)
class Watched:
    """Prior, and the criterion that every report must meet under it."""

    prior: Prior
    criterion: Criterion
    _columns: tuple[tuple[int, ...], ...] = field(init=False, repr=False)
    _floats: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The dataclass is frozen, so derived fields are set this way. The floats only rank groups;
        # all decisions use the integers.
        object.__setattr__(self, "_columns", tuple(zip(*self.prior.joint, strict=True)))
        object.__setattr__(self, "_floats", np.array(self._columns, dtype=float))

    @classmethod
    def of(
        cls,
        joint: Sequence[Sequence[int]],
        low_level: Level | None,
        level: Level | None,
        measure: Measure,
        order: int,
    ) -> "Watched":
        """Return the checked input. Raises the InvalidInput errors of `Prior` and `criterion`."""
        prior = Prior.from_rows(joint, "joint")
        prior.require_protection("joint")
        return cls(prior, criterion(prior.masses, low_level, level, measure, order))

    def secret_counts(self, group: Iterable[int]) -> list[int]:
        """Return the count of each secret over a group's answers, proportional to P(s, group)."""
        return [sum(counts) for counts in zip(*(self._columns[x] for x in group), strict=True)]

    def keeps(self, group: Iterable[int]) -> bool:
        """Return True if the group, sent as one report, meets the criterion. The test is exact."""
        return self.criterion.holds(self.secret_counts(group))

    def split(self) -> tuple[list[int], list[int]]:
        """Return (answers that may be sent unchanged, answers of high risk)  [Lift eq. 6]."""
        low = [x for x in range(self.prior.answers) if self.keeps([x])]
        return low, [x for x in range(self.prior.answers) if x not in set(low)]

    def riskiest(self, answers: Sequence[int]) -> int:
        """Return the answer of the largest risk; in a tie the first one."""
        return answers[int(np.argmax(self.criterion.risks(self._floats[list(answers)])))]

    def safest(self, group: Group, candidates: Sequence[Group]) -> Group:
        """Return the candidate whose union with `group` has the least risk; the first in a tie."""
        candidate_index = np.repeat(
            np.arange(len(candidates)), [len(candidate) for candidate in candidates]
        )
        counts = np.tile(self._floats[list(group)].sum(axis=0), (len(candidates), 1))
        # np.add.at adds the value of every repeated index; `counts[candidate_index] += …` would add
        # only one of them.
        np.add.at(
            counts,
            candidate_index,
            self._floats[[x for candidate in candidates for x in candidate]],
        )
        return candidates[int(np.argmin(self.criterion.risks(counts)))]

    def repaired(self, alone: list[int], groups: list[Group]) -> Partition:
        """Return the partition with its last group enlarged until it meets the criterion.

        Other groups are merged into it, the safest first  [Lift Algorithm 1, lines 12-14]. If no
        group is left, low-risk answers are merged into it, which the paper does not do. The loop
        ends at the latest with all answers in one report, which has lift 1 (erratum 9.21).
        """
        if not groups:
            return Partition(tuple(alone), ())
        *groups_left, last = groups
        singles: list[Group] = [(x,) for x in alone]
        while not self.keeps(last):
            source = groups_left or singles
            partner = self.safest(last, source)
            source.remove(partner)
            last = (*last, *partner)
        return Partition(tuple(x for single in singles for x in single), (*groups_left, last))
