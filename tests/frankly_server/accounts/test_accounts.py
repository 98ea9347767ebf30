# SPDX-License-Identifier: Apache-2.0
"""Accounts: passwords, sessions, lockout, roles, and an append-only audit trail."""

import threading
import time
from typing import Any, Literal

import pytest
from argon2 import PasswordHasher
from frankly_server.accounts import SESSION_S, Accounts, Passwords, may
from frankly_server.accounts.lockout import after_failure
from frankly_server.accounts.passwords import Busy
from frankly_server.store import Database
from sqlalchemy.exc import DBAPIError

from tests.frankly_server.accounts.people import PASSWORD, Hands, refused
from tests.threads import concurrently


def test_a_session_opens_ends_and_expires(accounts: Accounts, hands: Hands) -> None:
    first, second = (accounts.sign_in(" ADA@example.org", PASSWORD).token for _ in range(2))
    assert first != second
    person = accounts.person(first)
    assert person is not None
    assert (person.organisation, person.email, person.role) == ("main", "ada@example.org", "owner")
    accounts.sign_out(first)
    assert accounts.person(first) is None
    hands.wait(SESSION_S - 1)
    assert accounts.person(second) is not None
    hands.wait(1)
    assert accounts.person(second) is None


def test_neither_password_nor_token_is_stored(accounts: Accounts, database: Database) -> None:
    token = accounts.sign_in("ada@example.org", PASSWORD).token
    with database.engine.connect() as connection:
        rows = [
            connection.exec_driver_sql(f"SELECT * FROM {name}").all()
            for name in ("accounts", "sessions")
        ]
    assert "$argon2id$" in repr(rows)
    assert PASSWORD not in repr(rows)
    assert token not in repr(rows)


def test_five_wrong_passwords_lock_for_a_minute_then_longer(
    accounts: Accounts, hands: Hands
) -> None:
    for minutes in (1, 2, 4, 8, 15, 15):
        for _ in range(5):
            assert (
                refused(accounts.sign_in, "ada@example.org", "wrong wrong wrong").code
                == "unauthenticated"
            )
        assert refused(accounts.sign_in, "ada@example.org", PASSWORD).code == "unauthenticated"
        hands.wait(minutes * 60)
    assert accounts.sign_in("ada@example.org", PASSWORD)
    for _ in range(4):  # the correct password reset the count
        refused(accounts.sign_in, "ada@example.org", "wrong wrong wrong")
    assert accounts.sign_in("ada@example.org", PASSWORD)


def test_ten_thousand_wrong_passwords_lock_after_every_fifth() -> None:
    failures, locks = 0, []
    for attempt in range(1, 10_001):
        failures, lock_s = after_failure(failures)
        assert (lock_s > 0) == (attempt % 5 == 0)
        assert failures <= 50
        if lock_s:
            locks.append(lock_s)
    assert locks[:5] == [60, 120, 240, 480, 900]
    assert set(locks[4:]) == {900}


def test_a_row_with_the_largest_count_still_locks(
    accounts: Accounts, hands: Hands, database: Database
) -> None:
    with database.transaction("many failures") as tx:
        row = tx.accounts.by_email("ada@example.org")
        assert row is not None
        tx.accounts.change(row.id, failures=50)
    for _ in range(5):
        refused(accounts.sign_in, "ada@example.org", "wrong wrong wrong")
    assert refused(accounts.sign_in, "ada@example.org", PASSWORD).code == "unauthenticated"
    hands.wait(15 * 60)
    assert accounts.sign_in("ada@example.org", PASSWORD)


def test_wrong_old_passwords_count_and_lock(accounts: Accounts, hands: Hands) -> None:
    signed = accounts.sign_in("ada@example.org", PASSWORD)
    for _ in range(5):
        refused(accounts.change_password, signed.person, "wrong", "another good password")
    locked = refused(accounts.change_password, signed.person, PASSWORD, "another good password")
    assert (locked.code, locked.field) == ("unauthenticated", "old")
    assert refused(accounts.sign_in, "ada@example.org", PASSWORD).code == "unauthenticated"
    hands.wait(60)
    accounts.change_password(signed.person, PASSWORD, "another good password")


def test_wrong_passwords_at_the_same_time_all_count(accounts: Accounts, database: Database) -> None:
    """Counting reads the row and then writes it, so without a lock PostgreSQL would count two
    attempts as one."""
    account = accounts.create("main", "many@example.org", "viewer", PASSWORD)
    ready = threading.Barrier(4)

    def guess() -> None:
        ready.wait()
        assert not accounts._judge(account.id, matches=False)

    concurrently(guess, *[()] * 4)
    with database.reading("failures") as tx:
        row = tx.accounts.get(account.id)
    assert row is not None
    assert row.failures == 4


@pytest.mark.parametrize("late", ["wrong", PASSWORD])
def test_a_password_that_was_checked_meanwhile_does_not_end_a_lock(
    accounts: Accounts, database: Database, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    """Two guesses at a time would otherwise keep an account open for guesses without end."""
    accounts.create("main", "late@example.org", "viewer", PASSWORD)

    def guess(password: str) -> None:
        assert refused(accounts.sign_in, "late@example.org", password).code == "unauthenticated"

    for _ in range(4):
        guess("wrong")
    check, inner = accounts._passwords.check, iter([True])

    def slow(*arguments: Any, **options: Any) -> bool:
        if next(inner, False):
            guess("the fifth")  # it locks the account while `late` is being checked
        return check(*arguments, **options)

    monkeypatch.setattr(accounts._passwords, "check", slow)
    guess(late)
    with database.reading("lock") as tx:
        row = tx.accounts.by_email("late@example.org")
    assert row is not None
    assert (row.failures, accounts.state_of(row)) == (5, "locked")
    guess(PASSWORD)


def test_every_refusal_is_the_same(accounts: Accounts) -> None:
    messages = {
        str(refused(accounts.sign_in, email, password))
        for email, password in (
            ("ada@example.org", "x"),
            ("nobody@example.org", PASSWORD),
            ("", ""),
            ("\x00", "\ud800"),
        )
    }
    assert len(messages) == 1


def test_accents_are_one_password_however_they_are_typed(accounts: Accounts) -> None:
    accounts.create("main", "zoë@example.org".replace("ë", "e"), "viewer", "élan vital partout")
    assert accounts.sign_in("zoe@example.org", "e\u0301lan vital partout")


BAD_ACCOUNTS = {
    "organisation": ("Main!", "x@example.org", "owner", PASSWORD),
    "email": ("main", "x@", "owner", PASSWORD),
    "email with a line": ("main", "x@example.org\ny", "owner", PASSWORD),
    "role": ("main", "x@example.org", "root", PASSWORD),
    "password": ("main", "x@example.org", "owner", "too short"),
    "password, long": ("main", "x@example.org", "owner", "x" * 1001),
    "email, taken": ("other", "ADA@example.org", "owner", PASSWORD),
}


@pytest.mark.parametrize("name", BAD_ACCOUNTS)
def test_invalid_accounts_are_not_created(accounts: Accounts, name: str) -> None:
    error = refused(accounts.create, *BAD_ACCOUNTS[name])
    assert error.field == name.partition(",")[0].partition(" ")[0]
    assert len(accounts.list("main")) == 1
    assert accounts.list("other") == []


def test_colleagues_are_changed_by_owners_of_their_organisation_only(accounts: Accounts) -> None:
    ada = accounts.sign_in("ada@example.org", PASSWORD).person
    bob = accounts.create("main", "bob@example.org", "viewer", PASSWORD)
    eve = accounts.create("other", "eve@example.org", "owner", PASSWORD)
    token = accounts.sign_in("bob@example.org", PASSWORD).token
    accounts.set_role(ada, bob.id, "admin")
    assert accounts.person(token) is None  # a session ends with its role
    assert accounts.sign_in("bob@example.org", PASSWORD).person.role == "admin"
    for act in (
        lambda: accounts.set_role(eve, bob.id, "viewer"),
        lambda: accounts.disable(eve, bob.id),
    ):
        assert (refused(act).code, refused(act).field) == ("not_found", "account")
    wrong = refused(accounts.set_role, ada, bob.id, "king")
    assert (wrong.code, wrong.field) == ("field_type", "role")
    assert refused(accounts.disable, ada, ada.id).code == "forbidden"
    accounts.disable(ada, bob.id)
    assert refused(accounts.sign_in, "bob@example.org", PASSWORD).code == "unauthenticated"


def test_a_new_password_ends_every_session(accounts: Accounts) -> None:
    signed = accounts.sign_in("ada@example.org", PASSWORD)
    assert (
        refused(accounts.change_password, signed.person, "wrong", "another good password").field
        == "old"
    )
    accounts.change_password(signed.person, PASSWORD, "another good password")
    assert accounts.person(signed.token) is None
    assert accounts.sign_in("ada@example.org", "another good password")
    refused(accounts.sign_in, "ada@example.org", PASSWORD)


def test_the_trail_only_grows(accounts: Accounts, database: Database) -> None:
    ada = accounts.sign_in("ada@example.org", PASSWORD).person
    with database.transaction("create survey") as tx:
        accounts.recorder(ada, "survey created", "habits")(tx)
    recorded_events = [(event.actor, event.action) for event in accounts.trail("main")]
    assert recorded_events == [
        ("ada@example.org", "survey created"),
        ("ada@example.org", "signed in"),
        ("the command line", "account created"),
    ]
    assert accounts.trail("other") == []
    newest = accounts.trail("main", limit=1)[0]
    assert [event.action for event in accounts.trail("main", newest.position)] == [
        "signed in",
        "account created",
    ]
    for statement in ("UPDATE audit_events SET actor = 'x'", "DELETE FROM audit_events"):
        with (
            pytest.raises(DBAPIError, match="never changed"),
            database.engine.begin() as connection,
        ):
            connection.exec_driver_sql(statement)
    assert [(event.actor, event.action) for event in accounts.trail("main")] == recorded_events


def test_concurrent_password_checks_are_limited() -> None:
    inside, most_inside, lock = 0, 0, threading.Lock()
    both = threading.Barrier(2)

    class Watched(PasswordHasher):
        def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
            return "x"

        def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002 - the library's name
            nonlocal inside, most_inside
            with lock:
                inside += 1
                most_inside = max(most_inside, inside)
            both.wait(5)
            with lock:
                inside -= 1
            return True

    passwords = Passwords(Watched(), at_once=2, wait_s=5, queue=4)
    concurrently(passwords.check, *[("x", PASSWORD)] * 6)
    assert most_inside == 2


def test_waiting_too_long_raises_busy() -> None:
    begun, go = threading.Event(), threading.Event()

    class Stuck(PasswordHasher):
        def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
            begun.set()
            go.wait(5)
            return "x"

    passwords = Passwords(Stuck(), at_once=1, wait_s=0.01)
    thread = threading.Thread(target=passwords.hash, args=(PASSWORD,))
    thread.start()
    begun.wait(5)
    with pytest.raises(Busy):
        passwords.hash(PASSWORD)
    go.set()
    thread.join()


def test_the_queue_is_bounded_and_the_next_one_fails_at_once() -> None:
    begun, go = threading.Semaphore(0), threading.Event()

    class Stuck(PasswordHasher):
        def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
            begun.release()
            go.wait(10)
            return "x"

    passwords = Passwords(Stuck(), at_once=1, wait_s=10, queue=1)
    hashes: list[str] = []
    inside = threading.Thread(target=lambda: hashes.append(passwords.hash(PASSWORD)))
    inside.start()
    assert begun.acquire(timeout=60)
    waiting = threading.Thread(target=lambda: hashes.append(passwords.hash(PASSWORD)))
    waiting.start()
    while passwords._known._places._value:  # until the second check is in the queue
        time.sleep(0.001)
    began = time.monotonic()
    with pytest.raises(Busy):
        passwords.hash(PASSWORD)
    assert time.monotonic() - began < 5
    go.set()
    for thread in (inside, waiting):
        thread.join()
    assert hashes == ["x", "x"]
    assert passwords.hash(PASSWORD) == "x"  # the queue is empty again


def test_the_default_is_argon2id_with_64_mebibytes() -> None:
    assert Passwords().hash(PASSWORD).startswith("$argon2id$v=19$m=65536,t=3,p=4$")


def test_each_role_includes_the_lower_ones() -> None:
    ladder = ["viewer", "analyst", "admin", "owner"]
    for i, role in enumerate(ladder):
        assert [may(role, needed) for needed in ladder] == [j <= i for j in range(4)]
    assert not may("root", "viewer")


def test_a_new_account_has_all_five_attempts(accounts: Accounts) -> None:
    accounts.create("main", "bob@example.org", "viewer", PASSWORD)
    for _ in range(4):
        assert refused(accounts.sign_in, "bob@example.org", "wrong").code == "unauthenticated"
    assert accounts.sign_in("bob@example.org", PASSWORD).person.role == "viewer"


def test_a_reset_password_restores_all_five_attempts(accounts: Accounts) -> None:
    for _ in range(4):
        refused(accounts.sign_in, "ada@example.org", "wrong")
    accounts.reset_password("ada@example.org", "a good new password")
    for _ in range(4):
        assert refused(accounts.sign_in, "ada@example.org", "wrong").code == "unauthenticated"
    assert accounts.sign_in("ada@example.org", "a good new password").person.role == "owner"
