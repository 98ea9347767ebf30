# SPDX-License-Identifier: Apache-2.0
"""Plan of a survey file: how many people, and what each of its wishes costs in respondents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One wish more than in the step before.

    step : its name. text : the same in words. n : reports; of the step "invited", people. added : more than
    before, below 0 for a saving. factor : n over that before, None in the first step. at_most : True if
    fewer may do.
    """

    step: str
    text: str
    n: int
    added: int
    factor: float | None
    at_most: bool

    def __str__(self) -> str:
        bound = "at most " if self.at_most else ""
        factor = "" if self.factor is None else f" (× {self.factor:.2f})"
        return f"{self.text}: {bound}{self.n}{factor}"


@dataclass(frozen=True, slots=True)
class SurveyPlan:
    """Reports for a margin, or the margin of a number of reports.

    solve_for : "n" or "margin". margin : the wanted one, or the widest of all questions, in shares. level : of
    the intervals. invited : people to invite. ladder : the steps. margins : by question id, or ids of a
    joint table, joined with ×, and its arm after a space; None if it cannot be estimated. notes : sentences.
    """

    solve_for: str
    n: int
    margin: float
    level: float
    invited: int
    ladder: tuple[PlanStep, ...]
    margins: Mapping[str, float | None]
    notes: tuple[str, ...]
    body: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Read a response of the server. Raises KeyError, TypeError or ValueError if it is malformed."""
        steps = PlanStep.__slots__
        return cls(
            **{name: body[name] for name in ("solve_for", "n", "margin", "level", "invited")},
            ladder=tuple(PlanStep(**{name: row[name] for name in steps}) for row in body["ladder"]),
            margins={_name(row): row["margin"] for row in body["questions"]},
            notes=tuple(body["notes"]),
            body=body,
        )

    def __str__(self) -> str:
        lines = [f"{self.n} reports: ± {100 * self.margin:.3g} points at {self.level:.10g}"]
        return "\n".join([*lines, *(f"  {step}" for step in self.ladder), *self.notes])


def _name(row: Mapping[str, Any]) -> str:
    return f"{'×'.join(row['questions'])} {row['arm']}".strip()
