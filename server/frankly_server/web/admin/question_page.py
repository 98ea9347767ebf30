# SPDX-License-Identifier: Apache-2.0
"""Form of one question, within the page of all questions: its fields, its place, and a copy of it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from apiflask import APIBlueprint
from flask import Response, request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.questions import ROLES

from frankly_server.services import Services
from frankly_server.surveys.editing import Draft, questions_of
from frankly_server.surveys.question_edit import (
    PLACES,
    WANTED,
    ChoiceRow,
    QuestionEdit,
    edit_of,
    list_name,
    path_of,
    question_of,
    repeatable,
    sources,
)
from frankly_server.surveys.question_editing import (
    MAX_ROWS,
    copy_question,
    move_question,
    new_id,
    places_of,
    with_question,
)
from frankly_server.surveys.question_types import TYPES
from frankly_server.web import reading
from frankly_server.web.admin.forms import by_key, choice, field, require_only, takes, ticked
from frankly_server.web.admin.pages import attempt
from frankly_server.web.admin.questions import questions_page
from frankly_server.web.admin.survey_page import by_language, require_no_arms, store, survey_view
from frankly_server.web.opened_survey import OpenedSurvey

_STEPS: Final = {"up": -1, "down": 1}
_EMPTY_ROWS: Final = 3
_CELLS: Final = ("choice", "number", "contrast", "expected", "known")
_ROWS: Final = ("label-", "was", *_CELLS)
_OF_ITEM: Final = ("seen", "id", "text-", "raise", "reset", "answer")
_OF_QUESTION: Final = (
    *("seen", "id", "text-", "raise", "reset", "kind", "place", *ROLES, "span_from", "span_to"),
    *("after", "wanted", "importance", "known_source", "repeats"),
)
_CELL: Final = re.compile(r"(?:choices|boxes)\[(\d+)\]\.(?:label\.(.+)|(id|score|from|role))")
_NUMBER: Final = re.compile(r"(contrast|expected|anchor\.counts)\[(\d+)\]")
_CELLS_BY_NAME: Final = {"id": "choice", "role": "choice", "score": "number", "from": "number"}
"""Column of the form, by the field of a choice."""
_NAMES: Final = {
    "scores": "number",
    "ask_if": "after",
    "": "after",
    "anchor": "known",
    "anchor.counts": "known",
    "anchor.source": "known_source",
    "anchor.repeats": "repeats",
}
"""Fields of the form that have another name than those of the question."""


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""
    _add_form(routes, services)
    _add_buttons(routes, services)


def _add_form(routes: APIBlueprint, services: Services) -> None:
    @routes.get("/surveys/<survey_id>/new-question")
    @survey_view(services, "admin")
    def new_question(survey: OpenedSurvey) -> Response:
        return _page(services, survey, None)

    @routes.post("/surveys/<survey_id>/new-question")
    @survey_view(services, "admin")
    @takes(*_OF_QUESTION, many=(*_ROWS, "after_choice"))
    def add_question(survey: OpenedSurvey) -> Response:
        return attempt(
            lambda: _keep(services, survey, None),
            lambda refused: _page(services, survey, None, refused),
        )

    @routes.get("/surveys/<survey_id>/questions/<question_id>")
    @survey_view(services, "viewer")
    def question(survey: OpenedSurvey, question_id: str) -> Response:
        reading.query(("saved",))
        return _page(services, survey, question_id)

    @routes.post("/surveys/<survey_id>/questions/<question_id>")
    @survey_view(services, "admin")
    @takes(*_OF_QUESTION, "answer", many=(*_ROWS, "after_choice"))
    def edit_question(survey: OpenedSurvey, question_id: str) -> Response:
        known = [one["id"] for one in questions_of(survey.draft)]
        if question_id not in known:
            gone = InvalidInput(
                Problem.NOT_FOUND,
                "this question was removed or renamed meanwhile: what you typed is shown as a new question",
                "id",
            )
            return _page(services, survey, None, gone)
        if "answer" in question_of(survey.draft, question_id):
            require_only(*_OF_ITEM, many=_ROWS)
        else:
            require_only(*_OF_QUESTION, many=(*_ROWS, "after_choice"))
        return attempt(
            lambda: _keep(services, survey, question_id),
            lambda refused: _page(services, survey, question_id, refused),
        )


def _add_buttons(routes: APIBlueprint, services: Services) -> None:
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


def _change(services: Services, survey: OpenedSurvey, make: Callable[[], Draft]) -> Response:
    return attempt(
        lambda: store(services, survey, make()),
        lambda refused: questions_page(services, survey, refused),
        survey.path("questions"),
    )


def _keep(services: Services, survey: OpenedSurvey, question_id: str | None) -> str:
    """Store the form's question; return the path of the page that follows."""
    require_no_arms(survey)
    draft, first = survey.draft, survey.definition.languages[0]
    edit = _checked(survey, question_id)
    edited = with_question(draft, edit, question_id, reset=ticked("reset"))
    try:
        store(services, survey, edited)
    except InvalidInput as refused:
        path = path_of(edited, edit.id)
        if not (refused.field or "").startswith(path):
            raise
        rest = (refused.field or "").removeprefix(path).removeprefix(".")
        name = _field_of(rest, places_of(draft, edit, question_id), first)
        raise InvalidInput(refused.problem, refused.detail, name) from None
    # A button beside a row keeps the question open.
    opened = f"/{edit.id}" if request.form.get("raise") else ""
    return survey.path(f"questions{opened}?saved=q-{edit.id}#q-{edit.id}")


def _field_of(path: str, places: Sequence[int | None], first: str) -> str:
    """Return the field of the form at which the draft was refused.

    path : within the question. places : row of each choice. first : the first language.
    """
    if found := _CELL.fullmatch(path):
        index, language, cell = int(found[1]), found[2], found[3]
        name = f"label-{language}" if language else _CELLS_BY_NAME[cell]
    elif found := _NUMBER.fullmatch(path):
        index, name = int(found[2]), _NAMES.get(found[1], found[1])
    else:
        name = re.split(r"[.\[]", path)[0]
        if name == "text":
            return f"text-{path.partition('.')[2] or first}"
        if name in ("choices", "boxes"):
            return f"label-{first}"
        return _NAMES.get(path, _NAMES.get(name, name))
    row = places[index] if index < len(places) else None
    return name if row is None else f"{name}[{row}]"


def _form_values(
    survey: OpenedSurvey, question_id: str | None, refused: InvalidInput | None
) -> dict[str, Any]:
    """Return the values of the question's form."""
    draft, languages = survey.draft, survey.definition.languages
    stored = None if question_id is None else edit_of(draft, question_id)
    edit = stored or _new_edit(draft)
    if refused is not None:
        edit = _entered(survey, question_id)
    blank = ChoiceRow("", "", {})
    rows = list(edit.rows)
    while rows and not any((rows[-1].was, rows[-1].id, *rows[-1].labels.values(), rows[-1].number)):
        rows.pop()
    question = {} if question_id is None else question_of(draft, question_id)
    listed = question[list_name(question)] if question else []
    return {
        "editing": question_id or "",
        "question": question,
        "edit": edit,
        "types": TYPES.values(),
        "rows": [*rows, *[blank] * _EMPTY_ROWS],
        "roles": {one["id"]: one["role"] for one in listed if "role" in one},
        "stored": stored,
        "sources": sources(draft, question_id),
        "repeatable": repeatable(draft, question_id),
        "too_long": len(listed) > MAX_ROWS,
        "reset": refused is not None and refused.field == "reset",
        "languages": languages,
    }


def _page(
    services: Services,
    survey: OpenedSurvey,
    question_id: str | None,
    refused: InvalidInput | None = None,
) -> Response:
    return questions_page(services, survey, refused, **_form_values(survey, question_id, refused))


def _new_edit(draft: Draft) -> QuestionEdit:
    place = "form" if "form" in draft or not draft.get("blocks") else "block"
    return QuestionEdit("", {}, TYPES["yes-no"], place, ())


def _entered(survey: OpenedSurvey, question_id: str | None) -> QuestionEdit:
    """Return what the form contains, valid or not; a column or field that it lacks is as stored."""
    draft, form = survey.draft, request.form
    stored = _new_edit(draft) if question_id is None else edit_of(draft, question_id)
    languages = survey.definition.languages

    def text(name: str, usual: str) -> str:
        return form[name].replace("\r\n", "\n").strip() if name in form else usual

    is_item = stored.place == "item"
    return QuestionEdit(
        text("id", stored.id),
        {tag: text(f"text-{tag}", "") for tag in languages},
        TYPES.get(text("kind", stored.type.name), stored.type),
        stored.place if is_item or form.get("place") not in PLACES else form["place"],
        tuple(_rows(languages, {row.was: row for row in stored.rows})),
        stored.roles if is_item else frozenset(role for role in ROLES if form.get(role)),
        (text("span_from", ""), text("span_to", "")),
        text("after", ""),
        tuple(form.getlist("after_choice")),
        text("wanted", ""),
        text("importance", ""),
        text("known_source", stored.known_source),
        text("repeats", stored.repeats),
    )


def _rows(languages: Sequence[str], stored: Mapping[str, ChoiceRow]) -> Iterator[ChoiceRow]:
    columns = {
        name: [text.strip() for text in request.form.getlist(name)]
        for name in ("was", *_CELLS, *(f"label-{tag}" for tag in languages))
    }

    def cell(name: str, i: int, usual: str = "") -> str:
        column = columns[name]
        return column[i] if i < len(column) else "" if column else usual

    for i, was in enumerate(columns["was"]):
        known = stored.get(was, ChoiceRow("", "", {}))
        yield ChoiceRow(
            was,
            cell("choice", i),
            {tag: cell(f"label-{tag}", i) for tag in languages},
            cell("number", i, known.number),
            cell("contrast", i, known.contrast),
            cell("expected", i, known.expected),
            request.form.get("answer") == str(i),
            cell("known", i, known.known),
        )


def _checked(survey: OpenedSurvey, question_id: str | None) -> QuestionEdit:
    """Return the form's question with its id, and with the row moved whose button was pressed.

    Raises InvalidInput for values that are no choice, too long, or in rows of unequal lengths.
    """
    draft, languages = survey.draft, survey.definition.languages
    edit = _entered(survey, question_id)
    if question_id is None or "answer" not in question_of(draft, question_id):
        choice("kind", list(TYPES))
        choice("place", PLACES[:3])
        choice("wanted", WANTED, "")
        for role in ROLES:
            ticked(role)
        names = [name for name, *_ in sources(draft, question_id)]
        choice("after", names, "")
        choice("repeats", [one["id"] for one in repeatable(draft, question_id)], "")
    for name in ("id", "importance", "span_from", "span_to", "known_source"):
        field(name)
    by_language(survey, "text")
    by_key("label-", languages)
    pressed = choice("raise", [str(i) for i in range(1, len(edit.rows))], "")
    choice("answer", [str(i) for i in range(len(edit.rows))], "")
    question = {} if question_id is None else question_of(draft, question_id)
    stored = question[list_name(question)] if question else []
    if max(len(stored), len(edit.rows) - _EMPTY_ROWS) > MAX_ROWS:
        raise _invalid(
            f"this page changes at most {MAX_ROWS} choices: edit the question in the file", "choice"
        )
    columns = (*_CELLS, *(f"label-{tag}" for tag in languages))
    if any(len(request.form.getlist(name)) not in (0, len(edit.rows)) for name in columns):
        raise _invalid("the rows of the choices are incomplete", "choices")
    if pressed:
        rows, i = list(edit.rows), int(pressed)
        rows[i - 1], rows[i] = rows[i], rows[i - 1]
        edit = replace(edit, rows=tuple(rows))
    return replace(edit, id=edit.id or new_id(draft, edit.text[languages[0]], question_id))


def _invalid(detail: str, name: str) -> InvalidInput:
    return InvalidInput(Problem.DEFINITION_INVALID, detail, name)
