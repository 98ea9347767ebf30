# SPDX-License-Identifier: Apache-2.0
"""Protection, margins and trial pages of a survey whose questions are one form."""

from typing import Any

from flask import Response
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput

from frankly_server.forms import estimated_blocks
from frankly_server.services import Services
from frankly_server.surveys.preview import margin_points, planned
from frankly_server.surveys.published import form_notes
from frankly_server.surveys.trial import drafted, rehearse
from frankly_server.web.admin.survey_page import OpenedSurvey, show


def form_page(
    services: Services,
    survey: OpenedSurvey,
    tab: str,
    answers: dict[str, str] | None = None,
    refused: InvalidInput | None = None,
) -> Response:
    """Render a tab for a form. answers : for a trial report. refused : error of an edit."""
    values: dict[str, Any] = {}
    points = margin_points(None)
    try:
        document = drafted(survey.definition, services.surveys.now(), services.settings.public_url)
        values["notes"] = [note for block in document.blocks for note in form_notes(block)]
        if tab == "margins":
            values["margins"] = _margins(document, points)
        if answers is not None:
            values["rehearsal"] = rehearse(document, answers)
    except InvalidInput as fault:
        refused = refused or fault
    form = survey.definition.form
    return show(
        "form.html", survey, tab, refused, form=form, given=answers or {}, points=points, **values
    )


def _margins(
    document: SurveyDocument, points: tuple[int, ...]
) -> list[tuple[str, list[float | None]]]:
    """Return, per part, the question ids and the expected margin at each number of reports."""
    rows = []
    for block, share in estimated_blocks(document):
        plan = planned(block.numbered_mechanism, block.design_prior)
        name = " × ".join(question.id for question in block.questions)
        margins = [
            None if plan is None or n * share < 1 else plan.margin(int(n * share)) for n in points
        ]
        rows.append((name, margins))
    return rows
