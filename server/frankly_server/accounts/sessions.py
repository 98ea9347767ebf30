# SPDX-License-Identifier: Apache-2.0
"""Sessions, pending sign-ins (waiting for a second factor), and known browsers."""

import hashlib
import re
import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from frankly_protocol.clock import format_time
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.store import AccountRow, AuditEvent, Transaction

SESSION_S: Final = 8 * 3600
PENDING_S: Final = 10 * 60
BROWSER_S: Final = 180 * 24 * 3600
_MOST_BROWSERS: Final = 10
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Person:
    """A person who is signed in.

    version : version of the account when the session was checked. must_enrol : True if the
    organisation requires a second factor and the account has none. session : hash of the session's
    token, "" if the person has not come through a session.
    """

    id: str
    organisation: str
    email: str
    role: str
    version: int = field(compare=False)
    must_enrol: bool = False
    session: str = field(default="", compare=False, repr=False)

    @property
    def actor(self) -> str:
        """The name in the audit trail."""
        return self.email

    def require_unchanged(self, tx: Transaction) -> None:
        """Raise InvalidInput(unauthenticated) as the function of this name."""
        require_unchanged(tx, self)

    def require_owner(self, tx: Transaction) -> None:
        """Raise InvalidInput unless the person is an owner, and still who they were.

        Call this in an administering transaction; the check is then valid until the commit. Raises
        InvalidInput: forbidden for a person who is no longer an owner, unauthenticated as
        `require_unchanged`.
        """
        # The role may have changed since the request was authenticated.
        row = tx.accounts.get(self.id)
        if row is None or row.role != "owner" or row.disabled is not None:
            raise InvalidInput(
                Problem.FORBIDDEN, "you are not an owner any more: sign in again", "account"
            )
        # An owner who was put out has the role still; only the version tells.
        require_unchanged(tx, self)

    def acted(self, tx: Transaction) -> None:
        """Do nothing more: what gives access is checked by `credential_recorder`."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A new session.

    token : value of the session's cookie. browser : value of the cookie that marks a known
    browser. The database stores only the hashes of both.
    """

    person: Person
    token: str = field(repr=False)
    browser: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class WaysLeft:
    """Ways to sign in to an account that a new password and *Sign out everywhere* leave.

    passkeys : their names with the days on which they were added; each signs in alone. totp : True
    if codes of an app are asked for. codes : number of recovery codes, each of which works once
    after the password.
    """

    passkeys: tuple[str, ...]
    totp: bool
    codes: int


class SecondFactorNeeded(FranklyError):
    """The password is right, and the sign-in continues with a second factor.

    token : value of the cookie that ties the second step to this browser, for `PENDING_S` seconds.
    This is an exception, so that no caller mistakes an incomplete sign-in for a session.
    """

    def __init__(self, token: str) -> None:
        super().__init__("a second factor is needed", code=Problem.UNAUTHENTICATED.code)
        self.token = token


def require_unchanged(tx: Transaction, judged: AccountRow | Person) -> AccountRow:
    """Return the account, locked until the commit, if it is still as it was when it was judged.

    judged : the account as it was when its password, passkey or session was checked. Whoever was
    put out since then must not get a new session or credential. Raises
    InvalidInput(unauthenticated).
    """
    row = tx.accounts.get(judged.id, for_change=True)
    if row is None or row.disabled is not None or row.version != judged.version:
        raise InvalidInput(
            Problem.UNAUTHENTICATED,
            "the account has changed in the meantime: sign in again",
            "account",
        )
    return row


def start_pending(tx: Transaction, judged: AccountRow, at: datetime) -> SecondFactorNeeded:
    """Store a sign-in that waits for its second factor; return the exception to raise.

    judged : as for `require_unchanged`, whose error it raises.
    """
    row, waits = require_unchanged(tx, judged), SecondFactorNeeded(secrets.token_urlsafe(32))
    tx.second_factors.add_pending(
        token_hash(waits.token), row.id, time_text(at, PENDING_S), time_text(at)
    )
    return waits


def end_all(tx: Transaction, account_id: str, **values: str | int | None) -> None:
    """End an account's sessions and pending sign-ins, and forget its known browsers.

    A secret for codes of an app that has not been confirmed is deleted too. Passkeys, confirmed
    codes of an app and recovery codes stay. values : columns of the account to set.
    """
    # First, because this locks the account: a sign-in in flight comes before or fails afterwards.
    tx.accounts.raise_version(account_id, **values)
    _end(tx, account_id)


def end_others(tx: Transaction, person: Person, browser: str) -> None:
    """Do as `end_all`, but keep the person's own session and their known browser.

    Whoever removes a passkey, codes of an app or recovery codes takes them from somebody who may
    have signed in with them already. browser : as for `Accounts.sign_in`.
    """
    tx.accounts.raise_version(person.id)
    _end(tx, person.id, person.session, token_hash(browser))


def _end(tx: Transaction, account_id: str, session: str = "", browser: str = "") -> None:
    # Each of these gives access or makes sign-in easier, so all of them must go.
    tx.sessions.end_all(account_id, session)
    tx.second_factors.end_pending(account_id)
    tx.second_factors.forget_unconfirmed(account_id)
    tx.browsers.forget_all(account_id, browser)


def start_session(tx: Transaction, judged: AccountRow, at: datetime, old_browser: str) -> SignedIn:
    """Start a session at the time `at`, and make its browser a known browser of the account.

    judged : as for `require_unchanged`, whose error it raises. old_browser : the previous cookie of
    a known browser, which becomes invalid; any other text has no effect.
    """
    row, now = require_unchanged(tx, judged), time_text(at)
    # Expired sessions of all accounts are deleted here; no other job deletes them.
    tx.sessions.forget(now)
    # A new token at every sign-in prevents session fixation.
    token = secrets.token_urlsafe(32)
    person = replace(person_of(row), session=token_hash(token))
    signed = SignedIn(person, token, secrets.token_urlsafe(32))
    tx.sessions.add(person.session, row.id, time_text(at, SESSION_S))
    # The cookie changes at every sign-in, so a stolen copy works at most until the next sign-in.
    if knows(tx, row, at, old_browser):
        tx.browsers.forget(token_hash(old_browser))
    tx.browsers.add(
        token_hash(signed.browser), row.id, time_text(at, BROWSER_S), most=_MOST_BROWSERS
    )
    tx.audit.add(AuditEvent(now, row.organisation, row.email, "signed in", row.email))
    return signed


def ways_left(tx: Transaction, account_id: str) -> WaysLeft:
    """Return the ways to sign in that `end_all` leaves."""
    passkeys = tx.passkeys.of_account(account_id)
    return WaysLeft(
        tuple(f"{passkey.name}, since {passkey.created[:10]}" for passkey in passkeys),
        tx.second_factors.get(account_id).totp_since is not None,
        tx.second_factors.codes(account_id),
    )


def knows(tx: Transaction, row: AccountRow, at: datetime, browser: str) -> bool:
    """Return True if the text is the cookie of one of the account's known browsers."""
    return is_token(browser) and tx.browsers.knows(token_hash(browser), row.id, time_text(at))


def has_second_factor(tx: Transaction, account_id: str) -> bool:
    """Return True if a sign-in to the account needs more than a password."""
    totp = tx.second_factors.get(account_id).totp_since is not None
    return totp or bool(tx.passkeys.of_account(account_id))


def must_enrol(tx: Transaction, row: AccountRow) -> bool:
    """Return True if the organisation requires a second factor and the account has none."""
    needed = tx.organisations.needs_second_factor(row.organisation)
    return needed and not has_second_factor(tx, row.id)


def is_token(text: str) -> bool:
    """Return True if a text has the form of a token, so that a malformed cookie costs no query."""
    return _TOKEN.fullmatch(text) is not None


def token_hash(token: str) -> str:
    """Return the SHA-256 of a token; a slow hash is not needed, because tokens are random."""
    # surrogatepass: a token with lone surrogates is unknown and must not raise an exception.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def person_of(row: AccountRow) -> Person:
    """Return the person of an account."""
    return Person(row.id, row.organisation, row.email, row.role, row.version)


def time_text(at: datetime, later_s: int = 0) -> str:
    """Return `at` plus `later_s` as the database stores times: whole seconds in UTC."""
    return format_time(at.replace(microsecond=0) + timedelta(seconds=later_s))
