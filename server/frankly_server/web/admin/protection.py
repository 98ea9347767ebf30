# SPDX-License-Identifier: Apache-2.0
"""Protection step: how many people, what is sensitive, how strong, and what that means."""

from dataclasses import asdict
from typing import Any

from apiflask import APIBlueprint
from flask import Response, json, request
from frankly_protocol.errors import FranklyError, InvalidInput

from frankly_server.services import Services
from frankly_server.surveys import editing
from frankly_server.surveys.asked import asks
from frankly_server.surveys.definition import FORM_ID, SurveyDefinition, parse_value
from frankly_server.surveys.outlook import Outlook, outlook
from frankly_server.surveys.preview import OFFERED
from frankly_server.surveys.priors import small_cells
from frankly_server.surveys.protection import main_question, unsupported_features
from frankly_server.surveys.searches import Busy
from frankly_server.surveys.strengths import FACTORS, WORDS
from frankly_server.surveys.trial import TRIAL_S
from frankly_server.surveys.verdicts import MEANINGS
from frankly_server.surveys.yaml import write_yaml
from frankly_server.web import reading
from frankly_server.web.admin.forms import takes, ticked
from frankly_server.web.admin.pages import attempt, go
from frankly_server.web.admin.protection_form import (
    FIELDS,
    Part,
    choices_of,
    edited,
    entered,
    example_of,
    part_of,
    shown,
)
from frankly_server.web.admin.survey_page import require_no_arms, show, store, survey_view
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.searching import search_once


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    @routes.get("/surveys/<survey_id>/protection")
    @survey_view(services, "viewer")
    def protection(survey: OpenedSurvey) -> Response:
        reading.query(("block", "saved"))
        if survey.definition.arms:
            return go(survey.path("file"))  # two blocks may protect a question of one id
        return _page(services, survey, part_of(survey))

    @routes.post("/surveys/<survey_id>/protection")
    @survey_view(services, "admin")
    @takes(*FIELDS, many=("together",))
    def protect(survey: OpenedSurvey) -> Response:
        if survey.definition.arms:
            return go(survey.path("file"))
        part = part_of(survey)

        def act() -> str:
            draft, protected = edited(survey, part, _ask(services, survey))
            store(services, survey, draft)
            return survey.path(f"protection?block={protected}&saved=yes")

        return attempt(act, lambda refused: _page(services, survey, part, refused, is_entered=True))

    @routes.post("/surveys/<survey_id>/protection/outlook")
    @survey_view(services, "viewer")
    @takes(*FIELDS, many=("together",))
    def show_outlook(survey: OpenedSurvey) -> Response:
        """Say what the form's protection would mean; nothing is stored."""
        require_no_arms(survey)
        part, told, refused = part_of(survey), None, None
        try:
            if (
                part.block is not None
                and unsupported_features(part.block)
                and not ticked("replace")
            ):
                # What the file says stays, so that is what it means.
                definition, protected = survey.definition, part.id
            else:
                draft, protected = edited(survey, part, _ask(services, survey))
                definition = parse_value(draft)
            told = _told(services, survey, definition, protected)
        except InvalidInput as fault:
            refused = fault
        if request.accept_mimetypes.best == "application/json":
            return _as_json(told, refused)
        return _page(services, survey, part, refused, told, is_entered=True)


def _ask(services: Services, survey: OpenedSurvey) -> str:
    return asks(services.surveys.next_version(survey.definition, survey.id))


def _told(
    services: Services, survey: OpenedSurvey, definition: SurveyDefinition, part: str
) -> Outlook:
    form, ids = definition.form, list[str]()
    if form is not None and part == FORM_ID:
        ids = [item.id for item in form.items]
    for block in definition.blocks:
        if block.id == part:
            ids = [question.id for question in block.questions]
    # Of the hour, so that the same draft is designed once only.
    now = services.surveys.now().replace(minute=0, second=0, microsecond=0)
    following = services.surveys.next_version(definition, survey.id)
    url = services.settings.public_url
    # Not a place of searches: whoever leaves the page opens the next one at once.
    places = services.previews
    return search_once(
        services, outlook, following, tuple(ids), now, url, seconds=TRIAL_S, places=places
    )


def _as_json(told: Outlook | None, refused: FranklyError | None) -> Response:
    body: dict[str, Any] = {} if told is None else asdict(told)
    if refused is not None:
        body["busy" if isinstance(refused, Busy) else "refused"] = refused.detail
    return Response(json.dumps(body), content_type=reading.JSON)


def _page(
    services: Services,
    survey: OpenedSurvey,
    part: Part,
    refused: InvalidInput | None = None,
    told: Outlook | None = None,
    *,
    is_entered: bool = False,
) -> Response:
    definition, block = survey.definition, part.block
    stored = form = shown(survey, part, _ask(services, survey))
    together = [q.id for q in block.questions if q.id != main_question(block).id] if block else []
    # A refused form keeps what was entered.
    if is_entered:
        form, together = entered(form), request.form.getlist("together")
    stops = {str(stop): word for stop, word in enumerate(WORDS)}
    parts = [name for name, _ in survey.parts]
    following = parts[parts.index(part.id) + 1 :]
    return show(
        "protection.html",
        survey,
        "protection",
        refused,
        block=part.id,
        one=block,
        question=None if block is None else main_question(block),
        others=part.partners,
        answers=choices_of(survey, part),
        example=example_of(survey, part),
        offered=OFFERED,
        words=WORDS,
        factors=FACTORS,
        stored=stored["strength"],
        strength=stops.get(form["strength"], WORDS[0]),
        form=form,
        told=told,
        meanings=MEANINGS,
        following=following[0] if following else "",
        cannot=() if block is None else unsupported_features(block),
        file_text="" if block is None else _as_written(survey, block.id),
        small=() if block is None else small_cells(block),
        by_stratum=definition.strata,
        together=together,
    )


def _as_written(survey: OpenedSurvey, block_id: str) -> str:
    """Return the block's protection in the form of the file, without its questions."""
    block = editing.block_of(survey.draft, block_id)
    return write_yaml(
        {name: value for name, value in block.items() if name not in ("id", "questions")}
    ).decode()
