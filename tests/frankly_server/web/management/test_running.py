# SPDX-License-Identifier: Apache-2.0
"""Surveys in the field over HTTP: jobs, states, releases, erasure, lists; reports go first."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.trust.invite_codes import new_code, token_of_code
from frankly_protocol.trust.tokens import encode_token
from frankly_server.app import create_app
from frankly_server.services import Services
from frankly_server.store import StoreUnavailable
from frankly_server.store.audit import AuditTrail
from frankly_server.surveys import definition, searches
from frankly_server.surveys import jobs as publishing
from frankly_server.surveys.surveys import Surveys
from frankly_server.web import actions
from frankly_server.web.management import surveys as operations

from tests.frankly_server.surveys.apart import waiting_draft
from tests.frankly_server.web.management.desk import YAML, Desk, make_desk
from tests.frankly_server.web.site import NOW, check_problem
from tests.survey_files import DRINKS, REGION, SMOKES, habits

FILE = habits(SMOKES, DRINKS, budget="2", strata=REGION)


def at(desk: Desk, later: timedelta) -> Desk:
    """Return the same desk on a server whose clock is later."""
    services = Services.open(desk.services.settings, FixedClock(NOW + later))
    app = create_app(services.settings, services=services)
    return replace(desk, office=replace(desk.office, app=app, services=services))


def answers(desk: Desk, first: int, number: int) -> None:
    """Store reports about the desk's survey."""
    survey = desk.office.survey
    digest = desk.ask("GET", f"/v1/surveys/{survey}/versions").get_json()["versions"][-1]["digest"]
    for i in range(first, first + number):
        report = {"v": 1, "doc": digest, "id": f"{i:032x}", "y": [i % 2, i % 3],
                  "strata": {"region": "north"}, "token": None}  # fmt: skip
        sent = desk.ask("POST", f"/v1/surveys/{survey}/reports", "", json=report)
        assert sent.status_code == 201, sent.text


def test_a_release_is_an_hour_from_every_other(own_desk: Desk) -> None:
    """Asked for or published, past or to come, with answers or without. NOW is noon."""
    survey = f"/v1/surveys/{own_desk.office.survey}"
    answers(own_desk, 1, 45)
    first = own_desk.ask("POST", f"{survey}/releases")
    assert first.get_json() == {"released": 45}
    assert own_desk.ask("GET", f"{survey}/releases").get_json() == {
        "next": "2026-06-02T00:00:00Z", "n": 45, "days": [{"day": "2026-06-01", "reports": 45}],
    }  # fmt: skip
    hours, left = timedelta(hours=1), {}
    for later in (
        0 * hours,
        0.5 * hours,
        hours - timedelta(seconds=1),
        11.01 * hours,
        12 * hours,
        12.99 * hours,
    ):
        refused = at(own_desk, later).ask("POST", f"{survey}/releases")
        check_problem(refused, 429, "too_many")
        left[later] = int(refused.headers["Retry-After"])
    # After the first, and around midnight, when answers are released without being asked for.
    assert list(left.values()) == [3600, 1800, 1, 7164, 3600, 36]
    assert at(own_desk, hours).ask("POST", f"{survey}/releases").get_json() == {"released": 0}
    # That release had no answers, and counts all the same.
    check_problem(at(own_desk, 1.5 * hours).ask("POST", f"{survey}/releases"), 429, "too_many")
    for later in (11 * hours, 13 * hours):
        assert at(own_desk, later).ask("POST", f"{survey}/releases").status_code == 200
    # A server that was down at midnight releases later.
    morning = at(own_desk, 15 * hours)
    answers(morning, 100, 45)
    assert morning.services.releasing.release("day", own_desk.office.survey) == 45
    check_problem(at(own_desk, 15.5 * hours).ask("POST", f"{survey}/releases"), 429, "too_many")
    actions = [event.action for event in own_desk.services.accounts.trail("main", limit=1000)]
    assert actions.count("reports released at once") == 4


def test_nobody_releases_what_is_released_every_hour_or_not_published(own_desk: Desk) -> None:
    hourly = FILE.replace(b"name: habits", b"name: hourly") + b"release_every: hour\n"
    survey = own_desk.create(hourly).get_json()["survey"]
    path = f"/v1/surveys/{survey}/releases"
    check_problem(own_desk.ask("POST", path), 409, "immutable")
    own_desk.publish(survey)
    for minutes in range(0, 60, 10):
        late = at(own_desk, timedelta(minutes=minutes))
        check_problem(late.ask("POST", path), 429, "too_many")


def test_revoking_does_not_tell_which_invitations_are_used(own_desk: Desk) -> None:
    """The same answers, and the same lines of the audit trail, for used, unused and unknown codes."""
    invited = FILE.replace(b"name: habits", b"name: invited") + b"tokens: {kind: invite}\n"
    survey = own_desk.create(invited).get_json()["survey"]
    own_desk.publish(survey)
    path = f"/v1/surveys/{survey}/invitations"
    made = own_desk.ask("POST", path, json={"count": 3}).get_json()["invitations"]
    used, unused, free = (one["code"] for one in made)
    assert all(one["link"].endswith(f"&invite={one['code']}") for one in made)
    version = own_desk.ask("GET", f"/v1/surveys/{survey}/versions").get_json()["versions"][0]
    token = encode_token(token_of_code(used, survey))
    report = {"v": 1, "doc": version["digest"], "id": "1" * 32, "y": [0, 0],
              "strata": {"region": "north"}, "token": token}  # fmt: skip
    sent = own_desk.ask("POST", f"/v1/surveys/{survey}/reports", "", json=report)
    assert sent.status_code == 201, sent.text
    replies = [
        own_desk.ask("POST", f"{path}/revoke", json={"code": code})
        for code in (used, unused, unused, new_code())
    ]
    assert {(one.status_code, one.data) for one in replies} == {(204, b"")}
    assert own_desk.ask("POST", f"{path}/revoke", json={"all": True}).status_code == 204
    late = report | {"id": "2" * 32, "token": encode_token(token_of_code(free, survey))}
    refused = own_desk.ask("POST", f"/v1/surveys/{survey}/reports", "", json=late)
    assert refused.get_json()["code"].startswith("token_")
    trail = own_desk.ask("GET", "/v1/audit-trail").get_json()["events"]
    assert [one["action"] for one in trail].count("invitations revoked") == 5
    for body, code in (
        ({"code": "x"}, "field_type"),
        ({}, "field_missing"),
        ({"code": free, "all": True}, "unsupported"),
    ):
        answer = own_desk.ask("POST", f"{path}/revoke", json=body)
        assert check_problem(answer, 422, code)["field"] == "code"


def test_a_key_may_revoke_itself_and_no_greater_one(own_desk: Desk) -> None:
    def prefix(by: str) -> str:
        return own_desk.keys[by].removeprefix("frankly_live_")[:8]

    check_problem(
        own_desk.ask("DELETE", f"/v1/api-keys/{prefix('owner')}", "admin"), 403, "forbidden"
    )
    assert own_desk.ask("GET", "/v1/people").status_code == 200
    for by in ("admin", "owner"):
        assert own_desk.ask("DELETE", f"/v1/api-keys/{prefix(by)}", by).status_code == 204
        check_problem(own_desk.ask("GET", "/v1/surveys", by), 401, "unauthenticated")


def test_an_organisation_has_a_number_of_keys(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a limit of its own; revoked keys and those of others do not count."""
    body, working = {"role": "analyst", "label": "x"}, 0
    working = sum(
        one.revoked is None and one.organisation == "main"
        for one in own_desk.services.access.list()
    )
    monkeypatch.setattr(actions, "MOST_KEYS", working + 1)
    made = own_desk.ask("POST", "/v1/api-keys", json=body)
    assert made.status_code == 201
    check_problem(own_desk.ask("POST", "/v1/api-keys", json=body), 409, "immutable")
    assert own_desk.ask("POST", "/v1/api-keys", "foreign owner", json=body).status_code == 201
    own_desk.ask("DELETE", f"/v1/api-keys/{made.get_json()['prefix']}")
    assert own_desk.ask("POST", "/v1/api-keys", json=body).status_code == 201


def test_a_survey_that_is_resumed_meanwhile_is_not_erased(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey, real = own_desk.office.survey, Surveys.erase
    answers(own_desk, 1, 12)
    own_desk.ask("POST", f"/v1/surveys/{survey}/releases")
    own_desk.ask("POST", f"/v1/surveys/{survey}/move", json={"move": "pause"})

    def resumed(service: Surveys, name: str, record: Any) -> Any:
        own_desk.services.lifecycle.move(name, "resume")
        return real(service, name, record)

    with monkeypatch.context() as patch:
        patch.setattr(Surveys, "erase", resumed)
        answer = own_desk.ask("POST", f"/v1/surveys/{survey}/erase", json={"name": "habits"})
    check_problem(answer, 409, "immutable")
    assert own_desk.ask("GET", f"/v1/surveys/{survey}").get_json()["n"] == 12


def test_a_job_shows_its_progress_and_can_be_stopped(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey = own_desk.create(FILE.replace(b"name: habits", b"name: slow")).get_json()["survey"]
    entered, leave = threading.Event(), threading.Event()

    def design(definition: Any, progress: Any, timer: Any) -> Any:
        progress(1, 2, "drinks")
        entered.set()
        while not leave.wait(0.01):
            time.sleep(publishing._CHECK_S)
            timer()
        raise AssertionError("it was to be stopped")

    monkeypatch.setattr(publishing, "draft_apart", design)
    started = own_desk.ask("POST", f"/v1/surveys/{survey}/jobs")
    assert started.status_code == 202
    assert entered.wait(60)
    job = own_desk.ask("GET", started.headers["Location"]).get_json()
    assert (job["state"], job["done"], job["total"], job["block"]) == ("running", 1, 2, "drinks")
    check_problem(own_desk.ask("POST", f"/v1/surveys/{survey}/jobs"), 409, "immutable")
    stopping = own_desk.ask("POST", f"{started.headers['Location']}/cancel").get_json()
    assert stopping["state"] in ("cancelling", "cancelled")
    own_desk.wait()
    job = own_desk.ask("GET", started.headers["Location"]).get_json()
    assert (job["state"], job["digest"], job["problem"]) == ("cancelled", None, None)
    assert own_desk.ask("GET", f"/v1/surveys/{survey}").get_json()["state"] == "draft"
    for path in (started.headers["Location"], "/jobs/x", f"/jobs/{'0' * 32}"):
        foreign = f"/v1/surveys/{own_desk.office.survey}/jobs/{path.rpartition('/')[2]}"
        check_problem(own_desk.ask("GET", foreign), 404, "not_found")


def test_one_key_cannot_fill_the_server_with_jobs(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave = threading.Event()

    def design(_definition: Any, _progress: Any, timer: Any) -> Any:
        while not leave.wait(0.01):
            pass
        raise AssertionError("not published")

    monkeypatch.setattr(publishing, "draft_apart", design)
    monkeypatch.setattr(publishing, "MOST_OF_ONE", 2)
    surveys = [
        own_desk.create(FILE.replace(b"name: habits", b"name: s%d" % i)).get_json()["survey"]
        for i in range(3)
    ]
    started = [own_desk.ask("POST", f"/v1/surveys/{survey}/jobs") for survey in surveys]
    leave.set()
    assert [one.status_code for one in started] == [202, 202, 429]
    assert started[2].headers["Retry-After"] == "60"
    own_desk.wait()
    assert own_desk.ask("POST", f"/v1/surveys/{surveys[2]}/jobs").status_code == 202
    own_desk.wait()


def test_answers_are_erased_only_when_nobody_can_answer(own_desk: Desk) -> None:
    survey = f"/v1/surveys/{own_desk.office.survey}"
    answers(own_desk, 1, 12)
    own_desk.ask("POST", f"{survey}/releases")
    name = {"name": "habits"}
    check_problem(own_desk.ask("POST", f"{survey}/erase", json=name), 409, "immutable")
    own_desk.ask("POST", f"{survey}/move", json={"move": "pause"})
    for wrong in ("Habits", "other", "", " habits"):
        answer = own_desk.ask("POST", f"{survey}/erase", json={"name": wrong})
        problem = check_problem(answer, 422, "field_type")
        assert (problem["field"], "habits" in problem["detail"]) == ("name", True)
    assert own_desk.ask("GET", survey).get_json()["n"] == 12
    assert own_desk.ask("POST", f"{survey}/erase", json=name).get_json()["n"] == 0


def test_moves_follow_the_states_of_the_pages(own_desk: Desk) -> None:
    survey = f"/v1/surveys/{own_desk.office.survey}"
    for move, status, state in (
        ("resume", 409, "live"), ("archive", 409, "live"), ("pause", 200, "paused"),
        ("pause", 409, "paused"), ("resume", 200, "live"), ("close", 200, "closed"),
        ("resume", 409, "closed"), ("archive", 200, "archived"), ("close", 409, "archived"),
    ):  # fmt: skip
        answer = own_desk.ask("POST", f"{survey}/move", json={"move": move})
        assert (answer.status_code, own_desk.ask("GET", survey).get_json()["state"]) == (
            status, state,
        ), move  # fmt: skip
    bodies: list[Any] = [{}, {"move": "delete"}, {"move": 1}, {"move": "close", "sure": True}, []]
    for body in bodies:
        assert own_desk.ask("POST", f"{survey}/move", json=body).status_code == 422


def test_a_survey_whose_time_is_over_can_be_archived(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one step: closed first, or as it was."""
    over = at(own_desk, timedelta(days=60))
    survey = f"/v1/surveys/{own_desk.office.survey}"
    assert over.ask("GET", survey).get_json()["state"] == "closed"
    headers, real = {"Idempotency-Key": "a"}, AuditTrail.add

    def second_fails(trail: AuditTrail, event: Any) -> None:
        if event.action == "survey archived":
            raise StoreUnavailable("the disk is full")
        real(trail, event)

    with monkeypatch.context() as patch:
        patch.setattr(AuditTrail, "add", second_fails)
        failed = over.ask("POST", f"{survey}/move", json={"move": "archive"}, headers=headers)
    check_problem(failed, 503, "unavailable")
    assert over.services.lifecycle.get(own_desk.office.survey).state == "open"
    moved = over.ask("POST", f"{survey}/move", json={"move": "archive"}, headers=headers)
    assert moved.get_json()["state"] == "archived"
    actions = [one.action for one in over.services.accounts.trail("main", limit=2)]
    assert actions == ["survey archived", "survey closed"]


def test_lists_are_read_page_by_page(own_desk: Desk) -> None:
    """Each thing once, in order, with any page size; a page is bounded."""
    for i in range(4):
        own_desk.create(FILE.replace(b"name: habits", b"name: survey-%d" % i))
        own_desk.services.access.create("analyst", f"key {i}")
    surveys, survey = own_desk.services.surveys, own_desk.office.survey
    for least in (60, 70):
        surveys.apply(surveys.draft(survey).model_copy(update={"min_reports": least}))
        surveys.publish(survey)
    lists = {
        "/v1/surveys?drafts=true": ("surveys", "survey", "after", 200),
        "/v1/api-keys?": ("keys", "prefix", "after", 200),
        "/v1/people?": ("people", "account", "after", 200),
        "/v1/audit-trail?": ("events", "position", "before", 200),
        f"/v1/surveys/{survey}/versions?": ("versions", "version", "after", 100),
    }
    for path, (name, key, cursor, most) in lists.items():
        whole = own_desk.ask("GET", path.rstrip("?")).get_json()
        assert whole["next"] is None
        for size in (1, 2, 3, 100):
            rows, step = [], ""
            while True:
                page = own_desk.ask("GET", f"{path}&limit={size}{step}").get_json()
                assert len(page[name]) <= size
                rows += [row[key] for row in page[name]]
                if page["next"] is None:
                    break
                step = f"&{cursor}={page['next']}"
            assert rows == [row[key] for row in whole[name]], (path, size)
        for bad in ("0", str(most + 1), "x", "-1", "1.5"):
            check_problem(own_desk.ask("GET", f"{path}&limit={bad}"), 422, "field_type")
    published = own_desk.ask("GET", "/v1/surveys").get_json()["surveys"]
    assert [(one["name"], one["state"]) for one in published] == [("habits", "live")]
    drafts = own_desk.ask("GET", "/v1/surveys?drafts=true").get_json()["surveys"]
    assert [(one["state"], one["versions"]) for one in drafts] == [("live", 3)] + [("draft", 0)] * 4
    assert all(one["questions"] == ["smokes", "drinks"] for one in drafts)
    versions = f"/v1/surveys/{survey}/versions"
    numbers = [one["version"] for one in own_desk.ask("GET", versions).get_json()["versions"]]
    assert numbers == [1, 2, 3]
    beyond = own_desk.ask("GET", f"{versions}?after=9999999999999999").get_json()
    assert beyond == {"versions": [], "next": None}
    unpublished = own_desk.ask("GET", f"/v1/surveys/{drafts[1]['survey']}/versions").get_json()
    assert unpublished == {"versions": [], "next": None}


def test_a_survey_is_read_once_for_each_answer(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document or a draft can take a second to parse."""
    surveys, survey = own_desk.services.surveys, own_desk.office.survey
    for least in (60, 70):
        surveys.apply(surveys.draft(survey).model_copy(update={"min_reports": least}))
        surveys.publish(survey)
    for i in range(3):
        own_desk.create(FILE.replace(b"name: habits", b"name: survey-%d" % i))
    parse, read_draft = SurveyDocument.from_envelope, definition.parse_value
    documents, drafts = list[int](), list[str]()

    def counted(data: bytes) -> SurveyDocument:
        document = parse(data)
        documents.append(document.version)
        return document

    def counted_draft(value: Any) -> Any:
        drafts.append(value["name"])
        return read_draft(value)

    monkeypatch.setattr(SurveyDocument, "from_envelope", counted)
    monkeypatch.setattr(definition, "parse_value", counted_draft)
    for path, versions, names in (
        (f"/v1/surveys/{survey}", [1, 2, 3], ["habits"]),
        (f"/v1/surveys/{survey}/versions?limit=1", [1, 3], []),
        ("/v1/surveys?drafts=true", [3], []),
        ("/v1/surveys?drafts=true&after=habits&limit=1", [], []),
    ):
        definition._parsed.cache_clear()
        documents.clear()
        drafts.clear()
        assert own_desk.ask("GET", path).status_code == 200
        assert (sorted(documents), drafts) == (versions, names), path


def test_the_last_owner_stays(own_desk: Desk) -> None:
    people = own_desk.ask("GET", "/v1/people").get_json()["people"]
    account = {one["email"].partition("@")[0]: one["account"] for one in people}
    for path, body in (("role", {"role": "viewer"}), ("disable", None)):
        method = "PUT" if body else "POST"
        answer = own_desk.ask(method, f"/v1/people/{account['owner']}/{path}", json=body)
        check_problem(answer, 409, "immutable")
    second = f"/v1/people/{account['admin']}/role"
    assert own_desk.ask("PUT", second, json={"role": "owner"}).status_code == 204
    assert own_desk.ask("POST", f"/v1/people/{account['owner']}/disable").status_code == 204
    check_problem(own_desk.ask("PUT", second, json={"role": "admin"}), 409, "immutable")


@pytest.fixture
def held(own_desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Desk]:
    """A server with one slot, whose places for searches are taken by dry runs of admins' keys."""
    monkeypatch.setattr(operations, "draft_json", waiting_draft)
    monkeypatch.setattr(
        operations, "shown_definition", lambda *_: {"until": str(tmp_path / "until")}
    )
    monkeypatch.setattr(searches, "_WAIT_S", 60.0)
    settings = own_desk.services.settings.model_copy(update={"threads": 1})
    narrow = replace(
        own_desk,
        office=replace(own_desk.office, app=create_app(settings, services=own_desk.services)),
    )
    most, statuses = searches.SEARCHES[1] - 1, list[int]()
    keys = {f"admin {i}": own_desk.services.access.create("admin", f"{i}") for i in range(most)}
    narrow = replace(narrow, keys={**narrow.keys, **keys})

    def try_it(by: str) -> None:
        name = by.replace(" ", "-").encode()
        file = FILE.replace(b"name: habits", b"name: " + name)
        answer = narrow.ask("POST", "/v1/dry-run", by, data=file, content_type=YAML)
        statuses.append(answer.status_code)

    threads = [threading.Thread(target=try_it, args=(by,)) for by in keys]
    for thread in threads:
        thread.start()
    while own_desk.services.searches.number_held < most:
        time.sleep(0.001)
    yield narrow
    (tmp_path / "until").touch()
    for thread in threads:
        thread.join()
    assert statuses == [422] * most


def test_reports_have_the_only_slot_while_keys_try_drafts(held: Desk) -> None:
    answers(held, 1, 20)
    assert held.ask("GET", "/health/ready", "").status_code == 200
    assert held.services.searches.number_held == searches.SEARCHES[1] - 1
    refused = held.ask("POST", "/v1/dry-run", data=FILE, content_type=YAML)
    check_problem(refused, 429, "too_many")
    assert refused.headers["Retry-After"] == "5"
    # Whatever needs no search goes on, too.
    assert held.ask("GET", f"/v1/surveys/{held.office.survey}").status_code == 200


def test_every_operation_takes_from_the_limit_of_its_key(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    settings = desk.services.settings.model_copy(update={"key_rate_per_s": 0.1})
    app = create_app(settings, services=desk.services)
    slow = replace(desk, office=replace(desk.office, app=app))
    assert slow.ask("GET", "/v1/people").status_code == 200
    refused = slow.ask("POST", "/v1/api-keys", json={"role": "analyst", "label": "x"})
    check_problem(refused, 429, "too_many")
    assert int(refused.headers["Retry-After"]) > 0
    assert slow.ask("GET", "/v1/api-keys", "admin").status_code == 200  # a limit of its own
    desk.services.close()


def test_no_answer_tells_how_many_answers_wait(own_desk: Desk) -> None:
    """Every GET is the same before and after a report that is not released."""
    survey = f"/v1/surveys/{own_desk.office.survey}"
    paths = ("", "/versions", "/versions/1", "/releases", "/webhook", "/draft")
    before = [own_desk.ask("GET", survey + path).data for path in paths]
    answers(own_desk, 1, 30)
    assert [own_desk.ask("GET", survey + path).data for path in paths] == before
    trail = json.dumps(own_desk.ask("GET", "/v1/audit-trail").get_json())
    assert "report" not in trail
