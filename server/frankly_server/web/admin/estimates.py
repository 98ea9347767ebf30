# SPDX-License-Identifier: Apache-2.0
"""Estimates page with tables, plots and sentences, and downloads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from apiflask import APIBlueprint
from flask import Response
from frankly_analyst.request import ALL, PREVIOUS, RESPONDENTS, SCALES, SHARES, WANTED
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput

from frankly_server.analysis.periods import PERIODS
from frankly_server.analysis.request import VERSION
from frankly_server.intake.times import next_release
from frankly_server.scales import Scale
from frankly_server.services import Services
from frankly_server.web.admin.estimates_query import (
    LEVELS,
    METHOD_WORDS,
    PERCENT_WORDS,
    PRODUCTS,
    Asked,
)
from frankly_server.web.admin.estimates_sections import Names, Section, names_of, sections_of
from frankly_server.web.admin.estimates_sentences import completion_words, flag_words
from frankly_server.web.admin.survey_page import show, survey_view
from frankly_server.web.analyst import format_of
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.searching import without_slot

_COMPARED: Final = 12
"""Largest number of groups for comparisons of all pairs, whose number grows quadratically."""


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    @routes.get("/surveys/<survey_id>/estimates")
    @survey_view(services, "viewer")
    def estimates(survey: OpenedSurvey) -> Response:
        with without_slot(services.analyses):
            try:
                query, _ = Asked.read()
                return _page(services, survey, query)
            except InvalidInput as refused:
                return _page(services, survey, Asked(), refused)

    @routes.get("/surveys/<survey_id>/estimates/download")
    @survey_view(services, "analyst")
    def download_estimates(survey: OpenedSurvey) -> Response:
        query, extra = Asked.read("format")
        form = extra.get("format", "csv")
        write, kind = format_of(form, query.request.given())
        with without_slot(services.analyses):
            body = write(services.analysis.estimates(survey.id, **query.request.given()))
        response = Response(body, content_type=kind)
        ending = "-spreadsheet.csv" if form == "spreadsheet" else f".{form}"
        response.headers["Content-Disposition"] = f'attachment; filename="{survey.name}{ending}"'
        return response


def _page(
    services: Services, survey: OpenedSurvey, query: Asked, refused: InvalidInput | None = None
) -> Response:
    documents = services.surveys.versions(survey.id)
    if not documents:
        return show("estimates.html", survey, "estimates", refused, found=None)
    try:
        found = found_of(services, survey.id, documents, query)
    except InvalidInput as error:
        # The page then shows the default query and the error. If the default query fails too,
        # the query is not the cause.
        if refused is not None:
            raise
        return _page(services, survey, Asked(), error)
    answer = found.answer
    names, now = names_of(documents), services.surveys.now()
    next_time = min(next_release(document.release_every, now) for document in documents)
    return show(
        "estimates.html",
        survey,
        "estimates",
        refused,
        found=found.sections,
        has_wanted=found.wanted is not None,
        n=answer["n"],
        next_release=next_time,
        asked=query,
        choices=_choices(documents, names),
        flag_words=flag_words,
        completions=[
            (one, completion_words(one))
            for one in answer["completions"]
            if any(part["chance"] < 1 for part in one["parts"])
        ],
        names=names,
        notes=answer["notes"],
        url=services.settings.public_url,
        flags=_flags(answer, found.wanted),
    )


@dataclass(frozen=True, slots=True)
class Found:
    """What the analysis found: its answer about shares, that about wanted figures, and the sections."""

    answer: Mapping[str, Any]
    wanted: Mapping[str, Any] | None
    sections: Sequence[Section]


def found_of(
    services: Services,
    survey_id: str,
    documents: Sequence[SurveyDocument],
    query: Asked,
    *,
    completion: bool = True,
) -> Found:
    """Return what a query of the page finds. documents : the survey's versions, at least one.

    completion : False to leave out the test of completion. Raises the errors of the analysis.
    """
    fields = query.request.given() | _compared(documents, query)
    # Sentences and plots are about shares; the wanted figures have tables of their own.
    if query.request.targets == WANTED:
        fields["targets"] = SHARES
        # Completion is of all released reports, so pages of groups and periods leave it out.
        dated = query.request.since or query.request.until
        partial = query.request.by or dated or query.request.percent
        fields["completion"] = completion and not partial
    answer = services.analysis.estimates(survey_id, **fields)
    scales = wanted = None
    if _can_show_figures(query):
        questions = [q for document in documents for q in document.questions.values()]
        if any(map(Scale.of, questions)):
            fields = query.request.given() | {"targets": SCALES}
            scales = services.analysis.estimates(survey_id, **fields)
        if any(question.wanted for question in questions):
            wanted = services.analysis.estimates(survey_id, **query.request.given())
    sections = sections_of(answer, query, names_of(documents), scales, wanted)
    return Found(answer, wanted, sections)


def _compared(documents: Sequence[SurveyDocument], query: Asked) -> dict[str, str]:
    """Return the request field for comparing groups, {} if groups are not compared.

    Percentages are not compared, because their families have no simultaneous intervals.
    """
    request = query.request
    if request.by is None or request.compare or request.percent or request.method == "sequence":
        return {}
    if query.by is None:
        return {"compare": PREVIOUS}
    if query.period is not None:
        return {}
    sizes = [len(q.choices) for document in documents for q in document.strata if q.id == query.by]
    groups = max(sizes, default=len(documents))
    return {"compare": ALL} if groups <= _COMPARED else {}


def _can_show_figures(query: Asked) -> bool:
    """Return True unless the page has a joint table, or weights that ratios do not support."""
    return query.request.targets == WANTED and query.request.weights == RESPONDENTS


def _choices(documents: Sequence[SurveyDocument], names: Names) -> dict[str, Any]:
    """Return the options of the page's form."""
    by = {
        question.id: names.of(question.text)
        for document in documents
        for question in document.strata
    }
    by |= {VERSION: "Version of the survey"} if len(documents) > 1 else {}
    return {
        "levels": LEVELS,
        "methods": METHOD_WORDS,
        "products": PRODUCTS,
        "by": by,
        "questions": names.questions,
        "periods": PERIODS,
        "percents": PERCENT_WORDS,
    }


def _flags(*answers: Mapping[str, Any] | None) -> list[str]:
    """Return the distinct flags of results, in order of first appearance."""
    every = (
        flag
        for answer in answers
        if answer is not None
        for question in answer["questions"]
        for row in question["rows"]
        for flag in row["flags"]
    )
    return list(dict.fromkeys(every))
