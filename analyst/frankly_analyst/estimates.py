# SPDX-License-Identifier: Apache-2.0
"""Estimates of a survey: rows to iterate over, print, plot, combine and export."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from importlib import import_module
from typing import Any, Self

from frankly_analyst import formats
from frankly_analyst.errors import InvalidRequest
from frankly_analyst.plots import SHARE, PlotRow, interval_plot, small_bar
from frankly_analyst.request import SCALES
from frankly_analyst.rows import Estimate, localised

Ask = Callable[[Any, str | None], "Estimates"]
"""Function (targets, percent) that requests other targets of the survey, with otherwise equal fields."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """The rows of a survey's estimates, to iterate over, print or write as CSV.

    insufficient : question id, or "id (group)" -> number of further reports needed for an estimate.
    covariances : (question, group) -> covariance matrix of the question's estimates in the order of
        its rows, None if unknown.
    body : the server's response, which `frankly replay` can recompute.
    ask : function that requests other targets; None if these estimates did not come from a server.
    language : language of the labels; None for the survey's first language.
    """

    survey: str
    title: str
    n: int
    rows: tuple[Estimate, ...]
    insufficient: Mapping[str, int]
    covariances: Mapping[tuple[str, str], Sequence[Sequence[float]] | None] = field(
        default_factory=dict
    )
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    ask: Ask | None = field(default=None, repr=False, compare=False)
    language: str | None = None

    @classmethod
    def from_json(
        cls, body: Mapping[str, Any], language: str | None = None, ask: Ask | None = None
    ) -> Self:
        """Read a response of the server. Raises KeyError, TypeError, AttributeError or StopIteration if malformed."""
        questions, languages = body["questions"], body["languages"]
        return cls(
            survey=body["survey"],
            title=localised(body["title"], language, languages),
            n=body["n"],
            rows=tuple(
                Estimate.from_json(row, language, languages)
                for question in questions
                for row in question["rows"]
            ),
            insufficient={_name(q): q["needed"] - q["n"] for q in questions if q["status"] != "ok"},
            covariances={(q["id"], _group(q)): q.get("covariance") for q in questions},
            body=body,
            ask=ask,
            language=language,
        )

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, question: str, by: str = "") -> tuple[Estimate, ...]:
        """Return the rows of one question, or of its group `by`. Raises InvalidRequest(targets_invalid) if none."""
        rows = tuple(row for row in self.rows if (row.question, row.by) == (question, by))
        if not rows:
            raise InvalidRequest(
                "there are no estimates of this question", code="targets_invalid", field="question"
            )
        return rows

    def sum(self, question: str, choices: Sequence[str], by: str = "") -> Estimate:
        """Ask the server for the total share of several choices, each named once; raises like `lincom`."""
        _require_different(choices, "choices")
        return self.lincom(question, dict.fromkeys(choices, 1.0), label=" + ".join(choices), by=by)

    def diff(self, question: str, choice: str, other: str, by: str = "") -> Estimate:
        """Ask the server by how much the share of `choice` exceeds that of `other`; raises like `lincom`."""
        _require_different((choice, other), "other")
        return self.lincom(question, {choice: 1.0, other: -1.0}, label=f"{choice} − {other}", by=by)

    def lincom(
        self, question: str, weights: Mapping[str, float], label: str | None = None, by: str = ""
    ) -> Estimate:
        """Ask the server for Σ weight · share over choices of one question, or over cells "a × b" of a joint table.

        The server computes its interval by the method of these estimates; combining the rows' intervals would not give
        a valid one.

        Raises Unreachable or Refused, InvalidRequest(targets_invalid) for an unknown question or a repeated name, and
        InvalidRequest(unsupported) if these estimates did not come from a server.
        """
        return self._combined(question, label or _formula(weights), _by_id(weights, "weights"), by)

    def ratio(
        self, question: str, of: Mapping[str, float], over: Mapping[str, float], by: str = ""
    ) -> Estimate:
        """Ask the server for Σ of · share / Σ over · share, with Fieller's interval, flagged if it is unbounded.

        The interval's method is clt if that of these estimates is clt, otherwise score, flagged `score_instead` if
        another one was requested. A denominator that is equal for all answers, such as the sum of all choices, only
        scales the numerator; then the interval uses the method of these estimates. Raises like `lincom`.
        """
        combination = {"of": _by_id(of, "of"), "over": _by_id(over, "over")}
        return self._combined(question, f"({_formula(of)}) / ({_formula(over)})", combination, by)

    def crosstab(self, *questions: str, percent: str | None = None) -> "Estimates":
        """Ask the server for the joint table of several questions, each cell with its own margin.

        percent : for two questions, "row" for shares within each choice of the first one, "column" for the second.

        Raises like `lincom`.
        """
        _require_different(questions, "questions")
        return self._ask(list(questions), percent)

    def scales(self) -> "Estimates":
        """Ask the server for mean, distribution and median of the questions with scores or ranges.

        Raises like `lincom`.
        """
        return self._ask(SCALES)

    def plot(self, question: str | None = None, by: str = "") -> str:
        """Return bars with whiskers as SVG text, for one question (all its groups if `by` is empty) or for all rows.

        Raises InvalidRequest(targets_invalid) if there are no estimates to plot.
        """
        rows = self.rows if question is None else self._rows_of(question, by)
        bars = _bars(*rows)
        if not bars:
            raise InvalidRequest(
                "there are no estimates to plot", code="targets_invalid", field="question"
            )
        return interval_plot(question or self.title, bars)

    def to_csv(self) -> str:
        """Return the CSV of `?format=csv`: a header, one line per row, and one per question without rows."""
        return formats.to_csv(self.body, self.language).decode()

    def to_pandas(self) -> Any:
        """Return the lines of `to_csv` as a pandas DataFrame. Raises InvalidRequest(unsupported) without pandas."""
        return _needed("pandas").DataFrame(
            formats.lines(self.body, self.language), columns=list(formats.COLUMNS)
        )

    def to_arrow(self) -> Any:
        """Return the lines of `to_csv` as a pyarrow Table. Raises InvalidRequest(unsupported) without pyarrow."""
        return formats.to_arrow(_needed("pyarrow"), self.body, self.language)

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks: every estimate with its interval and a bar with whisker."""
        lines = [
            f"<tr><td>{escape(row.question)}</td><td>{escape(_label(row))}</td>"
            f"<td>{row.value}</td><td>{row.interval}</td><td>{row.n}</td>"
            f"<td>{''.join(map(small_bar, _bars(row)))}</td><td>{escape(', '.join(row.flags))}</td></tr>"
            for row in self.rows
        ]
        insufficient = [
            f"<li>{escape(q)}: not enough reports, {missing} more needed</li>"
            for q, missing in self.insufficient.items()
        ]
        titles = ("question", "choice", "estimate", "interval", "n", "", "flags")
        head = f"<tr>{''.join(f'<th>{title}</th>' for title in titles)}</tr>"
        level = f" at {self.rows[0].level:.10g}" if self.rows else ""
        caption = f"<caption>{escape(self.title)}: {self.n} reports{level}</caption>"
        return f"<table>{caption}{head}{''.join(lines)}</table>" + (
            f"<ul>{''.join(insufficient)}</ul>" if insufficient else ""
        )

    def __str__(self) -> str:
        lines = [f"{self.title}: {self.n} reports"]
        width = max((len(_label(row)) for row in self.rows), default=0)
        ends = max((len(row.interval) for row in self.rows), default=0)
        question = None
        for row in self.rows:
            if row.question != question:
                question = row.question
                lines.append(
                    f"{question} (n {row.n}, {row.mechanism}, {row.notion}, ε {row.epsilon}, ceiling {row.ceiling})"
                )
            flags = f"  [{', '.join(row.flags)}]" if row.flags else ""
            numbers = f"{row.value:>7}  {row.interval:<{ends}}"
            lines.append(f"  {_label(row):<{width}}  {numbers} at {row.level:.10g}{flags}")
        lines += [
            f"{question}: not enough reports, {missing} more needed"
            for question, missing in self.insufficient.items()
        ]
        return "\n".join(lines)

    def _rows_of(self, question: str, by: str) -> tuple[Estimate, ...]:
        rows = tuple(row for row in self.rows if row.question == question and by in ("", row.by))
        return rows or self.of(question, by)  # which raises the error that names the question

    def _ask(self, targets: Any, percent: str | None = None) -> "Estimates":
        if self.ask is None:
            raise InvalidRequest(
                "these estimates did not come from a server", code="unsupported", field="targets"
            )
        return self.ask(targets, percent)

    def _combined(
        self, question: str, label: str, combination: Mapping[str, Any], by: str
    ) -> Estimate:
        row = self._ask({_id(question): {_NAME: combination}}).of(question, by)[0]
        return replace(row, choice=label, label=label)


_NAME = "combination"


def _id(name: str) -> str:
    """Return the name of a table, or of one of its cells, as requests write it."""
    return name.replace(" × ", ",")


def _require_different(names: Sequence[str], field: str) -> None:
    """Raise InvalidRequest(targets_invalid) if a name occurs twice: it would be used once, or cancel out."""
    # "a × b" and "a,b" name the same cell.
    ids = [_id(name) for name in names]
    repeated = next((name for name in names if ids.count(_id(name)) > 1), None)
    if repeated is not None:
        raise InvalidRequest(
            f"{repeated} is named twice: name each once", code="targets_invalid", field=field
        )


def _by_id(weights: Mapping[str, float], field: str) -> dict[str, float]:
    _require_different(tuple(weights), field)
    return {_id(name): weight for name, weight in weights.items()}


def _needed(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise InvalidRequest(
            f"this needs {module}: pip install {module}, or use to_csv()", code="unsupported"
        ) from None


def _formula(weights: Mapping[str, float]) -> str:
    terms = [
        f"{'−' if w < 0 else '+'} {'' if abs(w) == 1 else f'{abs(w):g} × '}{c}"
        for c, w in weights.items()
    ]
    return " ".join(terms).removeprefix("+ ")


def _group(question: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in (question.get("by") or {}).items())


def _name(question: Mapping[str, Any]) -> str:
    group = _group(question)
    return f"{question['id']} ({group})" if group else str(question["id"])


def _label(row: Estimate) -> str:
    return f"{row.label} ({row.by})" if row.by else row.label


def _bars(*rows: Estimate) -> list[PlotRow]:
    return [
        PlotRow(_label(row), row.estimate, row.low, row.high)
        for row in rows
        if row.estimate is not None and row.unit == SHARE
    ]
