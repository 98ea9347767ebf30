# SPDX-License-Identifier: Apache-2.0
"""OpenAPI document: complete, valid, up to date under docs/, and matched by real responses."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from flask import Flask
from frankly_analyst import Estimates
from frankly_protocol.problems import Problem
from frankly_server.app import create_app
from frankly_server.web import openapi

from tests.frankly_server.web.site import (
    UNIDENTIFIABLE,
    Site,
    check_declared,
    make_site,
    operations,
)


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        direct_refs = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return direct_refs + [ref for item in value.values() for ref in references(item)]
    return [ref for item in value for ref in references(item)] if isinstance(value, list) else []


def test_the_copy_under_docs_is_current(site: Site, root: Path) -> None:
    served = site.client.get("/openapi.json").data
    assert (root / "docs" / "openapi.json").read_bytes() == served, (
        "save the response to GET /openapi.json as docs/openapi.json"
    )


def test_it_is_built_once_and_not_at_the_start(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    finish, built = openapi.finish, []
    monkeypatch.setattr(openapi, "finish", lambda *given: built.append(given) or finish(*given))
    application = create_app(site.settings, services=site.services)
    assert built == []
    with ThreadPoolExecutor() as threads:
        answers = list(
            threads.map(lambda _: application.test_client().get("/openapi.json").data, range(4))
        )
    assert len(built) == 1
    assert len(set(answers)) == 1


def test_every_route_and_method_is_described(site: Site, spec: dict[str, Any]) -> None:
    app = site.client.application
    assert isinstance(app, Flask)
    routes = {
        (re.sub(r"<(?:int:)?([^>]+)>", r"{\1}", rule.rule), method)
        for rule in app.url_map.iter_rules()
        if not rule.rule.startswith("/admin/")  # pages for people, not part of the API
        for method in (rule.methods or set()) - {"HEAD"}
    }
    assert routes == set(operations(spec))


def test_the_document_is_sound(spec: dict[str, Any]) -> None:
    assert spec["openapi"].startswith("3.1.")
    assert {"title", "version", "description", "license"} <= set(spec["info"])
    schemas = spec["components"]["schemas"]
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    assert {ref.removeprefix("#/components/schemas/") for ref in references(spec)} == set(schemas)
    operations_by_route = operations(spec)
    assert len({operation["operationId"] for operation in operations_by_route.values()}) == len(
        operations_by_route
    )
    for (path, _), operation in operations_by_route.items():
        named = [item["name"] for item in operation["parameters"] if item["in"] == "path"]
        assert named == re.findall(r"{(\w+)}", path)
        assert operation["summary"]
        assert all(answer["description"] for answer in operation["responses"].values())


def test_every_error_is_a_problem_and_names_codes_of_its_status(spec: dict[str, Any]) -> None:
    for operation in operations(spec).values():
        assert {"400", "405", "422", "429", "500", "503"} <= set(operation["responses"])
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                assert list(answer["content"]) == ["application/problem+json"]
                codes = re.findall(r"`(\w+)`:", answer["description"])
                assert codes
                assert {
                    problem.status for code in codes if (problem := Problem.from_code(code))
                } == {int(status)}


def test_routes_of_analysts_need_a_key(spec: dict[str, Any]) -> None:
    """And so do those of admins; devices, witnesses and people with a browser need none."""
    open_paths = {
        path for (path, _), operation in operations(spec).items() if not operation.get("security")
    }
    public = (
        "/v1/keys",
        "/v1/log/",
        "/sdk/",
        "/s/",
        "/results/",
        "/health",
        "/metrics",
        "/openapi.json",
    )
    assert {path for path in open_paths if not path.startswith(public)} == {
        "/",
        "/v1/surveys/{survey_id}/audit",
        "/v1/surveys/{survey_id}/document",
        "/v1/surveys/{survey_id}/reports",
    }
    assert spec["components"]["securitySchemes"]["api_key"]["scheme"] == "bearer"


def test_real_answers_have_the_declared_shape(site: Site, spec: dict[str, Any]) -> None:
    for number in range(1, 13):
        site.send(site.report(number))
    site.release()
    batch = json.dumps({"reports": [site.report(1), {}]})
    answers = {
        ("/health", "GET"): site.client.get("/health"),
        ("/v1/keys", "GET"): site.client.get("/v1/keys"),
        ("/v1/surveys/{survey_id}/document", "GET"): site.client.get(site.document_path),
        ("/v1/surveys/{survey_id}/estimates", "GET"): site.estimates(),
        ("/v1/surveys/{survey_id}/counts", "GET"): site.counts(),
        ("/v1/surveys", "GET"): site.client.get(
            "/v1/surveys", headers={"Authorization": f"Bearer {site.analyst_key}"}
        ),
        ("/v1/surveys/{survey_id}/reports", "POST"): site.client.post(
            site.reports_path, data=batch, content_type="application/vnd.frankly.batch+json"
        ),
    }
    for (path, method), answer in answers.items():
        check_declared(spec, path, method, answer)


def test_a_choice_that_is_not_identifiable_has_no_number(tmp_path: Path, sqlite_url: str) -> None:
    """The admin accepted such a mechanism; the response is as declared, without a number for this choice."""
    site = make_site(tmp_path, sqlite_url, UNIDENTIFIABLE)
    for number in range(20):
        assert site.send(site.report(number, y=[number % 2, number % 2])).status_code == 201
    site.release()
    answer = site.estimates()
    check_declared(
        site.client.get("/openapi.json").get_json(),
        "/v1/surveys/{survey_id}/estimates",
        "GET",
        answer,
    )
    drinks = answer.get_json()["questions"][1]
    known = [row["choice"] for row in drinks["rows"] if row["estimate"] is not None]
    assert (drinks["status"], known, len(drinks["rows"])) == ("ok", ["daily"], 3)
    assert all("not_identifiable" in row["flags"] for row in drinks["rows"])
    # The client prints a line for each choice.
    printed = str(Estimates.from_json(answer.get_json()))
    assert printed.count("cannot be estimated") == 2
    site.services.close()


def test_exactly_the_necessary_parameters_are_required(site: Site, spec: dict[str, Any]) -> None:
    """A query parameter is required if and only if its route refuses a request without it."""
    for (address, method), operation in operations(spec).items():
        parameters = [p for p in operation.get("parameters", []) if p["in"] == "query"]
        if method != "GET" or not parameters or "{" in address:
            continue
        values = {p["name"]: str(p["schema"].get("minimum", 1)) for p in parameters}
        needed = {
            name
            for name in values
            if site.client.get(
                address, query_string={k: v for k, v in values.items() if k != name}
            ).status_code
            == 422
        }
        assert needed == {p["name"] for p in parameters if p["required"]}, address
