# SPDX-License-Identifier: Apache-2.0
"""Draft pages: list of surveys, new survey, questions and texts, and the draft as a file."""

from functools import partial

from apiflask import APIBlueprint
from flask import Response, request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.surveys import editing, survey_templates
from frankly_server.surveys.definition import SurveyDefinition, parse_definition, parse_value
from frankly_server.web.admin.pages import attempt, field, lines, render
from frankly_server.web.admin.survey_page import keep, mine, opened, show, store
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
                "new.html",
                status=refused.problem.status,
                templates=survey_templates.templates(),
                error=refused,
                form=request.form,
            ),
        )


def _first_draft() -> SurveyDefinition:
    """Return the first draft: from a template, a file or the form's one question."""
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
    @needs("viewer")
    def questions(survey_id: str) -> Response:
        return show("questions.html", opened(services, survey_id), "questions")

    @routes.post("/surveys/<survey_id>/questions")
    @needs("admin")
    def add_question(survey_id: str) -> Response:
        survey = opened(services, survey_id)

        def act() -> str:
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
            return survey.path("questions")

        return attempt(
            act,
            lambda refused: show("questions.html", survey, "questions", refused, form=request.form),
        )

    @routes.post("/surveys/<survey_id>/questions/<question_id>/remove")
    @needs("admin")
    def remove_question(survey_id: str, question_id: str) -> Response:
        survey = opened(services, survey_id)

        def act() -> str:
            store(services, survey, editing.remove_question(survey.draft, question_id))
            return survey.path("questions")

        return attempt(act, lambda refused: show("questions.html", survey, "questions", refused))

    @routes.post("/surveys/<survey_id>/text")
    @needs("admin")
    def change_text(survey_id: str) -> Response:
        survey = opened(services, survey_id)

        def act() -> str:
            draft, language = survey.draft, survey.definition.languages[0]
            draft["title"][language] = field("title")
            draft["min_reports"] = field("min_reports")
            draft.pop("closes", None)
            if field("closes"):
                # The form has a date: the survey closes at the end of that day, UTC.
                draft["closes"] = field("closes", 10) + "T23:59:59Z"
            if field("consent"):
                draft["consent"] = (draft.get("consent") or {}) | {language: field("consent")}
            store(services, survey, draft)
            return survey.path("questions")

        return attempt(
            act,
            lambda refused: show(
                "questions.html", survey, "questions", refused, about=request.form
            ),
        )


def _add_file(routes: APIBlueprint, services: Services) -> None:
    @routes.get("/surveys/<survey_id>/file")
    @needs("viewer")
    def survey_file(survey_id: str) -> Response:
        survey = opened(services, survey_id)
        return show("file.html", survey, "file", text=survey.definition.to_yaml().decode())

    @routes.post("/surveys/<survey_id>/file")
    @needs("admin")
    def replace_by_file(survey_id: str) -> Response:
        survey, text = opened(services, survey_id), request.form.get("file", "")

        def act() -> str:
            # Lone surrogates are encoded here, and the parser then refuses them as invalid UTF-8.
            definition = parse_definition(text.encode("utf-8", "surrogatepass"))
            if definition.name != survey.name:
                message = (
                    f"this survey is called {survey.name}: keep the name, or make a new "
                    "survey from the file"
                )
                raise InvalidInput(Problem.DEFINITION_INVALID, message, "name")
            keep(services, survey, definition)
            return survey.path("questions")

        return attempt(act, lambda refused: show("file.html", survey, "file", refused, text=text))
