# SPDX-License-Identifier: Apache-2.0
"""Links to a survey's results page: what they open, what they do not, and what they leave behind."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Response, g
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_server.app import create_app
from frankly_server.store import StoreUnavailable
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.searches import Busy
from frankly_server.web.results import page as results
from frankly_server.web.results.words import Words
from frankly_server.web.security import POLICY
from pydantic import SecretStr

from tests.frankly_server.web.site import CANARY, SURVEY, Site, captured_logs, check_problem

PERSON = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
UNKNOWN = "This link does not work"


def link(site: Site, survey: str | None = None, organisation: str = "main") -> str:
    """Return the path of a new link."""
    key = site.services.access.create("reader", "a guest", organisation, [survey or site.survey])
    return "/results/" + key.removeprefix("frankly_live_")


def another_survey(site: Site, name: str, *, publish: bool = True) -> str:
    """Return the id of a new survey with this name and title."""
    text = SURVEY.replace(b"name: habits", b"name: " + name.encode())
    site.services.surveys.apply(parse_definition(text))
    if publish:
        site.services.surveys.publish(name)
    rows = site.services.surveys.list()
    return next(row.survey_id for row in rows if row.name == name)


def test_a_link_opens_the_results_without_account_or_cookie(site: Site) -> None:
    client = site.client.application.test_client()
    answer = client.get(link(site), headers=PERSON)
    assert (answer.status_code, answer.mimetype) == (200, "text/html")
    assert re.search(r"<h1[^>]*>Habits</h1>", answer.text)
    assert "withdraw it" in answer.text
    # The style sheet and icon, and no way to the pages of those who run surveys.
    assert set(re.findall(r'"(/admin/\w*)', answer.text)) == {"/admin/assets"}
    headers = answer.headers
    assert "Set-Cookie" not in headers
    assert "ETag" not in headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Content-Security-Policy"] == POLICY
    assert headers["X-Frame-Options"] == "DENY"
    assert "noindex" in headers["X-Robots-Tag"]
    style = re.search(r'rel="stylesheet" href="([^"]+)"', answer.text)
    assert style
    answer = client.get(style[1])
    assert (answer.status_code, "Set-Cookie" in answer.headers) == (200, False)


def test_the_title_is_the_published_one(fresh_site: Site) -> None:
    """Whoever has a link reads nothing of a draft."""
    changed = SURVEY.replace(b"Habits", b"Secret plans")
    assert changed != SURVEY
    path = link(fresh_site)
    fresh_site.services.surveys.apply(parse_definition(changed))
    text = fresh_site.client.get(path).text
    assert "<title>Habits</title>" in text
    assert not re.search(r"<(h1|title)[^>]*>Secret plans", text)


def test_values_and_charts_are_of_the_survey_of_the_link(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = another_survey(site, "other")
    paths = {site.survey: link(site), other: link(site, other)}

    def chart(_services: Any, survey: Any, name: str, words: Words) -> Response:
        assert words.language == "en"
        # The queue of analyses takes turns by holder.
        assert (g.principal.role, g.principal.surveys) == ("reader", (survey.id,))
        return Response(f"{survey.id} {name}", content_type="image/svg+xml")

    monkeypatch.setattr(results, "chart", chart)
    for survey, path in paths.items():
        answer = site.client.get(f"{path}/1.svg")
        assert (answer.text, answer.mimetype) == (f"{survey} 1.svg", "image/svg+xml")
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert "noindex" in answer.headers["X-Robots-Tag"]
    asked = []

    def values(_services: Any, survey: Any, path: str, words: Words) -> dict[str, Any]:
        assert words.language == "en"
        asked.append((survey.id, path, g.principal.surveys))
        return {"survey": survey, "path": path}

    monkeypatch.setattr(results, "values", values)
    monkeypatch.setattr(
        "frankly_server.web.shared_results.render", lambda *_, **shown: Response(shown["path"])
    )
    for path in paths.values():
        assert site.client.get(path).text == path
    assert asked == [(survey, path, (survey,)) for survey, path in paths.items()]


def withdrawn(site: Site) -> str:
    path = link(site)
    assert site.client.get(path).status_code == 200
    secret = path.split("/")[-1]
    site.services.access.revoke(secret[:8])
    return secret


BAD_SECRETS: dict[str, Callable[[Site], str]] = {
    "withdrawn": withdrawn,
    "unknown": lambda _: "A" * 43,
    "unknown, of a known prefix": lambda site: link(site).split("/")[-1][:8] + "A" * 35,
    "too short": lambda site: link(site).split("/")[-1][:-1],
    "too long": lambda site: link(site).split("/")[-1] + "A",
    "a whole key": lambda site: "frankly_live_" + link(site).split("/")[-1],
    "upper case": lambda site: link(site).split("/")[-1].upper(),
    "a line feed": lambda site: link(site).split("/")[-1][:-1] + "%0A",
    "no text": lambda _: "%FF" * 43,
    "a zero character": lambda _: "%00",
    "not ASCII": lambda _: "%D9%A3" * 43,
    "long": lambda _: "A" * 1500,
    "a path": lambda _: "..%2F..%2Fetc",
    "a canary": lambda _: CANARY,
    **{
        f"a key of the role {role}": lambda site, role=role: site.services.access.create(
            role, "x", surveys=[site.survey]
        )[13:]
        for role in ("analyst", "admin", "owner")
    },
    "of another organisation": lambda site: link(site, organisation="other").split("/")[-1],
    "of a survey that does not exist": lambda site: link(site, "0" * 32).split("/")[-1],
    "of a draft": lambda site: link(
        site, another_survey(site, "draft", publish=False)
    ).split("/")[-1],
}  # fmt: skip


def test_every_bad_link_gets_the_same_answer(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_arguments: Any, **_named: Any) -> Any:
        raise AssertionError("a bad link reached the results")

    secrets = {name: make(site) for name, make in BAD_SECRETS.items()}
    monkeypatch.setattr(results, "values", unreachable)
    monkeypatch.setattr(results, "chart", unreachable)
    pages, objects = set(), set()
    for name, secret in secrets.items():
        # One that contains a slash is no address of a link.
        ends = ("",) if "%2F" in secret else ("", "/1.svg")
        for end in ends:
            page = site.client.get(f"/results/{secret}{end}", headers=PERSON)
            assert (page.status_code, page.mimetype) == (404, "text/html"), name
            assert "Set-Cookie" not in page.headers
            if "%2F" not in secret:
                assert UNKNOWN in page.text, name
                assert "ask the person who gave it to you" in page.text
                assert page.headers["Vary"] == "Accept, Accept-Language"
                assert "noindex" in page.headers["X-Robots-Tag"]
                pages.add(page.data)
                problem = site.client.get(f"/results/{secret}{end}")
                check_problem(problem, 404, "not_found")
                objects.add(problem.data)
    assert (len(pages), len(objects)) == (1, 1)


FAILURES: dict[str, tuple[Exception, int, str, str]] = {
    "a wrong query": (
        InvalidInput(Problem.FIELD_TYPE, "write <b>90</b>", "level"),
        422,
        "write &lt;b&gt;90&lt;/b&gt;",
        "field_type",
    ),
    "an unknown chart": (
        InvalidInput(Problem.NOT_FOUND, "there is no such chart"),
        404,
        "there is no such chart",
        "not_found",
    ),
    "busy": (Busy(retry_after_s=7), 429, "again in 7 seconds", "too_many"),
    "no database": (StoreUnavailable("read"), 503, "try again later", "unavailable"),
    "a fault": (RuntimeError(CANARY), 500, "try again later", "internal"),
}


@pytest.mark.parametrize("end", ["", "/1.svg"])
@pytest.mark.parametrize("name", FAILURES)
def test_failures_are_pages_for_people_and_problems_for_programs(
    site: Site, monkeypatch: pytest.MonkeyPatch, name: str, end: str
) -> None:
    error, status, text, code = FAILURES[name]

    def fail(*_arguments: Any, **_named: Any) -> Any:
        raise error

    monkeypatch.setattr(results, "values", fail)
    monkeypatch.setattr(results, "chart", fail)
    path = link(site)
    page = site.client.get(path + end, headers=PERSON)
    assert (page.status_code, page.mimetype) == (status, "text/html")
    assert text in page.text
    assert CANARY not in page.text
    assert "Traceback" not in page.text
    assert "/admin" not in page.text
    assert (f'href="{path}"' in page.text) is (status in (404, 422))
    problem = site.client.get(path + end)
    check_problem(problem, status, code)
    for answer in (page, problem):
        assert answer.headers["Cache-Control"] == "no-store"
        if status in (429, 503):
            assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_a_link_changes_nothing(site: Site, method: str) -> None:
    answer = site.client.open(link(site), method=method)
    check_problem(answer, 405, "method_not_allowed")


def test_a_link_has_the_limit_of_a_key(site: Site) -> None:
    slow = site.settings.model_copy(update={"key_rate_per_s": 0.1})
    client = create_app(slow, services=site.services).test_client()
    first, second = link(site), link(site)
    assert [client.get(path).status_code for path in (first, first, second)] == [200, 429, 200]
    answer = client.get(first, headers=PERSON)
    assert (answer.status_code, answer.mimetype) == (429, "text/html")


def test_the_address_is_in_no_log(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    path = link(site)
    gone = withdrawn(site)
    with captured_logs() as lines:
        asked = [
            path,
            f"{path}/{CANARY}.svg",
            f"{path}?{CANARY}=1",
            f"/results/{gone}",
            "/results/",
        ]
        for address in asked:
            site.client.get(address, headers=PERSON)
            site.client.get(address)

        def broken(*_arguments: Any, **_named: Any) -> Any:
            raise RuntimeError(path)

        monkeypatch.setattr(results, "values", broken)
        assert site.client.get(path).status_code == 500
        written = lines.getvalue()
    routes = [json.loads(line)["route"] for line in written.splitlines()]
    assert len(routes) == 2 * len(asked) + 1
    assert set(routes) == {"/results/<secret>", "/results/<secret>/<name>", "none"}
    for secret in (path.split("/")[-1], gone):
        assert secret not in written
        assert secret[:8] not in written
    assert CANARY not in written
    assert site.survey not in written


def test_the_metrics_count_by_route(site: Site) -> None:
    path = link(site)
    site.client.get(path)
    token = "m" * 32
    counted = site.settings.model_copy(update={"metrics_token": SecretStr(token)})
    client = create_app(counted, services=site.services).test_client()
    client.get(path)
    text = client.get("/metrics", headers={"Authorization": f"Bearer {token}"}).text
    assert "/results/<secret>" in text
    assert path not in text


def test_many_readers_of_one_view_need_one_analysis(
    fresh_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is shown while all places for analyses are taken; whoever must wait is served without a click."""
    path = link(fresh_site)
    first = fresh_site.client.get(path, headers=PERSON)
    assert first.status_code == 200

    def no_place(*_arguments: Any) -> Any:
        raise Busy(retry_after_s=7)

    monkeypatch.setattr(results, "without_slot", no_place)
    again = fresh_site.client.get(path, headers=PERSON)
    assert (again.status_code, again.text) == (200, first.text)
    other = fresh_site.client.get(path, query_string={"show": "by:region"}, headers=PERSON)
    assert other.status_code == 429
    assert (other.headers["Retry-After"], other.headers["Refresh"]) == ("7", "7")
