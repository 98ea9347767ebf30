# SPDX-License-Identifier: Apache-2.0
"""Routes for analysts: estimates with their uncertainty, and counts, but no reports."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from apiflask import APIBlueprint
from flask import Response
from frankly_analyst.counts_request import COUNTS_FIELDS
from frankly_analyst.formats import to_csv, to_spreadsheet
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis import encode
from frankly_server.services import Services
from frankly_server.surveys.opened import opened_surveys
from frankly_server.web import auth, counts_models, estimates_models, estimates_request, reading
from frankly_server.web.limits import RateLimits
from frankly_server.web.openapi import Query, declare
from frankly_server.web.parquet import to_parquet
from frankly_server.web.searching import without_slot

FORMATS: Final[Mapping[str, tuple[Callable[[Mapping[str, Any]], bytes], str]]] = {
    "json": (encode, reading.JSON),
    "csv": (to_csv, "text/csv; charset=utf-8"),
    "spreadsheet": (to_spreadsheet, "text/csv; charset=utf-8"),
    "parquet": (to_parquet, "application/vnd.apache.parquet"),
}
"""Formats of the estimates: name -> (writer, content type)."""
_ONLY_JSON: Final = {
    "compare": "comparisons are JSON: use format=json, or the client's compare(…).to_csv()",
    "completion": "completions are JSON: use format=json, or the client's completion()",
}
"""Fields whose results only JSON can hold, each with the way out."""
_QUERY = (
    *estimates_request.PARAMETERS,
    Query(
        "format",
        {"type": "string", "enum": list(FORMATS), "default": "json"},
        "The format of the response; `spreadsheet` is a CSV file for people.",
    ),
)
_MOST_LISTED: Final = 200
_LIST_QUERY = (
    Query(
        "drafts",
        {"type": "boolean", "default": False},
        "Also those that have not been published yet.",
    ),
    Query("after", {"type": "string"}, "`next` of the page before."),
    Query(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": _MOST_LISTED},
        "Number of surveys per page.",
    ),
)
_COUNTS_QUERY = tuple(
    Query(item.name, {"type": "string", **item.metadata["schema"]}, item.metadata["description"])
    for item in COUNTS_FIELDS.values()
)


def blueprint(services: Services, limits: RateLimits) -> APIBlueprint:
    """Return the routes for analysts, bound to `services`, with a rate limit per key."""
    routes = APIBlueprint("analyst", __name__)

    @routes.get("/v1/surveys")
    @declare(
        routes,
        "surveys",
        answers={200: ("The surveys, by name.", reading.JSON, counts_models.SurveyList)},
        problems=(Problem.UNAUTHENTICATED, Problem.FORBIDDEN, Problem.FIELD_TYPE),
        query=_LIST_QUERY,
        secured=True,
    )
    def surveys() -> Response:
        """Return the surveys that the key gives access to; without `limit`, all of them."""
        holder = auth.require_role(services, "analyst")
        limits.questions.take(holder.prefix)
        texts = reading.query({item.name for item in _LIST_QUERY})
        drafts = reading.flag(texts.get("drafts", "false"), "drafts")
        limit = reading.page_size(texts.get("limit"), _MOST_LISTED)
        with without_slot(services.managing):
            surveys, following = opened_surveys(
                services.surveys,
                services.database,
                holder.opens,
                drafts=drafts,
                after=texts.get("after", ""),
                limit=limit,
            )
        body = {"surveys": [survey.model_dump() for survey in surveys], "next": following}
        return Response(encode(body), content_type=reading.JSON)

    @routes.get("/v1/surveys/<survey_id>/estimates")
    @declare(
        routes,
        "estimates",
        answers={
            200: ("Estimates with their intervals.", reading.JSON, estimates_models.SurveyEstimates)
        },
        also={200: [kind for name, (_, kind) in FORMATS.items() if name != "json"]},
        problems=(
            Problem.UNAUTHENTICATED,
            Problem.FORBIDDEN,
            Problem.SURVEY_UNKNOWN,
            Problem.CONFIDENCE_RANGE,
            Problem.FIELD_TYPE,
            Problem.TARGETS_INVALID,
            Problem.STRATA_INVALID,
            Problem.UNSUPPORTED,
            Problem.JSON_INVALID,
            Problem.COUNTS_INVALID,
        ),
        query=_QUERY,
        secured=True,
    )
    def estimates(survey_id: str) -> Response:
        """Return every question's shares, or the requested targets, with intervals.

        Below the survey's minimum of reports, a question has the status `insufficient` and no
        estimates. The JSON names the batches that it was computed from, so that the server's
        operator can recompute it with `frankly replay`.
        """
        holder = auth.require_role(services, "analyst")
        # Checked before the survey is looked up, so that guessing ids is limited too.
        limits.questions.take(holder.prefix)
        auth.require_survey(services, holder, reading.survey_id(survey_id))
        texts = reading.query({item.name for item in _QUERY})
        fields = estimates_request.read(texts)
        write, kind = format_of(texts.get("format", "json"), fields)
        with without_slot(services.analyses):
            body = write(services.analysis.estimates(survey_id, **fields))
        return Response(body, content_type=kind)

    @routes.get("/v1/surveys/<survey_id>/counts")
    @declare(
        routes,
        "counts",
        answers={
            200: (
                "Counts by stratum, and their mechanisms.",
                reading.JSON,
                counts_models.SurveyCounts,
            )
        },
        problems=(
            Problem.UNAUTHENTICATED,
            Problem.FORBIDDEN,
            Problem.SURVEY_UNKNOWN,
            Problem.FIELD_TYPE,
            Problem.TARGETS_INVALID,
            Problem.STRATA_INVALID,
            Problem.UNSUPPORTED,
        ),
        query=_COUNTS_QUERY,
        secured=True,
    )
    def counts(survey_id: str) -> Response:
        """Return released counts of noisy symbols by stratum, with mechanisms and decoders.

        All estimates can be computed from these counts, also by other methods. A stratum with fewer
        reports than the survey's minimum is not returned; its reports are included in `withheld`.
        """
        holder = auth.require_role(services, "analyst")
        limits.questions.take(holder.prefix)
        auth.require_survey(services, holder, reading.survey_id(survey_id))
        texts = reading.query(set(COUNTS_FIELDS))
        with without_slot(services.analyses):
            body = encode(services.analysis.counts(survey_id, **texts))
        return Response(body, content_type=reading.JSON)

    return routes


def format_of(
    name: str, request: Mapping[str, Any]
) -> tuple[Callable[[Mapping[str, Any]], bytes], str]:
    """Return the writer and the content type of a format.

    Raises InvalidInput: field_type, or unsupported if it cannot hold what the request's fields
    `compare` or `completion` ask for.
    """
    if name not in FORMATS:
        raise InvalidInput(Problem.FIELD_TYPE, f"the formats are {', '.join(FORMATS)}", "format")
    for field, way_out in _ONLY_JSON.items():
        if request.get(field) and name != "json":
            raise InvalidInput(Problem.UNSUPPORTED, way_out, field)
    return FORMATS[name]
