# SPDX-License-Identifier: Apache-2.0
"""Public routes (no API key, cookie or session): keys, documents, reports, log, health, metrics."""

from typing import Any, Final

from apiflask import APIBlueprint
from flask import Response, json, request
from frankly_protocol import canonical
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem, problem_body
from frankly_protocol.trust import write_chain

from frankly_server.intake import Outcome
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.web import health, metrics, models, reading, transparency
from frankly_server.web.headers import PUBLIC_FOREVER
from frankly_server.web.limits import RateLimits
from frankly_server.web.openapi import Query, declare

_REPORT_PROBLEMS = (
    Problem.JSON_INVALID,
    Problem.BODY_TOO_LARGE,
    Problem.CONTENT_TYPE,
    Problem.FIELD_MISSING,
    Problem.FIELD_TYPE,
    Problem.Y_TYPE,
    Problem.NUMBER_NOT_FINITE,
    Problem.SYMBOL_UNKNOWN,
    Problem.SURVEY_UNKNOWN,
    Problem.DOC_MISMATCH,
    Problem.STRATA_INVALID,
    Problem.TOO_EARLY,
    Problem.CLOSED,
    Problem.ID_CONFLICT,
    Problem.TOKEN_INVALID,
    Problem.TOKEN_FOREIGN,
    Problem.TOKEN_SPENT,
)


REPORTS_ROUTE: Final = "/v1/surveys/<survey_id>/reports"
FAILED: Final = "frankly.failed"
"""WSGI key: an exception from the fast path, which the view raises again and Flask renders."""
_STATUS: Final = {"accepted": 201, "duplicate": 200}


def json_response(value: Any, status: int = 200) -> Response:
    """Render a JSON response."""
    return Response(json.dumps(value, allow_nan=False), status=status, content_type=reading.JSON)


def blueprint(services: Services, settings: Settings, limits: RateLimits) -> APIBlueprint:
    """Return the public routes, bound to `services`; reports count against `limits`."""
    routes = APIBlueprint("public", __name__)
    health.add_to(routes, services)
    metrics.add_to(routes, settings)
    _add_documents(routes, services)
    _add_reports(routes, services, settings, limits)
    transparency.add_to(routes, services)
    return routes


def _add_documents(routes: APIBlueprint, services: Services) -> None:
    @routes.get("/v1/keys")
    @declare(
        routes,
        "keys",
        answers={200: ("The keys document.", reading.JSON, models.SignedEnvelope)},
        problems=(Problem.NOT_FOUND, Problem.FIELD_TYPE),
        query=(
            Query(
                "version",
                {"type": "integer", "minimum": 1, "maximum": 10**16 - 1},
                "The version; the newest if left out.",
            ),
        ),
    )
    def keys() -> Response:
        """Return the signed keys document: publisher keys, log key and witnesses."""
        version = reading.whole(reading.query({"version"}).get("version"), "version")
        return Response(services.keys.document(version), content_type=reading.JSON)

    @routes.get("/v1/keys/chain")
    @declare(
        routes,
        "keysChain",
        answers={200: ("Every version, oldest first.", reading.JSON, models.KeysChain)},
    )
    def keys_chain() -> Response:
        """Return every version of the keys document, oldest first."""
        reading.query(())
        return Response(write_chain(services.keys.chain()), content_type=reading.JSON)

    @routes.get("/v1/surveys/<survey_id>/document")
    @declare(
        routes,
        "document",
        answers={200: ("The signed survey document.", reading.JSON, models.SignedEnvelope)},
        problems=(Problem.SURVEY_UNKNOWN, Problem.FIELD_TYPE),
        query=(
            Query(
                "digest",
                {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
                "The digest that a link pins.",
            ),
        ),
    )
    def document(survey_id: str) -> Response:
        """Return a survey's newest signed document, or the one with the requested digest.

        A document requested by digest never changes, so any cache may store it.
        """
        pinned_digest = reading.digest(reading.query({"digest"}).get("digest"))
        response = Response(
            services.surveys.envelope(reading.survey_id(survey_id), pinned_digest),
            content_type=reading.JSON,
        )
        if pinned_digest is not None:
            response.headers["Cache-Control"] = PUBLIC_FOREVER
        return response


def _add_reports(
    routes: APIBlueprint, services: Services, settings: Settings, limits: RateLimits
) -> None:
    @routes.post(REPORTS_ROUTE)
    @declare(
        routes,
        "report",
        answers={
            200: (
                "The report was stored before; or the results of a batch.",
                reading.JSON,
                models.ReportAnswer,
            ),
            201: ("Stored, once and durably.", reading.JSON, models.ReportReceipt),
        },
        problems=_REPORT_PROBLEMS,
        body={reading.JSON: models.ReportBody, reading.BATCH_JSON: models.Batch},
    )
    def report(survey_id: str) -> Response:
        """Store one noisy report, or a batch of them.

        The response follows the commit. If a report is sent again, the response is `duplicate`.
        """
        reading.query(())
        survey = reading.survey_id(survey_id)
        # Checked before the body is read, and spent after the commit, so a refused report is free.
        limits.reports.check(survey)
        if (failed := request.environ.get(FAILED)) is not None:
            raise failed
        if reading.content_type({reading.JSON, reading.BATCH_JSON}) == reading.BATCH_JSON:
            response = _batch(services, settings, survey)
            limits.reports.spend(survey)
            return response
        body, status = receipt(
            services.intake.accept(survey, reading.body(settings.report_limit_bytes))
        )
        limits.reports.spend(survey)
        return Response(body, status=status, content_type=reading.JSON)


def receipt(outcome: Outcome) -> tuple[bytes, int]:
    """Return the response body for a stored report, and its HTTP status."""
    # Faster than json.dumps; this runs for every report. The id is hex and the status is one of two
    # words, so no escaping is needed.
    return f'{{"id": "{outcome.id}", "status": "{outcome.status}"}}'.encode(), _STATUS[
        outcome.status
    ]


def _batch(services: Services, settings: Settings, survey: str) -> Response:
    """Store a batch in one transaction; return one result per report."""
    body = reading.body(settings.body_limit_bytes)
    # Depth 5: batch, list of reports, report, symbols, and the parts of a product's symbol.
    content = canonical.parse_json(body, max_bytes=settings.body_limit_bytes, max_depth=5)
    if not isinstance(content, dict) or set(content) != {"reports"}:
        raise InvalidInput(
            Problem.FIELD_UNKNOWN, "a batch is an object with exactly the field reports", "reports"
        )
    reports = content["reports"]
    if not isinstance(reports, list) or not 1 <= len(reports) <= settings.batch_limit:
        raise InvalidInput(
            Problem.FIELD_TYPE, f"expected a list of 1 to {settings.batch_limit} reports", "reports"
        )
    return json_response(
        {"results": [_result(judged) for judged in services.intake.accept_batch(survey, reports)]}
    )


def _result(judged: Outcome | InvalidInput) -> dict[str, Any]:
    if isinstance(judged, InvalidInput):
        return {
            "status": "refused",
            "problem": problem_body(judged.problem, judged.detail, judged.field),
        }
    return {"status": judged.status, "id": judged.id}
