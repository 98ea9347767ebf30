# SPDX-License-Identifier: Apache-2.0
"""Webhook page: the URL that is notified of a closed survey or a met target, and the deliveries."""

from apiflask import APIBlueprint
from flask import Response
from frankly_protocol.errors import InvalidInput

from frankly_server.services import Services
from frankly_server.surveys.webhooks import WAITS_S
from frankly_server.web.admin.pages import attempt, field
from frankly_server.web.admin.survey_page import OpenedSurvey, opened, show
from frankly_server.web.security import needs, person


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    def page(
        survey: OpenedSurvey, refused: InvalidInput | None = None, secret: str | None = None
    ) -> Response:
        # `tries` is the number of attempts: the first, and one after each wait.
        return show("webhook.html", survey, "webhook", refused, hook=services.webhooks.of(survey.id),
                    hosts=sorted(services.webhooks.hosts), secret=secret, tries=len(WAITS_S) + 1)  # fmt: skip

    @routes.get("/surveys/<survey_id>/webhook")
    @needs("admin")
    def webhook(survey_id: str) -> Response:
        return page(opened(services, survey_id))

    @routes.post("/surveys/<survey_id>/webhook")
    @needs("admin")
    def set_webhook(survey_id: str) -> Response:
        survey = opened(services, survey_id)
        try:
            record = services.accounts.recorder(person(), "webhook set", survey.name)
            secret = services.webhooks.set(survey.id, field("url"), record)
        except InvalidInput as refused:
            return page(survey, refused)
        return page(survey, secret=secret)

    @routes.post("/surveys/<survey_id>/webhook/remove")
    @needs("admin")
    def remove_webhook(survey_id: str) -> Response:
        survey = opened(services, survey_id)

        def act() -> str:
            record = services.accounts.recorder(person(), "webhook removed", survey.name)
            services.webhooks.remove(survey.id, record)
            return survey.path("webhook")

        return attempt(act, lambda refused: page(survey, refused))
