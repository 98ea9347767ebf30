# SPDX-License-Identifier: Apache-2.0
"""Page of the drafts that others have replaced: what each change was, and a way back."""

from json import loads

from apiflask import APIBlueprint
from flask import Response
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.surveys.definition import SurveyDefinition
from frankly_server.surveys.draft_changes import summary
from frankly_server.web.admin.forms import takes
from frankly_server.web.admin.pages import attempt
from frankly_server.web.admin.survey_page import keep, show, survey_view
from frankly_server.web.opened_survey import OpenedSurvey


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the pages."""

    def page(survey: OpenedSurvey, refused: InvalidInput | None = None) -> Response:
        later, rows = survey.draft, []
        for draft in services.surveys.earlier_drafts(survey.id):
            former = loads(draft.text)
            rows.append((draft, summary(former, later)))
            later = former
        return show("earlier_drafts.html", survey, "questions", refused, rows=rows)

    @routes.get("/surveys/<survey_id>/drafts")
    @survey_view(services, "viewer")
    def earlier_drafts(survey: OpenedSurvey) -> Response:
        return page(survey)

    @routes.post("/surveys/<survey_id>/drafts/<int:number>/restore")
    @survey_view(services, "admin")
    @takes("seen")
    def restore(survey: OpenedSurvey, number: int) -> Response:
        def act() -> None:
            for draft in services.surveys.earlier_drafts(survey.id):
                if draft.number == number:
                    return keep(services, survey, SurveyDefinition.from_json(draft.text))
            raise InvalidInput(Problem.NOT_FOUND, "this draft is not kept any more", "number")

        return attempt(act, lambda refused: page(survey, refused), survey.path("questions"))
