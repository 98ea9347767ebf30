# SPDX-License-Identifier: Apache-2.0
"""Webhook page: URL for notifications of a closed survey or a reached target, and deliveries."""

from collections.abc import Callable

from apiflask import APIBlueprint
from flask import Response, request
from frankly_protocol.errors import InvalidInput

from frankly_server.accounts import Actor
from frankly_server.services import Services
from frankly_server.surveys.webhooks import WAITS_S
from frankly_server.web import actions
from frankly_server.web.admin.forms import field, takes
from frankly_server.web.admin.pages import attempt
from frankly_server.web.admin.survey_page import show, survey_view
from frankly_server.web.opened_survey import OpenedSurvey
from frankly_server.web.security import person


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    def page(
        survey: OpenedSurvey, refused: InvalidInput | None = None, secret: str | None = None
    ) -> Response:
        # `tries` is the number of attempts: the first one, and one after each wait.
        return show(
            "webhook.html",
            survey,
            "webhook",
            refused,
            hook=services.webhooks.of(survey.id),
            hosts=sorted(services.webhooks.hosts),
            secret=secret,
            url=request.form.get("url") if refused else None,
            tries=len(WAITS_S) + 1,
        )

    def attempted(
        survey: OpenedSurvey, act: Callable[[Services, Actor, OpenedSurvey], object]
    ) -> Response:
        return attempt(
            lambda: act(services, person(), survey),
            lambda refused: page(survey, refused),
            survey.path("webhook"),
        )

    @routes.get("/surveys/<survey_id>/webhook")
    @survey_view(services, "admin")
    def webhook(survey: OpenedSurvey) -> Response:
        return page(survey)

    @routes.post("/surveys/<survey_id>/webhook")
    @survey_view(services, "admin")
    @takes("url")
    def set_webhook(survey: OpenedSurvey) -> Response:
        try:
            secret = actions.set_webhook(services, person(), survey, field("url"))
        except InvalidInput as refused:
            return page(survey, refused)
        return page(survey, secret=secret)

    @routes.post("/surveys/<survey_id>/webhook/test")
    @survey_view(services, "admin")
    @takes()
    def test_webhook(survey: OpenedSurvey) -> Response:
        return attempted(survey, actions.test_webhook)

    @routes.post("/surveys/<survey_id>/webhook/remove")
    @survey_view(services, "admin")
    @takes()
    def remove_webhook(survey: OpenedSurvey) -> Response:
        return attempted(survey, actions.remove_webhook)
