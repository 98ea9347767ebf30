# SPDX-License-Identifier: Apache-2.0
"""Plan of a survey: reports, privacy level and margin, with margins for other numbers of reports."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Plan:
    """Planned number of reports, privacy level and margin; the margin holds for all true shares.

    solve_for : the quantity computed, "n", "epsilon" or "margin". n : number of reports. epsilon :
    nats as text, or None if a mechanism was given and under metric-ldp. margin : half-width of the
    widest of the targets' intervals at `level` by `method`. margins : half-widths for all targets.
    invited : number of people to invite. curve : (n, margin) around the plan. frontier : (epsilon,
    margin, information in nats), if it was requested. power : probability that a test detects a
    difference of `margin`, if it was requested. against : "groups" for a difference between two
    groups or waves of n reports each (and `invited` people each), "value" for a difference from a
    given share. guessed_margin, guessed_n : margin of n reports, and number of reports for the
    requested margin, if the guessed shares are true. blocks : (epsilon, margin) of each of several
    blocks. asked : of a form, (mean, most, all): how many of its questions a person is asked if only
    those drawn are. notes : of a form, what it gains over known methods, as sentences. factor :
    under metric-ldp, the factor on the levels of all pairs as text, if "epsilon" was solved for.
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
    power: float | None = None
    against: str | None = None
    guessed_margin: float | None = None
    guessed_n: int | None = None
    blocks: tuple[tuple[str, float], ...] = ()
    asked: tuple[float, int, int] | None = None
    notes: tuple[str, ...] = ()
    body: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Read a response of the server. Raises KeyError, TypeError or AttributeError if it is malformed."""
        guess = body.get("at_guess") or {}
        copied = ("solve_for", "n", "epsilon", "margin", "invited", "level", "method")
        return cls(
            **{name: body[name] for name in copied},
            margins=tuple(body["margins"]),
            curve=tuple((point["n"], point["margin"]) for point in body["curve"]),
            frontier=tuple(
                (p["epsilon"], p["margin"], p["information"]) for p in body.get("frontier") or ()
            ),
            factor=body.get("factor"),
            power=body.get("power"),
            against=body.get("against"),
            guessed_margin=guess.get("margin"),
            guessed_n=guess.get("n"),
            blocks=tuple((b["epsilon"], b["margin"]) for b in body.get("blocks") or ()),
            asked=(asked["mean"], asked["most"], asked["of"])
            if (asked := body.get("asked"))
            else None,
            notes=tuple(body.get("notes") or ()),
            body=body,
        )

    def __str__(self) -> str:
        level = "" if self.epsilon is None else f" with ε {self.epsilon}"
        level = level if self.factor is None else f" with levels times {self.factor}"
        invited = "" if self.invited == self.n else f" ({self.invited} invited)"
        per_group = " in each of two groups or waves" if self.against == "groups" else ""
        figures = f"{self._precision(self.margin)} at {self.level:.10g} by {self.method}"
        lines = [f"{self.n} reports{per_group}{invited}{level}: {figures}"]
        if self.guessed_margin is not None:
            lines.append(f"at the guessed shares: {self._precision(self.guessed_margin)}")
        if self.guessed_n is not None:
            lines[-1] += f"; {self.guessed_n} reports{per_group and ' in each'} suffice there"
        if self.asked is not None:
            mean, most, of = self.asked
            lines.append(
                f"{mean:.2f} of {of} questions asked of a person on average, at most {most}"
            )
        lines += [
            f"block {i}: ε {epsilon}, ± {margin:.2%}"
            for i, (epsilon, margin) in enumerate(self.blocks, 1)
        ]
        lines += self.notes
        return "\n".join(lines)

    def _precision(self, margin: float) -> str:
        if self.power is None:
            return f"± {margin:.2%}"
        return f"a difference of {100 * margin:.2f} points is detected with a chance of {self.power:.0%}"

    def _repr_html_(self) -> str:
        """Return the plan and the curve around it as a table for notebooks."""
        sign, title = ("± ", "margin") if self.power is None else ("", "difference")
        rows = "".join(
            f"<tr><td>{n}</td><td>{sign}{margin:.2%}</td></tr>" for n, margin in self.curve
        )
        head = f"<tr><th>reports</th><th>{title}</th></tr>"
        caption = escape(str(self)).replace("\n", "<br>")
        return f"<table><caption>{caption}</caption>{head}{rows}</table>"
