# SPDX-License-Identifier: Apache-2.0
"""Estimates page with tables, plots and sentences, and downloads."""

from collections.abc import Mapping, Sequence
from typing import Any

from apiflask import APIBlueprint
from flask import Response
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput

from frankly_server.analysis.periods import PERIODS
from frankly_server.analysis.request import VERSION
from frankly_server.intake.times import next_release
from frankly_server.services import Services
from frankly_server.web.admin.survey_page import show, survey_view
from frankly_server.web.analyst import format_of
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.results.asked import LEVELS, METHOD_WORDS, PERCENT_WORDS, PRODUCTS, Asked
from frankly_server.web.results.found import found_of
from frankly_server.web.results.sections import Names, named_sources, names_of
from frankly_server.web.results.sentences import arms_words, completion_words, flag_words
from frankly_server.web.results.view import groupings_of
from frankly_server.web.searching import without_slot


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
        return show("estimates.html", survey, "results", refused, found=None)
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
        "results",
        refused,
        found=found.sections,
        has_wanted=found.wanted is not None,
        n=answer["n"],
        next_release=next_time,
        asked=query,
        default=Asked(),
        choices=_choices(documents, names),
        flag_words=flag_words,
        arms=arms_words(answer["arms"], names.words),
        sources=named_sources(answer, names),
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


def _choices(documents: Sequence[SurveyDocument], names: Names) -> dict[str, Any]:
    """Return the options of the page's form."""
    texts = {q.id: names.of(q.text) for document in documents for q in document.strata}
    by = {
        name: texts.get(name, "Arm of the survey")
        for document in documents
        for name in groupings_of(document)
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
