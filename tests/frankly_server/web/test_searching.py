# SPDX-License-Identifier: Apache-2.0
"""Searches of requests beside reports: they hold no slot, full places give 429, deadlines kill."""

import json
import multiprocessing
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from frankly_design.tables.limits import FINISH_S
from frankly_server.app import create_app
from frankly_server.surveys import searches
from frankly_server.surveys.searches import ANALYSES, SEARCHES
from frankly_server.web import health, planning
from frankly_server.web.admin import margins

from tests.frankly_server.surveys.apart import endless, waiting
from tests.frankly_server.web.admin.office import Office, send
from tests.frankly_server.web.site import Site, check_problem, waitress

PLAN = {
    "prior": {"joint": [[3 + 7 * x % 11, 5 + 3 * x % 7] * 8 for x in range(3)]},
    "notion": "lip", "mechanism": "optimal", "epsilon": "1.0", "solve_for": "n", "margin": 0.05, "frontier": 30,
}  # fmt: skip


OURS = SEARCHES[1] - 1
"""Number of searches that one organisation may have a place for."""


def plan(client: Any, key: str, body: Any) -> Any:
    return client.post("/v1/plan", json=body, headers={"Authorization": f"Bearer {key}"})


def keys(site: Site, number: int) -> list[str]:
    return [site.services.access.create("analyst", f"key {i}") for i in range(number)]


@pytest.fixture
def narrow(site: Site) -> Any:
    """A client of the same survey on a server with a single slot."""
    settings = site.settings.model_copy(update={"threads": 1})
    return create_app(settings, services=site.services).test_client


@pytest.fixture
def held(
    site: Site, narrow: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[list[int]]:
    """Requests of other keys that take all places; the list has their statuses at the end."""
    monkeypatch.setattr(planning, "within", waiting)
    monkeypatch.setattr(searches, "_WAIT_S", 60.0)
    until, statuses = tmp_path / "until", list[int]()

    def search(key: str) -> None:
        statuses.append(plan(narrow(), key, {"until": str(until)}).status_code)

    threads = [threading.Thread(target=search, args=(key,)) for key in keys(site, OURS)]
    for thread in threads:
        thread.start()
    while site.services.searches.number_held < OURS:
        time.sleep(0.001)
    yield statuses
    until.touch()
    for thread in threads:
        thread.join()
    assert statuses == [200] * OURS


def test_reports_have_the_only_slot_while_searches_run(
    site: Site, narrow: Any, held: list[int]
) -> None:
    client = narrow()
    for number in range(20):
        report = json.dumps(site.report(1000 + number))
        answer = client.post(site.reports_path, data=report, content_type="application/json")
        assert answer.status_code == 201
    assert client.get("/health/ready").status_code == 200
    assert held == []  # the searches are still running


def test_a_search_without_a_place_gets_429(site: Site, narrow: Any, held: list[int]) -> None:
    answer = plan(narrow(), site.analyst_key, {"until": "never"})
    check_problem(answer, 429, "too_many")
    assert answer.headers["Retry-After"] == "5"
    assert "the server is computing for others" in answer.get_json()["detail"]
    assert held == []


def test_pages_say_kindly_that_others_are_searching(
    own_office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = own_office.client("admin")
    with monkeypatch.context() as full:
        full.setattr(own_office.services.searches, "_most", 0)
        for page, words in (
            ("margins", "One moment, please"),
            ("try", "the server is computing for others"),
        ):
            answer = client.get(f"/admin/surveys/{own_office.survey}/{page}")
            assert (answer.status_code, answer.headers["Retry-After"]) == (429, "5")
            assert words in answer.text
        # This page is for other things, too.
        answer = client.get(f"/admin/surveys/{own_office.survey}/answers")
        assert answer.status_code == 200
        assert "not known yet: the server is computing for others" in answer.text
        # The protection step asks anew from its own places, and its form can be saved meanwhile.
        full.setattr(own_office.services.previews, "_most", 0)
        assert client.get(f"/admin/surveys/{own_office.survey}/protection").status_code == 200
        outlook = f"/admin/surveys/{own_office.survey}/protection/outlook"
        answer = send(client, outlook, block="smokes", strength="2")
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "5")
        assert "the server is computing for others" in answer.text
    assert client.get(f"/admin/surveys/{own_office.survey}/try").status_code == 200
    monkeypatch.setattr(margins, "preview", endless)
    monkeypatch.setattr(margins, "PREVIEW_S", 0.2)
    answer = client.get(f"/admin/surveys/{own_office.survey}/margins")
    assert answer.status_code == 422
    assert "this took longer than 0.2 s" in answer.text


def test_reports_have_the_only_slot_while_estimates_are_computed(
    site: Site, narrow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, statuses = threading.Semaphore(0), threading.Event(), list[int]()
    compute = site.services.analysis.estimates

    def estimates(*arguments: Any, **fields: Any) -> Any:
        begun.release()
        assert go_on.wait(60)
        return compute(*arguments, **fields)

    monkeypatch.setattr(searches, "_WAIT_S", 60.0)
    monkeypatch.setattr(site.services.analysis, "estimates", estimates)

    def ask(key: str) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        statuses.append(narrow().get(site.estimates_path, headers=headers).status_code)

    at_once, most, each = ANALYSES
    others = keys(site, 2)
    threads = [threading.Thread(target=ask, args=(others[i // each],)) for i in range(most - 1)]
    for thread in threads:
        thread.start()
    for _ in range(at_once):
        assert begun.acquire(timeout=60)
    while site.services.analyses.number_held < most - 1:
        time.sleep(0.001)
    client = narrow()
    report = json.dumps(site.report(2000))
    answer = client.post(site.reports_path, data=report, content_type="application/json")
    assert answer.status_code == 201
    for key, whose in ((site.analyst_key, "others"), (others[0], "an earlier request of yours")):
        for path in (site.estimates_path, f"/v1/surveys/{site.survey}/counts"):
            refused = client.get(path, headers={"Authorization": f"Bearer {key}"})
            check_problem(refused, 429, "too_many")
            assert refused.headers["Retry-After"] == "5"
            assert f"computing for {whose}" in refused.get_json()["detail"]
    go_on.set()
    for thread in threads:
        thread.join()
    assert statuses == [200] * (most - 1)


def test_a_plan_is_killed_at_its_deadline(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "within", endless)
    monkeypatch.setattr(planning, "PLAN_S", 0.2 - 2 * FINISH_S)
    check_problem(plan(site.client, site.analyst_key, {}), 422, "optimiser_limit")
    assert not [one for one in multiprocessing.active_children() if "search" in one.name]


def test_no_report_is_refused_beside_planning_clients(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty-two clients plan with eight keys; how long reports take is for `bench intake` to measure."""
    monkeypatch.setattr(planning, "PLAN_S", 0.3)
    monkeypatch.setattr(planning, "FINISH_S", 0.1)
    monkeypatch.setattr(health, "_READY_S", 300)  # how long it takes is measured there too
    settings = site.settings.model_copy(update={"threads": 2, "key_rate_per_s": 1e6})
    statuses, reports, enough = Counter[int](), Counter[int](), threading.Event()
    with waitress(create_app(settings, services=site.services)) as origin:

        def ask(key: str) -> None:
            with requests.Session() as session:
                session.headers["Authorization"] = f"Bearer {key}"
                while not enough.is_set():
                    answer = session.post(f"{origin}/v1/plan", json=PLAN, timeout=300)
                    statuses[answer.status_code] += 1
                    if answer.status_code == 429:
                        assert answer.headers["Retry-After"] == "5"
                        enough.wait(1)

        threads = [threading.Thread(target=ask, args=(key,)) for key in keys(site, 8) * 4]
        for thread in threads:
            thread.start()
        with requests.Session() as session:
            while not {200, 422} & statuses.keys() or not statuses[429] or reports.total() < 100:
                body = site.report(5000 + reports.total())
                answer = session.post(f"{origin}{site.reports_path}", json=body, timeout=300)
                reports[answer.status_code] += 1
                ready = session.get(f"{origin}/health/ready", timeout=300)
                assert ready.status_code == 200
        enough.set()
        for thread in threads:
            thread.join()
    assert set(reports) == {201}
    assert set(statuses) <= {200, 422, 429}


def test_no_page_searches_in_the_process_of_the_server(
    own_office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Designs and plans of sample sizes take seconds, and would hold the interpreter."""

    def forbidden(*_arguments: Any, **_named: Any) -> None:
        raise AssertionError("a search in the process of the server")

    for name in (
        "drafting.design",
        "drafting.design_form",
        "preview.Plan",
        "preview.engine.frontier",
    ):
        monkeypatch.setattr(f"frankly_server.surveys.{name}", forbidden)
    client, home = own_office.client("admin"), f"/admin/surveys/{own_office.survey}"
    pages = client.get(home).text + client.get(f"{home}/questions").text
    tabs = set(re.findall(rf'href="({home}[^"#]*)"', pages))
    assert {f"{home}/answers", f"{home}/protection", f"{home}/margins", f"{home}/try"} <= tabs
    for page in sorted(tabs):
        assert client.get(page).status_code == 200, page
    outlook = send(client, f"{home}/protection/outlook", block="smokes", strength="2")
    assert "What a respondent reads" in outlook.text
    rule = {"rule": "margin", "points": "3"}
    assert send(client, f"{home}/stop-rule", **rule).status_code == 303


def test_the_same_search_runs_once(own_office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    client, path = own_office.client("admin"), f"/admin/surveys/{own_office.survey}/answers"
    first = client.get(path).text
    monkeypatch.setattr(own_office.services.searches, "_most", 0)
    assert client.get(path).text == first
