# SPDX-License-Identifier: Apache-2.0
"""Page of one question: its texts in every language, its choices, its short ids, and its place."""

from typing import Any, Final

from apiflask import APIBlueprint
from flask import Response, request
from frankly_protocol.errors import InvalidInput

from frankly_server.services import Services
from frankly_server.surveys.question_editing import (
    MAX_ROWS,
    ChoiceRow,
    change_question,
    copy_question,
    list_name,
    move_question,
    question_of,
)
from frankly_server.web.admin.pages import attempt, field
from frankly_server.web.admin.questions import questions_page
from frankly_server.web.admin.survey_page import OpenedSurvey, by_language, show, store, survey_view

_STEPS: Final = {"up": -1, "down": 1}
_EMPTY_ROWS: Final = 3


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    @routes.get("/surveys/<survey_id>/questions/<question_id>")
    @survey_view(services, "viewer")
    def question(survey: OpenedSurvey, question_id: str) -> Response:
        return _page(survey, question_id)

    @routes.post("/surveys/<survey_id>/questions/<question_id>")
    @survey_view(services, "admin")
    def edit_question(survey: OpenedSurvey, question_id: str) -> Response:
        def act() -> str:
            new_id, rows = field("id", 64), _rows(survey)
            edited = change_question(
                survey.draft,
                question_id,
                new_id,
                by_language(survey, "text"),
                rows,
                reset=field("reset") == "yes",
            )
            store(services, survey, edited)
            # A button beside a row keeps the page open on the question.
            return survey.path(f"questions/{new_id}" if request.form.get("raise") else "questions")

        return attempt(act, lambda refused: _page(survey, question_id, refused))

    @routes.post("/surveys/<survey_id>/questions/<question_id>/move")
    @survey_view(services, "admin")
    def move_one(survey: OpenedSurvey, question_id: str) -> Response:
        steps = _STEPS.get(field("direction"), 0)
        return _change(services, survey, lambda: move_question(survey.draft, question_id, steps))

    @routes.post("/surveys/<survey_id>/questions/<question_id>/copy")
    @survey_view(services, "admin")
    def copy_one(survey: OpenedSurvey, question_id: str) -> Response:
        return _change(services, survey, lambda: copy_question(survey.draft, question_id))


def _change(services: Services, survey: OpenedSurvey, make: Any) -> Response:
    return attempt(
        lambda: store(services, survey, make()),
        lambda refused: questions_page(survey, refused),
        survey.path("questions"),
    )


def _page(survey: OpenedSurvey, question_id: str, refused: InvalidInput | None = None) -> Response:
    question = question_of(survey.draft, question_id)
    name = list_name(question)
    values, rows = question, list(map(_row_of, question[name]))
    if refused is not None:
        values = {"id": field("id", 64), "text": by_language(survey, "text")}
        rows = _rows(survey)
    scored = any("score" in choice for choice in question[name])
    # A row more would need a number, which only a file can state.
    has_ranges = any("from" in choice for choice in question[name])
    if not has_ranges:
        rows = [*rows, *[ChoiceRow("", "", {})] * _EMPTY_ROWS]
    return show(
        "question.html",
        survey,
        "questions",
        refused,
        question=question,
        values=values,
        rows=rows,
        scored=scored,
        list_name=name,
        too_long=len(question[name]) > MAX_ROWS,
        reset=refused is not None and refused.field == "reset",
    )


def _row_of(choice: dict[str, Any]) -> ChoiceRow:
    return ChoiceRow(choice["id"], choice["id"], choice["label"], str(choice.get("score", "")))


def _rows(survey: OpenedSurvey) -> list[ChoiceRow]:
    """Return the rows of the form; a row whose button was pressed is moved one place up."""
    columns = {
        name: [text.strip() for text in request.form.getlist(name)[: MAX_ROWS + _EMPTY_ROWS]]
        for name in ("was", "choice", "score")
    }
    labels = {
        language: [text.strip()[:4000] for text in request.form.getlist(f"label-{language}")]
        for language in survey.definition.languages
    }

    def cell(column: list[str], i: int) -> str:
        return column[i] if i < len(column) else ""

    rows = [
        ChoiceRow(
            was,
            cell(columns["choice"], i)[:64],
            {language: cell(column, i) for language, column in labels.items()},
            cell(columns["score"], i),
        )
        for i, was in enumerate(columns["was"])
    ]
    raised = request.form.get("raise", "")
    if raised.isascii() and raised.isdigit() and 0 < int(raised[:4]) < len(rows):
        i = int(raised)
        rows[i - 1], rows[i] = rows[i], rows[i - 1]
    return rows
