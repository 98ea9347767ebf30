# SPDX-License-Identifier: Apache-2.0
"""Known browsers: strangers can neither lock out a known browser nor take its slot for password checks."""

import threading
from typing import Literal

import pytest
from argon2 import PasswordHasher
from frankly_protocol.errors import InvalidInput
from frankly_server.accounts import BROWSER_S, Accounts, Passwords, SignedIn
from frankly_server.accounts.passwords import Busy
from frankly_server.store import Database

from tests.frankly_server.accounts.people import CHEAP, PASSWORD, Hands, refused

ADA = "ada@example.org"
WRONG = "wrong wrong wrong"


@pytest.fixture
def known(accounts: Accounts) -> SignedIn:
    """Sign the owner in, which makes the browser known to the account."""
    return accounts.sign_in(ADA, PASSWORD)


def lock(accounts: Accounts) -> None:
    """Lock the account as strangers do."""
    for _ in range(5):
        refused(accounts.sign_in, ADA, WRONG)
    refused(accounts.sign_in, ADA, PASSWORD)


def browsers(database: Database) -> int:
    with database.engine.connect() as connection:
        count: int = connection.exec_driver_sql("SELECT count(*) FROM known_browsers").scalar_one()
    return count


def test_strangers_lock_out_strangers_only(accounts: Accounts, known: SignedIn) -> None:
    lock(accounts)
    signed = accounts.sign_in(ADA, PASSWORD, known.browser)
    assert accounts.person(signed.token) == known.person
    # The lock continues after the owner's sign-in, so strangers get no new attempts.
    refused(accounts.sign_in, ADA, PASSWORD)
    # Every sign-in issues a new browser token and ends the old token.
    refused(accounts.sign_in, ADA, PASSWORD, known.browser)
    assert accounts.sign_in(ADA, PASSWORD, signed.browser)


def test_five_wrong_passwords_make_a_known_browser_unknown(
    accounts: Accounts, known: SignedIn
) -> None:
    for _ in range(5):
        refused(accounts.sign_in, ADA, WRONG, known.browser)
    # The account does not count these five attempts, so a stranger with the correct password can
    # sign in.
    assert accounts.sign_in(ADA, PASSWORD)
    lock(accounts)
    refused(accounts.sign_in, ADA, PASSWORD, known.browser)


def test_the_right_password_resets_a_browsers_count(accounts: Accounts, known: SignedIn) -> None:
    for _ in range(4):
        refused(accounts.sign_in, ADA, WRONG, known.browser)
    signed = accounts.sign_in(ADA, PASSWORD, known.browser)
    for _ in range(4):
        refused(accounts.sign_in, ADA, WRONG, signed.browser)
    lock(accounts)
    assert accounts.sign_in(ADA, PASSWORD, signed.browser)


def test_a_browser_is_known_to_its_own_account_for_180_days(
    accounts: Accounts, known: SignedIn, hands: Hands
) -> None:
    accounts.create("main", "bob@example.org", "owner", PASSWORD)
    bob = accounts.sign_in("bob@example.org", PASSWORD)
    lock(accounts)
    refused(accounts.sign_in, ADA, PASSWORD, bob.browser)
    hands.wait(BROWSER_S - 1)
    lock(accounts)
    assert accounts.sign_in(ADA, PASSWORD, known.browser)
    hands.wait(1)
    lock(accounts)
    refused(accounts.sign_in, ADA, PASSWORD, bob.browser)


def test_an_expired_browser_is_a_stranger(
    accounts: Accounts, known: SignedIn, hands: Hands
) -> None:
    hands.wait(BROWSER_S)
    lock(accounts)
    refused(accounts.sign_in, ADA, PASSWORD, known.browser)


def test_an_account_knows_ten_browsers(
    accounts: Accounts, hands: Hands, database: Database
) -> None:
    issued = []
    for _ in range(12):
        issued.append(accounts.sign_in(ADA, PASSWORD).browser)
        hands.wait(1)
    assert browsers(database) == 10
    lock(accounts)
    for browser in issued[:2]:
        refused(accounts.sign_in, ADA, PASSWORD, browser)
    for browser in issued[2:]:
        assert accounts.sign_in(ADA, PASSWORD, browser)


def test_only_the_hash_of_a_browser_is_stored(known: SignedIn, database: Database) -> None:
    with database.engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT * FROM known_browsers").all()
    assert len(rows) == 1
    assert known.browser not in repr(rows)
    assert known.browser not in repr(known)


def test_browsers_are_forgotten_with_the_password_the_account_and_everywhere(
    accounts: Accounts, known: SignedIn, database: Database
) -> None:
    elsewhere = accounts.sign_in(ADA, PASSWORD)
    changed = accounts.change_password(
        known.person, PASSWORD, "another good password", known.browser
    )
    assert accounts.person(known.token) is None
    lock(accounts)
    for browser in (known.browser, elsewhere.browser):
        refused(accounts.sign_in, ADA, "another good password", browser)
    # The browser that changed the password can sign in although strangers have locked the account.
    assert accounts.person(changed.token) == known.person
    again = accounts.sign_in(ADA, "another good password", changed.browser)
    accounts.sign_out_everywhere(again.person)
    assert accounts.person(again.token) is None
    assert browsers(database) == 0
    accounts.reset_password(ADA, PASSWORD)
    accounts.sign_in(ADA, PASSWORD)
    accounts.disable_address(ADA)
    assert browsers(database) == 0


def test_a_locked_account_changes_its_password_in_a_known_browser(
    accounts: Accounts, known: SignedIn
) -> None:
    lock(accounts)
    assert (
        refused(accounts.change_password, known.person, PASSWORD, "another good password").field
        == "old"
    )
    accounts.change_password(known.person, PASSWORD, "another good password", known.browser)


@pytest.mark.parametrize("text", ["", "x", "A" * 43, "A" * 10_000, "\ud800" * 43, "é" * 43])
def test_any_other_text_is_no_browser(accounts: Accounts, known: SignedIn, text: str) -> None:
    lock(accounts)
    refused(accounts.sign_in, ADA, PASSWORD, text)


class Stuck(PasswordHasher):
    """An argon2id hasher whose checks of one password wait until the test releases them."""

    def __init__(self) -> None:
        super().__init__(time_cost=1, memory_cost=64, parallelism=1)
        self.begun, self.go = threading.Semaphore(0), threading.Event()

    def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002 - the library's name
        if password == WRONG.encode():
            self.begun.release()
            self.go.wait(60)
        return CHEAP.verify(hash, password)


def test_strangers_who_fill_the_queue_leave_the_slot_of_known_browsers(
    database: Database, hands: Hands
) -> None:
    hasher = Stuck()
    accounts = Accounts(database, hands, Passwords(hasher, wait_s=60))
    accounts.create("main", ADA, "owner", PASSWORD)
    known = accounts.sign_in(ADA, PASSWORD)

    def guess() -> None:
        with pytest.raises((InvalidInput, Busy)):
            accounts.sign_in("nobody@example.org", WRONG)

    strangers = [threading.Thread(target=guess) for _ in range(20)]
    for stranger in strangers:
        stranger.start()
    for _ in range(2):
        assert hasher.begun.acquire(timeout=60)
    while sum(stranger.is_alive() for stranger in strangers) > 4:  # two checks, two in the queue
        threading.Event().wait(0.001)
    with pytest.raises(Busy):
        accounts.sign_in(ADA, PASSWORD)
    for _ in range(20):
        known = accounts.sign_in(ADA, PASSWORD, known.browser)
    accounts.change_password(known.person, PASSWORD, "another good password", known.browser)
    hasher.go.set()
    for stranger in strangers:
        stranger.join()
