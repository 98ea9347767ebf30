# SPDX-License-Identifier: Apache-2.0
"""Comparisons of groups, and tests: differences with margins, p-values and effect sizes."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from html import escape
from typing import Any, Self

from frankly_analyst.declared import described
from frankly_analyst.formats import cell, needed
from frankly_analyst.plots import NUMBER, SHARE, figure
from frankly_analyst.request import METHODS
from frankly_analyst.rows import localised


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One comparison: a difference of two groups, a weighted sum of groups, or a slope.

    None is null in JSON.
    """

    question: str = field(metadata={"description": "Id of the question, or of the table."})
    choice: str = field(metadata={"description": "The choice, cell or combination."})
    label: str = field(
        metadata={
            "description": "Label of the choice, cell or combination; in JSON by language.",
            "json": dict[str, str],
        }
    )
    by: str = field(
        metadata={
            "description": "Group, such as `region=north`; `trend per week` for a slope; or the weighted sum."
        }
    )
    reference: str = field(
        metadata={"description": "Group that is subtracted; `mean` of all; or empty."}
    )
    within: str = field(
        metadata={
            "description": "Group or period within which groups are compared; empty if there is none."
        }
    )
    unit: str = field(
        metadata={
            "description": "Unit of the difference: `share` (1 is 100 points) or `number`.",
            "choices": (SHARE, NUMBER),
        }
    )
    difference: float | None = field(
        metadata={
            "description": "The group's estimate minus that of `reference`, the sum, or the slope."
        }
    )
    se: float | None = field(metadata={"description": "Standard error of the difference."})
    low: float | None = field(
        metadata={"description": "Lower end of the interval at `level`, by `method`."}
    )
    high: float | None = field(metadata={"description": "Upper end of the interval."})
    low_all: float | None = field(
        metadata={
            "description": "Lower end of the wider interval by Bonferroni: those of the family hold simultaneously "
            "at `level`."
        }
    )
    high_all: float | None = field(metadata={"description": "Upper end of that interval."})
    level: float = field(metadata={"description": "Confidence level of the intervals."})
    method: str = field(metadata={"description": "Kind of margin.", "choices": METHODS})
    p: float | None = field(
        metadata={
            "description": "p-value of the test that the difference is 0, by a normal approximation."
        }
    )
    p_holm: float | None = field(
        metadata={"description": "p-value adjusted for the family of tests, by Holm's method."}
    )
    p_equivalence: float | None = field(
        default=None,
        metadata={
            "description": "p-value of the test that the difference is within ±`equivalence` of the request: small if "
            "it is. Null without it, for slopes, and without `se`."
        },
    )
    ratio: float | None = field(
        default=None, metadata={"description": "The group's share divided by that of `reference`."}
    )
    ratio_low: float | None = field(
        default=None,
        metadata={
            "description": "Lower end of its interval; null, like the upper end, if it is unbounded."
        },
    )
    ratio_high: float | None = field(
        default=None, metadata={"description": "Upper end of its interval."}
    )
    h: float | None = field(
        default=None, metadata={"description": "Cohen's h of the two shares, cut to 0 to 1."}
    )
    h_low: float | None = field(
        default=None, metadata={"description": "Lower end of its interval."}
    )
    h_high: float | None = field(
        default=None, metadata={"description": "Upper end of its interval."}
    )
    n: int = field(metadata={"description": "Number of reports of the group, or of all groups."})
    n_reference: int | None = field(
        metadata={"description": "Number of reports of `reference`; null if it is not one group."}
    )
    flags: tuple[str, ...] = field(metadata={"description": "Warnings about the comparison."})

    @classmethod
    def from_json(
        cls, row: Mapping[str, Any], language: str | None, languages: Sequence[str]
    ) -> Self:
        """Read a row of the server's response, like `Estimate.from_json`."""
        values = {item.name: row[item.name] for item in fields(cls)}
        values["label"] = localised(row["label"], language, languages)
        return cls(**values | {"flags": tuple(row["flags"])})

    @property
    def name(self) -> str:
        """The compared groups as text."""
        pair = f"{self.by} − {self.reference}" if self.reference else self.by
        return f"{pair} ({self.within})" if self.within else pair

    def __str__(self) -> str:
        is_tested = self.p_equivalence is not None
        return "  ".join([self.label, *_cells(self, has_equivalence=is_tested)])


@dataclass(frozen=True, slots=True)
class WaldTest:
    """A χ² test of one question or table.

    kind : "homogeneity" (equal figures in all groups) or "independence" (of two questions).
    about : the tested question or table. p : p-value; None, with a flag, if nothing can be tested.
    effect : name of the effect size, with its value and interval, all None if there is none.
    """

    kind: str
    about: str
    statistic: float | None
    df: int | None
    p: float | None
    effect: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    flags: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, kind: str, about: str, body: Mapping[str, Any]) -> Self:
        """Read a test of the server's response. Raises KeyError or TypeError if it is malformed."""
        effect = body.get("effect") or {}
        return cls(
            kind=kind,
            about=about,
            **{name: body[name] for name in ("statistic", "df", "p")},
            effect=effect.get("name"),
            value=effect.get("estimate"),
            low=effect.get("low"),
            high=effect.get("high"),
            flags=tuple(body["flags"]),
        )

    def __str__(self) -> str:
        flags = f"  [{', '.join(self.flags)}]" if self.flags else ""
        if self.statistic is None:
            return f"{self.about}: {self.kind} not tested{flags}"
        effect = (
            f", {self.effect} {self.value:.2f} ({self.low:.2f} to {self.high:.2f})"
            if self.value is not None
            else ""
        )
        return (
            f"{self.about}: {self.kind} χ² = {self.statistic:.2f}, df {self.df}, "
            f"{p_text(self.p)}{effect}{flags}"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>"


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Rows of comparisons with their tests, to iterate over, print or convert.

    tests : one test of homogeneity per question. notes : families of the adjusted p-values, and
        groups that have too few reports.
    """

    title: str
    rows: tuple[Comparison, ...]
    tests: tuple[WaldTest, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, body: Mapping[str, Any], language: str | None = None) -> Self:
        """Read the comparisons of a response. Raises KeyError, TypeError or AttributeError if malformed."""
        rows, tests, notes = [], [], []
        for compared in body.get("comparisons") or ():
            compared_rows = [*compared["rows"], *((compared["trend"] or {}).get("rows") or ())]
            rows += [
                Comparison.from_json(row, language, body["languages"]) for row in compared_rows
            ]
            about = compared["question"] + (
                f" ({compared['within']})" if compared["within"] else ""
            )
            if compared["homogeneity"] is not None:
                tests.append(WaldTest.from_json("homogeneity", about, compared["homogeneity"]))
            notes.append(f"{about}: p adjusted (Holm) over {compared['family']['of']}")
            if body.get("equivalence") is not None:
                notes.append(
                    f"{about}: the test of equivalence regards differences up to {body['equivalence']:.10g} as none"
                )
            # Listed, because a missing group could be mistaken for a group without a difference.
            notes += [f"{about}: {name} has too few reports" for name in compared["left_out"]]
        return cls(
            localised(body["title"], language, body["languages"]),
            tuple(rows),
            tuple(tests),
            tuple(notes),
        )

    @property
    def trends(self) -> "Comparisons":
        """The slopes alone; if there are none, a note gives the reason."""
        rows = tuple(row for row in self.rows if row.by.startswith("trend"))
        reason = (
            "no slopes: they need three groups or more that have an order (periods, or choices of a public "
            "question with scores or ranges)"
        )
        return replace(self, rows=rows, notes=self.notes if rows else (*self.notes, reason))

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_csv(self) -> str:
        """Return the rows as CSV with a header; flags are separated by spaces."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(item.name for item in fields(Comparison))
        writer.writerows(
            [cell(" ".join(v) if isinstance(v, tuple) else v) for v in astuple(row)]
            for row in self.rows
        )
        return out.getvalue()

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame. Raises InvalidRequest(unsupported) without pandas."""
        names = [item.name for item in fields(Comparison)]
        return needed("pandas").DataFrame(map(astuple, self.rows), columns=names)

    @property
    def _has_equivalence(self) -> bool:
        return any(row.p_equivalence is not None for row in self.rows)

    def __str__(self) -> str:
        has = self._has_equivalence
        table = [(row.label, *_cells(row, has_equivalence=has)) for row in self.rows]
        # Columns are aligned over all questions, so that figures can be compared vertically.
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines, question = [f"{self.title}: comparisons"], None
        for row, cells in zip(self.rows, table, strict=True):
            if row.question != question:
                question = row.question
                lines.append(f"{question} (at {row.level:.10g} by {row.method})")
            padded = (f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
            lines.append("  " + "  ".join(padded).rstrip())
        return "\n".join([*lines, *map(str, self.tests), *self.notes])

    def _repr_html_(self) -> str:
        heads = (
            "question",
            "choice",
            "groups",
            "difference",
            "interval",
            "p",
            "adjusted p",
            *(["equivalence"] if self._has_equivalence else []),
            "effect",
            "n",
            "flags",
        )
        lines = [
            "<tr>"
            + "".join(
                f"<td>{escape(cell)}</td>"
                for cell in (
                    row.question,
                    row.label,
                    *_cells(row, has_equivalence=self._has_equivalence),
                )
            )
            + "</tr>"
            for row in self.rows
        ]
        head = f"<tr>{''.join(f'<th>{name}</th>' for name in heads)}</tr>"
        tests = "".join(f"<li>{escape(text)}</li>" for text in (*map(str, self.tests), *self.notes))
        return (
            f"<table><caption>{escape(self.title)}: comparisons</caption>{head}{''.join(lines)}"
            f"</table>{f'<ul>{tests}</ul>' if tests else ''}"
        )


def p_text(p: float | None) -> str:
    """Return a p-value as text, never "p = 0"."""
    return "p unknown" if p is None else "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def points(value: float | None, unit: str) -> str:
    """Return a difference as text; a difference of shares is in percentage points."""
    if value is None or unit != SHARE:
        return figure(value, NUMBER)
    # A difference of two shares is in points: "+3%" could be read as relative to the reference.
    return f"{100 * value:+.1f} points".replace("-", "−")


def _cells(row: Comparison, *, has_equivalence: bool) -> tuple[str, ...]:
    ends = (
        "interval unknown"
        if row.low is None or row.high is None
        else f"{points(row.low, row.unit).removesuffix(' points')} to {points(row.high, row.unit)}"
    )
    effect = (
        ""
        if row.h is None
        else f"h {row.h:+.2f} ({row.h_low:+.2f} to {row.h_high:+.2f})".replace("-", "−")
    )
    n = f"n {row.n}" + ("" if row.n_reference is None else f" and {row.n_reference}")
    adjusted = "" if row.p_holm is None else f"Holm {p_text(row.p_holm).removeprefix('p = ')}"
    same = "" if row.p_equivalence is None else f"equivalence {p_text(row.p_equivalence)}"
    return (
        row.name,
        points(row.difference, row.unit),
        ends,
        p_text(row.p),
        adjusted,
        *([same] if has_equivalence else []),
        effect,
        n,
        ", ".join(row.flags),
    )
