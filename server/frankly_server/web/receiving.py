# SPDX-License-Identifier: Apache-2.0
"""Single reports, received in front of Flask, whose share of one is half of the whole (ADR 0020 has the measurement).

What is taken here: POST of one report, of a length within the limit, with no query and no encoding, while something is
left of the survey's limit. Anything else goes on to Flask untouched. So does what is refused or fails: the view raises
the same error again, so that it is answered, counted and logged in one place.
"""

import time
from collections.abc import Iterable
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Final

from apiflask import APIFlask

from frankly_server.intake import Intake, Outcome
from frankly_server.web import headers, hosted, metrics, public, reading
from frankly_server.web.limits import Limit

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_NOT_PLAIN: Final = frozenset({"HTTP_CONTENT_ENCODING", "HTTP_TRANSFER_ENCODING", "HTTP_UPGRADE"})


class Receiving:
    """The WSGI application in front of Flask's; `limit` is the one that Flask's view draws on."""

    def __init__(self, app: APIFlask, intake: Intake, limit: Limit, max_bytes: int) -> None:
        self._flask: WSGIApplication = app.wsgi_app
        self._intake, self._limit, self._max_bytes = intake, limit, max_bytes
        self._counted = metrics.of(app)
        self._headers = list((hosted.OPEN | headers.ALWAYS | limit.policy).items())

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer a request."""
        survey = self._plain(environ)
        outcome = (
            self._accept(environ, survey)
            if survey is not None and self._limit.has_left(survey)
            else None
        )
        if outcome is None:
            return self._flask(environ, start_response)
        body, status = public.receipt(outcome)
        line = f"{status} {HTTPStatus(status).phrase.upper()}"
        start_response(
            line,
            [("Content-Type", reading.JSON), ("Content-Length", str(len(body))), *self._headers],
        )
        return [body]

    def _plain(self, environ: "WSGIEnvironment") -> str | None:
        """Return the survey of a request that is taken here."""
        found, length = (
            hosted.REPORTS.fullmatch(environ["PATH_INFO"]),
            environ.get("CONTENT_LENGTH", ""),
        )
        plain = (
            environ["REQUEST_METHOD"] == "POST"
            and environ.get("CONTENT_TYPE") == reading.JSON
            and not environ.get("QUERY_STRING")
            and not environ.get("SCRIPT_NAME")
            and _NOT_PLAIN.isdisjoint(environ)
            and (
                length.isascii()
                and length.isdigit()
                and len(length) <= 9
                and int(length) <= self._max_bytes
            )
        )
        return found[1] if found is not None and plain else None

    def _accept(self, environ: "WSGIEnvironment", survey: str) -> Outcome | None:
        """Store the report; None leaves it to Flask, with the body to be read again and the error that it met."""
        environ[headers.STARTED] = started = time.monotonic()
        length = int(environ["CONTENT_LENGTH"])
        self._counted.begin()
        try:
            body = _read(environ, length)
            if len(body) < length:
                return None
            outcome = self._intake.accept(survey, body)
        except Exception as error:  # noqa: BLE001 - raised again by the view
            environ[public.FAILED] = error
            return None
        finally:
            self._counted.end()
        self._limit.spend(survey)
        _, status = public.receipt(outcome)
        self._counted.answered(public.REPORTS_ROUTE, "POST", status, time.monotonic() - started)
        return outcome


def _read(environ: "WSGIEnvironment", length: int) -> bytes:
    """Return the body and leave it to be read again; nothing if the sender has gone, which Flask then sees as well."""
    try:
        body: bytes = environ["wsgi.input"].read(length)
    except (OSError, ValueError):
        return b""
    environ["wsgi.input"] = BytesIO(body)
    return body
