# SPDX-License-Identifier: Apache-2.0
"""Plan of two arms: reports that detect a difference between their shares, and the best chance."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

_WHOLE = 1 << 16


@dataclass(frozen=True, slots=True)
class SplitFigures:
    """A comparison of two arms with one chance.

    chance : of the first arm, out of 65,536. n : reports of both arms. per_arm : expected reports of
    each. invited : people to invite. power : chance that the test detects the difference.
    """

    chance: int
    n: int
    per_arm: tuple[int, int]
    invited: int
    power: float

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Read figures. Raises KeyError, TypeError or ValueError if they are malformed."""
        first, second = body["per_arm"]
        names = ("chance", "n", "invited", "power")
        return cls(**{name: body[name] for name in names}, per_arm=(first, second))

    def __str__(self) -> str:
        invited = "" if self.invited == self.n else f" ({self.invited} invited)"
        first, second = self.per_arm
        return (
            f"{self.n} reports{invited}, {first} and {second} in the arms, "
            f"chance of the first {self.chance / _WHOLE:.1%}: power {self.power:.1%}"
        )


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """Reports and power of a test that a choice has the same share in two arms.

    solve_for : the quantity computed, "n" or "power". difference : guessed share of the choice in the
    first arm, less that in the second. level : the test rejects equal shares with the chance 1 −
    level. planned : with the requested chance. best : with the chance that needs the fewest reports
    or has the most power; None if an arm would expect fewer than 5 reports with every chance.
    """

    solve_for: str
    difference: float
    level: float
    planned: SplitFigures
    best: SplitFigures | None
    body: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Read a response of the server. Raises KeyError, TypeError or ValueError if it is malformed."""
        best = body["best"]
        return cls(
            **{name: body[name] for name in ("solve_for", "difference", "level")},
            planned=SplitFigures.from_json(body),
            best=None if best is None else SplitFigures.from_json(best),
            body=body,
        )

    def __str__(self) -> str:
        lines = [f"a difference of {100 * self.difference:.4g} points at {self.level:.10g}"]
        lines.append(f"  {self.planned}")
        if self.best is not None:
            lines.append(f"  best: {self.best}")
        return "\n".join(lines)
