# SPDX-License-Identifier: Apache-2.0
"""Reports in their plain form, received in front of Flask: nearly every request of a survey is one (ADR 0017).

What is plain: POST to the reports route of one report, or of a batch that is written as our SDKs write reports, a
length within the limit, no query, no encoding, no upgrade, and something left of the survey's limit. Then what Flask
would call is called here, by the same functions: limit, intake, receipt, headers, counters, log line. Anything else
goes on to Flask untouched; so does whatever is refused or fails here, to be answered there, as the same error.
"""

import time
from collections.abc import Iterable
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Final

from apiflask import APIFlask

from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.web import headers, hosted, logs, metrics, public, reading
from frankly_server.web.limits import Limits

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_NOT_PLAIN: Final = frozenset({"HTTP_CONTENT_ENCODING", "HTTP_TRANSFER_ENCODING", "HTTP_UPGRADE"})


def put_before(app: APIFlask, services: Services, settings: Settings, limits: Limits) -> None:
    """Let `app` receive plain reports without Flask; `limits` are those that its own route draws on."""
    app.wsgi_app = Reception(app, services, settings, limits)  # type: ignore[method-assign]  # as Flask's manual says


class Reception:
    """The WSGI application in front of Flask's."""

    def __init__(self, app: APIFlask, services: Services, settings: Settings, limits: Limits) -> None:
        self._flask: WSGIApplication = app.wsgi_app
        self._json = app.json
        self._services, self._limit = services, limits.reports
        self._settings = settings
        self._most_bytes = {reading.JSON: settings.report_limit_bytes, reading.BATCH_JSON: settings.body_limit_bytes}
        self._metrics = metrics.of(app)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer a request."""
        survey, length = self._plain(environ)
        told = self._limit.policy(survey) if length else None
        if told is None:
            return self._flask(environ, start_response)
        logs.started(environ)
        self._metrics.begin()
        try:
            body = _read(environ, length)
            answer = self._answer(environ["CONTENT_TYPE"], survey, body) if len(body) == length else None
            if answer is not None:
                return self._answered(environ, start_response, survey, answer, told)
        except Exception as error:  # noqa: BLE001 - answered by who answers every error
            environ[public.FAILED] = error
        finally:
            self._metrics.end()
        return self._flask(environ, start_response)

    def _plain(self, environ: "WSGIEnvironment") -> tuple[str, int]:
        """Return survey and length of what may be plain; a length of 0 says that it is not."""
        found = hosted.REPORTS.fullmatch(environ["PATH_INFO"])
        length = environ.get("CONTENT_LENGTH", "")
        if (
            found is None
            or environ["REQUEST_METHOD"] != "POST"
            or environ.get("QUERY_STRING")
            or environ.get("SCRIPT_NAME")
            or environ.get("CONTENT_TYPE") not in self._most_bytes
            or not _NOT_PLAIN.isdisjoint(environ)
            or not (length.isascii() and length.isdigit() and len(length) <= 9)
        ):
            return "", 0
        return found[1], int(length) if int(length) <= self._most_bytes[environ["CONTENT_TYPE"]] else 0

    def _answer(self, kind: str, survey: str, body: bytes) -> tuple[str, int] | None:
        """Store what was sent; return answer and status, None for a batch that is not plain. Raises as `Intake`."""
        if kind == reading.JSON:
            receipt, status = public.receipt(self._services.intake.accept(survey, body))
            return self._json.dumps(receipt, allow_nan=False), status
        batch = self._services.intake.recognised(body)
        if batch is None or len(batch) > self._settings.batch_limit:
            return None
        return public.stored(self._services, self._settings, survey, batch, self._json.dumps), 200

    def _answered(
        self,
        environ: "WSGIEnvironment",
        start_response: "StartResponse",
        survey: str,
        answer: tuple[str, int],
        told: dict[str, str],
    ) -> Iterable[bytes]:
        """Do for an answer what Flask's hooks do."""
        self._limit.spend(survey)
        data, status = answer[0].encode("utf-8"), answer[1]
        seconds = time.monotonic() - logs.started(environ)
        self._metrics.answered(public.REPORTS_ROUTE, "POST", status, seconds)
        headers.log_request(public.REPORTS_ROUTE, "POST", status, seconds)
        first = ("Content-Type", reading.JSON), ("Content-Length", str(len(data)))
        lines = [*first, *hosted.OPEN.items(), *told.items(), *headers.ALWAYS.items()]
        start_response(f"{status} {HTTPStatus(status).phrase.upper()}", lines)
        return [data]


def _read(environ: "WSGIEnvironment", length: int) -> bytes:
    """Return the body and leave it to be read again; nothing if the client has gone, which Flask then sees as well."""
    try:
        body = bytes(environ["wsgi.input"].read(length))
    except (OSError, ValueError):
        return b""
    environ["wsgi.input"] = BytesIO(body)
    return body
