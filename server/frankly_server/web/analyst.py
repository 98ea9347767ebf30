# SPDX-License-Identifier: Apache-2.0
"""Routes for analysts: estimates with their uncertainty, and plans; no route returns reports."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from apiflask import APIBlueprint
from flask import Response
from frankly_analyst.formats import to_csv
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis import encode
from frankly_server.parquet import to_parquet
from frankly_server.requests.plan import plan_within
from frankly_server.services import Services
from frankly_server.web import auth, estimates_request, models, reading
from frankly_server.web.limits import RateLimits
from frankly_server.web.openapi import Query, declare

FORMATS: Final[Mapping[str, tuple[Callable[[Mapping[str, Any]], bytes], str]]] = {
    "json": (encode, reading.JSON),
    "csv": (to_csv, "text/csv; charset=utf-8"),
    "parquet": (to_parquet, "application/vnd.apache.parquet"),
}
"""Formats of the estimates: name -> (writer, content type)."""
PLAN_BYTES, PLAN_S = 2**18, 20.0
_PLAN_PROBLEMS = (
    Problem.UNAUTHENTICATED, Problem.FORBIDDEN, Problem.CONTENT_TYPE, Problem.BODY_TOO_LARGE, Problem.JSON_INVALID,
    Problem.FIELD_TYPE, Problem.FIELD_MISSING, Problem.CONFIDENCE_RANGE, Problem.COUNTS_INVALID,
    Problem.TARGETS_INVALID, Problem.WEIGHTS_INVALID, Problem.PRIOR_SUM, Problem.PRIOR_SHAPE, Problem.PRIOR_VALUE,
    Problem.SECRET_EMPTY, Problem.CHOICE_UNPROTECTED, Problem.CHOICES_COUNT, Problem.EPS_NOT_FINITE,
    Problem.NUMBER_NOT_FINITE, Problem.EPS_OUT_OF_RANGE, Problem.EPS_FORMAT, Problem.OPTIMISER_LIMIT,
    Problem.MECHANISM_NOT_CERTIFIED, Problem.IDENTITY_MECHANISM, Problem.NOT_IDENTIFIABLE, Problem.UNSUPPORTED,
)  # fmt: skip
_QUERY = (
    *estimates_request.PARAMETERS,
    Query(
        "format",
        {"type": "string", "enum": list(FORMATS), "default": "json"},
        "The format of the response.",
    ),
)


def blueprint(services: Services, limits: RateLimits) -> APIBlueprint:
    """Return the routes of analysts, bound to `services`; requests count against a key's limit."""
    routes = APIBlueprint("analyst", __name__)

    @routes.get("/v1/surveys/<survey_id>/estimates")
    @declare(
        routes,
        "estimates",
        answers={200: ("Estimates with their intervals.", reading.JSON, models.SurveyEstimates)},
        also={200: [kind for name, (_, kind) in FORMATS.items() if name != "json"]},
        problems=(
            Problem.UNAUTHENTICATED, Problem.FORBIDDEN, Problem.SURVEY_UNKNOWN, Problem.CONFIDENCE_RANGE,
            Problem.FIELD_TYPE, Problem.TARGETS_INVALID, Problem.STRATA_INVALID, Problem.UNSUPPORTED,
            Problem.JSON_INVALID, Problem.COUNTS_INVALID,
        ),
        query=_QUERY,
        secured=True,
    )  # fmt: skip
    def estimates(survey_id: str) -> Response:
        """Return every question's shares, or the requested targets, with intervals.

        Below the survey's minimum of reports, a question has the status `insufficient` and no
        estimates. The JSON names the batches that it was computed from, so that the server's
        operator can recompute it with `frankly replay`.
        """
        holder = auth.require_role(services, auth.ANALYST_ROLES)
        # Before the survey is looked up, so that guessing ids is limited too.
        limits.questions.take(holder.prefix)
        auth.require_survey(services, holder, reading.survey_id(survey_id))
        texts = reading.query({item.name for item in _QUERY})
        write, kind = format_of(texts.get("format", "json"))
        answer = services.analysis.estimates(survey_id, **estimates_request.read(texts))
        return Response(write(answer), content_type=kind)

    @routes.post("/v1/plan")
    @declare(
        routes,
        "plan",
        answers={
            200: (
                "The solution, and the margins around it.",
                reading.JSON,
                models.PlanResult,
            )
        },
        problems=_PLAN_PROBLEMS,
        body={reading.JSON: models.PlanRequest},
        secured=True,
    )
    def plan() -> Response:
        """Return the reports that a margin needs, the margin that they give, or the level for both.

        The body is that of `frankly plan --json` without `limits`: all searches together take at
        most 20 seconds.
        """
        limits.questions.take(auth.require_role(services, auth.ANALYST_ROLES).prefix)
        reading.query(())
        reading.content_type({reading.JSON})
        # Decimals, because levels must not pass through floats.
        asked = parse_json(reading.body(PLAN_BYTES), max_bytes=PLAN_BYTES, decimals=True)
        return Response(
            encode(plan_within(asked, time.monotonic, PLAN_S)), content_type=reading.JSON
        )

    return routes


def format_of(name: str) -> tuple[Callable[[Mapping[str, Any]], bytes], str]:
    """Return the writer and the content type of a format. Raises InvalidInput(field_type)."""
    if name not in FORMATS:
        raise InvalidInput(Problem.FIELD_TYPE, f"the formats are {', '.join(FORMATS)}", "format")
    return FORMATS[name]
