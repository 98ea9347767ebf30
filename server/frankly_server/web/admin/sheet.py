# SPDX-License-Identifier: Apache-2.0
"""Page of sheets to print: information about a published version, and a form for consent."""

from apiflask import APIBlueprint
from flask import Response, request
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.surveys.sheet import sheets_of
from frankly_server.surveys.trial import TRIAL_S
from frankly_server.web import reading
from frankly_server.web.admin.survey_page import show, survey_view
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.searching import search_once


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the page."""

    @routes.get("/surveys/<survey_id>/sheet")
    @survey_view(services, "viewer")
    def sheet(survey: OpenedSurvey) -> Response:
        reading.query(("version", "language"))
        document = _version(services, survey)
        language = _language(document)
        envelope = Envelope.from_bytes(
            services.surveys.envelope(survey.id, document.digest), SURVEY_TYPE
        )
        found = search_once(services, sheets_of, document.payload(), language, seconds=TRIAL_S)
        return show(
            "sheet.html",
            survey,
            "",
            sheets=found,
            language=language,
            languages=document.languages,
            signers=[signature.key_id for signature in envelope.signatures],
        )


def _version(services: Services, survey: OpenedSurvey) -> SurveyDocument:
    """Return the version that the address asks for, by default the newest. Raises not_found."""
    number = reading.whole(request.args.get("version") or None, "version")
    for document in reversed(services.surveys.versions(survey.id)):
        if number in (None, document.version):
            return document
    raise InvalidInput(Problem.NOT_FOUND, "there is no such version", "version")


def _language(document: SurveyDocument) -> str:
    language = request.args.get("language") or document.languages[0]
    if language not in document.languages:
        raise InvalidInput(
            Problem.NOT_FOUND, "this version has no texts in this language", "language"
        )
    return language
