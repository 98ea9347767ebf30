# SPDX-License-Identifier: Apache-2.0
"""Answers page: reports received and refused, margins so far, and the stop rule."""

import re
from typing import Any, Final

from apiflask import APIBlueprint
from flask import Response, request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.surveys.live import live, margins_of_one_report, received_band, required_reports
from frankly_server.surveys.surveys import ERASED
from frankly_server.web import actions, reading
from frankly_server.web.admin.forms import choice, field, refuse_unused, takes
from frankly_server.web.admin.pages import attempt
from frankly_server.web.admin.survey_page import last_events, show, survey_view
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.searching import search_once
from frankly_server.web.security import person

_POINTS = re.compile(r"[0-9]{1,2}(\.[0-9]{1,2})?", re.ASCII)
_USUAL = "3"
MARGINS_S: Final = 30.0
"""Seconds for the margins of a document of many large blocks."""


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    def page(survey: OpenedSurvey, refused: InvalidInput | None = None) -> Response:
        # A refused form keeps what was entered.
        rule = request.form if refused and "rule" in request.form else _shown_rule(survey)
        target = request.args.get("target") if refused else None
        figures = _figures(services, survey)
        return show("answers.html", survey, "answers", refused, rule=rule, target=target, **figures)

    @routes.get("/surveys/<survey_id>/answers")
    @survey_view(services, "viewer")
    def answers(survey: OpenedSurvey) -> Response:
        query = reading.query(("target",))
        try:
            _margin(query.get("target", _USUAL), "target")
        except InvalidInput as refused:
            return page(survey, refused)
        return page(survey)

    @routes.post("/surveys/<survey_id>/stop-rule")
    @survey_view(services, "admin")
    @takes("rule", "reports", "points")
    def stop_rule(survey: OpenedSurvey) -> Response:
        def act() -> None:
            reports, margin, rule = _stop_rule(services, survey)
            actions.set_stop_rule(services, person(), survey, reports, margin, rule)

        return attempt(act, lambda refused: page(survey, refused), survey.path("answers"))


def _figures(services: Services, survey: OpenedSurvey) -> dict[str, Any]:
    # `answers` reports an invalid target; the page then shows figures for the default target.
    try:
        target = _margin(request.args.get("target", _USUAL))
    except InvalidInput:
        target = _margin(_USUAL)
    # Only published surveys are in the log.
    numbers = (
        {row.digest: row.n for row in services.log.audit(survey.id)}
        if survey.summary.version
        else {}
    )
    documents = [
        (document, numbers.get(document.digest, 0))
        for document in services.surveys.versions(survey.id)
    ]
    erased = last_events(services, survey, action=ERASED)
    accepted = received_band(services.intake.accepted(survey.id), bool(erased))
    refusals = services.intake.refusals(survey.id)
    margins, unknown = None, ""
    if documents:
        try:
            margins = search_once(
                services, margins_of_one_report, documents[-1][0], seconds=MARGINS_S
            )
        except InvalidInput as refused:
            unknown = refused.detail  # the rest of the page does not depend on them
    figures = live(documents, accepted, refusals, target, services.surveys.now(), margins)
    values = {"erased": erased, "live": figures}
    return values | {"points": f"{target * 100:g}", "unknown": unknown}


def _stop_rule(services: Services, survey: OpenedSurvey) -> tuple[int | None, str | None, str]:
    """Return the form's stop rule: number of reports, margin, and a text for the audit trail."""
    shown, rule = _shown_rule(survey), choice("rule", ("never", "reports", "margin"))
    if rule != "reports":
        refuse_unused(["reports"], shown, "“at a number of answers”")
    if rule != "margin":
        refuse_unused(["points"], shown, "“at a margin”")
    if rule == "never":
        return None, None, "none"
    if rule == "reports":
        text = field("reports")
        reports = int(text) if re.fullmatch(r"[0-9]{1,10}", text, re.ASCII) else 0
        return reports, None, f"at {reports} reports"
    margin = _margin(field("points"))
    documents = services.surveys.versions(survey.id)
    if not documents:
        raise InvalidInput(
            Problem.IMMUTABLE,
            "publish the survey first: the margin depends on its mechanism",
            "rule",
        )
    newest = documents[-1]
    of_one = search_once(services, margins_of_one_report, newest, seconds=MARGINS_S)
    reports_needed = required_reports(newest, of_one, margin)
    if reports_needed is None:
        raise InvalidInput(
            Problem.NOT_IDENTIFIABLE,
            "some shares cannot be estimated from any number of reports",
            "points",
        )
    description = f"at ±{margin * 100:g} points, {reports_needed} reports"
    return reports_needed, f"{margin:g}", description


def _shown_rule(survey: OpenedSurvey) -> dict[str, str]:
    """Return the stored stop rule as the values of the form's fields."""
    reports, margin = survey.state_row.stop_reports, survey.state_row.stop_margin
    if reports is None:
        return {"rule": "never", "reports": "", "points": ""}
    if margin is None:
        return {"rule": "reports", "reports": str(reports), "points": ""}
    return {"rule": "margin", "reports": "", "points": f"{float(margin) * 100:g}"}


def _margin(points: str, name: str = "points") -> float:
    """Return a half-width from percentage points. Raises InvalidInput(field_type)."""
    if not _POINTS.fullmatch(points) or not 0 < float(points) < 50:
        raise InvalidInput(
            Problem.FIELD_TYPE, "write percentage points between 0 and 50, such as 3 or 2.5", name
        )
    return float(points) / 100
