# SPDX-License-Identifier: Apache-2.0
"""Operations on surveys: drafts from survey files, dry runs, versions, states, erasure."""

from contextlib import suppress
from dataclasses import replace
from json import loads
from typing import Final

from flask import request
from frankly_protocol.clock import format_time
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from pydantic import BaseModel

from frankly_server.intake.times import next_release
from frankly_server.services import Services
from frankly_server.store.surveys import full_name
from frankly_server.surveys.changes import differences
from frankly_server.surveys.definition import SurveyDefinition
from frankly_server.surveys.drafting import window_of
from frankly_server.surveys.dry_run import draft_json, version_json
from frankly_server.surveys.obstacles import require_accepting
from frankly_server.surveys.older_versions import larger_minimum
from frankly_server.surveys.opened import listed
from frankly_server.surveys.signed_draft import shown_definition
from frankly_server.surveys.surveys import DraftChanged
from frankly_server.surveys.trial import TRIAL_S
from frankly_server.web import actions, reading
from frankly_server.web.management import models
from frankly_server.web.management.operations import Call, Operations, Reply
from frankly_server.web.management.survey_file import (
    FILE,
    FILE_PROBLEMS,
    MOST_BYTES,
    YAML,
    definition_of,
)
from frankly_server.web.openapi import Query
from frankly_server.web.opened_survey import OpenedSurvey, opened
from frankly_server.web.searching import search_once, without_slot

_MOST_VERSIONS: Final = 100
"""Number of versions in a list; each document is read."""
_FORMATS: Final = ("json", "yaml")
_IF_MATCH: Final = Query(
    "If-Match",
    {"type": "string"},
    "ETag of the draft that the new one is based on, or * for any.",
    place="header",
)
_TAG: Final = {"ETag": "The draft's digest, for If-Match."}
_TRIES: Final = 5
_DESIGN_PROBLEMS: Final = (
    Problem.BUDGET_EXCEEDED,
    Problem.IDENTITY_MECHANISM,
    Problem.MECHANISM_NOT_CERTIFIED,
    Problem.NOT_IDENTIFIABLE,
    Problem.OPTIMISER_LIMIT,
)


def add_to(api: Operations) -> None:
    """Add the operations."""
    _add_drafts(api)
    _add_dry_run(api)
    _add_versions(api)
    _add_states(api)


def _add_drafts(api: Operations) -> None:
    @api.add(
        "POST",
        "/v1/surveys",
        "create_survey",
        role="admin",
        answer=(201, "The new survey.", models.SurveyDetails),
        problems=(*FILE_PROBLEMS, Problem.TAKEN),
        headers={"Location": "The survey's address."},
        body=FILE,
        max_bytes=MOST_BYTES,
    )
    def create(call: Call) -> Reply:
        """Create a survey from a survey file; its name must be new in the organisation."""
        survey_id = actions.create_survey(
            call.services, call.by, definition_of(call), is_named=True
        )
        survey = opened(call.services, survey_id, call.by.organisation)
        return Reply(_model(call.services, survey), {"Location": f"/v1/surveys/{survey_id}"})

    @api.add(
        "GET",
        "/v1/surveys/<survey_id>",
        "survey",
        role="analyst",
        answer=(200, "The survey.", models.SurveyDetails),
    )
    def survey(call: Call) -> BaseModel:
        """Return a survey: its state, link and figures."""
        return _model(call.services, call.survey)

    @api.add(
        "GET",
        "/v1/surveys/<survey_id>/draft",
        "draft",
        role="analyst",
        answer=(200, "The draft as a survey file; its ETag is its digest.", models.SurveyFile),
        also={200: [YAML]},
        headers=_TAG,
        query=(
            Query(
                "format",
                {"type": "string", "enum": list(_FORMATS), "default": "json"},
                "JSON or YAML.",
            ),
        ),
    )
    def draft(call: Call) -> Reply:
        """Return a survey's draft, as it is changed with PUT."""
        kind = call.query.get("format", "json")
        if kind not in _FORMATS:
            raise InvalidInput(
                Problem.FIELD_TYPE, f"the formats are {', '.join(_FORMATS)}", "format"
            )
        definition = call.survey.definition
        headers = {"ETag": f'"{definition.digest}"'}
        if kind == "yaml":
            return Reply(definition.to_yaml(), headers, YAML)
        return Reply(definition.to_json().encode(), headers)

    @api.add(
        "PUT",
        "/v1/surveys/<survey_id>/draft",
        "change_draft",
        role="admin",
        answer=(200, "The survey with its new draft.", models.SurveyDetails),
        problems=(
            *FILE_PROBLEMS,
            Problem.IMMUTABLE,
            Problem.PRECONDITION_FAILED,
            Problem.PRECONDITION_REQUIRED,
        ),
        body=FILE,
        max_bytes=MOST_BYTES,
        query=(_IF_MATCH,),
        headers=_TAG,
    )
    def change_draft(call: Call) -> Reply:
        """Replace a survey's draft by a survey file; published versions do not change.

        The name stays. `If-Match` names the draft on which the new one is based, so that nobody's
        change is lost.
        """
        definition = definition_of(call)
        name = call.survey.name
        if definition.name != name:
            raise InvalidInput(
                Problem.DEFINITION_INVALID, f"this survey's name is {name} and stays so", "name"
            )
        _redefine(call, definition)
        # As it was stored: somebody may have changed it since.
        stored = replace(_opened_again(call), read=lambda: definition)
        return Reply(_model(call.services, stored), {"ETag": f'"{definition.digest}"'})


def _add_dry_run(api: Operations) -> None:
    @api.add(
        "POST",
        "/v1/dry-run",
        "dry_run",
        role="admin",
        answer=(200, "What would change, and what publishing would say.", models.DryRun),
        problems=(*FILE_PROBLEMS, *_DESIGN_PROBLEMS, Problem.CLOSED),
        body=FILE,
        max_bytes=MOST_BYTES,
        is_scoped=True,
        is_search=True,
    )
    def dry_run(call: Call) -> BaseModel:
        """Return what storing a survey file would change, and what publishing it would say.

        Nothing is stored. The survey of the file's name is compared, if there is one. The draft is
        designed within 20 seconds, after which `optimiser_limit` is raised; publishing searches longer, and
        also says how near the design of a form is to the best possible.
        """
        services = call.services
        with without_slot(services.managing):
            definition = definition_of(call)
            survey = _named(call, definition.name)
            window_of(definition, services.surveys.now())
            if survey is not None:
                with services.database.reading("survey state") as tx:
                    require_accepting(tx, survey.id)
            following = services.surveys.next_version(definition, survey.id if survey else None)
            versions = services.surveys.versions(survey.id) if survey else ()
        asked = following.form.ask if following.form else None
        # As of today's first second, so that the same draft is designed once a day only.
        today = services.surveys.now().replace(hour=0, minute=0, second=0, microsecond=0)
        url = f"{services.settings.public_url.rstrip('/')}/v1/surveys/{'0' * 32}/reports"
        shown = shown_definition(definition, asked)
        said = dict(search_once(services, draft_json, shown, today, url, seconds=TRIAL_S))
        said["warnings"] = [*said["warnings"], *larger_minimum(versions, definition.min_reports)]
        diff = differences(survey.draft if survey else {}, loads(definition.to_json()))
        status = "created" if survey is None else "updated" if diff else "unchanged"
        about = {"status": status, "survey": survey.id if survey else None, "name": definition.name}
        return models.DryRun.model_validate({**about, "diff": diff, **said})


def _add_versions(api: Operations) -> None:
    @api.add(
        "GET",
        "/v1/surveys/<survey_id>/versions",
        "versions",
        role="analyst",
        answer=(200, "The versions.", models.SurveyVersions),
        problems=(Problem.FIELD_TYPE,),
        query=(
            Query(
                "after",
                {"type": "integer", "minimum": 0, "default": 0},
                "`next` of the page before: the number of its last version.",
            ),
            Query(
                "limit",
                {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": _MOST_VERSIONS,
                    "default": _MOST_VERSIONS,
                },
                "Number of versions per page.",
            ),
        ),
    )
    def versions(call: Call) -> BaseModel:
        """Return a survey's published versions, oldest first, a page at a time."""
        services, survey = call.services, call.survey
        after, limit = reading.whole(call.query.get("after"), "after"), call.limit(_MOST_VERSIONS)
        if not survey.summary.version:
            return models.SurveyVersions(versions=[], next=None)
        # The column takes no larger numbers.
        documents, following = services.surveys.page_of_versions(
            survey.id, min(after or 0, 2**31 - 1), limit
        )
        numbers = {row.digest: row.n for row in services.log.audit(survey.id)}
        return models.SurveyVersions(
            versions=[
                models.ListedVersion(
                    version=one.version,
                    digest=one.digest,
                    link=services.surveys.link(survey.id, one.digest),
                    issued=format_time(one.issued),
                    opens=format_time(one.opens),
                    closes=format_time(one.closes),
                    n=numbers.get(one.digest, 0),
                )
                for one in documents
            ],
            next=following,
        )

    @api.add(
        "GET",
        "/v1/surveys/<survey_id>/versions/<int:version>",
        "version",
        role="analyst",
        answer=(200, "The version and its promises.", models.SurveyVersion),
        problems=(Problem.NOT_FOUND, Problem.OPTIMISER_LIMIT),
        is_search=True,
    )
    def one_version(call: Call, version: int) -> BaseModel:
        """Return a published version: its link, what it promises and what publishing said of it."""
        services, survey = call.services, call.survey
        with without_slot(services.managing):
            versions = services.surveys.versions(survey.id)
            people = survey.definition.expected_reports
        for document in versions:
            if document.version == version:
                values = search_once(services, version_json, document, people, seconds=TRIAL_S)
                link = services.surveys.link(survey.id, document.digest)
                return models.SurveyVersion.model_validate({**values, "link": link})
        raise InvalidInput(Problem.NOT_FOUND, "there is no such version", "version")


def _add_states(api: Operations) -> None:
    @api.add(
        "POST",
        "/v1/surveys/<survey_id>/move",
        "move_survey",
        role="admin",
        answer=(200, "The survey in its new state.", models.SurveyDetails),
        problems=(Problem.IMMUTABLE,),
        body={reading.JSON: models.MoveRequest},
    )
    def move(call: Call) -> BaseModel:
        """Pause, resume, close or archive a survey. Closing and archiving cannot be undone."""
        actions.move(call.services, call.by, call.survey, call.read(models.MoveRequest).move)
        return _again(call)

    @api.add(
        "POST",
        "/v1/surveys/<survey_id>/erase",
        "erase_answers",
        role="admin",
        answer=(200, "The survey without answers.", models.SurveyDetails),
        problems=(Problem.IMMUTABLE,),
        body={reading.JSON: models.EraseRequest},
    )
    def erase(call: Call) -> BaseModel:
        """Delete all answers of a paused or closed survey, and their counts. This cannot be undone.

        Its draft and its signed documents stay. Earlier backups and exports still contain answers.
        """
        survey, sent = call.survey, call.read(models.EraseRequest).name
        wanted = f"the name, {survey.name}"
        actions.erase(
            call.services, call.by, survey, is_confirmed=sent == survey.name, by_typing=wanted
        )
        return _again(call)

    @api.add(
        "PUT",
        "/v1/surveys/<survey_id>/stop-rule",
        "set_stop_rule",
        role="admin",
        answer=(200, "The survey with its stop rule.", models.SurveyDetails),
        problems=(Problem.IMMUTABLE,),
        body={reading.JSON: models.StopRuleRequest},
    )
    def stop_rule(call: Call) -> BaseModel:
        """Set the number of released reports at which a survey closes itself."""
        reports = call.read(models.StopRuleRequest).reports
        actions.set_stop_rule(call.services, call.by, call.survey, reports)
        return _again(call)


def _redefine(call: Call, definition: SurveyDefinition) -> None:
    """Replace the draft, if If-Match allows it.

    Raises InvalidInput: precondition_required without the header, precondition_failed if it names
    other drafts than the stored one.
    """
    tags = request.if_match
    if "If-Match" not in request.headers:
        raise InvalidInput(
            Problem.PRECONDITION_REQUIRED,
            "send If-Match with the ETag of the draft that you have read, or * to replace any",
            "If-Match",
        )
    survey = call.survey
    # With * whatever is stored is replaced, also what somebody stores at the same moment.
    for _ in range(_TRIES if tags.star_tag else 1):
        current = survey.definition.digest
        if not tags.contains(current):
            break
        with suppress(DraftChanged):
            actions.change_draft(call.services, call.by, survey, definition, current)
            return
        survey = _opened_again(call)
    raise InvalidInput(
        Problem.PRECONDITION_FAILED,
        "the stored draft is none of those that If-Match names: read it again",
        "If-Match",
    )


def _named(call: Call, name: str) -> OpenedSurvey | None:
    """Return the organisation's survey of this name. Raises InvalidInput(forbidden) unless the key opens it."""
    services, full = call.services, full_name(name, call.by.organisation)
    with services.database.reading("find survey") as tx:
        row = tx.surveys.by_name(full)
    if call.by.principal.surveys and (row is None or row.id not in call.by.principal.surveys):
        raise InvalidInput(Problem.FORBIDDEN, "the key does not open a survey of this name", "name")
    return None if row is None else opened(services, row.id, call.by.organisation)


def _again(call: Call) -> models.SurveyDetails:
    """Return the survey after a change."""
    return _model(call.services, _opened_again(call))


def _opened_again(call: Call) -> OpenedSurvey:
    return opened(call.services, call.survey.id, call.by.organisation)


def _model(services: Services, survey: OpenedSurvey) -> models.SurveyDetails:
    summary, definition, now = survey.summary, survey.definition, services.surveys.now()
    # Each document is read once: it can take a second.
    standing = services.surveys.standing(summary, definition)
    times = [next_release(one.release_every, now) for one in standing.open_versions]
    short = listed(services.database, summary, survey.state_row)
    return models.SurveyDetails(
        **short.model_dump(),
        link=summary.link,
        closes=format_time(summary.last) if summary.last else None,
        draft=definition.digest,
        is_published=standing.is_draft_published,
        obstacles=list(standing.obstacles),
        stop_at=survey.state_row.stop_reports,
        min_reports=definition.min_reports,
        next_release=format_time(min(times)) if times else None,
    )
