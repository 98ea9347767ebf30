# SPDX-License-Identifier: Apache-2.0
"""Headers of every answer: no cookie, no ETag, nothing that could carry an identifier (THREATS A2).

Nothing may be cached except documents asked for by their digest. Only what analysts ask with their key has an ETag.
"""

import hashlib
import time
from typing import Final

import structlog
from flask import Flask, Response, current_app, g, request

from frankly_server.web import metrics
from frankly_server.web.logs import duration_bucket, method_name

PUBLIC_FOREVER = "public, max-age=31536000, immutable"
_logger: Final = structlog.get_logger("frankly.web")
STARTED: Final = "frankly.started"
"""When a request began that was first seen in front of Flask."""
_REPORTS: Final = "public.report"
ALWAYS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""What every answer says, unless its view says otherwise."""


def register(app: Flask) -> None:
    """Attach the headers, write the log lines and count every request. One function each: every report runs them."""
    counted = metrics.of(app)

    def begin() -> None:
        g.started = request.environ.get(STARTED, time.monotonic())
        counted.begin()

    def finish(response: Response) -> Response:
        headers = response.headers
        given = {
            name.lower() for name, _ in headers
        }  # the admin's pages allow their own style and script
        headers.extend(
            [(name, value) for name, value in ALWAYS.items() if name.lower() not in given]
        )
        headers.extend(g.get("limit_headers", ()))
        if response.status_code == 200 and getattr(_view(), "tagged", False):
            _tag(response)
        route = request.url_rule.rule if request.url_rule else "none"
        seconds, method = time.monotonic() - g.started, method_name(request.method)
        counted.answered(route, method, response.status_code, seconds)
        # Of reports that were stored there is no line: with its time it would say when somebody answered.
        if request.endpoint != _REPORTS or response.status_code >= 400:
            _log(response, route, method, seconds)
        return response

    def gone(_error: BaseException | None) -> None:
        if "started" in g:
            counted.end()

    app.before_request(begin)
    app.after_request(finish)
    app.teardown_request(gone)


def _view() -> object:
    return current_app.view_functions.get(request.endpoint or "")


def _tag(response: Response) -> None:
    """Name the bytes, and send none if the caller says that these are there already."""
    response.set_etag(hashlib.sha256(response.get_data()).hexdigest()[:32])
    if request.if_none_match.contains(response.get_etag()[0] or ""):
        response.status_code = 304
        response.set_data(b"")
        for name in ("Content-Length", "Content-Type"):
            response.headers.remove(name)


def _log(response: Response, route: str, method: str, seconds: float) -> None:
    """Write one line: the route's template, never the path that was asked for."""
    more = {"code": g.problem_code} if "problem_code" in g else {}
    if "error_kind" in g:
        more |= {"error": g.error_kind, "where": g.error_place}
    write = _logger.error if "error" in more else _logger.info
    write(
        "request",
        route=route,
        method=method,
        status=response.status_code,
        duration=duration_bucket(seconds),
        **more,
    )
