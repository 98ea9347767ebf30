# SPDX-License-Identifier: Apache-2.0
"""Bad inputs 35-42 to the reports route: problem objects, with nothing stored and nothing echoed."""

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from frankly_protocol.problems import Problem

from tests.frankly_server.web.site import NOW, Site

CANARY = "canary-7f3a9"

# Name -> (fields to change in a valid report, status, code, field).
BAD_FIELDS: dict[str, tuple[dict[str, Any], int, str, str | None]] = {
    "35 a report of another version": ({"v": 2}, 422, "field_type", "v"),
    "36 an unknown extra field": ({CANARY: CANARY}, 422, "field_unknown", None),
    "36 y as text": ({"y": CANARY}, 422, "y_type", "y"),
    "36 a symbol as boolean": ({"y": [True, 0]}, 422, "y_type", "y"),
    "36 a symbol as text": ({"y": ["1", 0]}, 422, "y_type", "y[0]"),
    "36 a negative symbol": ({"y": [-1, 0]}, 422, "y_type", "y"),
    "37 a symbol out of range": ({"y": [0, 3]}, 422, "symbol_unknown", "y[1]"),
    "37 too few symbols": ({"y": [0]}, 422, "symbol_unknown", "y"),
    "37 too many symbols": ({"y": [0, 0, 0]}, 422, "symbol_unknown", "y"),
    "38 another document": ({"doc": "sha256:" + "0" * 64}, 422, "doc_mismatch", "doc"),
    "38 a digest of the wrong form": ({"doc": CANARY}, 422, "field_type", "doc"),
    "an id that is too short": ({"id": "ab"}, 422, "field_type", "id"),
    "an id with a trailing newline": ({"id": "0" * 32 + "\n"}, 422, "field_type", "id"),
    "an id in Arabic digits": ({"id": "٠" * 32}, 422, "field_type", "id"),
    "a stratum with an unknown choice": (
        {"strata": {"region": CANARY}},
        422,
        "strata_invalid",
        "strata.region",
    ),
    "strata missing": ({"strata": {}}, 422, "strata_invalid", "strata"),
    "strata as list": ({"strata": [CANARY]}, 422, "field_type", "strata"),
    "41 a token without a token rule": ({"token": CANARY}, 401, "token_invalid", "token"),
}

# Name -> (bytes, status, code).
BAD_BODIES: dict[str, tuple[bytes, int, str]] = {
    "35 nothing": (b"", 400, "json_invalid"),
    "35 longer than a report may be": (b" " * 70_000, 413, "body_too_large"),
    "35 longer than any body may be": (b" " * 3_000_000, 413, "body_too_large"),
    "35 invalid UTF-8": (b'{"v":1,"doc":"\xff"}', 400, "json_invalid"),
    "35 cut off": (b'{"v":1,"doc":"sha', 400, "json_invalid"),
    "36 duplicate keys": (b'{"v":1,"v":1}', 400, "json_invalid"),
    "36 a number of 5,000 digits": (b'{"v":' + b"1" * 5000 + b"}", 400, "json_invalid"),
    "36 a fraction": (b'{"v":1.0}', 400, "json_invalid"),
    "36 NaN": (b'{"v":NaN}', 422, "number_not_finite"),
    "36 a lone surrogate": (b'{"v":"\\ud800"}', 400, "json_invalid"),
    "36 a NUL in a key": (b'{"v\\u0000":1}', 422, "field_missing"),
    "32 16,000 levels deep": (b"[" * 16_000, 400, "json_invalid"),
    "32 deeper than a report is": (b'{"v":[[[[1]]]]}', 400, "json_invalid"),
    "a list": (b"[]", 400, "json_invalid"),
    "a number": (b"1", 400, "json_invalid"),
    "an HTML page": (b"<html>" + CANARY.encode(), 400, "json_invalid"),
}

CONTENT_TYPES = ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
                 "application/json; charset=latin-1", "application/problem+json")  # fmt: skip


def check_problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    """Assert that a response is exactly one entry of the problem table; return its object."""
    assert (answer.status_code, answer.get_json()["code"]) == (status, code), answer.data
    assert answer.content_type == "application/problem+json"
    problem = Problem.from_code(code)
    assert problem is not None
    assert (answer.get_json()["type"], answer.get_json()["title"], answer.get_json()["status"]) == (
        problem.uri,
        problem.title,
        status,
    )
    assert answer.get_json()["detail"]
    assert CANARY not in answer.text
    return dict(answer.get_json())


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_a_bad_field_is_refused_by_name(site: Site, name: str) -> None:
    changes, status, code, field = BAD_FIELDS[name]
    assert check_problem(site.send(site.report(7, **changes)), status, code)["field"] == field


@pytest.mark.parametrize("missing", ["v", "doc", "id", "y", "strata", "token"])
def test_a_missing_field_is_refused_by_name(site: Site, missing: str) -> None:
    body = site.report(7)
    del body[missing]
    assert check_problem(site.send(body), 422, "field_missing")["field"] == missing


@pytest.mark.parametrize("name", BAD_BODIES)
def test_invalid_bytes_are_refused(site: Site, name: str) -> None:
    data, status, code = BAD_BODIES[name]
    check_problem(site.send(data), status, code)


@pytest.mark.parametrize("content_type", CONTENT_TYPES)
def test_other_content_types_are_refused(site: Site, content_type: str) -> None:
    check_problem(site.send(site.report(7), content_type=content_type), 415, "content_type")


def test_compressed_bodies_are_refused(site: Site) -> None:
    check_problem(
        site.send(site.report(7), headers={"Content-Encoding": "gzip"}), 415, "content_type"
    )


def test_a_body_that_ends_early_is_400(site: Site) -> None:
    answer = site.send(b'{"v":1', environ_overrides={"CONTENT_LENGTH": "600"})
    check_problem(answer, 400, "bad_request")


def test_a_body_without_a_length_is_still_bounded(site: Site) -> None:
    """The server reads no more than the limit of an endless chunked body."""
    endless = io.BytesIO(b" " * 1_000_000)
    environ = {"wsgi.input": endless, "wsgi.input_terminated": True, "CONTENT_LENGTH": ""}
    check_problem(site.send(b"", environ_overrides=environ), 413, "body_too_large")
    assert endless.tell() <= site.settings.report_limit_bytes + 1


def test_nothing_refused_was_stored(site: Site) -> None:
    for changes, *_ in BAD_FIELDS.values():
        site.send(site.report(7, **changes))
    assert site.send(site.report(7)).get_json() == {"status": "accepted", "id": f"{7:032x}"}


def test_accepted_once_then_duplicate_then_conflict(fresh_site: Site) -> None:
    first, again = fresh_site.send(fresh_site.report(1)), fresh_site.send(fresh_site.report(1))
    assert (first.status_code, first.get_json()) == (201, {"status": "accepted", "id": f"{1:032x}"})
    assert (again.status_code, again.get_json()) == (
        200,
        {"status": "duplicate", "id": f"{1:032x}"},
    )
    assert first.content_type == again.content_type == "application/json"
    check_problem(fresh_site.send(fresh_site.report(1, y=[0, 2])), 409, "id_conflict")
    check_problem(
        fresh_site.send(fresh_site.report(1, strata={"region": "south"})), 409, "id_conflict"
    )


def test_padding_changes_nothing(site: Site) -> None:
    data = json.dumps(site.report(8)).encode()
    assert site.send(data + b" " * 40).get_json()["status"] == "accepted"
    assert site.send(data).get_json()["status"] == "duplicate"


def test_before_opening_and_after_closing(site: Site) -> None:
    early = site.at(NOW - timedelta(seconds=30))
    answer = early.send(early.report(9))
    check_problem(answer, 409, "too_early")
    assert answer.headers["Retry-After"] == "30"
    late = site.at(datetime(2026, 7, 1, 0, 0, 1, tzinfo=UTC))
    check_problem(late.send(late.report(9)), 410, "closed")


@pytest.mark.parametrize(
    "survey", ["f" * 32, "x", "%00", "..%2f..%2fetc", "' OR 1=1 --", "{{7*7}}", "F" * 32, "٠" * 32]
)
def test_an_unknown_survey_of_any_name_is_404(site: Site, survey: str) -> None:
    path = f"/v1/surveys/{survey}/reports"
    answer = site.client.post(
        path, data=json.dumps(site.report(10)), content_type="application/json"
    )
    assert answer.status_code == 404
    assert answer.get_json()["code"] in ("survey_unknown", "not_found")
    assert "49" not in answer.get_json()["detail"]
