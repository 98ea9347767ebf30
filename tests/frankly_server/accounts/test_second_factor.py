# SPDX-License-Identifier: Apache-2.0
"""TOTP and recovery codes: required after the password, valid once, with limited attempts."""

import base64
import re
from contextlib import suppress
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.accounts import PENDING_S, Accounts, Person, SecondFactorNeeded, SecondFactors
from frankly_server.store import Database

from tests.frankly_server.accounts.people import PASSWORD, Hands, as_now, code, refused
from tests.threads import concurrently

ADA = "ada@example.org"


def test_the_tests_own_codes_equal_those_of_the_rfc() -> None:
    secret = base64.b32encode(b"12345678901234567890").decode()
    # RFC 6238, appendix B, gives eight digits; these are the last six.
    assert [code(secret, at) for at in (59, 1111111109, 20000000000)] == [
        "287082",
        "081804",
        "353130",
    ]


@pytest.fixture
def factors(accounts: Accounts, database: Database, hands: Hands) -> SecondFactors:
    return SecondFactors(database, hands, accounts, "Frankly surveys.example.org")


class App:
    """The owner's authenticator app after TOTP has been set up."""

    def __init__(self, accounts: Accounts, factors: SecondFactors, hands: Hands) -> None:
        self._accounts, self._factors, self._hands = accounts, factors, hands
        signed = accounts.sign_in(ADA, PASSWORD)
        self._signed, self.browser = signed.person, signed.browser
        factors.begin_totp(self.person, PASSWORD)
        secret = factors.state(self.person).new_secret
        assert secret is not None
        self.secret = secret
        self.codes = factors.confirm_totp(self.person, self.code())
        hands.wait(60)

    @property
    def person(self) -> Person:
        return as_now(self._accounts, self._signed)

    def code(self, later_s: int = 0) -> str:
        return code(self.secret, int(self._hands.now().timestamp()) + later_s)

    def password(self, browser: str = "") -> str:
        """Enter the password; return the token for the second step."""
        with pytest.raises(SecondFactorNeeded) as waits:
            self._accounts.sign_in(ADA, PASSWORD, browser)
        return waits.value.token

    def enter(self, text: str, browser: str = "") -> bool:
        """Return True if the password and this code sign in."""
        token = self.password(browser)
        try:
            signed = self._factors.finish(token, text, browser)
        except InvalidInput as error:
            assert (error.code, error.field) == ("unauthenticated", "code")
            return False
        assert self._accounts.person(signed.token) == self.person
        # The token of the second step is not a session token, and it has ended.
        assert self._accounts.person(token) is None
        assert not self._factors.waits(token)
        return True


@pytest.fixture
def app(accounts: Accounts, factors: SecondFactors, hands: Hands) -> App:
    return App(accounts, factors, hands)


def test_a_password_alone_opens_nothing(app: App, accounts: Accounts) -> None:
    token = app.password()
    assert accounts.person(token) is None
    assert app.enter(app.code())


def test_the_secret_is_for_an_app_to_scan(accounts: Accounts, factors: SecondFactors) -> None:
    ada = accounts.sign_in(ADA, PASSWORD).person
    factors.begin_totp(ada, PASSWORD)
    state = factors.state(ada)
    assert state.link is not None
    link = urlsplit(state.link)
    query = parse_qs(link.query)
    assert (link.scheme, link.netloc) == ("otpauth", "totp")
    assert unquote(link.path) == f"/Frankly surveys.example.org:{ADA}"
    assert query["secret"] == [state.new_secret]
    assert len(base64.b32decode(state.new_secret or "")) == 20
    # No code is required until the owner has confirmed one.
    assert accounts.sign_in(ADA, PASSWORD)
    wrong = refused(factors.confirm_totp, ada, "000000")
    assert (wrong.code, wrong.field) == ("unauthenticated", "code")
    assert accounts.sign_in(ADA, PASSWORD)


def test_a_code_works_once_and_for_thirty_seconds_around_now(app: App, hands: Hands) -> None:
    hands.wait(60)
    assert not app.enter(app.code(-60))
    assert not app.enter(app.code(60))
    first = app.code()
    assert app.enter(first)
    assert not app.enter(first)
    hands.wait(30)
    assert not app.enter(first)
    assert app.enter(app.code(30))  # a device whose clock is ahead
    assert not app.enter(app.code())  # an older step than the last one used
    hands.wait(90)
    assert app.enter(app.code(-30))


def test_the_confirming_code_cannot_be_used_again(
    accounts: Accounts, factors: SecondFactors, hands: Hands
) -> None:
    app = App(accounts, factors, hands)
    hands.wait(-60)
    assert not app.enter(app.code())


@pytest.mark.parametrize("write", [str.upper, lambda text: text.replace("-", " "), str])
def test_each_recovery_code_works_once(app: App, factors: SecondFactors, write: type[str]) -> None:
    assert len(set(app.codes)) == 10
    assert all(re.fullmatch(r"([a-z2-7]{4}-){3}[a-z2-7]{4}", text) for text in app.codes)
    for text in app.codes[:2]:
        assert app.enter(write(text))
        assert not app.enter(write(text))
    assert factors.state(app.person).codes == 8


def test_new_recovery_codes_replace_the_old(app: App, factors: SecondFactors) -> None:
    codes = factors.renew_codes(app.person, PASSWORD)
    assert not app.enter(app.codes[0])
    assert app.enter(codes[0])


def test_codes_and_secrets_are_stored_as_documented(app: App, database: Database) -> None:
    with database.engine.connect() as connection:
        codes = connection.exec_driver_sql("SELECT * FROM recovery_codes").all()
        waiting = connection.exec_driver_sql("SELECT * FROM pending_sign_ins").all()
    assert len(codes) == 10
    for text in app.codes:
        assert text.replace("-", "") not in repr(codes)
    token = app.password()
    assert token not in repr(waiting)


@pytest.mark.parametrize("known", [False, True])
def test_five_wrong_codes_lock_the_second_step_of_known_browsers_too(
    app: App, hands: Hands, known: bool
) -> None:
    browser = app.browser if known else ""
    for minutes in (1, 2, 4, 8, 16, 32):
        for _ in range(5):
            assert not app.enter("000000", browser)
        assert not app.enter(app.code(), browser)
        assert not app.enter(app.codes[0], browser)
        hands.wait(60 * minutes - 1)
        assert not app.enter(app.code(), browser)
        hands.wait(1)
    assert app.enter(app.code(), browser)
    hands.wait(30)
    for _ in range(4):  # not the fifth in a row: the correct code reset the count
        assert not app.enter("000000")
    assert app.enter(app.code())


def test_guesses_in_one_pending_sign_in_are_counted(app: App, factors: SecondFactors) -> None:
    token = app.password()
    for _ in range(5):
        refused(factors.finish, token, "000000")
    refused(factors.finish, token, app.code())


def test_five_of_ten_concurrent_guesses_are_checked(
    app: App, factors: SecondFactors, database: Database
) -> None:
    tokens = [app.password() for _ in range(10)]
    concurrently(refused, *[(factors.finish, token, "000000") for token in tokens])
    with database.reading("failures") as tx:
        row = tx.second_factors.get(app.person.id)
    # Five guesses were checked; the lock refused the others, which are not counted.
    assert row.failures == 5
    assert row.locked_until is not None


def test_a_code_used_in_two_browsers_concurrently_signs_in_only_one(
    app: App, factors: SecondFactors
) -> None:
    tokens, signed = [app.password(), app.password()], []

    def finish(token: str, text: str) -> None:
        with suppress(InvalidInput):
            signed.append(factors.finish(token, text))

    for text in (app.code(), app.codes[0]):
        signed.clear()
        concurrently(finish, *[(token, text) for token in tokens])
        assert len(signed) == 1
        tokens = [app.password(), app.password()]


@pytest.mark.parametrize("text", ["", "0" * 200, "é" * 6, "\ud800" * 6, "０００００００", "١٢٣٤٥٦"])
def test_any_other_text_is_a_wrong_code(app: App, text: str) -> None:
    assert not app.enter(text)


def test_a_sign_in_waits_for_ten_minutes(app: App, factors: SecondFactors, hands: Hands) -> None:
    token = app.password()
    hands.wait(PENDING_S - 1)
    assert factors.waits(token)
    hands.wait(1)
    assert not factors.waits(token)
    late = refused(factors.finish, token, app.code())
    assert (late.code, late.field) == ("unauthenticated", "sign-in")
    assert not factors.waits("x")


def test_pending_sign_ins_end_with_password_and_account(
    app: App, accounts: Accounts, factors: SecondFactors
) -> None:
    token = app.password()
    accounts.change_password(app.person, PASSWORD, "another good password")
    assert not factors.waits(token)
    accounts.reset_password(ADA, PASSWORD)
    token = app.password()
    accounts.disable_address(ADA)
    assert refused(factors.finish, token, app.code()).field == "sign-in"


def test_an_account_that_was_disabled_meanwhile_is_not_entered(
    app: App, factors: SecondFactors, database: Database
) -> None:
    token = app.password()
    # The account seems to have been disabled between the check of the password and the insertion of
    # this row.
    with database.transaction("disable") as tx:
        tx.accounts.change(app.person.id, disabled="2026-06-01T00:00:00Z")
    assert refused(factors.finish, token, app.code()).field == "sign-in"


def test_changes_need_the_password(
    app: App, accounts: Accounts, factors: SecondFactors, hands: Hands
) -> None:
    for act in (factors.remove_totp, factors.renew_codes, factors.begin_totp):
        wrong = refused(act, app.person, "wrong wrong wrong")
        assert (wrong.code, wrong.field) == ("unauthenticated", "password")
    assert refused(factors.begin_totp, app.person, PASSWORD).code == "file_exists"
    assert refused(factors.confirm_totp, app.person, app.code()).code == "not_found"
    factors.remove_totp(app.person, PASSWORD)
    assert accounts.sign_in(ADA, PASSWORD)
    assert factors.state(app.person).codes == 0
    assert refused(factors.renew_codes, app.person, PASSWORD).code == "not_found"
    again = App(accounts, factors, hands)
    assert again.secret != app.secret
    assert again.enter(again.code())


def test_an_operator_removes_a_second_factor(
    app: App, accounts: Accounts, factors: SecondFactors
) -> None:
    session = accounts.person(app_session(app, factors))
    assert session is not None
    assert factors.reset(" ADA@example.org").email == ADA
    assert accounts.sign_in(ADA, PASSWORD)
    events = [(event.actor, event.action) for event in accounts.trail("main")]
    assert ("the command line", "second factor reset") in events
    assert (ADA, "second factor added") in events
    assert refused(factors.reset, "nobody@example.org").code == "not_found"


def app_session(app: App, factors: SecondFactors) -> str:
    return factors.finish(app.password(), app.code()).token


def test_other_people_need_no_code(app: App, accounts: Accounts) -> None:
    accounts.create("main", "bob@example.org", "viewer", PASSWORD)
    bob: Person = accounts.sign_in("bob@example.org", PASSWORD).person
    assert bob.email == "bob@example.org"


def test_an_organisation_requires_a_second_factor(
    accounts: Accounts, factors: SecondFactors, hands: Hands
) -> None:
    bob = accounts.create("main", "bob@example.org", "owner", PASSWORD)
    accounts.create("other", "eve@example.org", "viewer", PASSWORD)
    app = App(accounts, factors, hands)
    token = accounts.sign_in("bob@example.org", PASSWORD).token
    assert factors.members("main") == (False, {app.person.id})
    factors.require(app.person, True)
    factors.require(app.person, True)
    assert factors.members("main") == (True, {app.person.id})
    assert factors.members("other") == (False, set())
    held = accounts.person(token)
    assert held is not None
    assert held.must_enrol
    eve = accounts.person(accounts.sign_in("eve@example.org", PASSWORD).token)
    ada = accounts.person(factors.finish(app.password(), app.code()).token)
    for other in (eve, ada):
        assert other is not None
        assert not other.must_enrol
    accounts.set_role(bob, app.person.id, "admin")
    assert refused(factors.require, app.person, False).code == "forbidden"
    factors.require(bob, False)
    held = accounts.person(token)
    assert held is not None
    assert not held.must_enrol


def test_strangers_at_the_second_step_write_nothing(
    app: App, factors: SecondFactors, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_writing(_database: Database, name: str) -> None:
        raise AssertionError(name)

    monkeypatch.setattr(Database, "transaction", no_writing)
    for token in ("", "x", "A" * 43):
        assert refused(factors.finish, token, app.code()).field == "sign-in"
