# SPDX-License-Identifier: Apache-2.0
"""Rules for all routes: versions, closed objects, bounded pages, and equal work for wrong keys."""

import hmac
import json
from typing import Any

import pytest
from frankly_server.log import service as log_service
from frankly_server.surveys.definition import parse_definition

from tests.frankly_server.web.admin.office import Office
from tests.frankly_server.web.site import SURVEY, Site, check_problem

# Unversioned URLs that operators and links depend on.
UNVERSIONED = {
    "/",
    "/health",
    "/health/live",
    "/health/ready",
    "/metrics",
    "/openapi.json",
    "/results/{secret}",
    "/results/{secret}/{name}",
    "/s/{survey_id}",
    "/s/{survey_id}/logo",
}
# Objects whose fields are names chosen by the caller or defined by another standard.
OPEN = {"OpenApi", "ProblemDetails", "SurveyFile"}


def test_every_address_contains_its_version(spec: dict[str, Any]) -> None:
    unversioned = {path for path in spec["paths"] if not path.startswith(("/v1/", "/sdk/v1/"))}
    assert unversioned == UNVERSIONED


def test_response_objects_have_only_listed_fields(spec: dict[str, Any]) -> None:
    """Fuzz tests compare responses with this schema, so a field added by accident fails there."""
    closed = 0
    for name, schema in spec["components"]["schemas"].items():
        if schema.get("type") == "object" and name not in OPEN:
            assert schema["additionalProperties"] is False, name
            assert set(schema.get("required", ())) <= set(schema["properties"]), name
            closed += 1
    assert closed > 15


def test_request_objects_have_only_listed_fields(site: Site) -> None:
    batch = "application/vnd.frankly.batch+json"
    report_with_extra = site.report(1) | {"survey": site.survey}
    check_problem(site.send(report_with_extra), 422, "field_unknown")
    data = json.dumps({"reports": [site.report(1)], "role": "admin"})
    check_problem(
        site.client.post(site.reports_path, data=data, content_type=batch), 422, "field_unknown"
    )
    data = json.dumps({"reports": [report_with_extra]})
    [result] = site.client.post(site.reports_path, data=data, content_type=batch).get_json()[
        "results"
    ]
    assert result["problem"]["code"] == "field_unknown"
    plan = {"solve_for": "margin", "n": 100, "weights": [[12, 4], [4, 12]], "bits": 4}
    key = {"Authorization": f"Bearer {site.analyst_key}"}
    assert site.client.post("/v1/plan", json=plan, headers=key).status_code == 200
    for field in ("limits", "survey", "admin"):
        assert site.client.post("/v1/plan", json=plan | {field: 1}, headers=key).status_code == 422
    refused = site.client.get(f"{site.estimates_path}?organisation=other", headers=key)
    check_problem(refused, 422, "field_unknown")


def test_the_log_is_read_page_by_page(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        named = SURVEY.replace(b"name: habits", b"name: habits%d" % number)
        site.services.surveys.apply(parse_definition(named))
        site.services.surveys.publish(f"habits{number}")
    monkeypatch.setattr(log_service, "ENTRIES_LIMIT", 2)
    positions: list[int] = []
    while True:
        page = site.client.get(f"/v1/log/entries?start={len(positions)}").get_json()
        assert page["size"] == 5
        assert len(page["entries"]) <= 2
        if not page["entries"]:
            break
        positions += [entry["position"] for entry in page["entries"]]
    assert positions == [0, 1, 2, 3, 4]
    assert site.client.get(f"/v1/log/entries?start={10**15}").get_json() == {
        "size": 5,
        "entries": [],
    }
    for bad in ("-1", "01", "1e3", "x", "٣", "9" * 20):
        check_problem(
            site.client.get("/v1/log/entries", query_string={"start": bad}), 422, "field_type"
        )


def test_the_trail_is_read_page_by_page(own_office: Office) -> None:
    """With 120 events plus those of the office's creation, at 50 a page, the links show each event once."""
    office = own_office
    owner = office.services.accounts.sign_in("owner@example.org", "correct horse battery").person
    with office.services.database.transaction("120 events") as tx:
        for number in range(120):
            office.services.accounts.recorder(owner, "survey created", f"event-{number:03d}.")(tx)
    client, where, event_numbers = office.client("owner"), "/admin/audit", list[str]()
    for _ in range(10):
        text = client.get(where).text
        event_numbers += [part[:3] for part in text.split("event-")[1:]]
        if "?before=" not in text:
            break
        where = "/admin/audit?before=" + text.split("?before=")[1].split('"')[0]
    assert event_numbers == [f"{number:03d}" for number in reversed(range(120))]


def test_every_wrong_key_is_compared_once_and_gets_the_same_response(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown prefix, a wrong secret, a revoked key and a malformed key each need one comparison
    of 64 characters."""
    gone = site.services.access.create("analyst", "gone")
    site.services.access.revoke(site.services.access.authenticate(gone).prefix)
    neighbour = site.analyst_key[:-1] + ("A" if site.analyst_key[-1] != "A" else "B")
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def watched(a: Any, b: Any) -> bool:
        compared.append((len(a), len(b)))
        return real(a, b)

    monkeypatch.setattr(hmac, "compare_digest", watched)
    answer_texts = set()
    for key in (
        "frankly_live_" + "A" * 43,
        neighbour,
        gone,
        "x",
        "frankly_live_" + "A" * 44,
        "x" * 1000,
    ):
        compared.clear()
        answer = site.estimates(key=key)
        assert answer.status_code == 401
        assert compared == [(64, 64)]
        answer_texts.add(answer.data)
    assert len(answer_texts) == 1


def test_only_forms_need_a_form_token(site: Site) -> None:
    """The API uses no cookies, so a cross-site request cannot act in a user's name."""
    client = site.client.application.test_client()
    client.set_cookie("frankly_admin", "A" * 43, path="/")
    sent = client.post(
        site.reports_path, json=site.report(77), headers={"Origin": "https://elsewhere.example"}
    )
    assert sent.status_code == 201
    assert "Set-Cookie" not in sent.headers
    assert client.post("/v1/plan", json={}).status_code == 401  # a cookie is not a key
    assert client.post("/admin/people", data={"email": "x@example.org"}).status_code == 403
