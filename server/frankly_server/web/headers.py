# SPDX-License-Identifier: Apache-2.0
"""Default headers, ETags, log lines and counters for all responses of Flask.

Responses may not be cached unless their view allows it. Only responses to analysts, whom the API
key identifies anyway, have an ETag: browsers send ETags back, which could identify respondents.
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
"""WSGI key: start time (monotonic seconds) of a request that the fast path passes to Flask."""
_REPORTS: Final = "public.report"
ALWAYS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Default values of headers, which a view can override."""


def register(app: Flask) -> None:
    """Attach headers, log lines and counters to every request of `app`."""
    # One hook of each kind instead of one per concern, because each hook costs time per request.
    counted = metrics.of(app)

    def begin() -> None:
        g.started = request.environ.get(STARTED, time.monotonic())
        counted.begin()

    def finish(response: Response) -> Response:
        headers = response.headers
        # Admin pages set a policy of their own, which allows their style sheet and script.
        names = {name.lower() for name, _ in headers}
        headers.extend(
            [(name, value) for name, value in ALWAYS.items() if name.lower() not in names]
        )
        headers.extend(g.get("limit_headers", ()))
        view = current_app.view_functions.get(request.endpoint or "")
        if response.status_code == 200 and getattr(view, "tagged", False):
            _tag(response)
        route = request.url_rule.rule if request.url_rule else "none"
        seconds, method = time.monotonic() - g.started, method_name(request.method)
        counted.answered(route, method, response.status_code, seconds)
        # Stored reports are not logged, because the time would show when a respondent answered.
        if request.endpoint != _REPORTS or response.status_code >= 400:
            _log(response, route, method, seconds)
        return response

    def release(_error: BaseException | None) -> None:
        # Teardown also runs if another hook ended the request before `begin`.
        if "started" in g:
            counted.end()

    app.before_request(begin)
    app.after_request(finish)
    app.teardown_request(release)


def _tag(response: Response) -> None:
    """Set the ETag of a response; convert it to a 304 if the caller already has these bytes."""
    if "ETag" not in response.headers:
        response.set_etag(hashlib.sha256(response.get_data()).hexdigest()[:32])
    if request.if_none_match.contains(response.get_etag()[0] or ""):
        response.status_code = 304
        response.set_data(b"")
        # A 304 has no content, so it must not have headers that describe content.
        for name in ("Content-Length", "Content-Type"):
            response.headers.remove(name)


def _log(response: Response, route: str, method: str, seconds: float) -> None:
    """Write one line with the template of the route, because the path may contain a survey id."""
    details = {"code": g.problem_code} if "problem_code" in g else {}
    if "error_kind" in g:
        details |= {"error": g.error_kind, "where": g.error_place}
    write = _logger.error if "error" in details else _logger.info
    write(
        "request",
        route=route,
        method=method,
        status=response.status_code,
        duration=duration_bucket(seconds),
        **details,
    )
