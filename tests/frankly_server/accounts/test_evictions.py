# SPDX-License-Identifier: Apache-2.0
"""Whoever is put out stays out: a request in flight leaves no session and no credential behind.

A thief knows the password or holds a session. Each request of theirs is stopped between its check
and its write, or before its commit, while the account is taken back; then it goes on.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.accounts import (
    Accounts,
    Passkeys,
    Person,
    SecondFactorNeeded,
    SecondFactors,
    SignedIn,
)
from frankly_server.accounts.sessions import knows
from frankly_server.keys import Keyring
from frankly_server.keys.access import Access
from frankly_server.store import Database, PasskeyRow
from frankly_server.store.database import Transaction
from frankly_server.store.schema import metadata
from sqlalchemy import select

from tests.frankly_server.accounts.authenticator import Authenticator
from tests.frankly_server.accounts.people import PASSWORD, Hands, as_now, code

NEW, COOKIE = "another good password", "T" * 43
URL = "https://surveys.example.org"
EVICTED = {
    "the account has changed in the meantime",
    "the sign-in took too long",
    "you are not an owner any more",
}
WAYS = (
    "sessions",
    "known_browsers",
    "pending_sign_ins",
    "passkeys",
    "recovery_codes",
    "second_factors",
    "api_keys",
    "organisations",
)
"""Tables whose rows let somebody in, or make signing in easier."""


@dataclass
class World:
    """Services on one database, and what the owner and the thief hold of one account."""

    accounts: Accounts
    factors: SecondFactors
    passkeys: Passkeys
    access: Access
    database: Database
    hands: Hands
    boss: Person
    email: str = ""
    token: str = ""
    device: Authenticator | None = None

    @property
    def person(self) -> Person:
        """The person of the thief's session, as a request of theirs begins."""
        person = self.accounts.person(self.token)
        assert person is not None
        return person

    def prepare(self, email: str, *, totp: bool, passkey: bool) -> None:
        """Create an account, into which the thief is signed in."""
        self.email = email
        made = self.accounts.create("main", email, "owner", PASSWORD)
        self.token = self.accounts.sign_in(email, PASSWORD).token
        if totp:
            self.factors.begin_totp(self.person, PASSWORD)
            self.factors.confirm_totp(self.person, self.code())
            self.hands.wait(60)
        if passkey:
            begun = self.passkeys.begin(made, COOKIE)
            device = Authenticator()
            self.register(begun, device)
            self.device = device.with_user(begun.options)
            self.hands.wait(1)

    def register(self, begun: Any, device: Authenticator) -> None:
        answer = device.create(begun.options)
        self.passkeys.register(
            self.person, PASSWORD, COOKIE, begun.challenge, answer, "of the thief"
        )

    def code(self) -> str:
        with self.database.reading("secret") as tx:
            secret = tx.second_factors.get(self.person.id).totp_secret
        assert secret is not None
        return code(secret, int(self.hands.now().timestamp()))

    def pending(self) -> str:
        with pytest.raises(SecondFactorNeeded) as waits:
            self.accounts.sign_in(self.email, PASSWORD)
        return waits.value.token

    def rows(self) -> dict[str, list[Any]]:
        """Return the rows of every table of `WAYS`, and the accounts."""
        with self.database.engine.connect() as connection:
            return {
                name: sorted(map(repr, connection.execute(select(metadata.tables[name]))))
                for name in (*WAYS, "accounts")
            }


@pytest.fixture
def world(database: Database, accounts: Accounts, hands: Hands, tmp_path: Path) -> World:
    keys = Keyring(tmp_path / "keys", hands)
    keys.init()
    return World(
        accounts,
        SecondFactors(database, hands, accounts, "Frankly"),
        Passkeys(database, hands, accounts, keys, URL),
        Access(database, hands),
        database,
        hands,
        accounts.sign_in("ada@example.org", PASSWORD).person,
    )


def a_password(world: World) -> Callable[[], object]:
    return lambda: world.accounts.sign_in(world.email, PASSWORD)


def a_code(world: World) -> Callable[[], object]:
    token, typed = world.pending(), world.code()
    return lambda: world.factors.finish(token, typed)


def a_passkey(world: World) -> Callable[[], object]:
    asked, device = world.passkeys.ask(COOKIE), world.device
    assert device is not None
    answer = device.get(asked.options)
    return lambda: world.passkeys.sign_in(COOKIE, asked.challenge, answer)


def a_new_passkey(world: World) -> Callable[[], object]:
    person, device = world.person, Authenticator()
    begun = world.passkeys.begin(person, COOKIE)
    answer = device.create(begun.options)
    return lambda: world.passkeys.register(
        person, PASSWORD, COOKIE, begun.challenge, answer, "of the thief"
    )


def a_new_secret(world: World) -> Callable[[], object]:
    person = world.person
    return lambda: world.factors.begin_totp(person, PASSWORD)


def a_confirmed_secret(world: World) -> Callable[[], object]:
    world.factors.begin_totp(world.person, PASSWORD)
    person, typed = world.person, world.code()
    return lambda: world.factors.confirm_totp(person, typed)


def new_codes(world: World) -> Callable[[], object]:
    person = world.person
    return lambda: world.factors.renew_codes(person, PASSWORD)


def an_api_key(world: World) -> Callable[[], object]:
    record = world.accounts.credential_recorder(world.person, "API key made", "thief")
    return lambda: world.access.create("admin", "of the thief", recorder=lambda _: record)


def an_accomplice(world: World) -> Callable[[], object]:
    person, email = world.person, f"friend-of-{world.email}"
    return lambda: world.accounts.create("main", email, "owner", PASSWORD, person)


def a_friend(world: World) -> str:
    """Return the id of a colleague with a low role."""
    return world.accounts.create("main", f"friend-of-{world.email}", "viewer", PASSWORD).id


def a_role(world: World) -> Callable[[], object]:
    person, friend = world.person, a_friend(world)
    return lambda: world.accounts.set_role(person, friend, "owner")


def a_disabled_colleague(world: World) -> Callable[[], object]:
    person, friend = world.person, a_friend(world)
    return lambda: world.accounts.disable(person, friend)


def no_second_factor(world: World) -> Callable[[], object]:
    world.factors.require(as_now(world.accounts, world.boss), True)
    person = world.person
    return lambda: world.factors.require(person, False)


def an_api_key_revoked(world: World) -> Callable[[], object]:
    prefix = world.access.create("analyst", "of a colleague").removeprefix("frankly_live_")[:8]
    record = world.accounts.credential_recorder(world.person, "API key revoked", prefix)
    return lambda: world.access.revoke(prefix, "main", record)


def signed_out_everywhere(world: World) -> Callable[[], object]:
    person = world.person
    return lambda: world.accounts.sign_out_everywhere(person)


def a_passkey_removed(world: World) -> Callable[[], object]:
    person = world.person
    (row,) = world.passkeys.of(person)
    return lambda: world.passkeys.remove(person, PASSWORD, row.credential)


def no_codes_of_an_app(world: World) -> Callable[[], object]:
    person = world.person
    return lambda: world.factors.remove_totp(person, PASSWORD)


def a_password_of_their_own(world: World) -> Callable[[], object]:
    person = world.person
    return lambda: world.accounts.change_password(person, PASSWORD, "the thief's password")


ACTS: dict[str, tuple[Callable[[World], Callable[[], object]], bool, bool]] = {
    "a session and a known browser": (a_password, False, False),
    "a waiting sign-in": (a_password, True, False),
    "a session by a code": (a_code, True, False),
    "a session by a passkey": (a_passkey, False, True),
    "a passkey": (a_new_passkey, False, False),
    "an unconfirmed secret": (a_new_secret, False, False),
    "codes of an app": (a_confirmed_secret, False, False),
    "recovery codes": (new_codes, True, False),
    "an API key": (an_api_key, False, False),
    "an accomplice": (an_accomplice, False, False),
    "a password": (a_password_of_their_own, False, False),
    "a role": (a_role, False, False),
    "a disabled colleague": (a_disabled_colleague, False, False),
    "no second factor needed": (no_second_factor, False, False),
    "an API key revoked": (an_api_key_revoked, False, False),
    "signed out everywhere": (signed_out_everywhere, False, False),
    "a passkey removed": (a_passkey_removed, False, True),
    "no codes of an app": (no_codes_of_an_app, True, False),
}
"""The thief's request by what it leaves, and the account's factors: (request, TOTP, passkey)."""


def another_passkey(world: World) -> str:
    """Add a passkey without a request, which alone would end requests in flight; return its id."""
    row = PasskeyRow(f"of {world.email}", world.person.id, b"", 0, 0, "old", "2026-06-01T12:00:00Z")
    with world.database.transaction("a passkey") as tx:
        tx.passkeys.add(row)
    return row.credential


def remove_a_passkey(world: World) -> None:
    credential = another_passkey(world)
    world.passkeys.remove(world.person, PASSWORD, credential)


def renew_codes(world: World) -> None:
    another_passkey(world)  # without a second factor there are no codes
    world.factors.renew_codes(world.person, PASSWORD)


EVICTIONS: dict[str, Callable[[World], object]] = {
    "a new password": lambda world: world.accounts.change_password(world.person, PASSWORD, NEW),
    "sign out everywhere": lambda world: world.accounts.sign_out_everywhere(world.person),
    "admin reset-password": lambda world: world.accounts.reset_password(world.email, NEW),
    "admin reset-second-factor": lambda world: world.factors.reset(world.email),
    "admin disable": lambda world: world.accounts.disable_address(world.email),
    "another owner disables": lambda world: world.accounts.disable(
        as_now(world.accounts, world.boss), world.person.id
    ),
    "another role": lambda world: world.accounts.set_role(
        as_now(world.accounts, world.boss), world.person.id, "viewer"
    ),
    "a removed passkey": remove_a_passkey,
    "removed codes of an app": lambda world: world.factors.remove_totp(world.person, PASSWORD),
    "new recovery codes": renew_codes,
}
KEEPS_ITS_OWN = {"a removed passkey", "removed codes of an app", "new recovery codes"}
"""Evictions that leave the session from which they are made."""


@contextmanager
def stopped(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], *, in_transaction: bool
) -> Iterator[list[object]]:
    """Run `act` in a thread; the block runs while it waits before, or at the end of, its writes.

    Yields a list that contains its result or its error after the block.
    """
    checked, go_on, results = threading.Event(), threading.Event(), list[object]()
    begin = Database.transaction

    @contextmanager
    def transaction(database: Database, name: str) -> Iterator[Transaction]:
        is_first = threading.current_thread() is thief and not checked.is_set()
        if is_first and not in_transaction:
            checked.set()
            assert go_on.wait(60)
        with begin(database, name) as tx:
            yield tx
            if is_first and in_transaction:
                checked.set()
                # The eviction cannot end before this transaction: it waits for its locks.
                go_on.wait(0.1)

    def run() -> None:
        try:
            results.append(act())
        except (InvalidInput, SecondFactorNeeded) as error:
            results.append(error)
        finally:
            checked.set()

    thief = threading.Thread(target=run)
    with monkeypatch.context() as patch:
        patch.setattr(Database, "transaction", transaction)
        thief.start()
        assert checked.wait(60)
        try:
            yield results
        finally:
            go_on.set()
            thief.join()


def on_both(acts: Iterable[str], kind: str, also: str) -> pytest.MarkDecorator:
    """Run the acts on one kind of database, and one of them on the other; --full runs all on both."""
    return pytest.mark.parametrize(
        ("database", "act"),
        [
            pytest.param(
                name, act, marks=() if name == kind or act == also else pytest.mark.full_only
            )
            for name in ("sqlite", "postgresql")
            for act in acts
        ],
        indirect=["database"],
    )


# The eviction and the request take turns, so the kind of database makes no difference.
@on_both(ACTS, "sqlite", "a session by a code")
def test_a_request_that_was_checked_before_leaves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    prepare, totp, passkey = ACTS[act]
    for number, eviction in enumerate(EVICTIONS):
        world.prepare(f"u{number}@example.org", totp=totp, passkey=passkey)
        with stopped(monkeypatch, prepare(world), in_transaction=False) as results:
            EVICTIONS[eviction](world)
            after = world.rows()
        assert world.rows() == after, eviction
        (error,) = results
        assert isinstance(error, InvalidInput), eviction
        assert error.detail.partition(":")[0] in EVICTED, eviction


# The eviction waits for the locks of the request, which on SQLite are those of the whole file.
@on_both(
    (
        "a session and a known browser",
        "a waiting sign-in",
        "a session by a code",
        "a session by a passkey",
    ),
    "postgresql",
    "a waiting sign-in",
)
def test_a_request_that_writes_first_is_ended(
    world: World, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    prepare, totp, passkey = ACTS[act]
    for number, eviction in enumerate(EVICTIONS):
        if eviction == "another role":
            continue  # the person may sign in with the new role
        world.prepare(f"u{number}@example.org", totp=totp, passkey=passkey)
        person = world.person
        with stopped(monkeypatch, prepare(world), in_transaction=True) as results:
            ended = EVICTIONS[eviction](world)
        (result,) = results
        with world.database.reading("left") as tx:
            row = tx.accounts.get(person.id)
            assert row is not None
        if isinstance(result, SignedIn):
            assert world.accounts.person(result.token) is None, eviction
        elif isinstance(result, SecondFactorNeeded):
            assert not world.factors.waits(result.token), eviction
        else:
            pytest.fail(f"{eviction}: {result}")
        own = 1 if isinstance(ended, SignedIn) else 0  # the owner's own new session
        left_of = {"sessions": 1 if eviction in KEEPS_ITS_OWN else own, "known_browsers": own}
        with world.database.engine.connect() as connection:
            for name in ("sessions", "known_browsers", "pending_sign_ins"):
                table = metadata.tables[name]
                mine = select(table).where(table.c.account == person.id)
                left = len(connection.execute(mine).all())
                assert left == left_of.get(name, 0), (eviction, name)


REMOVALS: dict[str, Callable[[World, Person, str], object]] = {
    "the passkey": lambda world, person, browser: world.passkeys.remove(
        person, PASSWORD, world.passkeys.of(person)[0].credential, browser
    ),
    "codes of an app": lambda world, person, browser: world.factors.remove_totp(
        person, PASSWORD, browser
    ),
    "recovery codes": lambda world, person, browser: world.factors.renew_codes(
        person, PASSWORD, browser
    ),
}


@pytest.mark.parametrize("removal", REMOVALS)
def test_a_removed_credential_takes_along_what_it_opened(world: World, removal: str) -> None:
    world.prepare("u@example.org", totp=True, passkey=True)
    thief = a_passkey(world)()
    assert isinstance(thief, SignedIn)
    own = world.factors.finish(world.pending(), world.code())
    waiting = world.pending()
    person = world.accounts.person(own.token)
    assert person is not None
    REMOVALS[removal](world, person, own.browser)
    assert world.accounts.person(thief.token) is None
    assert not world.factors.waits(waiting)
    assert world.accounts.person(own.token) == person
    with world.database.reading("browsers") as tx:
        row = tx.accounts.get(person.id)
        assert row is not None
        assert knows(tx, row, world.hands.now(), own.browser)
        assert not knows(tx, row, world.hands.now(), thief.browser)
