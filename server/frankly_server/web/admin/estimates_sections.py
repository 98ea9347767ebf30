# SPDX-License-Identifier: Apache-2.0
"""Sections of the estimates page, based on a result of the analysis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from frankly_analyst import Estimate, RandomAnswers
from frankly_analyst.plots import PlotRow, interval_plot, percent
from frankly_protocol.documents import SurveyDocument

from frankly_server.analysis.periods import DAYS, PERIODS
from frankly_server.web.admin.estimates_query import PERCENT_WORDS, Asked
from frankly_server.web.admin.estimates_sentences import (
    Sentences,
    group_sentences,
    scale_sentences,
    sentences_of,
)
from frankly_server.web.trends import Trend, TrendPoint, trend_plot

_DRAWN: Final = 40
"""Largest number of bars of a plot; a plot with more would be unreadable and is left out."""


FigureRows = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]
"""Questions of a result about scales, or about wanted figures, by their id and group name."""


@dataclass(frozen=True, slots=True)
class EstimatesTable:
    """One table of numbers: a question, or a question within one group.

    name : name of the group, or "". n : number of reports used for the question. wanted : rows of the
    figure for which the question is asked; () for its shares. product : shares
    of the selected product, by choice; None if the page shows unbiased estimates. intervals :
    intervals of these shares, [low, high] by choice. random_answers : sentences about people who answer
    at random, and about the law that is assumed of them; () without an instructed item. labels : of
    the rows.
    """

    name: str
    status: str
    n: int
    received: int
    needed: int
    rows: Sequence[Mapping[str, Any]]
    product: Mapping[str, float] | None
    intervals: Mapping[str, tuple[float, float]]
    sentences: Sentences
    wanted: Sequence[Mapping[str, Any]] = ()
    random_answers: Sequence[str] = ()
    labels: Sequence[str] = ()

    @property
    def has_corrected(self) -> bool:
        """True if some row has a corrected figure."""
        return any(row["corrected"] is not None for row in (*self.rows, *self.wanted))


@dataclass(frozen=True, slots=True)
class Section:
    """A question with its groups, plot and sentences.

    plot : SVG, or "" without a plot. differences : sentences that compare the groups. matrix : the
    cross-table of two questions, or None.
    """

    text: str
    groups: Sequence[EstimatesTable]
    plot: str
    differences: Sequence[str]
    matrix: "Matrix | None" = None

    @property
    def common_flags(self) -> list[str]:
        """Return the flags of every row of two or more, which the page states once."""
        rows = [row for group in self.groups for row in group.rows]
        return (
            [f for f in rows[0]["flags"] if all(f in r["flags"] for r in rows)] if rows[1:] else []
        )


@dataclass(frozen=True, slots=True)
class Matrix:
    """A cross-table of two questions: corner and column headings, and (heading, cells) of each row.

    caption : states the total to which the shares in the cells refer.
    """

    caption: str
    corner: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Mapping[str, Any]]]]


@dataclass(frozen=True, slots=True)
class Names:
    """Names of questions, choices and groups by id, in the first language of the newest version."""

    language: str
    questions: Mapping[str, str]
    choices: Mapping[str, Sequence[str]]
    groups: Mapping[str, Mapping[str, str]]

    def of(self, texts: Mapping[str, str]) -> str:
        """Return the text in that language, or else in its first language."""
        return texts.get(self.language) or next(iter(texts.values()))

    def group(self, by: Mapping[str, str] | None) -> str:
        """Return the name of a group, or "" if there is none."""
        return ", ".join(
            value
            if name in (*PERIODS, DAYS)
            else self.groups.get(name, {}).get(value, f"{name} {value}")
            for name, value in (by or {}).items()
        )

    def label(self, group: str) -> str:
        """Return the name of a group from its label in a result, such as `region=north`."""
        return self.group(dict(part.split("=", 1) for part in group.split(" ")))


def names_of(documents: Sequence[SurveyDocument]) -> Names:
    """Return the names of a survey. documents : its versions, oldest first."""
    language = documents[-1].languages[0]
    of = Names(language, {}, {}, {}).of
    questions = documents[-1].questions.values()
    return Names(
        language,
        {question.id: of(question.text) for question in questions},
        {question.id: [of(choice.label) for choice in question.choices] for question in questions},
        {
            q.id: {c.id: of(c.label) for c in q.choices}
            for document in documents
            for q in document.strata
        },
    )


def sections_of(
    answer: Mapping[str, Any],
    asked: Asked,
    names: Names,
    scales: Mapping[str, Any] | None = None,
    wanted: Mapping[str, Any] | None = None,
) -> list[Section]:
    """Return one section per question, in order of first appearance, with all its groups.

    scales, wanted : the results of the same request for scales and for wanted figures, None if there
    are none.
    """
    scale_rows, wanted_rows = _figures(scales, names), _figures(wanted, names)
    together: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for question in answer["questions"]:
        # By text too, because versions may ask different questions under the same id.
        together.setdefault((question["id"], *map(str, question["text"].values())), []).append(
            question
        )
    compared = answer["comparisons"]
    return [
        _section(questions, asked, names, (scale_rows, wanted_rows), compared)
        for questions in together.values()
    ]


def _figures(result: Mapping[str, Any] | None, names: Names) -> FigureRows:
    figures: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in result["questions"] if result else ():
        figures.setdefault((one["id"], names.group(one["by"])), []).append(one)
    return figures


def _rows_about(
    question: Mapping[str, Any], figures: FigureRows, names: Names
) -> Sequence[Mapping[str, Any]]:
    """Return the rows of the same question: versions may have other choices under one id."""
    documents = set(question["documents"])
    for one in figures.get((question["id"], names.group(question["by"])), ()):
        if documents.intersection(one["documents"]):
            rows: Sequence[Mapping[str, Any]] = one["rows"]
            return rows
    return ()


def _section(
    questions: Sequence[Mapping[str, Any]],
    asked: Asked,
    names: Names,
    figures: tuple[FigureRows, FigureRows],
    compared: Sequence[Mapping[str, Any]],
) -> Section:
    level, text = asked.request.level, names.of(questions[0]["text"])
    estimated = [question for question in questions if question["status"] == "ok"]
    groups = [_group(question, asked, level, names, *figures) for question in questions]
    # Bars of the same choice are adjacent, so that they can be compared.
    order = [row["choice"] for row in estimated[0]["rows"]] if estimated else []
    bars = sorted(
        (bar for group in groups for bar in _bars(group, names)),
        key=lambda bar: _place(order, bar[0]),
    )
    plot = interval_plot(text, [bar for _, bar in bars]) if 0 < len(bars) <= _DRAWN else ""
    # Over time, lines replace bars. With groups in addition, there would be too many lines.
    if asked.period is not None and asked.by is None and estimated:
        plot = _over_time(text, groups, order, names)
    rows = [
        row
        for entry in compared
        if entry["question"] == questions[0]["id"] and not entry["within"]
        for row in entry["rows"]
    ]
    differences = group_sentences(rows, names.label, names.language)
    return Section(text, groups, plot, differences, _matrix(groups, asked, names))


def _matrix(groups: Sequence[EstimatesTable], asked: Asked, names: Names) -> Matrix | None:
    """Return the cross-table of two questions, or None unless there is one complete table."""
    # With groups or periods there are several tables, which one matrix cannot show.
    if asked.row is None or asked.column is None or len(groups) != 1:
        return None
    down, across = names.choices.get(asked.row, ()), names.choices.get(asked.column, ())
    cells = groups[0].rows  # row-major, like joint tables of the analysis
    if not across or len(cells) != len(down) * len(across):
        return None
    rows = [(name, cells[i * len(across) : (i + 1) * len(across)]) for i, name in enumerate(down)]
    caption = f"Cross-table: {PERCENT_WORDS.get(asked.request.percent or '', 'share')} and interval"
    return Matrix(
        caption, f"{names.questions[asked.row]} / {names.questions[asked.column]}", across, rows
    )


def _over_time(
    text: str, groups: Sequence[EstimatesTable], order: Sequence[str], names: Names
) -> str:
    """Draw each choice over the periods; a period with too few reports is a gap."""
    points_of: dict[str, list[TrendPoint]] = {choice: [] for choice in order}
    labels = {row["choice"]: names.of(row["label"]) for group in groups for row in group.rows}
    for group in groups:
        for row in group.rows:
            share = row["estimate"] if group.product is None else group.product.get(row["choice"])
            if share is not None:
                points_of.setdefault(row["choice"], []).append(
                    TrendPoint(group.name, share, *_ends(group, row))
                )
    trends = [Trend(labels[choice], points) for choice, points in points_of.items() if points]
    return trend_plot(text, [group.name for group in groups], trends) if trends else ""


def _place(order: Sequence[str], choice: str) -> int:
    return order.index(choice) if choice in order else len(order)


def _group(
    question: Mapping[str, Any],
    asked: Asked,
    level: float,
    names: Names,
    scale_rows: FigureRows,
    wanted_rows: FigureRows,
) -> EstimatesTable:
    name = names.group(question["by"])
    has_result = question["status"] != "insufficient"
    wanted = _rows_about(question, wanted_rows, names)
    # Without a wanted figure these are the shares, which have a table already.
    if [row["choice"] for row in wanted] == [row["choice"] for row in question["rows"]]:
        wanted = ()
    return EstimatesTable(
        name=name,
        status=question["status"],
        n=question["n"],
        received=question["received"],
        needed=question["needed"],
        rows=question["rows"],
        product=None if asked.product == "unbiased" else question[asked.product] or {},
        intervals={}
        if asked.product == "unbiased"
        else question[f"{asked.product}_interval"] or {},
        sentences=sentences_of(question, level, names.language, asked.request.percent).after(
            scale_sentences(_rows_about(question, scale_rows, names))
        )
        if has_result
        else Sentences((), ()),
        wanted=wanted,
        random_answers=_random_answers(question, names),
        labels=[names.of(row["label"]) for row in question["rows"]],
    )


def _random_answers(question: Mapping[str, Any], names: Names) -> list[str]:
    """Return what is said of people who answer at random; [] without an instructed item."""
    if question["random_answers"] is None:
        return []
    found = RandomAnswers.from_json(question["random_answers"])
    rows = [Estimate.from_json(row, names.language, ()) for row in question["rows"]]
    said = found.sentences(rows)
    if not found.shown:
        return said
    laws = [
        f"{names.questions.get(name, name)} {_law(name, law, names)}"
        for name, law in (found.law or {}).items()
    ]
    return [*said, f"Assumed of an answer at random: {'; '.join(laws)}."]


def _law(question: str, law: Mapping[str, float], names: Names) -> str:
    if len({round(chance, 9) for chance in law.values()}) == 1:
        return f"each of the {len(law)} choices alike"
    labels = dict(zip(law, names.choices.get(question, law), strict=False))
    return ", ".join(f"“{labels[choice]}” {percent(chance)}" for choice, chance in law.items())


def _bars(group: EstimatesTable, names: Names) -> list[tuple[str, PlotRow]]:
    """Return pairs of a choice and its bar; a bar without an interval has no whiskers."""
    bars = []
    for row in group.rows:
        label = names.of(row["label"]) + (f", {group.name}" if group.name else "")
        if group.product is None and row["estimate"] is not None:
            bars.append((row["choice"], PlotRow(label, row["estimate"], *_ends(group, row))))
        elif group.product is not None and row["choice"] in group.product:
            bars.append(
                (row["choice"], PlotRow(label, group.product[row["choice"]], *_ends(group, row)))
            )
    return bars


def _ends(group: EstimatesTable, row: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return the ends of the displayed interval, both None if there is no interval."""
    return (
        (row["low"], row["high"])
        if group.product is None
        else group.intervals.get(row["choice"], (None, None))
    )
