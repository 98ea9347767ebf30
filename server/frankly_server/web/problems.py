# SPDX-License-Identifier: Apache-2.0
"""Errors of the API as problem+json objects (RFC 9457).

The body is built from the shared problem table. The detail is text of this project, because the
message of a library's exception could repeat the request.
"""

import sys
from typing import Any

from flask import Response, g, json, request
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem, problem_body
from werkzeug.exceptions import HTTPException

from frankly_server.web.logs import code_place
from frankly_server.web.pages import unknown_page, wants_page

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 5
_KEPT_HEADERS = frozenset({"allow", "retry-after"})
_FOR_OPERATOR_ONLY = frozenset(
    {Problem.KEY_FILE, Problem.UNSAFE_SETTING, Problem.FILE_EXISTS, Problem.USAGE}
)
_BY_STATUS: dict[int, tuple[Problem, str]] = {
    400: (Problem.BAD_REQUEST, "the request could not be read; check that it was sent completely"),
    404: (Problem.NOT_FOUND, "there is no such address; /openapi.json lists all addresses"),
    405: (Problem.METHOD_NOT_ALLOWED, "use one of the methods in the Allow header"),
    408: (Problem.TIMED_OUT, "the request did not arrive in time; send it again"),
    413: (Problem.BODY_TOO_LARGE, "the body is larger than this address accepts"),
    415: (Problem.CONTENT_TYPE, "send application/json"),
    429: (Problem.TOO_MANY, "slow down and try again after the time in Retry-After"),
    503: (Problem.UNAVAILABLE, "try again after the time in Retry-After"),
}
_FAULT: tuple[Problem, str] = (Problem.INTERNAL, "an internal error occurred; try again later")


def raw_problem(status: int) -> tuple[Problem, list[tuple[str, str]], bytes]:
    """Return problem, headers and body for a request that Flask does not handle.

    A status that is not in the table becomes 400 if it is 501 or below 500, and 500 otherwise.
    """
    # The request, not this server, causes 501, which means an unknown transfer encoding.
    status = 400 if status == 501 else status
    problem, detail = _BY_STATUS.get(status, _BY_STATUS[400] if status < 500 else _FAULT)
    body = json.dumps(problem_body(problem, detail)).encode()
    return (
        problem,
        [
            ("Content-Type", MEDIA_TYPE),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ],
        body,
    )


def problem_response(problem: Problem, detail: str, field: str | None = None) -> Response:
    """Render a problem with the headers that its status requires."""
    body = json.dumps(problem_body(problem, detail, field))
    response = Response(body, status=problem.status, content_type=MEDIA_TYPE)
    # RFC 9110 requires the challenge with every 401.
    if problem.status == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="frankly"'
    if problem.status in (429, 503):
        response.headers["Retry-After"] = str(RETRY_AFTER_S)
    g.problem_code = problem.code
    return response


def from_http(error: HTTPException) -> Response:
    """Render an error of Flask or werkzeug with its Allow and Retry-After headers.

    A person who opens an address that does not exist gets a page.
    """
    status = error.code or 500
    if status == 404 and wants_page():
        g.problem_code = Problem.NOT_FOUND.code
        response = unknown_page()
        response.vary.add("Accept")
        return response
    fallback = _BY_STATUS[400] if 400 <= status < 500 else _FAULT
    # The library's text is dropped, because it may repeat the request.
    problem, detail = _BY_STATUS.get(status, fallback)
    response = problem_response(problem, detail)
    for name, value in error.get_headers(request.environ):
        if name.lower() in _KEPT_HEADERS:
            response.headers[name] = value
    return response


def from_frankly(error: FranklyError) -> Response:
    """Render a FranklyError; without an entry in the problem table it is an internal fault."""
    problem = error.problem if isinstance(error, InvalidInput) else Problem.from_code(error.code)
    if problem is None:
        return from_unexpected(error)
    if problem in _FOR_OPERATOR_ONLY:
        # The detail contains files and settings, which only `frankly doctor` may show.
        return problem_response(
            Problem.UNAVAILABLE, "the server is not set up to answer this; its operator must act"
        )
    response = problem_response(problem, error.detail, error.field)
    retry_after_s = getattr(error, "retry_after_s", None)
    if retry_after_s is not None:
        response.headers["Retry-After"] = str(retry_after_s)
    return response


def from_unexpected(error: Exception) -> Response:
    """Render an unexpected error without details; the log line has its type and code location."""
    g.error_kind = type(error).__name__
    g.error_place = code_place(error.__traceback__ or sys.exc_info()[2])
    return problem_response(
        Problem.INTERNAL, "an internal error occurred; the same request may be sent again later"
    )


def register(app: Any) -> None:
    """Attach the error handlers to the application."""
    app.register_error_handler(HTTPException, from_http)
    app.register_error_handler(FranklyError, from_frankly)
    app.register_error_handler(Exception, from_unexpected)
