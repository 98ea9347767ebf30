# SPDX-License-Identifier: Apache-2.0
"""Metrics (only for holders of the token, exact, with bounded label values) and health."""

import re
from typing import Any

import pytest
from frankly_server.app import create_app
from frankly_server.store import StoreUnavailable
from pydantic import SecretStr

from tests.frankly_server.web.site import Site, check_problem

TOKEN = "0123456789abcdef0123456789abcdef"
SAMPLE = re.compile(
    r'(?P<name>[a-z_]+)(?:\{(?P<labels>(?:[a-z]+="[^"\\\n]*",?)*)\})? (?P<value>[0-9.e+-]+)'
)


@pytest.fixture
def client(site: Site) -> Any:
    settings = site.settings.model_copy(update={"metrics_token": SecretStr(TOKEN)})
    return create_app(settings, services=site.services).test_client()


def samples(client: Any) -> dict[tuple[str, str], float]:
    """Parse the text format; every line except comments must be a sample, and no sample may occur twice."""
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, answer.content_type) == (
        200,
        "text/plain; version=0.0.4; charset=utf-8",
    )
    values: dict[tuple[str, str], float] = {}
    declared = set()
    for line in answer.text.removesuffix("\n").split("\n"):
        if line.startswith("# TYPE "):
            declared.add(line.split()[2])
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert (
                re.sub(r"_(bucket|sum|count)$", "", match["name"]) in declared
                or match["name"] in declared
            )
            key = match["name"], match["labels"] or ""
            assert key not in values
            values[key] = float(match["value"])
    return values


def test_requests_are_counted_by_route_method_and_status(site: Site, client: Any) -> None:
    for number in range(3):
        client.post(site.reports_path, json=site.report(number))
    client.post(site.reports_path, json=site.report(1, y=[9, 9]))
    client.get("/nothing/canary")
    client.open("/health", method="CANARY")
    metric_values = samples(client)
    route = "/v1/surveys/<survey_id>/reports"
    assert (
        metric_values["frankly_requests_total", f'route="{route}",method="POST",status="201"'] == 3
    )
    assert (
        metric_values["frankly_requests_total", f'route="{route}",method="POST",status="422"'] == 1
    )
    assert metric_values["frankly_requests_total", 'route="none",method="GET",status="404"'] == 1
    assert metric_values["frankly_requests_total", 'route="none",method="OTHER",status="405"'] == 1
    buckets = [
        metric_values["frankly_request_seconds_bucket", f'route="{route}",le="{edge}"']
        for edge in ("0.003", "0.01", "0.03", "0.1", "0.3", "1", "3", "10", "+Inf")
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == metric_values["frankly_request_seconds_count", f'route="{route}"'] == 4
    assert metric_values["frankly_request_seconds_sum", f'route="{route}"'] > 0
    assert metric_values["frankly_requests_in_flight", ""] == 1  # the request itself
    assert metric_values["process_resident_memory_bytes", ""] > 10_000_000
    assert not [key for key in metric_values if "canary" in str(key) or site.survey in str(key)]


@pytest.mark.parametrize(
    "header", [None, "", TOKEN, f"bearer {TOKEN}", f"Bearer {TOKEN}x", "Bearer ", "Bearer \xe9"]
)
def test_only_the_token_opens_them(client: Any, header: str | None) -> None:
    answer = client.get("/metrics", headers={} if header is None else {"Authorization": header})
    check_problem(answer, 401, "unauthenticated")


def test_without_a_token_there_are_none(site: Site) -> None:
    check_problem(
        site.client.get("/metrics", headers={"Authorization": "Bearer None"}), 404, "not_found"
    )


def test_without_its_database_the_server_is_live_but_not_ready(
    site: Site, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(**_: bool) -> None:
        raise StoreUnavailable("start")

    assert [
        client.get(path).status_code for path in ("/health/live", "/health/ready", "/health")
    ] == [200, 200, 200]
    monkeypatch.setattr(site.services.database, "check", away)
    for path in ("/health/ready", "/health"):
        answer = client.get(path)
        check_problem(answer, 503, "unavailable")
        assert int(answer.headers["Retry-After"]) > 0
    assert client.get("/health/live").json == {"status": "ok"}
    assert (
        samples(client)["frankly_requests_total", 'route="/health/ready",method="GET",status="503"']
        == 1
    )
