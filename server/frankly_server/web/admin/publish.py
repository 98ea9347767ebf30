# SPDX-License-Identifier: Apache-2.0
"""Publish page with background jobs and published versions, and the page with embedding code."""

from collections.abc import Iterable
from typing import Any

from apiflask import APIBlueprint
from flask import Response, json
from frankly_protocol.audit import ln_up
from frankly_protocol.blocks import Question
from frankly_protocol.canonical import dumps
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.store import Record
from frankly_server.surveys.asked import asks
from frankly_server.surveys.devices import expected_form, is_unstated, warnings_of
from frankly_server.surveys.jobs import published_by
from frankly_server.surveys.live import expected_pending, may_be_without_result, without_result
from frankly_server.surveys.older_versions import larger_minimum, older_links
from frankly_server.surveys.published import form_notes, regret_of
from frankly_server.surveys.translating import untranslated
from frankly_server.web import reading
from frankly_server.web.admin.forms import takes
from frankly_server.web.admin.pages import LANGUAGES, attempt, failed
from frankly_server.web.admin.survey_page import OpenedSurvey, show, survey_view
from frankly_server.web.hosted import files, import_map
from frankly_server.web.searching import without_slot
from frankly_server.web.security import person
from frankly_server.whole_report import cost_words, level_factors


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""
    _add_jobs(routes, services)

    @routes.get("/surveys/<survey_id>/publish")
    @survey_view(services, "viewer")
    def publish_page(survey: OpenedSurvey) -> Response:
        # Long lists of choices take seconds.
        with without_slot(services.analyses):
            return _home(services, survey)

    @routes.get("/surveys/<survey_id>/versions/<int:version>")
    @survey_view(services, "viewer")
    def version_document(survey: OpenedSurvey, version: int) -> Response:
        for document in services.surveys.versions(survey.id):
            if document.version == version:
                return Response(document.payload(), content_type=reading.JSON)
        raise InvalidInput(Problem.NOT_FOUND, "there is no such version", "version")

    @routes.get("/surveys/<survey_id>/embed")
    @survey_view(services, "viewer")
    def embed(survey: OpenedSurvey) -> Response:
        documents = services.surveys.versions(survey.id)
        host = (survey.summary.link or "").partition("/s/")[0]
        modules = import_map(files(), host)
        obstacles = services.surveys.obstacles(survey.id)
        calls = _calls(documents[-1]) if documents else {}
        older = older_links(services.surveys.open_versions(survey.id), survey.summary.version)
        return show(
            "embed.html",
            survey,
            "embed",
            modules=modules,
            obstacles=obstacles,
            older=older,
            **calls,
        )


def _add_jobs(routes: APIBlueprint, services: Services) -> None:
    @routes.post("/surveys/<survey_id>/publish")
    @survey_view(services, "admin")
    @takes()
    def publish(survey: OpenedSurvey) -> Response:
        # The person is read here, because the job ends in a thread without a request.
        by = person()

        def recorder(version: int, status: str) -> Record:
            return services.accounts.recorder(by, f"version {version} {status}", survey.name)

        def act() -> str:
            return survey.path(f"jobs/{services.jobs.start(survey.id, recorder)}")

        return attempt(act, lambda refused: _home(services, survey, refused))

    @routes.get("/surveys/<survey_id>/jobs/<job_id>")
    @survey_view(services, "viewer")
    def job(survey: OpenedSurvey, job_id: str) -> Response:
        row, documents = (
            services.jobs.get(survey.id, job_id),
            services.surveys.versions(survey.id),
        )
        made = published_by(row)
        return show(
            "job.html",
            survey,
            "publish",
            job=row,
            made=made,
            obstacles=services.surveys.obstacles(survey.id),
            # False for the job of an earlier version, whose link is no longer the newest.
            has_new_link=len(documents) > 1 and made == (documents[-1].digest, True),
            older=older_links(services.surveys.open_versions(survey.id), len(documents)),
        )

    @routes.get("/surveys/<survey_id>/jobs/<job_id>/state")
    @survey_view(services, "viewer")
    def job_state(survey: OpenedSurvey, job_id: str) -> Response:
        row = services.jobs.get(survey.id, job_id)
        body = {"state": row.state, "done": row.done, "total": row.total, "detail": row.detail}
        return Response(json.dumps(body), content_type=reading.JSON)

    @routes.post("/surveys/<survey_id>/jobs/<job_id>/cancel")
    @survey_view(services, "admin")
    @takes()
    def cancel(survey: OpenedSurvey, job_id: str) -> Response:
        return attempt(
            lambda: services.jobs.cancel(
                survey.id,
                job_id,
                services.accounts.recorder(person(), "publishing cancelled", survey.name),
            ),
            failed,
            survey.path(f"jobs/{job_id}"),
        )


def _home(
    services: Services, survey: OpenedSurvey, refused: InvalidInput | None = None
) -> Response:
    form, unfit = None, None
    try:
        form = expected_form(survey.definition)
    except InvalidInput as error:  # the draft may have been saved before this check existed
        unfit = error
    # Newest first, like on the page.
    documents = services.surveys.versions(survey.id)
    versions = [(document, warnings_of(document)) for document in documents][::-1]
    if versions:
        newest, warnings = versions[0]
        versions[0] = (
            newest,
            (
                *warnings,
                *without_result(newest, survey.definition.expected_reports),
                *services.surveys.obstacles(survey.id),
            ),
        )
    cells = [len(question.choices) for question in survey.definition.strata]
    next_version = survey.summary.version + 1
    return show(
        "publish.html",
        survey,
        "publish",
        refused,
        versions=versions,
        expected=form,
        unfit=unfit,
        ln_up=ln_up,
        warnings=(
            *(warnings_of(form) if form else ()),
            *may_be_without_result(survey.definition),
            *larger_minimum(documents, survey.definition.min_reports),
            *(
                f"{n} of the texts in {LANGUAGES.get(tag, tag)} are the same as in the first language: "
                "translate them on the page of the questions, if they are not meant to be"
                for tag, n in untranslated(survey.draft).items()
            ),
        ),
        ask=asks(services.surveys.next_version(survey.definition, survey.id)),
        is_unstated=is_unstated,
        cost_words=cost_words,
        level_factors=level_factors,
        regret_of=regret_of,
        form_notes=form_notes,
        waiting=expected_pending(cells, survey.definition.step),
        is_draft_published=services.surveys.is_draft_published(survey.id),
        next_version=next_version,
        older=older_links(services.surveys.open_versions(survey.id), next_version),
    )


def _calls(document: SurveyDocument) -> dict[str, Any]:
    """Return example arguments of `answer` for Python and JavaScript.

    They use the first choices, and the one that an instructed item asks for.
    """
    item, token = document.instructed, document.token is not None
    public = _firsts(document.strata) | ({} if item is None else {item.id: item.answer})
    strata = dumps(public).decode()
    python = [f"strata={strata}"] if public else []
    web = [f"strata: {strata}"] if public else []
    return {
        "answers": dumps(_firsts(document.questions.values())).decode(),
        "python_options": "".join(
            f", {option}" for option in [*python, *(["token=invite"] if token else [])]
        ),
        "web_options": ", { " + ", ".join([*web, *(["token: invite"] if token else [])]) + " }"
        if web or token
        else "",
    }


def _firsts(questions: Iterable[Question]) -> dict[str, str]:
    return {question.id: question.choices[0].id for question in questions}
