# SPDX-License-Identifier: Apache-2.0
"""Publish page with the survey's summary, background jobs and published versions; the page with embedding code."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from json import loads
from typing import Any

from apiflask import APIBlueprint
from flask import Response, json, request
from frankly_design.requests.whole_report import cost_words
from frankly_protocol.audit import ln_up
from frankly_protocol.blocks import Question
from frankly_protocol.canonical import dumps
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.surveys import draft_changes
from frankly_server.surveys.asked import asks
from frankly_server.surveys.devices import expected_form, is_unstated, warnings_of
from frankly_server.surveys.drafting import window_of
from frankly_server.surveys.jobs import published_by, reason_of
from frankly_server.surveys.live import may_be_without_result, without_result
from frankly_server.surveys.older_versions import larger_minimum, older_links
from frankly_server.surveys.published import form_notes, regret_of
from frankly_server.surveys.searches import Busy
from frankly_server.surveys.summary import Summary, document_summary
from frankly_server.surveys.translating import untranslated
from frankly_server.surveys.trial import TRIAL_S, wanted_pairs
from frankly_server.surveys.verdicts import MEANINGS
from frankly_server.web import actions, reading
from frankly_server.web.admin.draft_preview import designed
from frankly_server.web.admin.forms import takes
from frankly_server.web.admin.pages import LANGUAGES, attempt, failed
from frankly_server.web.admin.survey_page import show, survey_view
from frankly_server.web.hosted import files, import_map
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.searching import search_once, without_slot
from frankly_server.web.security import person


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""
    _add_jobs(routes, services)

    @routes.get("/surveys/<survey_id>/publish")
    @survey_view(services, "viewer")
    def publish_page(survey: OpenedSurvey) -> Response:
        reading.query(("version",))
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
        older = _older(services, survey, documents) if documents else ""
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
        def act() -> str:
            return survey.path(f"jobs/{actions.publish(services, person(), survey)}")

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
            reason=reason_of(row),
            obstacles=services.surveys.obstacles(survey.id),
            # False for the job of an earlier version, whose link is no longer the newest.
            has_new_link=len(documents) > 1 and made == (documents[-1].digest, True),
            older=_older(services, survey, documents) if documents else "",
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
            lambda: actions.cancel(services, person(), survey, job_id),
            failed,
            survey.path(f"jobs/{job_id}"),
        )


@dataclass(frozen=True, slots=True)
class _Summarised:
    """Summary of the draft or of a version. version : its number, 0 for the draft. refused : why there is none."""

    version: int
    summary: Summary | None = None
    refused: InvalidInput | None = None

    @property
    def is_busy(self) -> bool:
        """True if the same page opened later has the summary."""
        return isinstance(self.refused, Busy)

    @property
    def is_unfit(self) -> bool:
        """True if publishing the draft would be refused too; it searches longer than this page."""
        slow = self.refused is not None and self.refused.problem is Problem.OPTIMISER_LIMIT
        return self.refused is not None and not slow and not self.is_busy


def _home(
    services: Services, survey: OpenedSurvey, refused: InvalidInput | None = None
) -> Response:
    # Newest first, like on the page.
    documents = services.surveys.versions(survey.id)[::-1]
    is_published = services.surveys.is_draft_published(survey.id)
    is_offered = not is_published and survey.state_row.state not in ("closed", "archived")
    draft = _of_draft(services, survey) if is_offered else None
    shown = _of_version(services, survey, documents, is_offered=is_offered)
    # Long lists of choices take seconds.
    with without_slot(services.analyses):
        return show(
            "publish.html",
            survey,
            "publish",
            refused,
            draft=draft,
            shown=shown,
            versions=list(_with_warnings(services, survey, documents, shown)),
            warnings=list(_draft_warnings(survey, draft, documents)),
            changes=_changes(services, survey) if draft and documents else None,
            ask=asks(services.surveys.next_version(survey.definition, survey.id)),
            ln_up=ln_up,
            is_unstated=is_unstated,
            cost_words=cost_words,
            regret_of=regret_of,
            form_notes=form_notes,
            meanings=MEANINGS,
            is_draft_published=is_published,
            next_version=survey.summary.version + 1,
            older=older_links(
                services.surveys.open_versions(survey.id),
                survey.summary.version + 1,
                survey.definition.drawn_questions,
            ),
        )


def _of_draft(services: Services, survey: OpenedSurvey) -> _Summarised:
    try:
        expected_form(survey.definition)  # the draft may have been saved before this check existed
        window_of(survey.definition, services.surveys.now())
        # The document of the preview, so that both pages say the same.
        return _Summarised(0, _summary(services, survey, designed(services, survey)))
    except InvalidInput as refused:
        return _Summarised(0, refused=refused)


def _summary(services: Services, survey: OpenedSurvey, document: SurveyDocument) -> Summary:
    people, pairs = survey.definition.expected_reports, wanted_pairs(survey.definition)
    return search_once(
        services, document_summary, document.payload(), people, pairs, seconds=TRIAL_S
    )


def _of_version(
    services: Services,
    survey: OpenedSurvey,
    documents: Sequence[SurveyDocument],
    *,
    is_offered: bool,
) -> _Summarised | None:
    """Return the version that the address asks for, or else the newest one if no draft is offered."""
    number = reading.whole(request.args.get("version") or None, "version")
    if number is None and is_offered:
        return None
    for document in documents:
        if number in (document.version, None):
            try:
                return _Summarised(document.version, _summary(services, survey, document))
            except InvalidInput as refused:
                return _Summarised(document.version, refused=refused)
    return None


def _with_warnings(
    services: Services,
    survey: OpenedSurvey,
    documents: Sequence[SurveyDocument],
    shown: _Summarised | None,
) -> Iterator[tuple[SurveyDocument, tuple[str, ...]]]:
    for document in documents:
        warnings = warnings_of(document, in_nats=False)
        if document is documents[0]:
            # The summary of a version names these questions in its table.
            if shown is None or shown.version != document.version or shown.summary is None:
                warnings += without_result(document, survey.definition.expected_reports)
            warnings += tuple(services.surveys.obstacles(survey.id))
        yield document, warnings


def _draft_warnings(
    survey: OpenedSurvey, draft: _Summarised | None, documents: Sequence[SurveyDocument]
) -> Iterator[str]:
    if draft is None:
        return
    if draft.summary is not None:
        yield from draft.summary.warnings
    elif not draft.is_unfit:
        yield from warnings_of(expected_form(survey.definition), in_nats=False)
        yield from may_be_without_result(survey.definition)
    yield from larger_minimum(documents, survey.definition.min_reports)
    for tag, n in untranslated(survey.draft).items():
        yield (
            f"{n} of the texts in {LANGUAGES.get(tag, tag)} are the same as in the first language: "
            "translate them on the page of the questions, if they are not meant to be"
        )


def _changes(services: Services, survey: OpenedSurvey) -> list[str] | None:
    """Return what differs from the newest version, None if its draft is not kept any more."""
    before = services.surveys.published_draft(survey.id)
    if before is None:
        return None
    # A change of the page's look needs no new version.
    drafts = [
        loads(one.model_copy(update={"page": None}).to_json())
        for one in (before, survey.definition)
    ]
    return draft_changes.summary(*drafts)


def _older(services: Services, survey: OpenedSurvey, documents: Sequence[SurveyDocument]) -> str:
    """Return the sentence about links that are older than that of the newest version."""
    newest, opened = documents[-1], services.surveys.open_versions(survey.id)
    return older_links(opened, newest.version, newest.questions.values())


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
