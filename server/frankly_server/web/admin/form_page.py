# SPDX-License-Identifier: Apache-2.0
"""Margins and trial pages of the questions that are protected together."""

from typing import Any

from flask import Response
from frankly_protocol.errors import InvalidInput

from frankly_server.services import Services
from frankly_server.surveys.asked import without_refusal
from frankly_server.surveys.definition import FORM_ID
from frankly_server.surveys.older_versions import larger_minimum
from frankly_server.surveys.published import form_notes
from frankly_server.surveys.trial import TRIAL_S, answer_points, expectations, rehearse
from frankly_server.web.admin.survey_page import show
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.searching import search_once


def form_page(
    services: Services,
    survey: OpenedSurvey,
    tab: str,
    answers: dict[str, str] | None = None,
    refused: InvalidInput | None = None,
) -> Response:
    """Render a tab for a form. answers : for a trial report. refused : error of an edit."""
    values: dict[str, Any] = {}
    # Of the hour, so that the pages about an unchanged draft share one search.
    now = services.surveys.now().replace(minute=0, second=0, microsecond=0)
    try:
        definition = services.surveys.next_version(survey.definition, survey.id)
        document, rows = search_once(
            services, expectations, definition, now, services.settings.public_url, seconds=TRIAL_S
        )
        values["notes"] = [
            *(note for block in document.blocks for note in form_notes(block, document)),
            *without_refusal(document),
        ]
        if tab == "margins":
            values["margins"], values["least"] = rows, document.min_reports
            values["larger_minimum"] = larger_minimum(
                services.surveys.versions(survey.id), document.min_reports
            )
        if answers is not None:
            values["rehearsal"] = rehearse(document, answers)
    except InvalidInput as fault:
        refused = refused or fault
    return show(
        "form.html",
        survey,
        tab,
        refused,
        block=FORM_ID,
        given=answers or {},
        points=answer_points(survey.definition),
        **values,
    )
