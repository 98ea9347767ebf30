# SPDX-License-Identifier: Apache-2.0
"""Vectors of a server's replies to a report (docs/protocol.md, section 7): what a device does."""

import json
from typing import Any

from frankly_protocol.problems import FINAL, Problem
from frankly_sdk.delivery import _judge
from frankly_sdk.transport import Reply

Case = dict[str, Any]
ID = "0123456789abcdef" * 2
LATER = (
    *(
        Problem.JSON_INVALID,
        Problem.NUMBER_NOT_FINITE,
        Problem.FIELD_UNKNOWN,
        Problem.FIELD_MISSING,
    ),
    *(Problem.FIELD_TYPE, Problem.Y_TYPE, Problem.TOKEN_INVALID),
    *(Problem.SURVEY_UNKNOWN, Problem.NOT_FOUND, Problem.DOC_MISMATCH, Problem.UNAUTHENTICATED),
    *(Problem.FORBIDDEN, Problem.METHOD_NOT_ALLOWED, Problem.BODY_TOO_LARGE, Problem.CONTENT_TYPE),
    *(Problem.BAD_REQUEST, Problem.TOO_EARLY, Problem.TOO_MANY, Problem.TIMED_OUT),
    *(Problem.INTERNAL, Problem.UNAVAILABLE),
)


def replies() -> Case:
    """Return the id of the report, and replies with the receipt before and after the survey closes."""
    problems = [
        (problem.status, {"code": problem.code, "status": problem.status})
        for problem in (*sorted(FINAL, key=lambda problem: problem.code), *LATER)
    ]
    gone = {"code": "closed", "status": 410}
    others: list[tuple[int, Any]] = [
        (201, {"id": ID, "status": "accepted"}),
        (200, {"id": ID, "status": "duplicate"}),
        (200, {"id": ID, "status": "stored"}),
        (201, {"id": ID[::-1], "status": "accepted"}),
        (202, {"id": ID, "status": "accepted"}),
        *((status, gone) for status in (200, 403, 404, 503)),
        (422, {"code": "a_code_of_the_future", "status": 422}),
        (429, {"code": "closed", "status": 429}),
        (410, {"code": "closed"}),
        (410, {"code": "closed", "status": "410"}),
        (410, {"code": "closed", "status": 404}),
        (410, {"code": ["closed"], "status": 410}),
        (410, {"code": "Closed", "status": 410}),
        (404, {"code": "a" * 41, "status": 404}),
        (404, {"status": 404}),
        (410, [gone]),
        (410, None),
    ]
    texts = [
        (status, json.dumps(body, separators=(",", ":"))) for status, body in problems + others
    ]
    pages = [(status, "<html>") for status in (200, 403, 404, 410, 502)]
    return {"id": ID, "cases": [_case(status, body) for status, body in texts + pages]}


def _case(status: int, body: str) -> Case:
    reply = Reply(status, "application/json", None, body.encode())
    before, after = (_judge(reply, ID, has_closed=closed) for closed in (False, True))
    return {
        "status": status,
        "body": body,
        "before": [before.status, before.code],
        "after": [after.status, after.code],
    }
