# SPDX-License-Identifier: Apache-2.0
"""A survey's estimates: iterate, print, plot, combine, or hand them on; pandas and Arrow only if asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from importlib import import_module
from typing import Any, Self

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server import formats
from frankly_server.client.rows import Estimate
from frankly_server.plots import PlotRow, interval_plot, percent

Ask = Callable[[Sequence[str], str | None], "Estimates"]


@dataclass(frozen=True, slots=True)
class Estimates:
    """Every row of a survey; iterate over it, print it, write it as CSV.

    insufficient : question id -> how many more reports it needs before there is any number. covariances : per question
    (and group), of its rows' estimates in their order, None where it cannot be told. body : the server's answer, which
    `frankly replay` computes again. language : of the labels; None for the survey's first.
    """

    survey: str
    title: str
    n: int
    rows: tuple[Estimate, ...]
    insufficient: Mapping[str, int]
    covariances: Mapping[tuple[str, str], Sequence[Sequence[float]] | None] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    ask: Ask | None = field(default=None, repr=False, compare=False)
    language: str | None = None

    @classmethod
    def from_json(cls, body: Mapping[str, Any], language: str | None = None, ask: Ask | None = None) -> Self:
        """Return what the server's answer says; KeyError, TypeError or AttributeError if it is not one."""
        questions, languages = body["questions"], body["languages"]
        return cls(
            survey=body["survey"],
            title=formats.said(body["title"], language, languages),
            n=body["n"],
            rows=tuple(
                Estimate.from_json(row, language, languages) for question in questions for row in question["rows"]
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
        """Return the rows of one question. Raises InvalidInput(targets_invalid) if there are none."""
        found = tuple(row for row in self.rows if (row.question, row.by) == (question, by))
        if not found:
            raise InvalidInput(Problem.TARGETS_INVALID, "there are no estimates of this question", "question")
        return found

    def sum(self, question: str, choices: Sequence[str], by: str = "") -> Estimate:
        """Return the share of several choices together."""
        return self.lincom(question, dict.fromkeys(choices, 1.0), label=" + ".join(choices), by=by)

    def diff(self, question: str, choice: str, other: str, by: str = "") -> Estimate:
        """Return by how much one share exceeds another."""
        return self.lincom(question, {choice: 1.0, other: -1.0}, label=f"{choice} − {other}", by=by)

    def lincom(self, question: str, weights: Mapping[str, float], label: str | None = None, by: str = "") -> Estimate:
        """Return Σ weight · share over choices of one question, unbiased, with an interval at the rows' level.

        Its `method` is score if the rows' is: their intervals together, by their correlations. For rows of any other
        method it is clt; ask the server for other intervals of a combination (`targets`).
        """
        from frankly_server.estimate.contrasts import lincom, lincom_ends  # noqa: PLC0415 - scipy is slow to import

        rows, covariance = self._told(question, by, set(weights))
        w, values = [weights.get(row.choice, 0.0) for row in rows], [row.estimate for row in rows]
        found = lincom(w, values, covariance)
        z, reaches, method = _reaches(rows)
        ends = lincom_ends(w, values, covariance, reaches, z)
        return self._derived(rows, label or _formula(weights), found.value, found.se, ends, method)

    def ratio(self, question: str, of: Mapping[str, float], over: Mapping[str, float], by: str = "") -> Estimate:
        """Return Σ of · share / Σ over · share with Fieller's interval, flagged where it is unbounded.

        Its `method` is as that of `lincom`; for `score` no end is nearer than that of normal intervals.
        """
        from frankly_server.estimate.contrasts import lincom_ends, ratio  # noqa: PLC0415 - as above

        rows, C = self._told(question, by, {*of, *over})
        values = [row.estimate for row in rows]
        sides = [[side.get(row.choice, 0.0) for row in rows] for side in (of, over)]
        cross = [[_bilinear(a, C, b) for b in sides] for a in sides]
        top, bottom = (sum(w * v for w, v in zip(side, values, strict=True)) for side in sides)
        if bottom == 0:
            raise InvalidInput(Problem.TARGETS_INVALID, "the denominator's estimate is 0", "over")
        z, reaches, method = _reaches(rows)
        normal = [(z * row.se, z * row.se) for row in rows]
        found = [
            ratio((top, bottom), cross, (lincom_ends(sides[0], values, C, each, z),
                                         lincom_ends(sides[1], values, C, each, z)))
            for each in (normal, reaches)
        ]  # fmt: skip
        both = [each.ends for each in found if each.ends is not None]
        ends = (min(low for low, _ in both), max(high for _, high in both)) if len(both) == len(found) else None
        return self._derived(rows, f"({_formula(of)}) / ({_formula(over)})", found[0].value, found[0].se, ends, method)

    def crosstab(self, *questions: str, percent: str | None = None) -> "Estimates":
        """Ask the server for the joint table of several questions, each cell with its own margin.

        percent : of two questions, "row" for the shares within each choice of the first one, "column" of the second.
        """
        if self.ask is None:
            raise InvalidInput(Problem.UNSUPPORTED, "these estimates were not asked of a server", "questions")
        return self.ask(questions, percent)

    def plot(self, question: str | None = None, by: str = "") -> str:
        """Return bars with whiskers as SVG text, of one question (of all its groups if by is empty) or of all rows."""
        rows = self.rows if question is None else self._shown(question, by)
        if not rows:
            raise InvalidInput(Problem.TARGETS_INVALID, "there are no estimates to plot", "question")
        label = question or self.title
        return interval_plot(label, [PlotRow(_label(row), row.estimate, row.low, row.high) for row in rows])

    def to_csv(self) -> str:
        """Return a header and a line per row, or per question without one: the columns of `?format=csv`."""
        return formats.to_csv(self.body, self.language).decode()

    def to_pandas(self) -> Any:
        """Return the lines of `to_csv` as a pandas DataFrame. Raises InvalidInput(unsupported) without pandas."""
        return _needed("pandas").DataFrame(formats.lines(self.body, self.language), columns=list(formats.COLUMNS))

    def to_arrow(self) -> Any:
        """Return the lines of `to_csv` as a pyarrow Table. Raises InvalidInput(unsupported) without pyarrow."""
        return formats.to_arrow(_needed("pyarrow"), self.body, self.language)

    def _repr_html_(self) -> str:
        """Return a table for notebooks: every number with its interval, and a bar with its whisker."""
        lines = [
            f"<tr><td>{escape(row.question)}</td><td>{escape(_label(row))}</td>"
            f"<td>{percent(row.estimate)}</td><td>{row.interval}</td><td>{row.n}</td>"
            f"<td>{_bar(row)}</td><td>{escape(', '.join(row.flags))}</td></tr>"
            for row in self.rows
        ]
        few = [f"<li>{escape(q)}: not enough reports, {more} more needed</li>" for q, more in self.insufficient.items()]
        titles = ("question", "choice", "estimate", "interval", "n", "", "flags")
        head = f"<tr>{''.join(f'<th>{title}</th>' for title in titles)}</tr>"
        level = f" at {self.rows[0].level:.10g}" if self.rows else ""
        caption = f"<caption>{escape(self.title)}: {self.n} reports{level}</caption>"
        return f"<table>{caption}{head}{''.join(lines)}</table>" + (f"<ul>{''.join(few)}</ul>" if few else "")

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
            numbers = f"{percent(row.estimate):>7}  {row.interval:<{ends}}"
            lines.append(f"  {_label(row):<{width}}  {numbers} at {row.level:.10g}{flags}")
        lines += [f"{question}: not enough reports, {more} more needed" for question, more in self.insufficient.items()]
        return "\n".join(lines)

    def _shown(self, question: str, by: str) -> tuple[Estimate, ...]:
        found = tuple(row for row in self.rows if row.question == question and by in ("", row.by))
        return found or self.of(question, by)

    def _told(self, question: str, by: str, used: set[str]) -> tuple[tuple[Estimate, ...], Sequence[Sequence[float]]]:
        rows = self.of(question, by)
        if not used or not used <= {row.choice for row in rows}:
            raise InvalidInput(Problem.TARGETS_INVALID, "the question has no estimate of such a choice", "choices")
        covariance = self.covariances.get((question, by))
        if covariance is None:
            raise InvalidInput(Problem.UNSUPPORTED, "the covariance of these estimates cannot be told", "question")
        return rows, covariance

    def _derived(
        self,
        rows: Sequence[Estimate],
        label: str,
        value: float,
        se: float,
        ends: tuple[float, float] | None,
        method: str,
    ) -> Estimate:
        first = rows[0]
        low, high = ends or (None, None)
        margin = None if ends is None else max(ends[1] - value, value - ends[0])
        # What belongs to a row of the question alone is not told of a figure made of several.
        kept = tuple(flag for flag in first.flags if flag not in _OF_ONE_ROW)
        return replace(
            first, choice=label, label=label, estimate=value, se=se, se_privacy=None, se_sampling=None, margin=margin,
            low=low, high=high, method=method, flags=(*kept, *(("unbounded",) if ends is None else ())),
            worst_case_se=None, poisoning_up=None, poisoning_down=None, privacy_cost=None, efficiency=None,
        )  # fmt: skip


_OF_ONE_ROW = frozenset(
    {"outside_unit_interval", "imprecise", "margin_too_wide", "few_informative", "exact_not_available"}
)


def _needed(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise InvalidInput(Problem.UNSUPPORTED, f"this needs {module}: pip install {module}, or use to_csv()") from None


def _reaches(rows: Sequence[Estimate]) -> tuple[float, list[tuple[float, float]], str]:
    """Return the normal quantile of the rows' level, how far each interval reaches below and above, and their method.

    That is score if it is that of all rows; else the intervals are normal ones, clt.
    """
    from frankly_server.estimate.margins import normal_quantile  # noqa: PLC0415 - as above

    z = normal_quantile(rows[0].level)
    ends = [(row.low, row.high) for row in rows if row.method == "score"]
    if len(ends) < len(rows):
        return z, [(z * row.se, z * row.se) for row in rows], "clt"
    reaches = [
        (row.estimate - low, high - row.estimate)
        for row, (low, high) in zip(rows, ends, strict=True)
        if low is not None and high is not None
    ]
    return z, reaches, "score"


def _bilinear(a: Sequence[float], C: Sequence[Sequence[float]], b: Sequence[float]) -> float:
    return sum(x * c * y for x, row in zip(a, C, strict=True) for c, y in zip(row, b, strict=True))


def _formula(weights: Mapping[str, float]) -> str:
    terms = [f"{'−' if w < 0 else '+'} {'' if abs(w) == 1 else f'{abs(w):g} × '}{c}" for c, w in weights.items()]
    return " ".join(terms).removeprefix("+ ")


def _group(question: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in (question.get("by") or {}).items())


def _name(question: Mapping[str, Any]) -> str:
    group = _group(question)
    return f"{question['id']} ({group})" if group else str(question["id"])


def _label(row: Estimate) -> str:
    return f"{row.label} ({row.by})" if row.by else row.label


def _bar(row: Estimate) -> str:
    """Return a small bar with its whisker as inline SVG; 0% to 100%, ends outside are cut and said in the numbers."""
    share, low, high = (None if v is None else round(100 * min(max(v, 0.0), 1.0), 1)
                        for v in (row.estimate, row.low, row.high))  # fmt: skip
    said, whisker = f"{row.label}: {percent(row.estimate)}", ""
    if row.low is not None and row.high is not None:
        said += f", from {percent(row.low)} to {percent(row.high)}"
        path = f"M{low} 7H{high}M{low} 3V11M{high} 3V11"
        whisker = f'<path d="{path}" stroke="#123" stroke-width="1.5" fill="none"/>'
    return (
        f'<svg width="104" height="14" viewBox="-2 0 104 14" role="img"><title>{escape(said)}</title>'
        f'<rect x="0" y="3" width="{share}" height="8" fill="#7aa6d8"/>{whisker}</svg>'
    )
