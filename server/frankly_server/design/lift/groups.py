# SPDX-License-Identifier: Apache-2.0
"""Answers sent as they are, and groups of answers that are blurred together: what the watchdog's mechanisms share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from frankly_server.design.lift.criteria import Criterion, FloatArray, Level, Measure, criterion
from frankly_server.design.lift.inside import Table
from frankly_server.design.prior import Prior
from frankly_server.design.quantise import BITS

Group = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Partition:
    """alone : answers that are sent as they are. groups : the others; a group keeps the criterion as one report."""

    alone: Group
    groups: tuple[Group, ...]

    def merged(self, answers: int) -> Table:
        """Return the mechanism that sends every group as one report, each row summing to 2^48."""
        reports = [*((x,) for x in self.alone), *self.groups]
        columns = [[(1 << BITS) if x in group else 0 for x in range(answers)] for group in map(set, reports)]
        return tuple(zip(*columns, strict=True))


@dataclass(frozen=True, slots=True)
class Watched:
    """A prior and what every report must keep under it."""

    prior: Prior
    criterion: Criterion
    _columns: tuple[tuple[int, ...], ...] = field(init=False, repr=False)
    _floats: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_columns", tuple(zip(*self.prior.joint, strict=True)))
        object.__setattr__(self, "_floats", np.array(self._columns, dtype=float))

    @classmethod
    def of(
        cls, joint: Sequence[Sequence[int]], low_level: Level | None, level: Level | None, measure: Measure, order: int
    ) -> "Watched":
        """Check what is asked. Raises InvalidInput: prior_…, choice_unprotected, secret_empty, or as `criterion`."""
        prior = Prior.from_rows(joint, "joint")
        prior.require_protection("joint")
        return cls(prior, criterion(prior.masses, low_level, level, measure, order))

    def told(self, group: Iterable[int]) -> list[int]:
        """Return the counts of the secrets among the answers of a group: proportional to P(s, group)."""
        return [sum(counts) for counts in zip(*(self._columns[x] for x in group), strict=True)]

    def keeps(self, group: Iterable[int]) -> bool:
        """Decide, exactly, whether the group as one report keeps the criterion."""
        return self.criterion.holds(self.told(group))

    def split(self) -> tuple[list[int], list[int]]:
        """Return the answers of low risk, which may be sent as they are, and those of high risk  [Lift eq. 6]."""
        low = [x for x in range(self.prior.answers) if self.keeps([x])]
        return low, [x for x in range(self.prior.answers) if x not in set(low)]

    def riskiest(self, answers: Sequence[int]) -> int:
        """Return the answer of the largest risk, the first of equals."""
        return answers[int(np.argmax(self.criterion.risks(self._floats[list(answers)])))]

    def safest(self, group: Group, others: Sequence[Group]) -> Group:
        """Return the other group that gives the least risk together with `group`, the first of equals."""
        owner = np.repeat(np.arange(len(others)), [len(other) for other in others])
        told = np.tile(self._floats[list(group)].sum(axis=0), (len(others), 1))
        np.add.at(told, owner, self._floats[[x for other in others for x in other]])
        return others[int(np.argmin(self.criterion.risks(told)))]

    def repaired(self, alone: list[int], groups: list[Group]) -> Partition:
        """Return the partition with its last group enlarged until it keeps the criterion (DESIGN §9.21).

        It takes in other groups, the safest first  [Lift Algorithm 1, lines 12-14], and when there are none, answers of
        low risk, which the paper does not. All answers together tell nothing, so this ends with a group that keeps it.
        """
        if not groups:
            return Partition(tuple(alone), ())
        *others, last = groups
        singles: list[Group] = [(x,) for x in alone]
        while not self.keeps(last):
            source = others or singles
            partner = self.safest(last, source)
            source.remove(partner)
            last = (*last, *partner)
        return Partition(tuple(x for single in singles for x in single), (*others, last))
