# SPDX-License-Identifier: Apache-2.0
"""Draft pages: list of surveys, new survey, questions and texts, and the draft as a file."""

from functools import partial
from typing import Any

from apiflask import APIBlueprint
from flask import Response, request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.surveys import editing, survey_templates
from frankly_server.surveys.definition import SurveyDefinition, parse_definition, parse_value
from frankly_server.surveys.question_editing import untranslated, with_languages
from frankly_server.web.admin.pages import attempt, field, go, lines, render
from frankly_server.web.admin.survey_page import (
    OpenedSurvey,
    by_language,
    keep,
    mine,
    show,
    store,
    survey_view,
)
from frankly_server.web.searching import without_slot
from frankly_server.web.security import PATH, needs, person


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""
    _add_list(routes, services)
    _add_questions(routes, services)
    _add_file(routes, services)


def _add_list(routes: APIBlueprint, services: Services) -> None:
    @routes.get("/surveys")
    @needs("viewer")
    def surveys() -> Response:
        return render("surveys.html", surveys=mine(services))

    @routes.get("/surveys/new")
    @needs("admin")
    def new_survey() -> Response:
        return render("new.html", templates=survey_templates.templates())

    @routes.post("/surveys/new")
    @needs("admin")
    def make_survey() -> Response:
        def act() -> str:
            recorder = partial(services.accounts.recorder, person(), "survey created")
            survey_id = services.surveys.create(_first_draft(), person().organisation, recorder)
            return f"{PATH}/surveys/{survey_id}/questions"

        return attempt(
            act,
            lambda refused: render(
                "new.html", refused, templates=survey_templates.templates(), form=request.form
            ),
        )

    @routes.post("/surveys/<survey_id>/duplicate")
    @survey_view(services, "admin")
    def duplicate_survey(survey: OpenedSurvey) -> Response:
        recorder = partial(services.accounts.recorder, person(), "survey created")
        survey_id = services.surveys.create(_copy(survey), person().organisation, recorder)
        return go(f"{PATH}/surveys/{survey_id}/questions")


def _copy(survey: OpenedSurvey) -> SurveyDefinition:
    """Return a survey's draft under another name and title, without its times."""
    draft = survey.draft
    for name in ("opens", "closes", "expires"):
        draft.pop(name, None)
    draft["title"] = {language: f"{text} (2)" for language, text in draft["title"].items()}
    draft["name"] = f"{draft['name'][:62]}-2"
    return parse_value(draft)


def _first_draft() -> SurveyDefinition:
    """Return the first draft: from a template, a file or the single question of the form."""
    how = field("how")
    if how == "template":
        return parse_definition(survey_templates.template(field("template")))
    if how == "file":
        return parse_definition(request.form.get("file", "").encode())
    title = field("title")
    draft = editing.new_draft(
        title,
        editing.slug(title),
        field("language") or "en",
        field("question"),
        lines("choices"),
        one_level=field("one_level") == "yes",
    )
    return parse_value(draft)


def _add_questions(routes: APIBlueprint, services: Services) -> None:
    @routes.get("/surveys/<survey_id>/questions")
    @survey_view(services, "viewer")
    def questions(survey: OpenedSurvey) -> Response:
        return questions_page(survey)

    @routes.post("/surveys/<survey_id>/questions")
    @survey_view(services, "admin")
    def add_question(survey: OpenedSurvey) -> Response:
        def act() -> None:
            public = field("public") == "yes"
            store(
                services,
                survey,
                editing.add_question(
                    survey.draft,
                    field("question"),
                    lines("choices"),
                    public=public,
                    wanted=field("wanted"),
                ),
            )

        return attempt(
            act,
            lambda refused: questions_page(survey, refused, form=request.form),
            survey.path("questions"),
        )

    @routes.post("/surveys/<survey_id>/questions/<question_id>/remove")
    @survey_view(services, "admin")
    def remove_question(survey: OpenedSurvey, question_id: str) -> Response:
        return attempt(
            lambda: store(services, survey, editing.remove_question(survey.draft, question_id)),
            lambda refused: questions_page(survey, refused),
            survey.path("questions"),
        )

    @routes.post("/surveys/<survey_id>/text")
    @survey_view(services, "admin")
    def change_text(survey: OpenedSurvey) -> Response:
        def act() -> None:
            draft = survey.draft
            draft["title"] = by_language(survey, "title")
            consent = by_language(survey, "consent")
            draft["consent"] = consent if any(consent.values()) else None
            draft["min_reports"] = field("min_reports")
            # The rule for an outside issuer has a key, which only a file can state.
            if not (draft.get("tokens") or {}).get("key"):
                draft["tokens"] = {"kind": "invite"} if field("invited") == "yes" else None
            if field("expected_reports"):
                draft["expected_reports"] = field("expected_reports")
            draft.pop("closes", None)
            if field("closes"):
                # The form contains a date; the survey closes at the end of that day, UTC.
                draft["closes"] = field("closes", 10) + "T23:59:59Z"
            # A language that was added has no fields on the page yet, so it comes last.
            languages = field("languages").replace(",", " ").split()
            store(services, survey, with_languages(draft, languages or [""]))

        return attempt(
            act,
            lambda refused: questions_page(survey, refused, about=request.form),
            survey.path("questions"),
        )


def questions_page(
    survey: OpenedSurvey, refused: InvalidInput | None = None, **values: Any
) -> Response:
    """Render the page of all questions; if a form was refused, with its values."""
    missing = untranslated(survey.draft)
    return show("questions.html", survey, "questions", refused, missing=missing, **values)


def _add_file(routes: APIBlueprint, services: Services) -> None:
    @routes.get("/surveys/<survey_id>/file")
    @survey_view(services, "viewer")
    def survey_file(survey: OpenedSurvey) -> Response:
        # Long lists of choices take seconds.
        with without_slot(services.analyses):
            return show("file.html", survey, "file", text=survey.definition.to_yaml().decode())

    @routes.post("/surveys/<survey_id>/file")
    @survey_view(services, "admin")
    def replace_by_file(survey: OpenedSurvey) -> Response:
        text = request.form.get("file", "")

        def act() -> None:
            # Lone surrogates are encoded here, and the parser then refuses them as invalid UTF-8.
            definition = parse_definition(text.encode("utf-8", "surrogatepass"))
            if definition.name != survey.name:
                raise InvalidInput(
                    Problem.DEFINITION_INVALID,
                    f"this survey is called {survey.name}: keep the name, or make a new "
                    "survey from the file",
                    "name",
                )
            keep(services, survey, definition)

        return attempt(
            act,
            lambda refused: show("file.html", survey, "file", refused, text=text),
            survey.path("questions"),
        )
