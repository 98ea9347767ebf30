# SPDX-License-Identifier: Apache-2.0
"""Bad inputs 35-42 to the reports route: problem objects, with nothing stored and nothing echoed."""

import io
import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.frankly_server.web.bad_reports import BAD_BODIES, BAD_FIELDS, CONTENT_TYPES
from tests.frankly_server.web.site import NOW, Site, check_problem


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
