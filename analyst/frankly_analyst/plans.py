# SPDX-License-Identifier: Apache-2.0
"""Plan of a survey: reports, privacy level and margin, with margins for other numbers of reports."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Plan:
    """Planned number of reports, privacy level and margin; the margin holds for all true shares.

    solve_for : the quantity computed, "n", "epsilon" or "margin". n : number of reports.
    epsilon : nats as text, None if a mechanism was given and under metric-ldp.
    margin : half-width of the widest target's interval at `level` by `method`. margins : half-widths of all targets.
    invited : number of people to invite. curve : (n, margin) around the plan.
    frontier : (epsilon, margin, information in nats), if it was requested.
    factor : under metric-ldp, the factor on the levels of all pairs as text, if "epsilon" was solved for.
    """

    solve_for: str
    n: int
    epsilon: str | None
    margin: float
    margins: tuple[float, ...]
    invited: int
    level: float
    method: str
    curve: tuple[tuple[int, float], ...]
    frontier: tuple[tuple[str, float, float], ...] = ()
    factor: str | None = None
    body: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Read a response of the server. Raises KeyError, TypeError or AttributeError if it is malformed."""
        copied = ("solve_for", "n", "epsilon", "margin", "invited", "level", "method")
        return cls(
            **{name: body[name] for name in copied},
            margins=tuple(body["margins"]),
            curve=tuple((point["n"], point["margin"]) for point in body["curve"]),
            frontier=tuple(
                (p["epsilon"], p["margin"], p["information"]) for p in body.get("frontier") or ()
            ),
            factor=body.get("factor"),
            body=body,
        )

    def __str__(self) -> str:
        level = "" if self.epsilon is None else f" with ε {self.epsilon}"
        level = level if self.factor is None else f" with levels times {self.factor}"
        invited = "" if self.invited == self.n else f" ({self.invited} invited)"
        return f"{self.n} reports{invited}{level}: ± {self.margin:.2%} at {self.level:.10g} by {self.method}"

    def _repr_html_(self) -> str:
        """Return the plan and the curve around it as a table for notebooks."""
        rows = "".join(f"<tr><td>{n}</td><td>± {margin:.2%}</td></tr>" for n, margin in self.curve)
        head = "<tr><th>reports</th><th>margin</th></tr>"
        return f"<table><caption>{escape(str(self))}</caption>{head}{rows}</table>"
