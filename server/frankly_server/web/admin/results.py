# SPDX-License-Identifier: Apache-2.0
"""Page of results to be shown, and its charts as files."""

from apiflask import APIBlueprint
from flask import Response
from frankly_protocol.errors import InvalidInput

from frankly_server.intake.times import next_release
from frankly_server.services import Services
from frankly_server.web.admin.survey_page import show, survey_view
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.results import page


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    @routes.get("/surveys/<survey_id>/results")
    @survey_view(services, "viewer")
    def results(survey: OpenedSurvey) -> Response:
        path, now = survey.path("results"), services.surveys.now()
        documents = services.surveys.versions(survey.id)
        times = [next_release(one.release_every, now) for one in documents]
        refused = None
        try:
            found = page.values(services, survey, path)
        except InvalidInput as error:
            refused, found = error, page.values(services, survey, path, view="")
        return show(
            "results.html",
            survey,
            "results",
            refused,
            next_release=min(times, default=None),
            **found,
        )

    @routes.get("/surveys/<survey_id>/results/<chart>")
    @survey_view(services, "viewer")
    def results_file(survey: OpenedSurvey, chart: str) -> Response:
        return page.chart(services, survey, chart)
