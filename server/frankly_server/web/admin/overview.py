# SPDX-License-Identifier: Apache-2.0
"""List of surveys, and a survey's overview: its link, answers, results, next step and state."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

from apiflask import APIBlueprint
from flask import Response, request
from frankly_protocol.clock import parse_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.accounts import may
from frankly_server.intake.times import next_release
from frankly_server.services import Services
from frankly_server.store import AuditEvent
from frankly_server.store.survey_states import MAIN
from frankly_server.surveys.definition import SurveyDefinition, parse_value
from frankly_server.surveys.live import band, received_band
from frankly_server.surveys.older_versions import older_links
from frankly_server.surveys.survey_state import MOVES
from frankly_server.surveys.surveys import ERASED
from frankly_server.web import actions
from frankly_server.web.admin.forms import field, takes, ticked
from frankly_server.web.admin.invitations import qr_code, qr_file
from frankly_server.web.admin.pages import attempt, go, render
from frankly_server.web.admin.survey_page import last_events, mine, show, survey_view
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.results.asked import Asked
from frankly_server.web.results.found import found_of
from frankly_server.web.results.sections import EstimatesTable
from frankly_server.web.searching import without_slot
from frankly_server.web.security import PATH, needs, person

_PERMANENT: Final = ("close", "archive")
_LINES: Final = 20
"""Largest number of results on the overview; the estimates page has them all."""
_DAYS: Final = 14
_EVENTS: Final = 5
_WAIT_S: Final = 3.0
_JUST: Final = timedelta(seconds=20)


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""
    _add_list(routes, services)
    _add_changes(routes, services)

    @routes.get("/surveys/<survey_id>")
    @survey_view(services, "viewer")
    def overview(survey: OpenedSurvey) -> Response:
        return _page(services, survey)

    @routes.get("/surveys/<survey_id>/qr.png")
    @survey_view(services, "viewer")
    def qr_picture(survey: OpenedSurvey) -> Response:
        response = Response(qr_file(_link(survey)), content_type="image/png")
        response.headers["Content-Disposition"] = f'attachment; filename="{survey.name}.png"'
        return response

    @routes.get("/surveys/<survey_id>/notice")
    @survey_view(services, "viewer")
    def notice(survey: OpenedSurvey) -> Response:
        link = _link(survey)
        document = services.surveys.versions(survey.id)[-1]
        return show(
            "notice.html",
            survey,
            "",
            document=document,
            link=link,
            picture=qr_code(link, fluid=True),
        )


def _link(survey: OpenedSurvey) -> str:
    if survey.summary.link is None:
        raise InvalidInput(Problem.NOT_FOUND, "there is no link before the survey is published")
    return survey.summary.link


def _add_list(routes: APIBlueprint, services: Services) -> None:
    @routes.get("/surveys")
    @needs("viewer")
    def surveys() -> Response:
        released, found = services.intake.released(), mine(services)
        listed = [
            (one, n := released.get(one.id, 0), next_step(one, n, person().role)) for one in found
        ]
        return render("surveys.html", surveys=listed, overdue=_overdue_backup(services))


def _overdue_backup(services: Services) -> str | None:
    """Return a warning for owners of the main organisation if no backup was made for long."""
    by, allowed = person(), services.settings.backup_days
    if by.organisation != MAIN or not may(by.role, "owner") or not allowed:
        return None
    newest, days = services.accounts.backed_up()
    if days < allowed:
        return None
    found = (
        f"The newest backup on record is {days} days old."
        if newest
        else f"No backup is on record in the {days} days since the first entry of the audit trail."
    )
    return (
        f"{found} If the database is lost, so are its surveys and answers: whoever "
        "operates this server can run `frankly backup create` every day."
    )


def _add_changes(routes: APIBlueprint, services: Services) -> None:
    @routes.post("/surveys/<survey_id>/move")
    @survey_view(services, "admin")
    @takes("move", "sure")
    def move(survey: OpenedSurvey) -> Response:
        return attempt(
            lambda: _move(services, survey, field("move")),
            lambda refused: _page(services, survey, refused),
            survey.path(),
        )

    @routes.post("/surveys/<survey_id>/erase")
    @survey_view(services, "admin")
    @takes("name")
    def erase(survey: OpenedSurvey) -> Response:
        def act() -> None:
            # Phones begin a field with a capital; browsers send lines and blanks of a title as they are.
            typed = " ".join(field("name").casefold().split())
            is_title = typed in (survey.name, " ".join(survey.title.casefold().split()))
            wanted = f"the title, {survey.title}"
            actions.erase(services, person(), survey, is_confirmed=is_title, by_typing=wanted)

        return attempt(act, lambda refused: _page(services, survey, refused), survey.path())

    @routes.post("/surveys/<survey_id>/duplicate")
    @survey_view(services, "admin")
    @takes()
    def duplicate(survey: OpenedSurvey) -> Response:
        survey_id = actions.create_survey(services, person(), _copy(survey))
        return go(f"{PATH}/surveys/{survey_id}/questions")


def _move(services: Services, survey: OpenedSurvey, move: str) -> None:
    """Change the survey's state. Raises InvalidInput(field_missing) unless the form says it is meant."""
    if move in _PERMANENT and not ticked("sure"):
        raise InvalidInput(
            Problem.FIELD_MISSING, f"Tick that you mean it: “{move}” cannot be undone.", "sure"
        )
    actions.move(services, person(), survey, move)


def _copy(survey: OpenedSurvey) -> SurveyDefinition:
    """Return a survey's draft under another name and title, without its times and a panel's addresses."""
    draft = survey.draft
    # Another study has another code: the first one's would pay for it.
    if page := draft.get("page"):
        draft["page"] = {k: v for k, v in page.items() if k not in ("return_to", "completion_code")}
    for name in ("opens", "closes", "expires"):
        draft.pop(name, None)
    draft["title"] = {language: f"{text} (2)" for language, text in draft["title"].items()}
    draft["name"] = f"{draft['name'][:62]}-2"
    return parse_value(draft)


def next_step(survey: OpenedSurvey, n: int, role: str, least: int = 0) -> tuple[str, str] | None:
    """Return what to do next in words, and the page for it (last part of its path); None: nothing.

    n : number of released answers. role : of the person who asks. least : answers that a result needs,
    if earlier versions need more than the newest.
    """
    state, token = survey.state, survey.summary.token
    if survey.summary.version and state != "paused" and n >= max(least, survey.summary.least):
        return "Read the results", "results"
    if state in ("live", "scheduled") and token is None:
        return "Share its link", ""
    steps = {
        "draft": ("Publish it", "publish"),
        "paused": ("Resume or close it", ""),
        "closed": ("Archive it", ""),
    }
    if token is not None and token.invites:
        steps["live"] = steps["scheduled"] = "Invite people", "invitations"
    return steps.get(state) if may(role, "admin") else None


def _page(
    services: Services, survey: OpenedSurvey, refused: InvalidInput | None = None
) -> Response:
    documents = services.surveys.versions(survey.id)
    days = services.intake.released_by_day(survey.id)
    n, values = sum(days.values()), {}
    erased, events = (
        last_events(services, survey, action=ERASED),
        last_events(services, survey, _EVENTS),
    )
    if documents:
        # A refused form is shown again without the results, which can take seconds.
        results = _results(services, survey, documents) if n and refused is None else {}
        values = _shared(services, survey, documents) | results
        values |= _figures(services, survey, documents, bool(erased))
    return show(
        "overview.html",
        survey,
        "",
        refused,
        n=n,
        days=dict(list(days.items())[-_DAYS:][::-1]),
        earlier=sum(list(days.values())[:-_DAYS]),
        step=next_step(
            survey, n, person().role, max((one.min_reports for one in documents), default=0)
        ),
        moves=_moves(survey),
        events=events,
        done=_done(events, services.surveys.now()),
        erased=erased,
        most=_LINES,
        form=request.form,
        **values,
    )


def _done(events: Sequence[AuditEvent], now: datetime) -> AuditEvent | None:
    """Return what this person has just done to the survey, None if that was nothing."""
    newest = next(iter(events), None)
    is_new = newest is not None and now - parse_time(newest.at) < _JUST
    return newest if newest and is_new and newest.actor == person().email else None


def _moves(survey: OpenedSurvey) -> list[str]:
    """Return the changes of state that are possible; a draft can only be archived."""
    state = survey.state_row.state
    if not survey.summary.version or survey.state == "closed":
        return [] if state == "archived" else ["archive"]
    return [name for name, (sources, _) in MOVES.items() if state in sources]


def _shared(
    services: Services, survey: OpenedSurvey, documents: Sequence[SurveyDocument]
) -> dict[str, Any]:
    """Return what the page needs to share the survey's link."""
    link, newest = survey.summary.link or "", documents[-1]
    language = newest.languages[0]
    invites = actions.asks_for_invites(services, survey.id)
    # The survey's own words: an e-mail has its language, and only it knows what to say.
    consent = (newest.consent or {}).get(language, "")
    title = newest.title[language]
    mail = "\n\n".join(text for text in (title, consent, link) if text)
    return {
        "obstacles": services.surveys.obstacles(survey.id),
        "older": older_links(
            services.surveys.open_versions(survey.id), newest.version, newest.questions.values()
        ),
        "invites": invites,
        "invited": services.invites.total(survey.id) if invites else None,
        "band": band,
        "needs_token": newest.token is not None,
        "is_changed": not services.surveys.is_draft_published(survey.id),
        "picture": qr_code(link),
        "mail": mail,
        "mail_link": f"mailto:?subject={quote(title)}&body={quote(mail)}",
    }


def _figures(
    services: Services, survey: OpenedSurvey, documents: Sequence[SurveyDocument], was_erased: bool
) -> dict[str, Any]:
    """Return numbers of answers."""
    now, received = services.surveys.now(), None
    # Only for admins: large surveys take seconds to count. At the end, the released ones are all.
    if may(person().role, "admin") and survey.state in ("live", "scheduled", "paused"):
        received = received_band(services.intake.accepted(survey.id), was_erased)
    return {
        "received": received,
        "opens": documents[-1].opens,
        "left": documents[-1].release_step if len(documents) == 1 else None,
        "next_release": min(next_release(one.release_every, now) for one in documents),
    }


def _results(
    services: Services, survey: OpenedSurvey, documents: Sequence[SurveyDocument]
) -> dict[str, Any]:
    """Return a line about the results of each question, or why there is none now."""
    try:
        # The forms of this page must not wait for other people's estimates.
        with without_slot(services.analyses, wait_s=_WAIT_S):
            found = found_of(services, survey.id, documents, Asked(), completion=False)
    except InvalidInput as error:  # also Busy
        return {"unknown": error.detail}
    return {
        "results": [
            (section.text, [_result(group) for group in section.groups])
            for section in found.sections
        ]
    }


def _result(table: EstimatesTable) -> str:
    """Return one sentence about a question's result."""
    if table.status == "insufficient":
        return f"No result yet: {table.n:,} of the {table.needed:,} answers that it needs are released."
    findings = table.sentences.findings
    # Of two choices the last is the one that is asked about: "Yes".
    asked = [f"“{label}”" for label in table.labels[-1:] if len(table.labels) == 2]
    about = [one for one in findings if any(one.startswith(label) for label in asked)]
    return next(iter((*about, *findings, *table.sentences.limits)), "")
