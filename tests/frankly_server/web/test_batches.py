# SPDX-License-Identifier: Apache-2.0
"""Batches of reports: one transaction, and one result per report; a bad report does not affect the others."""

import json
from typing import Any

import pytest

from tests.frankly_server.web.site import Site, check_problem

BATCH = "application/vnd.frankly.batch+json"


def post(site: Site, value: Any) -> Any:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return site.client.post(site.reports_path, data=data, content_type=BATCH)


def test_each_report_gets_its_own_result(fresh_site: Site) -> None:
    site = fresh_site
    site.send(site.report(1))
    reports = [
        site.report(1),
        site.report(2),
        site.report(3, y=[9, 9]),
        site.report(2),
        site.report(1, y=[0, 0]),
        7,
    ]
    answer = post(site, {"reports": reports})
    assert answer.status_code == 200
    results = [
        result.get("problem", result).get("code", result["status"])
        for result in answer.json["results"]
    ]
    assert results == [
        "duplicate",
        "accepted",
        "symbol_unknown",
        "duplicate",
        "id_conflict",
        "json_invalid",
    ]
    assert answer.json["results"][2]["problem"]["field"] == "y[0]"
    assert post(site, {"reports": [site.report(2)]}).json["results"] == [
        {"status": "duplicate", "id": f"{2:032x}"}
    ]


# Name -> (body, status, code).
BAD: dict[str, tuple[Any, int, str]] = {
    "no reports": ({"reports": []}, 422, "field_type"),
    "too many reports": ({"reports": [0] * 1001}, 422, "field_type"),
    "reports as object": ({"reports": {}}, 422, "field_type"),
    "another field": ({"reports": [], "x": 1}, 422, "field_unknown"),
    "no field": ({}, 422, "field_unknown"),
    "a list": ([], 422, "field_unknown"),
    "too deep": ({"reports": [{"y": [[[1]]]}]}, 400, "json_invalid"),
    "a fraction anywhere": (b'{"reports":[{"v":1.5}]}', 400, "json_invalid"),
    "too large": (b" " * (2 * 2**20 + 1), 413, "body_too_large"),
    "100,000 levels deep": (b"[" * 100_000 + b"]" * 100_000, 400, "json_invalid"),
    "nothing": (b"", 400, "json_invalid"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_batch_is_refused_completely(site: Site, name: str) -> None:
    value, status, code = BAD[name]
    check_problem(post(site, value), status, code)


def test_a_batch_for_an_unknown_survey(site: Site) -> None:
    data = json.dumps({"reports": [site.report(5)]})
    check_problem(
        site.client.post(f"/v1/surveys/{'0' * 32}/reports", data=data, content_type=BATCH),
        404,
        "survey_unknown",
    )
