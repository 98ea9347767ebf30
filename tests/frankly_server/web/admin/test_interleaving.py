# SPDX-License-Identifier: Apache-2.0
"""Interleaving of admin actions that read and then write: a concurrent second action does not
change the result.

The tests run every pair of actions with a pause in the first, right before its first write, during
which the second action runs. Stored rows and responses must then be as if the actions had run one
after the other.
"""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from frankly_server.store import Database
from frankly_server.store.database import Transaction
from frankly_server.store.schema import metadata
from sqlalchemy import event, select

from tests.frankly_server.web.admin.office import Office, make_office, token

PAUSE_S = 0.15
"""Pause of the first action in seconds: a second action that waits for it continues afterwards."""
NEW = {"kind": "yes-no", "place": "block"}
TITLE = {
    "how": "question",
    "title": "A new one",
    "language": "en",
    "question": "Ever?",
    "choices": "No\nYes",
}

REFUSED = ("403", "409")
"""Status for a person who is no longer an owner, and for a form whose draft has changed."""

Act = Callable[["Desk"], Any]


class Desk:
    """Signed-in browsers of an office, and the office's initial rows."""

    def __init__(self, office: Office) -> None:
        self.office, self.database = office, office.services.database
        people = ("admin", "owner", "foreign owner", "second owner")
        self.clients = {name: office.client(name) for name in people}
        self.tokens = {name: token(client) for name, client in self.clients.items()}
        page = self.clients["admin"].get(f"/admin/surveys/{office.survey}/questions").text
        self.seen = re.findall(r'name="seen" value="([^"]+)"', page)[0]
        accounts = office.services.accounts.list("main")
        self.ids = {row.email: row.id for row in accounts}
        with self.database.reading("all") as tx:
            connection = tx._connection
            self._rows = {
                table.name: [dict(row) for row in connection.execute(select(table)).mappings()]
                for table in metadata.sorted_tables
            }

    def allow_deletion(self) -> None:
        """Disable the triggers that protect the audit trail, so that `reset` can empty it."""
        with self.database.engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                for table in metadata.sorted_tables:
                    connection.exec_driver_sql(f"ALTER TABLE {table.name} DISABLE TRIGGER USER")
                return
            names = connection.exec_driver_sql(
                "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            )
            for (name,) in names.fetchall():
                connection.exec_driver_sql(f"DROP TRIGGER {name}")

    def reset(self) -> None:
        """Restore the initial rows."""
        with self.database.engine.begin() as connection:
            for table in reversed(metadata.sorted_tables):
                connection.execute(table.delete())
            for table in metadata.sorted_tables:
                if self._rows[table.name]:
                    connection.execute(table.insert(), self._rows[table.name])

    def send(self, who: str, path: str, **fields: Any) -> str:
        """Send a form; return the status and the redirect URL without its random parts."""
        data = {"csrf": self.tokens[who], **fields}
        answer = self.clients[who].post(path, data=data, content_type="multipart/form-data")
        assert answer.status_code < 500
        return str(answer.status_code)

    def survey(self, tab: str, who: str = "admin", **fields: Any) -> str:
        """Send a form of the office's survey."""
        return self.send(who, f"/admin/surveys/{self.office.survey}/{tab}", **fields)

    def stored(self) -> Any:
        """Return the stored data without ids, times and secrets."""
        with self.database.reading("all") as tx:
            states = tx.survey_states.every()
            drafts = []
            for row in tx.surveys.all():
                state = states.get(row.id)
                draft = json.loads(row.definition) | {"name": unsuffixed(row.name)}
                hook = tx.webhooks.get(row.id)
                drafts.append((json.dumps(draft, sort_keys=True), str(state), len(tx.documents.versions(row.id)),
                               hook and hook.url))  # fmt: skip
            people = [
                (row.email, row.role, row.disabled is not None)
                for organisation in ("main", "other")
                for row in tx.accounts.of_organisation(organisation)
            ]
            keys = Counter((row.label, row.revoked is not None) for row in tx.api_keys.all())
            events = Counter(
                (row.organisation, row.actor, row.action, unsuffixed(row.subject))
                for organisation in ("main", "other")
                for row in tx.audit.newest(organisation, None, 500)
            )
        return sorted(drafts), sorted(people), keys, events


def unsuffixed(name: str) -> str:
    """Return a name without the random suffix that a second survey with the same name gets."""
    return re.sub(r"-[0-9a-f]{6}\b|\b[A-Za-z0-9_-]{8}$", "-x", name)


ACTIONS: dict[str, Act] = {
    "a new survey": lambda desk: desk.send("admin", "/admin/surveys/new", **TITLE),
    "a new survey of others": lambda desk: desk.send("foreign owner", "/admin/surveys/new", **TITLE),
    "a new survey by file": lambda desk: desk.send("owner", "/admin/surveys/new", how="file", file=desk.office.file),
    "a question": lambda desk: desk.survey("new-question", **NEW, **{"text-en": "Which?"}),
    "another question": lambda desk: desk.survey("new-question", "owner", **NEW, **{"text-en": "What?"}),
    "a title": lambda desk: desk.survey("text", title="Renamed", min_reports="60", seen=desk.seen),
    "another title": lambda desk: desk.survey("text", "owner", title="Called", min_reports="70", seen=desk.seen),
    "pause": lambda desk: desk.survey("move", move="pause"),
    "close": lambda desk: desk.survey("move", "owner", move="close"),
    "stop at 80": lambda desk: desk.survey("stop-rule", rule="reports", reports="80"),
    "stop at 90": lambda desk: desk.survey("stop-rule", "owner", rule="reports", reports="90"),
    "a key": lambda desk: desk.send("admin", "/admin/keys", label="mine", role="analyst"),
    "revoke": lambda desk: desk.send("admin", f"/admin/keys/{desk.office.key}/revoke"),
    "revoke again": lambda desk: desk.send("owner", f"/admin/keys/{desk.office.key}/revoke"),
    "a person": lambda desk: desk.send("owner", "/admin/people", email="new@example.org", role="admin"),
    "a person twice": lambda desk: desk.send("second owner", "/admin/people", email="new@example.org", role="viewer"),
    "demote": lambda desk: desk.send(
        "owner", f"/admin/people/{desk.ids['second-owner@example.org']}/role", role="viewer"
    ),
    "demote back": lambda desk: desk.send(
        "second owner", f"/admin/people/{desk.ids['owner@example.org']}/role", role="viewer"
    ),
    "disable": lambda desk: desk.send(
        "second owner", f"/admin/people/{desk.ids['owner@example.org']}/disable"
    ),
    "publish": lambda desk: desk.office.services.surveys.publish("habits").version,
    "erase": lambda desk: desk.office.services.surveys.erase("habits").reports,
    "invites": lambda desk: len(desk.office.services.invites.make("habits", 3)),
}  # fmt: skip
DEFAULT = [
    ("a new survey", "a new survey"), ("a question", "another question"), ("a title", "another title"),
    ("pause", "stop at 80"), ("close", "publish"), ("revoke", "revoke again"), ("a person", "a person twice"),
    ("demote", "disable"), ("erase", "publish"), ("a new survey by file", "a new survey by file"),
]  # fmt: skip


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def desk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Desk]:
    """An office on each kind of database, with a second owner."""
    home: Path = tmp_path_factory.mktemp("desk")
    url = f"sqlite:///{home / 'frankly.db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres").create()
    office = make_office(home, url)
    office.services.accounts.create(
        "main", "second-owner@example.org", "owner", "correct horse battery"
    )
    desk = Desk(office)
    desk.allow_deletion()
    yield desk
    office.services.close()


def outcome(act: Act, desk: Desk) -> Any:
    """Return the result of an action, or its error's code."""
    try:
        return act(desk)
    except Exception as error:  # noqa: BLE001 - any error must be that of the actions in order
        return getattr(error, "code", type(error).__name__)


def one_after_the_other(desk: Desk, first: Act, second: Act) -> Any:
    desk.reset()
    outcomes = outcome(first, desk), outcome(second, desk)
    return outcomes, desk.stored()


def interleaved(desk: Desk, first: Act, second: Act, pause_s: float) -> Any:
    """Run the second action while the first one, about to write, waits at most `pause_s`."""
    desk.reset()
    at_the_write, go_on, outcomes = threading.Event(), threading.Event(), {}

    def run(name: str, act: Act) -> threading.Thread:
        def work() -> None:
            outcomes[name] = outcome(act, desk)
            (at_the_write if name == "first" else go_on).set()

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    def paused(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        writes = (
            statement.startswith(("INSERT", "UPDATE", "DELETE")) and "sessions" not in statement
        )
        if threading.current_thread() is threads[0] and writes and not at_the_write.is_set():
            at_the_write.set()
            go_on.wait(pause_s)

    threads: list[threading.Thread] = []
    event.listen(desk.database.engine, "before_cursor_execute", paused)
    try:
        started = threading.Event()

        def first_when_listed(desk: Desk) -> Any:
            started.wait(10)
            return first(desk)

        threads.append(run("first", first_when_listed))
        started.set()
        assert at_the_write.wait(60)
        threads.append(run("second", second))
        for thread in threads:
            thread.join(30)
    finally:
        event.remove(desk.database.engine, "before_cursor_execute", paused)
    return (outcomes["first"], outcomes["second"]), desk.stored()


def agrees(desk: Desk, first: str, second: str, pause_s: float = PAUSE_S) -> bool:
    """Return True if a pair ends as if run in sequence, or if one action was refused without effect."""
    a, b = ACTIONS[first], ACTIONS[second]
    result = interleaved(desk, a, b, pause_s)
    (of_b, of_a), stored = one_after_the_other(desk, b, a)
    if result in (one_after_the_other(desk, a, b), ((of_a, of_b), stored)):
        return True
    (of_a, of_b), stored = result
    if of_a not in REFUSED and of_b not in REFUSED:
        return False
    alone, answered = (a, of_a) if of_b in REFUSED else (b, of_b)
    desk.reset()
    return (outcome(alone, desk), desk.stored()) == (answered, stored)


@pytest.mark.slow
def test_actions_end_as_if_one_had_run_after_the_other(desk: Desk, full: bool) -> None:
    pairs = [(a, b) for a in ACTIONS for b in ACTIONS] if full else DEFAULT
    assert [pair for pair in pairs if not agrees(desk, *pair)] == []


@pytest.mark.slow
def test_without_the_lock_pairs_disagree(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the lock, pairs disagree on PostgreSQL; on SQLite, which has one writer, they agree."""
    monkeypatch.setattr(Transaction, "lock_administration", lambda _: None)
    monkeypatch.setattr(Database, "administering", Database.transaction)
    pairs, pause_s = [("pause", "stop at 80"), ("a title", "another title")], PAUSE_S
    is_postgresql = desk.database.engine.dialect.name == "postgresql"
    if is_postgresql:
        pause_s = 30.0  # nothing makes the second action wait, so it ends the pause
    assert all(agrees(desk, *pair, pause_s) for pair in pairs) is not is_postgresql
