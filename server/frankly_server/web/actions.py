# SPDX-License-Identifier: Apache-2.0
"""What people and programs change, with its rules and its line in the audit trail.

Pages and API call the same functions: there is one way of doing a thing.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.accounts import Actor
from frankly_server.keys.access import READER
from frankly_server.services import Services
from frankly_server.store import ApiKeyRow, Record, Transaction
from frankly_server.surveys.definition import SurveyDefinition
from frankly_server.surveys.surveys import ERASED
from frankly_server.web import reading
from frankly_server.web.opened_survey import OpenedSurvey

MOST_INVITATIONS: Final = 5_000
"""Largest number of invitations in one response; `frankly tokens` makes more."""
_MOST_SURVEYS: Final = 200
MOST_KEYS: Final = 100
"""Number of working API keys of an organisation, links to results among them."""
RELEASED: Final = "reports released at once"
"""Action of the audit trail for a release outside the published times."""


def create_survey(
    services: Services, by: Actor, definition: SurveyDefinition, *, is_named: bool = False
) -> str:
    """Store a new survey and return its id. is_named : True to refuse a name that is in use.

    Raises the errors of `Surveys.create`.
    """
    recorder = partial(services.accounts.recorder, by, "survey created")
    return services.surveys.create(definition, by.organisation, recorder, is_named=is_named)


def change_draft(
    services: Services, by: Actor, survey: OpenedSurvey, definition: SurveyDefinition, seen: str
) -> None:
    """Replace a survey's draft. seen : digest of the draft that the new one is based on.

    Raises the errors of `Surveys.redefine`.
    """
    record = services.accounts.recorder(by, "draft changed", survey.name)
    services.surveys.redefine(survey.id, definition, seen, record)


def move(services: Services, by: Actor, survey: OpenedSurvey, move: str) -> None:
    """Pause, resume, close or archive a survey. Raises the errors of `Lifecycle.move`.

    A survey whose last moment has passed is closed before it is archived.
    """
    is_over = survey.state == "closed" and survey.state_row.state != "closed"
    services.lifecycle.move(
        survey.id,
        move,
        lambda state: services.accounts.recorder(by, f"survey {state}", survey.name),
        is_over=is_over,
    )


def erase(
    services: Services, by: Actor, survey: OpenedSurvey, *, is_confirmed: bool, by_typing: str
) -> None:
    """Delete all answers of a survey that is paused or closed.

    is_confirmed : True if the title or name was repeated. by_typing : what has to be repeated, in words.
    Raises InvalidInput: immutable for an open survey, field_type unless it is confirmed.
    """
    # In an open survey the next answer would show when somebody answers.
    if survey.state in ("live", "scheduled"):
        raise InvalidInput(
            Problem.IMMUTABLE, "Nothing was erased: close or pause the survey first.", "name"
        )
    if not is_confirmed:
        raise InvalidInput(
            Problem.FIELD_TYPE, f"Nothing was erased: type {by_typing}, to confirm.", "name"
        )
    record = services.accounts.credential_recorder(by, ERASED, survey.name)
    was_stopped = survey.state_row.state != "open"

    def checked(tx: Transaction) -> None:
        # Somebody may have resumed it meanwhile.
        if was_stopped and tx.survey_states.get(survey.id).state == "open":
            raise InvalidInput(Problem.IMMUTABLE, "Nothing was erased: the survey is open.", "name")
        record(tx)

    services.surveys.erase(survey.id, checked)


def set_stop_rule(
    services: Services,
    by: Actor,
    survey: OpenedSurvey,
    reports: int | None,
    margin: str | None = None,
    rule: str | None = None,
) -> None:
    """Set the number of reports at which a survey closes itself, None for never.

    margin : from which it was computed. rule : the rule in words, for the audit trail. Raises the
    errors of `Lifecycle.stop_at`.
    """
    words = rule or ("none" if reports is None else f"at {reports} reports")
    record = services.accounts.recorder(by, f"stop rule: {words}", survey.name)
    services.lifecycle.stop_at(survey.id, reports, margin, record)


def publish(services: Services, by: Actor, survey: OpenedSurvey) -> str:
    """Start publishing the draft in the background; return the job's id.

    Raises the errors of `Jobs.start`.
    """

    def recorder(version: int, status: str) -> Record:
        return services.accounts.recorder(by, f"version {version} {status}", survey.name)

    return services.jobs.start(survey.id, recorder, by.acted)


def cancel(services: Services, by: Actor, survey: OpenedSurvey, job_id: str) -> None:
    """Stop a job that publishes a survey, unless it has ended. Raises the errors of `Jobs.cancel`."""
    record = services.accounts.recorder(by, "publishing cancelled", survey.name)
    services.jobs.cancel(survey.id, job_id, record)


def release(services: Services, by: Actor, survey: OpenedSurvey) -> int:
    """Release a survey's pending answers now, in full batches; return their number.

    Raises the errors of `Releasing.release_now`.
    """
    names = (survey.name, survey.summary.name)  # commands record the latter

    def asked_at(tx: Transaction) -> str | None:
        events = tx.audit.about(by.organisation, names, 1, RELEASED)
        return events[0].at if events else None

    record = services.accounts.recorder(by, RELEASED, survey.name)
    return services.releasing.release_now(survey.id, record, asked_at)


def asks_for_invites(services: Services, survey_id: str) -> bool:
    """Return True if the newest published version needs an invitation of this server."""
    versions = services.surveys.versions(survey_id)
    rule = versions[-1].token if versions else None
    return rule is not None and bool(rule.invites)


def require_invites(services: Services, survey: OpenedSurvey) -> str:
    """Return the link of a survey that asks for invitations. Raises InvalidInput(immutable)."""
    link = survey.summary.link
    if link is None or not asks_for_invites(services, survey.id):
        raise InvalidInput(
            Problem.IMMUTABLE, "publish a version that asks for an invitation first", "invitations"
        )
    return link


def make_invitations(
    services: Services, by: Actor, survey: OpenedSurvey, count: int, source: str = ""
) -> Sequence[str]:
    """Return codes of new invitations; only their hashes are stored.

    source : the one that they are for, if the survey has sources. Raises InvalidInput: immutable for a
    survey that asks for none, field_type for a number of them outside 1 … 5,000, as
    `intake.invites.require_source`, unauthenticated.
    """
    require_invites(services, survey)
    if not 1 <= count <= MOST_INVITATIONS:
        raise InvalidInput(
            Problem.FIELD_TYPE, f"write a number from 1 to {MOST_INVITATIONS:,}", "count"
        )
    action = f"invitations made{f' for {source}' if source else ''}: {count}"
    record = services.accounts.credential_recorder(by, action, survey.name)
    return services.invites.make(survey.id, count, record, codes=True, source=source)


def revoke_invitations(
    services: Services, by: Actor, survey: OpenedSurvey, code: str | None, source: str = ""
) -> None:
    """Revoke the invitation with this code if it is unused, None for all unused ones, or those of a source.

    Raises InvalidInput: field_type for a mistyped code, unauthenticated.
    """
    record = services.accounts.credential_recorder(by, "invitations revoked", survey.name)
    try:
        services.invites.revoke(survey.id, code, record, source)
    except InvalidInput as refused:
        if refused.problem is not Problem.TOKEN_INVALID:
            raise
        raise InvalidInput(
            Problem.FIELD_TYPE, "this is no code of an invitation: compare it with the list", "code"
        ) from refused


def set_webhook(services: Services, by: Actor, survey: OpenedSurvey, url: str) -> str:
    """Set the address for notifications; return the new secret. Raises like `Webhooks.set`."""
    record = services.accounts.credential_recorder(by, "webhook set", survey.name)
    return services.webhooks.set(survey.id, url, record)


def test_webhook(services: Services, by: Actor, survey: OpenedSurvey) -> None:
    """Send a test message to the address for notifications. Raises like `Webhooks.send_test`."""
    record = services.accounts.credential_recorder(by, "webhook tested", survey.name)
    services.webhooks.send_test(survey.id, record)


def remove_webhook(services: Services, by: Actor, survey: OpenedSurvey) -> None:
    """Remove the address for notifications. Raises InvalidInput(unauthenticated)."""
    record = services.accounts.credential_recorder(by, "webhook removed", survey.name)
    services.webhooks.remove(survey.id, record)


def make_key(
    services: Services, by: Actor, role: str, label: str, surveys: Sequence[str] = ()
) -> str:
    """Return a new API key of the organisation. surveys : ids of those that it opens; () for all.

    Raises InvalidInput: field_type, text_characters, survey_unknown, forbidden for a role with more
    rights than the caller has, immutable if the organisation has `MOST_KEYS` that work, unauthenticated.
    """
    if len(surveys) > _MOST_SURVEYS:
        raise InvalidInput(
            Problem.FIELD_TYPE, f"choose at most {_MOST_SURVEYS} surveys, or none for all", "survey"
        )
    for survey in surveys:
        # Any id may be sent; a key must not give access to other organisations' surveys.
        services.lifecycle.require(reading.survey_id(survey), by.organisation)
    keys = [one for one in services.access.list() if one.organisation == by.organisation]
    # Each key has a limit of its own.
    if sum(one.revoked is None for one in keys) >= MOST_KEYS:
        raise InvalidInput(
            Problem.IMMUTABLE, f"there are {MOST_KEYS} keys that work: revoke some first", "key"
        )
    opened = _opened_words(services, surveys)

    def recorder(prefix: str) -> Record:
        subject = f"{prefix}…, {role}, {opened}: {label}"
        return services.accounts.credential_recorder(by, "API key made", subject)

    return services.access.create(role, label, by.organisation, surveys, recorder, most=by.role)


def revoke_key(services: Services, by: Actor, prefix: str) -> None:
    """Revoke an API key of the organisation.

    Raises InvalidInput: not_found, forbidden for a key with more rights than the caller has,
    unauthenticated.
    """
    # The trail says what it opened, since the list of keys does not last as long.
    known = next((one for one in services.access.list() if one.prefix == prefix), None)
    is_ours = known is not None and known.organisation == by.organisation
    opened = (
        f", {known.role}, {_opened_words(services, known.surveys)}: {known.label}"
        if known is not None and is_ours
        else ""
    )
    record = services.accounts.credential_recorder(by, "API key revoked", f"{prefix}…{opened}")
    services.access.revoke(prefix, by.organisation, record, most=by.role)


def _opened_words(services: Services, surveys: Sequence[str]) -> str:
    """Return which surveys a key opens, in words for the audit trail."""
    if not surveys:
        return "all surveys"
    try:
        names = [services.surveys.summary(one).name.partition("@")[0] for one in surveys[:1]]
    except InvalidInput:
        names = []  # whatever a key opens, it can be revoked
    return (
        f"the survey {names[0]}"
        if len(surveys) == 1 and names
        else f"{len(surveys)} of the surveys"
    )


def result_links(services: Services, survey: OpenedSurvey) -> Sequence[ApiKeyRow]:
    """Return the keys of all links to a survey's results, oldest first, withdrawn ones too."""
    ours, opened = survey.state_row.organisation, (survey.id,)
    return [
        one
        for one in services.access.list()
        if (one.role, one.organisation, one.surveys) == (READER, ours, opened)
    ]


def give_result_link(services: Services, by: Actor, survey: OpenedSurvey, label: str) -> str:
    """Return a new key of the role reader, for a link to a survey's results. label : who gets it.

    Raises InvalidInput(immutable) for a survey that is not published, and the errors of `make_key`.
    """
    if not survey.summary.version:
        raise InvalidInput(
            Problem.IMMUTABLE, "there is nothing to share yet: publish the survey first", "label"
        )
    return make_key(services, by, READER, label, [survey.id])


def withdraw_result_link(services: Services, by: Actor, survey: OpenedSurvey, prefix: str) -> None:
    """Revoke the key of a link to a survey's results.

    Raises InvalidInput(not_found) for any other key, and the errors of `revoke_key`.
    """
    if prefix not in (one.prefix for one in result_links(services, survey)):
        raise InvalidInput(Problem.NOT_FOUND, "this survey has no such link", "prefix")
    revoke_key(services, by, prefix)
