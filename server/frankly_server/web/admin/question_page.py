# SPDX-License-Identifier: Apache-2.0
"""Page of one question: its texts in every language, its choices, its short ids, and its place."""

from typing import Any, Final

from apiflask import APIBlueprint
from flask import Response, request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

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
from frankly_server.web.admin.forms import by_key, choice, field, require_only, takes, ticked
from frankly_server.web.admin.pages import attempt
from frankly_server.web.admin.questions import questions_page
from frankly_server.web.admin.survey_page import OpenedSurvey, by_language, show, store, survey_view

_STEPS: Final = {"up": -1, "down": 1}
_EMPTY_ROWS: Final = 3
_COLUMNS: Final = ("choice", "score")
_ROWS: Final = ("label-", "was", *_COLUMNS)


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    @routes.get("/surveys/<survey_id>/questions/<question_id>")
    @survey_view(services, "viewer")
    def question(survey: OpenedSurvey, question_id: str) -> Response:
        return _page(survey, question_id)

    @routes.post("/surveys/<survey_id>/questions/<question_id>")
    @survey_view(services, "admin")
    @takes("seen", "id", "text-", "raise", "reset", "answer", many=_ROWS)
    def edit_question(survey: OpenedSurvey, question_id: str) -> Response:
        def act() -> str:
            question = question_of(survey.draft, question_id)
            if "answer" not in question:
                require_only("seen", "id", "text-", "raise", "reset", many=_ROWS)
            choice("answer", [str(i) for i in range(len(_rows(survey)))], "")
            _require_rows(survey, question)
            new_id, rows = field("id"), _raised(_rows(survey))
            edited = change_question(
                survey.draft,
                question_id,
                new_id,
                by_language(survey, "text"),
                rows,
                reset=ticked("reset"),
            )
            store(services, survey, edited)
            # A button beside a row keeps the page open on the question.
            return survey.path(f"questions/{new_id}" if request.form.get("raise") else "questions")

        return attempt(act, lambda refused: _page(survey, question_id, refused))

    @routes.post("/surveys/<survey_id>/questions/<question_id>/move")
    @survey_view(services, "admin")
    @takes("seen", "direction")
    def move_one(survey: OpenedSurvey, question_id: str) -> Response:
        steps = _STEPS[choice("direction", tuple(_STEPS))]
        return _change(services, survey, lambda: move_question(survey.draft, question_id, steps))

    @routes.post("/surveys/<survey_id>/questions/<question_id>/copy")
    @survey_view(services, "admin")
    @takes("seen")
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
    values, rows = question, [_row_of(choice, question) for choice in question[name]]
    if refused is not None:
        texts = {name: request.form.get(f"text-{name}", "") for name in survey.definition.languages}
        values = {"id": request.form.get("id", ""), "text": texts}
        rows = _rows(survey)
        while rows and rows[-1] == ChoiceRow(
            "", "", dict.fromkeys(survey.definition.languages, "")
        ):
            rows.pop()
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
        unscored=[choice["id"] for choice in question[name] if "role" in choice],
        list_name=name,
        item="answer" in question,
        too_long=len(question[name]) > MAX_ROWS,
        reset=refused is not None and refused.field == "reset",
    )


def _row_of(choice: dict[str, Any], question: dict[str, Any]) -> ChoiceRow:
    return ChoiceRow(
        choice["id"],
        choice["id"],
        choice["label"],
        str(choice.get("score", "")),
        question.get("answer") == choice["id"],
    )


def _rows(survey: OpenedSurvey) -> list[ChoiceRow]:
    """Return the rows of the form."""
    columns = {
        name: [text.strip() for text in request.form.getlist(name)] for name in (*_COLUMNS, "was")
    }
    labels = {
        language: [text.strip() for text in request.form.getlist(f"label-{language}")]
        for language in survey.definition.languages
    }

    def cell(column: list[str], i: int) -> str:
        return column[i] if i < len(column) else ""

    return [
        ChoiceRow(
            was,
            cell(columns["choice"], i),
            {language: cell(column, i) for language, column in labels.items()},
            cell(columns["score"], i),
            request.form.get("answer") == str(i),
        )
        for i, was in enumerate(columns["was"])
    ]


def _require_rows(survey: OpenedSurvey, question: dict[str, Any]) -> None:
    """Raise InvalidInput(definition_invalid) if a cell of the form's rows would not be stored."""
    by_key("label-", survey.definition.languages)
    choices, rows = question[list_name(question)], _rows(survey)
    if max(len(choices), len(rows) - _EMPTY_ROWS) > MAX_ROWS:
        raise InvalidInput(
            Problem.DEFINITION_INVALID,
            f"this page changes at most {MAX_ROWS} choices: edit the question in the file",
            "choice",
        )
    names = (*_COLUMNS, *(f"label-{language}" for language in survey.definition.languages))
    if any(len(request.form.getlist(name)) not in (0, len(rows)) for name in names):
        raise InvalidInput(
            Problem.DEFINITION_INVALID, "the rows of the choices are incomplete", "choices"
        )
    before = {one["id"]: _row_of(one, question) for one in choices}
    scored = {one["id"] for one in choices if "role" not in one}
    if not any("score" in one for one in choices):
        scored = set()
    elif rows:
        scored.add("")
    for i, row in enumerate(rows):
        stored = before.get(row.was, ChoiceRow("", "", {}))
        is_kept = any(row.labels.values())
        for name, text, old in (("choice", row.id, stored.id), ("score", row.score, stored.score)):
            # The texts of a row are cleared to remove it, and its other cells may stay as they were.
            if text and not is_kept and text != old:
                raise InvalidInput(
                    Problem.DEFINITION_INVALID,
                    f"row {i + 1} has no text: write one, or clear the row",
                    f"{name}[{i}]",
                )
        if is_kept and not row.score and row.was in scored and (stored.score or not row.was):
            raise InvalidInput(
                Problem.DEFINITION_INVALID, f"row {i + 1} needs a score, too", f"score[{i}]"
            )
        if row.score and row.was not in scored:
            raise InvalidInput(
                Problem.DEFINITION_INVALID,
                f"row {i + 1} has no score, because its choice is not an answer or the question has none",
                f"score[{i}]",
            )


def _raised(rows: list[ChoiceRow]) -> list[ChoiceRow]:
    """Return the rows with the one whose button was pressed moved one place up.

    Raises InvalidInput(field_type) for the first or an unknown row.
    """
    pressed = choice("raise", [str(i) for i in range(1, len(rows))], "")
    if pressed:
        i = int(pressed)
        rows[i - 1], rows[i] = rows[i], rows[i - 1]
    return rows
