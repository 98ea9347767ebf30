# SPDX-License-Identifier: Apache-2.0
"""Helpers for the pages of a survey: access, state, draft and tabs."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final

from flask import Response, request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.store import AuditEvent
from frankly_server.surveys.definition import SurveyDefinition, parse_value
from frankly_server.surveys.editing import Draft
from frankly_server.web import actions
from frankly_server.web.admin.forms import by_key, field
from frankly_server.web.admin.pages import render
from frankly_server.web.opened_survey import OpenedSurvey, every_survey, opened
from frankly_server.web.security import needs, person

_View = Callable[..., Response]
Tabs = tuple[tuple[str, str, str], ...]
PLACES: Final[dict[str, Tabs]] = {
    "Design": (
        ("questions", "1 Questions", "viewer"),
        ("protection", "2 Protection", "viewer"),
        ("try", "3 Try it", "viewer"),
        ("publish", "4 Publish", "viewer"),
        ("plan", "Plan", "viewer"),
        ("margins", "Margins", "viewer"),
        ("file", "File", "viewer"),
    ),
    "Run": (
        ("", "Overview", "viewer"),
        ("invitations", "Invitations", "admin"),
        ("answers", "Answers", "viewer"),
        ("results", "Results", "viewer"),
        ("embed", "Embed", "viewer"),
        ("webhook", "Webhook", "admin"),
    ),
}
"""The two places of a survey, each with its pages: last part of the path, name, and least role."""


def survey_view(services: Services, role: str) -> Callable[[_View], _View]:
    """Return a decorator for the views of one survey, for people with a role (see `needs`).

    The view receives the opened survey instead of the id in the path.
    """

    def wrap(view: _View) -> _View:
        @needs(role)
        @wraps(view)
        def with_survey(survey_id: str, **named: Any) -> Response:
            return view(opened(services, survey_id, person().organisation), **named)

        return with_survey

    return wrap


def last_events(
    services: Services, survey: OpenedSurvey, limit: int = 1, action: str | None = None
) -> Sequence[AuditEvent]:
    """Return the newest events of the audit trail about a survey. action : only these."""
    # Commands record the name in the database, pages the name within the organisation.
    names = (survey.name, survey.summary.name)
    return services.accounts.about(person().organisation, names, limit, action)


def mine(services: Services) -> list[OpenedSurvey]:
    """Return every survey of the caller's organisation, sorted by name."""
    return every_survey(services, person().organisation)


def store(services: Services, survey: OpenedSurvey, draft: Draft) -> None:
    """Store an edited draft like `keep`. Raises InvalidInput, also for an invalid draft.

    Raises InvalidInput(unsupported) if the questions of a survey with arms are edited: two arms may
    have questions of one id, which the pages cannot tell apart.
    """
    if any(
        _without_texts(draft.get(name)) != _without_texts(survey.draft.get(name))
        for name in ("strata", "blocks", "form", "arms")
    ):
        require_no_arms(survey)
    keep(services, survey, parse_value(draft))


def require_no_arms(survey: OpenedSurvey) -> None:
    """Raise InvalidInput(unsupported) for a survey with arms, whose questions are edited in its file."""
    if survey.definition.arms:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "this survey has arms: change its questions and their protection on the page File",
        )


def _without_texts(value: Any) -> Any:
    """Return a part of a draft without the words of questions and choices, which translations change."""
    if isinstance(value, dict):
        return {k: _without_texts(v) for k, v in value.items() if k not in ("text", "label")}
    return [_without_texts(one) for one in value] if isinstance(value, list) else value


def keep(services: Services, survey: OpenedSurvey, definition: SurveyDefinition) -> None:
    """Store a definition as the survey's draft and record the change in the audit trail.

    Raises InvalidInput for an invalid definition, and InvalidInput(immutable) if the draft has
    changed since the form was shown.
    """
    # The form's `seen` is the digest of the displayed draft. Because of it, changes in one tab
    # cannot silently overwrite changes in another.
    actions.change_draft(
        services, person(), survey, definition, field("seen") or survey.definition.digest
    )


def show(
    template: str,
    survey: OpenedSurvey,
    tab: str,
    refused: InvalidInput | None = None,
    *,
    status: int = 200,
    **values: Any,
) -> Response:
    """Render a page of a survey; for a refused form, with the HTTP status of the refusal."""
    # A refused form is still based on the draft that it showed. After `immutable`, the page
    # mentions the newer draft, so the next save may replace the newer draft.
    # So is a form that was only looked at (the trial of a protection).
    uses_current = (
        request.method != "POST" if refused is None else refused.problem is Problem.IMMUTABLE
    )
    base_digest = (
        survey.definition.digest if uses_current else field("seen") or survey.definition.digest
    )
    place = next(name for name, tabs in PLACES.items() if tab in (one for one, *_ in tabs))
    values |= {"places": PLACES, "in_place": place, "seen": base_digest}
    return render(template, refused, status=status, survey=survey, tab=tab, **values)


def by_language(survey: OpenedSurvey, name: str) -> dict[str, str]:
    """Return a form's text in each language of the survey, from the fields `name-language`."""
    return by_key(f"{name}-", survey.definition.languages)


def asked_part(survey: OpenedSurvey) -> str:
    """Return the id of the part in the form or query, or of the first part if there is none.

    Raises InvalidInput(survey_unknown) for any other name.
    """
    ids = [name for name, _ in survey.parts]
    # The address of a form may name another part than the form itself.
    sent = request.form if request.method == "POST" else request.args
    part = sent.get("block", ids[0])
    if part not in ids:
        raise InvalidInput(Problem.SURVEY_UNKNOWN, "there is no such question", "block")
    return part
