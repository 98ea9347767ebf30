# SPDX-License-Identifier: Apache-2.0
"""Requests that are sent twice: carried out once, recorded once, answered twice, and kept encrypted."""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from frankly_protocol.clock import FixedClock
from frankly_server.app import create_app
from frankly_server.keys import idempotency
from frankly_server.keys.idempotency import KEPT, Attempt
from frankly_server.services import Services
from frankly_server.store import IdempotentRequestRow, StoreUnavailable
from frankly_server.surveys.outbound import Post
from frankly_server.surveys.webhooks import Webhooks

from tests.frankly_server.web.management.desk import YAML, Desk, make_desk
from tests.frankly_server.web.site import NOW, check_problem
from tests.survey_files import SMOKES, habits

NEW = habits(SMOKES, budget="2").replace(b"name: habits", b"name: new")
INVITED = NEW.replace(b"name: new", b"name: invited") + b"tokens: {kind: invite}\n"
URL = "https://hooks.example.org/x"
Send = tuple[str, str, dict[str, Any]]
JSON: Callable[..., dict[str, Any]] = lambda **body: {"json": body}  # noqa: E731 - a shorthand
# Every operation that changes something, in an order in which each succeeds; {survey} is published and
# asks for invitations, {draft} is new. Then the action in the audit trail.
CHANGES: dict[str, tuple[Send, str]] = {
    "create": (("POST", "/v1/surveys", {"data": NEW, "content_type": YAML}), "survey created"),
    "draft": (
        ("PUT", "/v1/surveys/{survey}/draft", {"data": INVITED.replace(b"min_reports: 10", b"min_reports: 30"),
         "content_type": YAML, "headers": {"If-Match": "*"}}),
        "draft changed",
    ),
    "publish": (("POST", "/v1/surveys/{survey}/jobs", {}), "version 2 published"),
    "invitations": (("POST", "/v1/surveys/{survey}/invitations", JSON(count=2)), "invitations made: 2"),
    "revoke": (("POST", "/v1/surveys/{survey}/invitations/revoke", JSON(all=True)), "invitations revoked"),
    "webhook": (("PUT", "/v1/surveys/{survey}/webhook", JSON(url=URL)), "webhook set"),
    "test": (("POST", "/v1/surveys/{survey}/webhook/test", {}), "webhook tested"),
    "no webhook": (("DELETE", "/v1/surveys/{survey}/webhook", {}), "webhook removed"),
    "stop rule": (("PUT", "/v1/surveys/{survey}/stop-rule", JSON(reports=900)), "stop rule: at 900 reports"),
    "release": (("POST", "/v1/surveys/{survey}/releases", {}), "reports released at once"),
    "pause": (("POST", "/v1/surveys/{survey}/move", JSON(move="pause")), "survey paused"),
    "resume": (("POST", "/v1/surveys/{survey}/move", JSON(move="resume")), "survey open"),
    "close": (("POST", "/v1/surveys/{survey}/move", JSON(move="close")), "survey closed"),
    "erase": (("POST", "/v1/surveys/{survey}/erase", JSON(name="invited")), "answers erased"),
    "archive": (("POST", "/v1/surveys/{survey}/move", JSON(move="archive")), "survey archived"),
    "key": (("POST", "/v1/api-keys", JSON(role="analyst", label="new")), "API key made"),
    "no key": (("DELETE", "/v1/api-keys/{key}", {}), "API key revoked"),
    "person": (("POST", "/v1/people", JSON(email="new@example.org", role="viewer")), "account created"),
    "role": (("PUT", "/v1/people/{account}/role", JSON(role="analyst")), "role changed"),
    "disable": (("POST", "/v1/people/{account}/disable", {}), "account disabled"),
}  # fmt: skip


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk at an office with webhooks, and a published survey that asks for invitations."""
    made = make_desk(tmp_path_factory.mktemp("desk"))
    services = made.services
    services.webhooks = Webhooks(services.database, FixedClock(NOW), Post(["hooks.example.org"]))
    survey = made.create(INVITED).get_json()["survey"]
    assert made.publish(survey)["state"] == "done"
    yield replace(made, office=replace(made.office, survey=survey))
    services.close()


def events(desk: Desk) -> list[tuple[str, str]]:
    trail = desk.services.accounts.trail("main", limit=1000)
    return [(event.actor, event.action) for event in reversed(trail)]


def send(desk: Desk, change: str, key: str, by: str = "owner", **headers: str) -> Any:
    (method, path, options), _ = CHANGES[change]
    office = desk.office
    path = path.format(survey=office.survey, key=office.key, account=office.account)
    given = {**options.get("headers", {}), "Idempotency-Key": key, **headers}
    return desk.ask(method, path, by, **{**options, "headers": given})


def kept(answer: Any) -> tuple[Any, ...]:
    return (
        answer.status_code,
        answer.data,
        answer.headers.get("ETag"),
        answer.headers.get("Location"),
    )


def test_every_change_is_made_once_recorded_once_and_answered_twice(desk: Desk) -> None:
    for change, (_, action) in CHANGES.items():
        before = events(desk)
        first = send(desk, change, f"once {change}".replace(" ", "-"))
        assert first.status_code < 300, (change, first.text)
        desk.wait()
        after, tables = events(desk), desk.tables()
        again = send(desk, change, f"once {change}".replace(" ", "-"))
        desk.wait()
        assert kept(first) == kept(again), change
        assert events(desk) == after
        assert desk.tables() == tables, change
        prefix = desk.keys["owner"].removeprefix("frankly_live_")[:8]
        assert after[len(before) :] == [(f"API key {prefix}…", action)]


def test_every_changing_operation_is_in_the_table(desk: Desk) -> None:
    listed = {(method, path) for (method, path, _), _ in CHANGES.values()}
    listed |= {("POST", "/v1/surveys/{survey}/jobs/{job}/cancel"), ("POST", "/v1/dry-run")}
    rules = {
        (method, rule.rule)
        for rule in desk.office.app.url_map.iter_rules()
        if hasattr(desk.office.app.view_functions[rule.endpoint], "key_role")
        for method in (rule.methods or set()) - {"GET", "HEAD", "OPTIONS"}
    }
    names = {
        "<survey_id>": "{survey}",
        "<job_id>": "{job}",
        "<prefix>": "{key}",
        "<account_id>": "{account}",
    }
    plain = set()
    for method, path in rules:
        for name, value in names.items():
            path = path.replace(name, value)  # noqa: PLW2901 - each name once
        plain.add((method, path))
    assert plain == listed


def test_responses_are_stored_for_their_caller_only(own_desk: Desk) -> None:
    """A copy of the database has no key, code or password that a response has."""
    made = own_desk.ask(
        "POST",
        "/v1/api-keys",
        json={"role": "owner", "label": "x"},
        headers={"Idempotency-Key": "k"},
    ).get_json()["key"]
    password = own_desk.ask(
        "POST", "/v1/people", json={"role": "viewer", "email": "p@example.org"},
        headers={"Idempotency-Key": "p"},
    ).get_json()["password"]  # fmt: skip
    with own_desk.services.database.reading("requests") as tx:
        rows = list(tx.tables.rows("idempotent_requests"))
    assert len(rows) == 2
    answers = [base64.b64decode(row["answer"]["base64"]) for row in rows]
    assert all(len(answer) > 150 for answer in answers)
    dump = json.dumps(rows).encode() + b"".join(answers)
    for secret in (made, made[-43:], password, "frankly_live_", "Idempotency", "password"):
        assert secret.encode() not in dump


def test_a_key_belongs_to_one_request_of_one_caller(own_desk: Desk) -> None:
    body = {"role": "analyst", "label": "x"}
    headers = {"Idempotency-Key": '"a UUID"'.replace(" ", "-")}
    first = own_desk.ask("POST", "/v1/api-keys", json=body, headers=headers)
    unquoted = {"Idempotency-Key": "a-UUID"}
    assert own_desk.ask("POST", "/v1/api-keys", json=body, headers=unquoted).data == first.data
    other = own_desk.ask("POST", "/v1/api-keys", "admin", json=body, headers=headers)
    assert (other.status_code, other.data == first.data) == (201, False)
    for change in (
        {"json": {**body, "label": "y"}},
        {"json": body, "query_string": "limit=1"},
        {"data": json.dumps(body), "content_type": "application/json; charset=utf-8"},
    ):
        answer = own_desk.ask("POST", "/v1/api-keys", headers=headers, **change)
        if "query_string" in change:  # refused before, like any request with it
            check_problem(answer, 422, "field_unknown")
        else:
            assert check_problem(answer, 422, "idempotency_mismatch")["field"] == "Idempotency-Key"
    for bad in ("", "a b", "é", "x" * 256, '"', 'a"b', '"a', '""'):
        answer = own_desk.ask("POST", "/v1/api-keys", json=body, headers={"Idempotency-Key": bad})
        assert check_problem(answer, 422, "field_type")["field"] == "Idempotency-Key", bad
    labels = [row.label for row in own_desk.services.access.list()]
    assert labels.count("x") == 3  # one is the office's own


def test_a_refused_request_may_be_sent_again(own_desk: Desk) -> None:
    headers, body = {"Idempotency-Key": "r"}, {"move": "resume"}
    path = f"/v1/surveys/{own_desk.office.survey}/move"
    check_problem(own_desk.ask("POST", path, json=body, headers=headers), 409, "immutable")
    assert own_desk.ask("POST", path, json={"move": "pause"}).status_code == 200
    assert own_desk.ask("POST", path, json=body, headers=headers).status_code == 200
    assert own_desk.ask("POST", path, json={"move": "pause"}).status_code == 200
    # It has been carried out, so it is only answered.
    assert own_desk.ask("POST", path, json=body, headers=headers).get_json()["state"] == "live"
    assert own_desk.ask("GET", path.removesuffix("/move")).get_json()["state"] == "paused"


def test_the_same_request_at_the_same_time_is_carried_out_once(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second finds no earlier request, and meets the claim of the first in its transaction."""
    body, headers = {"role": "analyst", "label": "twice"}, {"Idempotency-Key": "t"}
    before = own_desk.tables()
    with monkeypatch.context() as patch:
        patch.setattr(Attempt, "look", lambda _: None)
        patch.setattr(Attempt, "keep", lambda *_, **__: None)
        first = own_desk.ask("POST", "/v1/api-keys", json=body, headers=headers)
        second = own_desk.ask("POST", "/v1/api-keys", json=body, headers=headers)
    assert first.status_code == 201
    check_problem(second, 409, "idempotency_conflict")
    made = len(own_desk.tables()["api_keys"]) - len(before["api_keys"])
    assert made == 1


def test_another_request_at_the_same_time_is_told_so(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"Idempotency-Key": "o"}
    with monkeypatch.context() as patch:
        patch.setattr(Attempt, "look", lambda _: None)
        for label, status in (("one", 201), ("two", 422)):
            body = {"role": "analyst", "label": label}
            answer = own_desk.ask("POST", "/v1/api-keys", json=body, headers=headers)
            assert answer.status_code == status
    assert answer.get_json()["code"] == "idempotency_mismatch"


def test_a_request_that_changed_nothing_replaces_no_answer(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It makes no claim; another request with the same key may have been carried out meanwhile."""
    headers, path = {"Idempotency-Key": "n"}, f"/v1/surveys/{own_desk.office.survey}/draft"
    draft = own_desk.ask("GET", path).get_json()
    body = {"role": "analyst", "label": "between"}
    real, between = Attempt.keep, list[Any]()

    def late(attempt: Attempt, answer: bytes, **options: Any) -> None:
        if not between:
            between.append(None)
            between[0] = own_desk.ask("POST", "/v1/api-keys", json=body, headers=headers)
        real(attempt, answer, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Attempt, "keep", late)
        same = own_desk.ask("PUT", path, json=draft, headers={**headers, "If-Match": "*"})
    assert (same.status_code, between[0].status_code) == (200, 201)
    again = own_desk.ask("POST", "/v1/api-keys", json=body, headers=headers)
    assert again.data == between[0].data


def test_a_request_that_changed_nothing_is_answered_again(own_desk: Desk) -> None:
    """As at the first time, although the draft has changed since."""
    headers, path = {"Idempotency-Key": "u"}, f"/v1/surveys/{own_desk.office.survey}/draft"
    draft = own_desk.ask("GET", path)
    seen = {"If-Match": draft.headers["ETag"]}
    first = own_desk.ask("PUT", path, json=draft.get_json(), headers={**headers, **seen})
    changed = draft.get_json() | {"min_reports": 77}
    assert own_desk.ask("PUT", path, json=changed, headers=seen).status_code == 200
    again = own_desk.ask("PUT", path, json=draft.get_json(), headers={**headers, **seen})
    assert (first.status_code, kept(again)) == (200, kept(first))
    assert own_desk.ask("GET", path).get_json()["min_reports"] == 77


def test_a_long_response_is_not_kept(own_desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "MOST_BYTES", 100)
    body, headers = {"role": "analyst", "label": "long"}, {"Idempotency-Key": "l"}
    assert own_desk.ask("POST", "/v1/api-keys", json=body, headers=headers).status_code == 201
    answer = own_desk.ask("POST", "/v1/api-keys", json=body, headers=headers)
    check_problem(answer, 409, "idempotency_conflict")
    assert [row.label for row in own_desk.services.access.list()].count("long") == 1


def test_a_key_fills_the_database_only_so_far(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "MOST", 2)
    body = {"role": "analyst", "label": "many"}
    statuses = [
        own_desk.ask(
            "POST", "/v1/api-keys", json=body, headers={"Idempotency-Key": key}
        ).status_code
        for key in ("1", "2", "3", "2")
    ]
    assert statuses == [201, 201, 429, 201]
    other = own_desk.ask(
        "POST", "/v1/api-keys", "admin", json=body, headers={"Idempotency-Key": "3"}
    )
    assert other.status_code == 201
    assert own_desk.ask("POST", "/v1/api-keys", json=body).status_code == 201


def test_old_requests_are_deleted_a_few_at_a_time(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frankly_server.store.idempotency._PURGED", 2)
    with own_desk.services.database.transaction("old requests") as tx:
        for i in range(5):
            row = IdempotentRequestRow(
                f"{i:064x}", "old", "0" * 64, "0" * 32, None, f"2026-01-0{i + 1}T00:00:00Z"
            )
            assert tx.idempotent_requests.add(row, "2025-01-01T00:00:00Z")
    body = {"role": "analyst", "label": "new"}
    # Each request writes a claim, and then its response.
    for key, left in (("1", 1), ("2", 0), ("3", 0)):
        own_desk.ask("POST", "/v1/api-keys", json=body, headers={"Idempotency-Key": key})
        with own_desk.services.database.reading("requests") as tx:
            rows = [row for row in tx.tables.rows("idempotent_requests") if row["holder"] == "old"]
        assert len(rows) == left


def test_a_lost_response_is_not_carried_out_again(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("the disk is full")

    body, headers = {"role": "analyst", "label": "lost"}, {"Idempotency-Key": "l"}
    with monkeypatch.context() as patch:
        patch.setattr(Attempt, "keep", lost)
        assert own_desk.ask("POST", "/v1/api-keys", json=body, headers=headers).status_code == 201
    tables = own_desk.tables()
    refused = own_desk.ask("POST", "/v1/api-keys", json=body, headers=headers)
    assert "read what it changed" in check_problem(refused, 409, "idempotency_conflict")["detail"]
    assert own_desk.tables() == tables


def test_a_failed_action_leaves_no_claim(own_desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    body, headers = {"role": "analyst", "label": "late"}, {"Idempotency-Key": "f"}

    def full(*_: Any) -> None:
        raise StoreUnavailable("the disk is full")

    with monkeypatch.context() as patch:
        # The event is the last write of the transaction, after the claim.
        patch.setattr("frankly_server.store.audit.AuditTrail.add", full)
        assert own_desk.ask("POST", "/v1/api-keys", json=body, headers=headers).status_code == 503
    assert own_desk.ask("POST", "/v1/api-keys", json=body, headers=headers).status_code == 201
    assert [row.label for row in own_desk.services.access.list()].count("late") == 1


def test_a_request_is_forgotten_after_a_day(own_desk: Desk) -> None:
    body, headers = {"role": "analyst", "label": "old"}, {"Idempotency-Key": "o"}
    answers = [own_desk.ask("POST", "/v1/api-keys", json=body, headers=headers)]
    for late in (KEPT, KEPT + timedelta(seconds=1)):
        services = Services.open(own_desk.services.settings, FixedClock(NOW + late))
        app = create_app(services.settings, services=services)
        later = replace(own_desk, office=replace(own_desk.office, app=app, services=services))
        answers.append(later.ask("POST", "/v1/api-keys", json=body, headers=headers))
        with services.database.reading("requests") as tx:
            assert len(list(tx.tables.rows("idempotent_requests"))) == 1
    first, same, new = (answer.get_json()["key"] for answer in answers)
    assert (first == same, first == new) == (True, False)


def test_a_key_revoked_meanwhile_changes_nothing(
    own_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is revoked after it was checked, and before the transaction of the action."""
    access = own_desk.services.access
    holder = access.authenticate(own_desk.keys["owner"])
    access.revoke(holder.prefix)
    monkeypatch.setattr(type(access), "authenticate", lambda *_: holder)
    tables = own_desk.tables()
    statuses = {
        change: send(own_desk, change, change.replace(" ", "-")).status_code for change in CHANGES
    }
    own_desk.wait()
    # The survey of this office asks for no invitations, and has no webhook.
    assert {one for one in statuses if statuses[one] == 401} >= {
        *("create", "publish", "stop rule", "release", "pause", "close"),
        *("no webhook", "key", "no key", "person", "role", "disable"),
    }
    assert min(statuses.values()) >= 400
    assert own_desk.tables() == tables
