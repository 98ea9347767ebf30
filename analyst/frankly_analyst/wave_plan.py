# SPDX-License-Identifier: Apache-2.0
"""Plan of several waves: groups of people, the waves that each answers, margins of changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class WaveGroup:
    """n people who answer the waves `first` to `last` (from 1), each wave at `epsilon` nats."""

    first: int
    last: int
    share: float
    n: int
    epsilon: str
    total: str


@dataclass(frozen=True, slots=True)
class WaveDivision:
    """A division of the people into groups.

    margins : for each wave after the first, the widest margin of the changes of shares since the
        previous wave. ratio : people needed relative to the best division.
    """

    groups: tuple[WaveGroup, ...]
    margins: tuple[float, ...]
    ratio: float

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Read a division. Raises KeyError or TypeError if it is malformed."""
        groups = tuple(WaveGroup(**group) for group in body["groups"])
        return cls(groups, tuple(change["margin"] for change in body["changes"]), body["ratio"])


@dataclass(frozen=True, slots=True)
class WavePlan:
    """Divisions of n people over the waves, with one level per person over all waves (epsilon, nats).

    equal : everybody answers every wave. once : everybody answers exactly one wave. best : the
    division with the least variance found by the search. excess : upper bound of the factor by
    which `best` needs more people than an optimal division.
    """

    waves: int
    epsilon: str
    n: int
    equal: WaveDivision
    once: WaveDivision
    best: WaveDivision
    excess: float
    persistence: float
    body: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Read a response of the server. Raises KeyError or TypeError if it is malformed."""
        names = ("waves", "epsilon", "n", "excess", "persistence")
        values = {name: body[name] for name in names}
        values |= {name: WaveDivision.from_json(body[name]) for name in ("equal", "once", "best")}
        return cls(**values, body=body)

    def __str__(self) -> str:
        lines = [f"{self.waves} waves, {self.n} people, ε {self.epsilon} each"]
        for name in ("equal", "once", "best"):
            division: WaveDivision = getattr(self, name)
            lines.append(
                f"  {name:<5}  changes ± {max(division.margins):.1%}, "
                f"{division.ratio:.2f} times as many people as best"
            )
        lines += [
            f"  {group.n} people answer waves {group.first} to {group.last}, ε {group.epsilon} each"
            for group in self.best.groups
        ]
        return "\n".join(lines)
