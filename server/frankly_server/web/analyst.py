# SPDX-License-Identifier: Apache-2.0
"""What analysts use: estimates, each beside its margin; never a report, never a number without its uncertainty."""

from apiflask import APIBlueprint
from flask import Response
from frankly_protocol.problems import Problem

from frankly_server.services import Services
from frankly_server.web import auth, models, reading
from frankly_server.web.openapi import Query, declare
from frankly_server.web.public import answer

_FLAG = {"type": "string", "enum": ["true", "false"], "default": "false"}
_LEVEL = Query(
    "level",
    {"type": "string", "pattern": r"^0\.[0-9]{1,12}$", "default": "0.95"},
    "Confidence level, strictly between 0 and 1: for 95% write 0.95.",
)
_CENSUS = Query("census", _FLAG, "The respondents are the whole population: margins then hold the privacy noise alone.")
_SIMULTANEOUS = Query("simultaneous", _FLAG, "Margins that hold for all choices of a question at once.")


def blueprint(services: Services) -> APIBlueprint:
    """Return the routes of analysts, bound to `services`."""
    routes = APIBlueprint("analyst", __name__)

    @routes.get("/v1/surveys/<survey_id>/estimates")
    @declare(
        routes,
        "estimates",
        answers={200: ("Estimates with their margins.", reading.JSON, models.SurveyEstimates)},
        problems=(
            Problem.UNAUTHENTICATED, Problem.FORBIDDEN, Problem.SURVEY_UNKNOWN, Problem.CONFIDENCE_RANGE,
            Problem.FIELD_TYPE,
        ),
        query=(_LEVEL, _CENSUS, _SIMULTANEOUS),
        secured=True,
    )  # fmt: skip
    def estimates(survey_id: str) -> Response:
        """Return every question's shares with standard errors and margins.

        Below the survey's minimum of reports a question says `insufficient` and carries no number.
        """
        auth.require_role(services, auth.ANALYST_ROLES)
        asked = reading.query({"level", "census", "simultaneous"})
        found = services.analysis.estimates(
            reading.survey_id(survey_id),
            level=reading.level(asked.get("level")),
            census=reading.flag(asked.get("census"), "census"),
            simultaneous=reading.flag(asked.get("simultaneous"), "simultaneous"),
        )
        return answer(found)

    return routes
