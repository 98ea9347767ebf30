# SPDX-License-Identifier: Apache-2.0
"""Links to a survey's results page, which an admin gives to somebody and withdraws (ADR 0060)."""

from apiflask import APIBlueprint
from flask import Response, request
from frankly_protocol.errors import InvalidInput

from frankly_server.services import Services
from frankly_server.web import actions, shared_results
from frankly_server.web.admin.forms import field, takes
from frankly_server.web.admin.pages import attempt
from frankly_server.web.admin.survey_page import show, survey_view
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.security import person

_PLACE = "results/links"


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    def page(
        survey: OpenedSurvey,
        refused: InvalidInput | None = None,
        link: str | None = None,
        status: int = 200,
    ) -> Response:
        return show(
            "result_links.html",
            survey,
            "results",
            refused,
            links=actions.result_links(services, survey),
            link=link,
            label=request.form.get("label", "") if refused else "",
            status=status,
        )

    @routes.get("/surveys/<survey_id>/results/links")
    @survey_view(services, "admin")
    def result_links(survey: OpenedSurvey) -> Response:
        return page(survey)

    @routes.post("/surveys/<survey_id>/results/links")
    @survey_view(services, "admin")
    @takes("label")
    def give_result_link(survey: OpenedSurvey) -> Response:
        try:
            token = actions.give_result_link(services, person(), survey, field("label"))
        except InvalidInput as refused:
            return page(survey, refused)
        # No redirect, because only the hash is stored and only this response can show the link.
        return page(survey, link=shared_results.address(services, token), status=201)

    @routes.post("/surveys/<survey_id>/results/links/<prefix>/withdraw")
    @survey_view(services, "admin")
    @takes()
    def withdraw_result_link(survey: OpenedSurvey, prefix: str) -> Response:
        return attempt(
            lambda: actions.withdraw_result_link(services, person(), survey, prefix),
            lambda refused: page(survey, refused),
            survey.path(_PLACE),
        )
