# SPDX-License-Identifier: Apache-2.0
"""Plans over the API are those of the command, for analysts only, and within the server's time."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_server.analysis.planning import plan_json, plan_within

from tests.frankly_server.web.site import Site, make_site
from tests.frankly_server.web.test_openapi import check_declared

GRR = {"prior": {"joint": [[3, 2, 1]]}, "notion": "ldp", "mechanism": "grr", "epsilon": "1"}
WARNER = {"weights": [[12, 4], [4, 12]], "bits": 4}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home: Path = tmp_path_factory.mktemp("plans")
    found = make_site(home, f"sqlite:///{home / 'frankly.db'}")
    yield found
    found.services.close()


def ask(site: Site, body: Any, key: str | None = None, kind: str = "application/json") -> Any:
    data = body if isinstance(body, str) else json.dumps(body)
    headers = {"Authorization": f"Bearer {key or site.analyst_key}"}
    return site.client.post("/v1/plan", data=data, content_type=kind, headers=headers)


@pytest.mark.parametrize("body", [
    {**GRR, "solve_for": "n", "margin": 0.05, "frontier": 3},
    {**WARNER, "solve_for": "margin", "n": 400, "population": 1000},
])  # fmt: skip
def test_the_answer_is_the_commands_and_of_the_declared_shape(site: Site, body: dict[str, Any]) -> None:
    answer = ask(site, body)
    assert answer.status_code == 200
    check_declared(site.client.get("/openapi.json").json, "/v1/plan", "POST", answer)
    read = parse_json(json.dumps(body).encode(), decimals=True)
    assert answer.json == json.loads(json.dumps(plan_json(read, lambda: 0.0)))


BAD: dict[str, tuple[Any, int, str, str | None]] = {
    "no JSON": ("{", 400, "json_invalid", None),
    "a list": ([], 422, "field_type", None),
    "nothing to solve for": (WARNER, 422, "field_missing", "solve_for"),
    "one's own limits": ({**GRR, "solve_for": "n", "margin": 0.1, "limits": {}}, 422, "unsupported", "limits"),
    "an unknown field": ({**WARNER, "solve_for": "margin", "n": 9, "x": 1}, 422, "field_unknown", "x"),
    "an unknown mechanism": ({**GRR, "mechanism": "x", "solve_for": "margin", "n": 9}, 422, "unsupported", "mechanism"),
    "not to be told": (
        {"weights": [[8, 8], [8, 8]], "bits": 4, "solve_for": "margin", "n": 5}, 422, "not_identifiable", "targets",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_refusals_name_the_field(site: Site, name: str) -> None:
    body, status, code, field = BAD[name]
    answer = ask(site, body)
    assert (answer.status_code, answer.json["code"], answer.json["field"]) == (status, code, field)
    check_declared(site.client.get("/openapi.json").json, "/v1/plan", "POST", answer)


def test_it_asks_for_a_key_and_for_json(site: Site) -> None:
    body = {**WARNER, "solve_for": "margin", "n": 400}
    assert ask(site, body, key="frankly_live_wrong").status_code == 401
    assert ask(site, body, kind="text/plain").status_code == 415
    assert ask(site, '"' + "x" * 2**18 + '"').status_code == 413


def test_searches_end_in_time() -> None:
    """A clock that jumps past the deadline: what was found until then is planned with."""
    now = iter(range(0, 10**9, 30))
    body = {
        "prior": {"joint": [[3, 2, 1], [1, 2, 3]]},
        "notion": "secret-ldp",
        "epsilon": "1",
        "solve_for": "margin",
        "n": 900,
    }
    try:
        found = plan_within(body, lambda: float(next(now)), 20)
    except InvalidInput as error:
        assert error.code == "mechanism_not_certified"  # nothing was found before the time was over
    else:
        assert found["margin"] > 0
    assert next(now) < 30 * 1000, "it was asked for the time, and stopped asking"
