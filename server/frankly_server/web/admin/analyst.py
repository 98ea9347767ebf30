# SPDX-License-Identifier: Apache-2.0
"""What analysts read: estimates with their margins, drawn, listed, said in words, and downloaded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from apiflask import APIBlueprint
from flask import Response
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis import encode
from frankly_server.analysis.formats import to_csv, to_parquet
from frankly_server.analysis.periods import DAYS, PERIODS
from frankly_server.analysis.request import VERSION
from frankly_server.plots import PlotRow, interval_plot
from frankly_server.services import Services
from frankly_server.surveys.live import shown
from frankly_server.trends import Point, Trend, trend_plot
from frankly_server.web import reading
from frankly_server.web.admin.asked import LEVELS, METHOD_WORDS, PRODUCTS, Asked
from frankly_server.web.admin.sentences import Said, flag_words, said_of, said_of_groups
from frankly_server.web.admin.survey_page import Opened, opened, show
from frankly_server.web.analyst import CSV, PARQUET
from frankly_server.web.security import needs

_DRAWN: Final = 40
"""More bars than that are no picture any more; the table has them all."""
_COMPARED: Final = 12
"""More groups than that are not compared two by two."""
_FORMATS: Final = {
    "csv": (to_csv, CSV),
    "json": (encode, reading.JSON),
    "parquet": (to_parquet, PARQUET),
}


@dataclass(frozen=True, slots=True)
class Group:
    """One table of numbers: a question, or a question within one group.

    name : the group, "" if there is none. n : None while it is small. product : what stands in the rows' first column,
    by choice; None for the unbiased estimates.
    """

    name: str
    status: str
    n: int | None
    needed: int
    rows: Sequence[Mapping[str, Any]]
    product: Mapping[str, float] | None
    said: Said


@dataclass(frozen=True, slots=True)
class Section:
    """A question with its groups, its picture ("" if there is nothing to draw), and what its groups say together."""

    text: str
    groups: Sequence[Group]
    plot: str
    differences: Sequence[str]


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    @routes.get("/surveys/<survey_id>/estimates")
    @needs("viewer")
    def estimates(survey_id: str) -> Response:
        survey = opened(services, survey_id)
        try:
            asked, _ = Asked.read()
            return _page(services, survey, asked)
        except InvalidInput as refused:
            return _page(services, survey, Asked(), refused)

    @routes.get("/surveys/<survey_id>/estimates/download")
    @needs("analyst")
    def download_estimates(survey_id: str) -> Response:
        survey = opened(services, survey_id)
        asked, also = Asked.read("format")
        form = also.get("format", "csv")
        if form not in _FORMATS:
            raise InvalidInput(Problem.FIELD_TYPE, f"the formats are {', '.join(_FORMATS)}", "format")
        write, kind = _FORMATS[form]
        response = Response(write(services.analysis.estimates(survey.id, **asked.arguments())), content_type=kind)
        response.headers["Content-Disposition"] = f'attachment; filename="{survey.summary.name}.{form}"'
        return response


def _page(services: Services, survey: Opened, asked: Asked, refused: InvalidInput | None = None) -> Response:
    documents = services.surveys.versions(survey.id)
    if not documents:
        return show("estimates.html", survey, "estimates", refused, found=None)
    try:
        answer = services.analysis.estimates(survey.id, **asked.arguments())
    except InvalidInput as error:
        if refused is not None:
            raise
        return _page(services, survey, Asked(), error)
    return show(
        "estimates.html", survey, "estimates", refused, found=_sections(answer, asked, _names(documents)),
        n=shown(answer["n"]), asked=asked, choices=_choices(documents), flag_words=flag_words, notes=answer["notes"],
        url=services.settings.public_url, flags=_flags(answer),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Names:
    """What people read: the newest version's first language, and the labels of public choices by question and id."""

    language: str
    groups: Mapping[str, Mapping[str, str]]

    def of(self, texts: Mapping[str, str]) -> str:
        """Return a text in the language, or in the first one it has."""
        return texts.get(self.language) or next(iter(texts.values()))

    def group(self, by: Mapping[str, str] | None) -> str:
        """Return the name of a group, "" for none."""
        return ", ".join(
            value if name in (*PERIODS, DAYS) else self.groups.get(name, {}).get(value, f"{name} {value}")
            for name, value in (by or {}).items()
        )


def _names(documents: Sequence[SurveyDocument]) -> _Names:
    language = documents[-1].languages[0]
    plain = _Names(language, {})
    return _Names(language, {q.id: {c.id: plain.of(c.label) for c in q.choices} for d in documents for q in d.strata})


def _choices(documents: Sequence[SurveyDocument]) -> dict[str, Any]:
    """Return what the page's switches offer."""
    of = _names(documents).of
    strata = {question.id: of(question.text) for document in documents for question in document.strata}
    questions = {question.id: of(question.text) for block in documents[-1].blocks for question in block.questions}
    by = strata | ({VERSION: "Version of the survey"} if len(documents) > 1 else {})
    return {"levels": LEVELS, "methods": METHOD_WORDS, "products": PRODUCTS, "by": by, "questions": questions,
            "periods": PERIODS}  # fmt: skip


def _sections(answer: Mapping[str, Any], asked: Asked, names: _Names) -> list[Section]:
    """Return the answer's questions in their order, groups of the same question together."""
    together: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for question in answer["questions"]:
        together.setdefault((question["id"], *map(str, question["text"].values())), []).append(question)
    return [_section(questions, asked, names) for questions in together.values()]


def _section(questions: Sequence[Mapping[str, Any]], asked: Asked, names: _Names) -> Section:
    level, text = reading.level(asked.level), names.of(questions[0]["text"])
    told = [question for question in questions if question["status"] == "ok"]
    groups = [_group(question, asked, level, names) for question in questions]
    # Bars of the same choice stand together: that is what is compared.
    order = [row["choice"] for row in told[0]["rows"]] if told else []
    bars = sorted((bar for group in groups for bar in _bars(group, names)), key=lambda bar: _place(order, bar[0]))
    plot = interval_plot(text, [bar for _, bar in bars]) if 0 < len(bars) <= _DRAWN else ""
    if asked.period is not None and asked.by is None and told:
        plot = _over_time(text, groups, order, names)
    apart = [(names.group(question["by"]), question) for question in told if question["by"]]
    apart = apart if len(apart) <= _COMPARED else []
    return Section(text, groups, plot, said_of_groups(apart, level, names.language))


def _over_time(text: str, groups: Sequence[Group], order: Sequence[str], names: _Names) -> str:
    """Draw each choice over the periods; those with too few answers are gaps."""
    found: dict[str, list[Point]] = {choice: [] for choice in order}
    labels = {row["choice"]: names.of(row["label"]) for group in groups for row in group.rows}
    for group in groups:
        for row in group.rows:
            share = row["estimate"] if group.product is None else group.product.get(row["choice"])
            if share is not None:
                ends = (row["lo"], row["hi"]) if group.product is None else (None, None)
                found.setdefault(row["choice"], []).append(Point(group.name, share, *ends))
    trends = [Trend(labels[choice], points) for choice, points in found.items() if points]
    return trend_plot(text, [group.name for group in groups], trends) if trends else ""


def _place(order: Sequence[str], choice: str) -> int:
    return order.index(choice) if choice in order else len(order)


def _group(question: Mapping[str, Any], asked: Asked, level: float, names: _Names) -> Group:
    ok = question["status"] == "ok"
    return Group(
        name=names.group(question["by"]),
        status=question["status"],
        n=shown(question["n"]),
        needed=question["needed"],
        rows=question["rows"],
        product=None if asked.product == "unbiased" else question[asked.product] or {},
        said=said_of(question, level, names.language) if ok else Said((), ()),
    )


def _bars(group: Group, names: _Names) -> list[tuple[str, PlotRow]]:
    """Return each choice with its bar; products without a margin of their own have bars without whiskers."""
    found = []
    for row in group.rows:
        label = names.of(row["label"]) + (f", {group.name}" if group.name else "")
        if group.product is None:
            found.append((row["choice"], PlotRow(label, row["estimate"], row["lo"], row["hi"])))
        elif row["choice"] in group.product:
            found.append((row["choice"], PlotRow(label, group.product[row["choice"]], None, None)))
    return found


def _flags(answer: Mapping[str, Any]) -> list[str]:
    """Return every flag of an answer once."""
    every = (flag for question in answer["questions"] for row in question["rows"] for flag in row["flags"])
    return list(dict.fromkeys(every))
