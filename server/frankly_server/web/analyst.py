# SPDX-License-Identifier: Apache-2.0
"""What analysts use: estimates, each beside its margin; never a report, never a number without its uncertainty."""

import time
from typing import Any

from apiflask import APIBlueprint
from flask import Response
from frankly_analyst.formats import to_csv
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis import encode
from frankly_server.analysis.plan import plan_within
from frankly_server.analysis.request import PERCENT, RESPONDENTS, WEIGHTS
from frankly_server.estimate.margins import METHODS
from frankly_server.parquet import to_parquet
from frankly_server.services import Services
from frankly_server.web import auth, models, reading
from frankly_server.web.limits import Limits
from frankly_server.web.openapi import Query, declare

CSV, PARQUET = "text/csv; charset=utf-8", "application/vnd.apache.parquet"
PLAN_BYTES, PLAN_S = 2**18, 20.0
_PLAN_PROBLEMS = (
    Problem.UNAUTHENTICATED, Problem.FORBIDDEN, Problem.CONTENT_TYPE, Problem.BODY_TOO_LARGE, Problem.JSON_INVALID,
    Problem.FIELD_TYPE, Problem.FIELD_MISSING, Problem.CONFIDENCE_RANGE, Problem.COUNTS_INVALID,
    Problem.TARGETS_INVALID, Problem.WEIGHTS_INVALID, Problem.PRIOR_SUM, Problem.PRIOR_SHAPE, Problem.PRIOR_VALUE,
    Problem.SECRET_EMPTY, Problem.CHOICE_UNPROTECTED, Problem.CHOICES_COUNT, Problem.EPS_NOT_FINITE,
    Problem.EPS_OUT_OF_RANGE, Problem.EPS_FORMAT, Problem.OPTIMISER_LIMIT, Problem.MECHANISM_NOT_CERTIFIED,
    Problem.IDENTITY_MECHANISM, Problem.NOT_IDENTIFIABLE, Problem.UNSUPPORTED,
)  # fmt: skip
_FORMATS = ("json", "csv", "parquet")
_DAY = {"type": "string", "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "example": "2026-05-31"}
_FLAG = {"type": "string", "enum": ["true", "false"], "default": "false"}
_QUERY = (
    Query(
        "level",
        {"type": "string", "pattern": r"^0\.[0-9]{1,12}$", "default": "0.95"},
        "Confidence level, strictly between 0 and 1: for 95% write 0.95.",
    ),
    Query(
        "census",
        _FLAG,
        "The respondents are the whole population: margins then hold the privacy noise alone.",
    ),
    Query(
        "population",
        {"type": "string", "pattern": r"^[1-9][0-9]{0,15}$", "example": "1200"},
        "How many people the respondents were drawn from, without replacement: margins are narrower then.",
    ),
    Query("simultaneous", _FLAG, "Short for method=simultaneous."),
    Query("method", {"type": "string", "enum": list(METHODS)}, "Which margin; default score."),
    Query(
        "targets",
        {"type": "string", "maxLength": 1500, "default": "shares"},
        "`shares`; or JSON: a list of question ids for their joint table, or combinations of choices by question, such "
        'as {"drinks": {"at all": {"weekly": 1, "daily": 1}}}; {"of": …, "over": …} is a ratio.',
    ),
    Query(
        "percent",
        {"type": "string", "enum": list(PERCENT)},
        "Of a joint table of two questions: the shares within each choice of the first (`row`) or second (`column`).",
    ),
    Query(
        "weights",
        {"type": "string", "enum": list(WEIGHTS), "default": RESPONDENTS},
        "How versions are weighed where they are pooled: by respondents, for the mean over all of them; or by the "
        "inverse variance of each row at the published priors, which presumes that the versions have equal truths.",
    ),
    Query(
        "by",
        {"type": "string", "maxLength": 72},
        "Estimates apart: a public question of the survey or `version`; `day`, `week` or `month` of release in UTC; or "
        "one of each, as `region,week`.",
    ),
    Query("since", _DAY, "Only batches released on this UTC day or later."),
    Query("until", _DAY, "Only batches released on this UTC day or before."),
    Query(
        "format",
        {"type": "string", "enum": list(_FORMATS), "default": "json"},
        "How the answer is written.",
    ),
)


def blueprint(services: Services, limits: Limits) -> APIBlueprint:
    """Return the routes of analysts, bound to `services`; each question draws on its key's limit."""
    routes = APIBlueprint("analyst", __name__)

    @routes.get("/v1/surveys/<survey_id>/estimates")
    @declare(
        routes,
        "estimates",
        answers={200: ("Estimates with their margins.", reading.JSON, models.SurveyEstimates)},
        also={200: (CSV, PARQUET)},
        problems=(
            Problem.UNAUTHENTICATED, Problem.FORBIDDEN, Problem.SURVEY_UNKNOWN, Problem.CONFIDENCE_RANGE,
            Problem.FIELD_TYPE, Problem.TARGETS_INVALID, Problem.STRATA_INVALID, Problem.UNSUPPORTED,
            Problem.JSON_INVALID, Problem.COUNTS_INVALID,
        ),
        query=_QUERY,
        secured=True,
    )  # fmt: skip
    def estimates(survey_id: str) -> Response:
        """Return every question's shares, or what is asked for, with standard errors and margins.

        Below the survey's minimum of reports a question says `insufficient` and carries no number. The JSON names
        the batches that it was computed from, so that the server's operator can compute it again: `frankly replay`.
        """
        holder = auth.require_role(services, auth.ANALYST_ROLES)
        limits.questions.take(holder.prefix)
        auth.require_survey(services, holder, reading.survey_id(survey_id))
        asked = reading.query({item.name for item in _QUERY})
        form = _format(asked.get("format", "json"))
        found = services.analysis.estimates(
            reading.survey_id(survey_id),
            level=reading.level(asked.get("level")),
            census=reading.flag(asked.get("census"), "census"),
            simultaneous=reading.flag(asked.get("simultaneous"), "simultaneous"),
            method=asked.get("method"),
            targets=_targets(asked.get("targets", "shares")),
            by=asked.get("by"),
            since=asked.get("since"),
            until=asked.get("until"),
            population=reading.whole(asked.get("population"), "population"),
            percent=asked.get("percent"),
            weights=asked.get("weights"),
        )
        if form == "csv":
            return Response(to_csv(found), content_type=CSV)
        if form == "parquet":
            return Response(to_parquet(found), content_type=PARQUET)
        return Response(encode(found), content_type=reading.JSON)

    @routes.post("/v1/plan")
    @declare(
        routes,
        "plan",
        answers={
            200: ("What was solved for, and the margins around it.", reading.JSON, models.Plan)
        },
        problems=_PLAN_PROBLEMS,
        body={reading.JSON: models.PlanRequest},
        secured=True,
    )
    def plan() -> Response:
        """Tell how many reports a margin needs, which margin they give, or which level both need.

        The body is that of `frankly plan --json`, but for `limits`: searches take at most 20 seconds together.
        """
        limits.questions.take(auth.require_role(services, auth.ANALYST_ROLES).prefix)
        reading.query(())
        reading.content_type({reading.JSON})
        asked = parse_json(reading.body(PLAN_BYTES), max_bytes=PLAN_BYTES, decimals=True)
        return Response(
            encode(plan_within(asked, time.monotonic, PLAN_S)), content_type=reading.JSON
        )

    return routes


def _format(text: str) -> str:
    if text not in _FORMATS:
        raise InvalidInput(Problem.FIELD_TYPE, f"the formats are {', '.join(_FORMATS)}", "format")
    return text


def _targets(text: str) -> Any:
    if text == "shares":
        return None
    try:
        return parse_json(text.encode(), max_bytes=reading.MAX_QUERY_BYTES, decimals=True)
    except (InvalidInput, UnicodeEncodeError):
        words = (
            'write shares, or JSON such as ["smokes","drinks"] or {"smokes": {"yes minus no": '
            '{"yes": 1, "no": -1}}}'
        )
        raise InvalidInput(Problem.TARGETS_INVALID, words, "targets") from None
