# SPDX-License-Identifier: Apache-2.0
"""Headers of every answer: no cookie, no ETag, nothing that could carry an identifier (THREATS A2).

Nothing may be cached except documents asked for by their digest.
"""

import time
from typing import Final

import structlog
from flask import Flask, Response, g, request

from frankly_server.web.logs import duration_bucket, method_name

PUBLIC_FOREVER = "public, max-age=31536000, immutable"
_log: Final = structlog.get_logger("frankly.web")
_SECURITY: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}


def register(app: Flask) -> None:
    """Attach the headers and the one log line of every request."""

    def begin() -> None:
        g.started = time.monotonic()

    def finish(response: Response) -> Response:
        for name, value in _SECURITY.items():
            response.headers.setdefault(name, value)  # the admin's pages allow their own style and script
        response.headers.setdefault("Cache-Control", "no-store")
        _log_request(response)
        return response

    app.before_request(begin)
    app.after_request(finish)


def _log_request(response: Response) -> None:
    """Write one line: the route's template, never the path that was asked for."""
    fields = {
        "route": request.url_rule.rule if request.url_rule else "none",
        "method": method_name(request.method),
        "status": response.status_code,
        "duration": duration_bucket(time.monotonic() - g.started),
    }
    if "problem_code" in g:
        fields["code"] = g.problem_code
    if "error_kind" in g:
        _log.error("request", **fields, error=g.error_kind, where=g.error_place)
    else:
        _log.info("request", **fields)
