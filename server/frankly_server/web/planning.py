# SPDX-License-Identifier: Apache-2.0
"""Routes for analysts that plan surveys: reports and margins, two arms, a survey file, waves."""

import time

from apiflask import APIBlueprint
from flask import Response
from frankly_design.requests.design_fields import Planner, within
from frankly_design.requests.plan import plan_json
from frankly_design.requests.plan_request import PlanRequest
from frankly_design.requests.split import SplitRequest, split_json
from frankly_design.requests.waves import WavesRequest, waves_json
from frankly_design.tables.limits import FINISH_S
from frankly_protocol.canonical import parse_json
from frankly_protocol.problems import Problem

from frankly_server.analysis import encode
from frankly_server.services import Services
from frankly_server.surveys.plan_request import SurveyPlanRequest
from frankly_server.surveys.survey_plan import survey_plan_json
from frankly_server.web import auth, plan_models, reading
from frankly_server.web.limits import RateLimits
from frankly_server.web.openapi import declare
from frankly_server.web.searching import search_once

PLAN_BYTES, PLAN_S = 2**18, 20.0
_PROBLEMS = (
    Problem.UNAUTHENTICATED,
    Problem.FORBIDDEN,
    Problem.CONTENT_TYPE,
    Problem.BODY_TOO_LARGE,
    Problem.JSON_INVALID,
    Problem.FIELD_TYPE,
    Problem.FIELD_MISSING,
    Problem.CONFIDENCE_RANGE,
    Problem.COUNTS_INVALID,
    Problem.TARGETS_INVALID,
    Problem.WEIGHTS_INVALID,
    Problem.PRIOR_SUM,
    Problem.PRIOR_SHAPE,
    Problem.PRIOR_VALUE,
    Problem.SECRET_EMPTY,
    Problem.CHOICE_UNPROTECTED,
    Problem.CHOICES_COUNT,
    Problem.EPS_NOT_FINITE,
    Problem.NUMBER_NOT_FINITE,
    Problem.EPS_OUT_OF_RANGE,
    Problem.EPS_FORMAT,
    Problem.OPTIMISER_LIMIT,
    Problem.MECHANISM_NOT_CERTIFIED,
    Problem.IDENTITY_MECHANISM,
    Problem.NOT_IDENTIFIABLE,
    Problem.UNSUPPORTED,
)
_FILE_PROBLEMS = tuple(
    dict.fromkeys(
        (
            *_PROBLEMS,
            Problem.BUDGET_EXCEEDED,
            Problem.CHOICES_COLLIDE,
            Problem.DEFINITION_INVALID,
            Problem.FIELD_UNKNOWN,
            Problem.PRIOR_SMALL_CELLS,
            Problem.STRATA_INVALID,
            Problem.TEXT_CHARACTERS,
        )
    )
)


def blueprint(services: Services, limits: RateLimits) -> APIBlueprint:
    """Return the routes that plan, bound to `services`, with a rate limit per key."""
    routes = APIBlueprint("planning", __name__)

    @routes.post("/v1/plan")
    @declare(
        routes,
        "plan",
        answers={
            200: ("The solution, and the margins around it.", reading.JSON, plan_models.PlanResult)
        },
        problems=_PROBLEMS,
        body={reading.JSON: PlanRequest},
        secured=True,
    )
    def plan() -> Response:
        """Return the number of reports for a margin, the margin of a number of reports, or a level.

        The body is that of `frankly plan --json` without `limits`: all searches together take at
        most 20 seconds.
        """
        return _planned(plan_json)

    @routes.post("/v1/plan/split")
    @declare(
        routes,
        "plan_split",
        answers={200: ("Reports and power of both arms.", reading.JSON, plan_models.SplitPlan)},
        problems=_PROBLEMS,
        body={reading.JSON: SplitRequest},
        secured=True,
    )
    def plan_split() -> Response:
        """Return the reports that compare the shares of a choice in two arms, or the power of a number of reports.

        The body is that of `frankly plan --split --json`: all searches together take at most 20
        seconds.
        """
        return _planned(split_json)

    @routes.post("/v1/plan/survey")
    @declare(
        routes,
        "plan_survey",
        answers={
            200: (
                "Respondents, and what each wish costs.",
                reading.JSON,
                plan_models.SurveyPlanResult,
            )
        },
        problems=_FILE_PROBLEMS,
        body={reading.JSON: SurveyPlanRequest},
        secured=True,
    )
    def plan_survey() -> Response:
        """Return how many people a survey file needs, and what each of its wishes costs in respondents.

        The body is the survey file as JSON, and what `frankly plan --survey` takes as options: all
        searches together take at most 20 seconds.
        """
        return _planned(survey_plan_json)

    @routes.post("/v1/waves")
    @declare(
        routes,
        "waves",
        answers={200: ("Groups of people, and their waves.", reading.JSON, plan_models.WavePlan)},
        problems=_PROBLEMS,
        body={reading.JSON: WavesRequest},
        secured=True,
    )
    def waves() -> Response:
        """Return a division of people over several waves, with one level per person over all waves.

        The body is that of `frankly waves --json` without `limits`: all searches together take at
        most 20 seconds.
        """
        return _planned(waves_json)

    def _planned(plan: Planner) -> Response:
        limits.questions.take(auth.require_role(services, "analyst").prefix)
        reading.query(())
        reading.content_type({reading.JSON})
        # Decimals, because levels must not be converted to floats.
        plan_input = parse_json(reading.body(PLAN_BYTES), max_bytes=PLAN_BYTES, decimals=True)
        result = search_once(
            services,
            within,
            plan,
            plan_input,
            time.monotonic,
            PLAN_S,
            seconds=PLAN_S + 2 * FINISH_S,
        )
        return Response(encode(result), content_type=reading.JSON)

    return routes
