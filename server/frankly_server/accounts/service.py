# SPDX-License-Identifier: Apache-2.0
"""Accounts and sessions. Each change by a person is recorded in the audit trail, atomically."""

import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Final

from frankly_protocol.clock import Clock, format_time, parse_time
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.schema import ID

from frankly_server.accounts.actors import Actor
from frankly_server.accounts.lockout import TRIES, after_failure, is_locked
from frankly_server.accounts.passwords import Passwords
from frankly_server.accounts.roles import ROLES
from frankly_server.accounts.sessions import (
    Person,
    SignedIn,
    WaysLeft,
    end_all,
    has_second_factor,
    is_token,
    knows,
    must_enrol,
    person_of,
    require_unchanged,
    start_pending,
    start_session,
    time_text,
    token_hash,
    ways_left,
)
from frankly_server.store import AccountRow, AuditEvent, Database, Record, Transaction
from frankly_server.store.survey_states import MAIN

_EMAIL: Final = re.compile(
    r"[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9-]+(\.[a-z0-9-]+)+", re.ASCII
)
COMMAND_LINE: Final = "the command line"
BACKED_UP: Final = "backup created"
RESTORED: Final = "backup restored"


class Accounts:
    """Accounts of all organisations in one database."""

    def __init__(
        self, database: Database, clock: Clock, passwords: Passwords | None = None
    ) -> None:
        self._database, self._clock = database, clock
        self._passwords = passwords or Passwords()

    def create(
        self, organisation: str, email: str, role: str, password: str, by: Actor | None = None
    ) -> Person:
        """Create an account.

        by : the owner who creates it; None on the command line. Raises InvalidInput: field_type for
        a bad name, address, role or password, taken if the address has an account,
        unauthenticated as `Actor.require_unchanged`. Raises Busy.
        """
        if not ID.fullmatch(organisation):
            raise InvalidInput(
                Problem.FIELD_TYPE,
                "an organisation is 1 to 64 of a-z, 0-9, - and _, beginning with a-z or 0-9",
                "organisation",
            )
        address = folded(email)
        # 254: the longest address that fits a mail envelope (RFC 5321, erratum 1690).
        if len(address) > 254 or not _EMAIL.fullmatch(address):
            raise InvalidInput(
                Problem.FIELD_TYPE, "write an e-mail address such as ada@example.org", "email"
            )
        if role not in ROLES:
            raise InvalidInput(Problem.FIELD_TYPE, f"a role is one of {', '.join(ROLES)}", "role")
        # Hashed outside the transaction, because argon2id is slow and transactions must be short.
        row = AccountRow(
            secrets.token_hex(16),
            organisation,
            address,
            self._passwords.hash(password),
            role,
            self._now(),
        )
        with self._database.administering("create account") as tx:
            if by is not None:
                by.require_unchanged(tx)
            if tx.accounts.by_email(address) is not None:
                # The address may belong to another organisation, which the message must not reveal.
                raise InvalidInput(
                    Problem.TAKEN, "this address cannot be used; use another one", "email"
                )
            tx.accounts.add(row)
            subject = f"{address} ({role})"
            if by is None:
                self._record(tx, organisation, COMMAND_LINE, "account created", subject)
            else:
                self.recorder(by, "account created", subject)(tx)
        return person_of(row)

    def sign_in(self, email: str, password: str, browser: str = "") -> SignedIn:
        """Start a session with a new token.

        browser : the cookie of a known browser, or any other text. Raises
        InvalidInput(unauthenticated), with one message for every cause but a change of the account
        since the password was checked, SecondFactorNeeded if
        the password is right and the account has a second factor, and Busy. Five wrong passwords
        lock an account for one minute; every further five double the time, up to 15 minutes. A
        known browser of the account is exempt from that lock and from the queue of strangers; after
        five wrong passwords it is no longer a known browser.
        """
        address = folded(email)
        with self._database.reading("find account") as tx:
            row = tx.accounts.by_email(address) if _EMAIL.fullmatch(address) else None
            is_known = row is not None and knows(tx, row, self._clock.now(), browser)
        if not self._is_right(row, password, browser if is_known else None) or row is None:
            raise _refused()
        with self._database.transaction("sign in") as tx:
            if not has_second_factor(tx, row.id):
                return start_session(tx, row, self._clock.now(), browser)
            waits = start_pending(tx, row, self._clock.now())
        # Raised after the transaction, which must commit the pending sign-in.
        raise waits

    def person(self, token: str) -> Person | None:
        """Return the person who holds a session token.

        Returns None for an unknown or expired token, and for a disabled account.
        """
        if not is_token(token):
            return None
        with self._database.reading("find session") as tx:
            account = tx.sessions.account(token_hash(token), self._now())
            row = tx.accounts.get(account) if account else None
            if row is None or row.disabled is not None:
                return None
            return replace(
                person_of(row), must_enrol=must_enrol(tx, row), session=token_hash(token)
            )

    def sign_out(self, token: str) -> None:
        """End a session."""
        with self._database.transaction("sign out") as tx:
            tx.sessions.end(token_hash(token))

    def sign_out_everywhere(self, person: Person) -> None:
        """End every session of the account and forget its known browsers; passkeys stay.

        Raises InvalidInput(unauthenticated) as `require_unchanged`.
        """
        with self._database.transaction("sign out everywhere") as tx:
            # Otherwise whoever was put out could put out the owner, who has just come back.
            require_unchanged(tx, person)
            end_all(tx, person.id)
            self._record(
                tx, person.organisation, person.email, "signed out everywhere", person.email
            )

    def require_password(
        self, person: Person, password: str, browser: str = "", field: str = "password"
    ) -> None:
        """Check the password that a signed-in person has entered again.

        browser : as for `sign_in`. field : name of the password field in an error. Raises
        InvalidInput(unauthenticated) if the password is wrong or the account is locked, and Busy.
        The caller passes the person to `require_unchanged` before it writes.
        """
        with self._database.reading("find account") as tx:
            row = tx.accounts.get(person.id)
            is_known = row is not None and knows(tx, row, self._clock.now(), browser)
        # Guesses count as they do at sign-in: an open session must not be a way around the lock.
        if row is not None and self._is_locked(row) and not is_known:
            raise InvalidInput(
                Problem.UNAUTHENTICATED,
                "the account is locked after too many tries: wait and try again",
                field,
            )
        if not self._is_right(row, password, browser if is_known else None) or row is None:
            raise InvalidInput(Problem.UNAUTHENTICATED, "this is not your password", field)

    def change_password(self, person: Person, old: str, new: str, browser: str = "") -> SignedIn:
        """Set a new password, end every session, forget every known browser, and start a session.

        browser : as for `sign_in`. Raises the errors of `require_password`, and
        InvalidInput(field_type) for a new password that is too short or too long.
        """
        self.require_password(person, old, browser, "old")
        new_hash = self._passwords.hash(new)
        with self._database.administering("change password") as tx:
            row = require_unchanged(tx, person)
            # Anyone else who knew the old password must lose their session and known browser.
            end_all(tx, row.id, password=new_hash)
            self._record(tx, row.organisation, row.email, "password changed", row.email)
            # This browser becomes known again, because strangers may have locked the account.
            changed = replace(row, version=row.version + 1)
            return start_session(tx, changed, self._clock.now(), browser)

    def list(self, organisation: str) -> Sequence[AccountRow]:
        """Return an organisation's accounts."""
        with self._database.reading("list accounts") as tx:
            return tx.accounts.of_organisation(organisation)

    def set_role(self, by: Actor, account_id: str, role: str) -> None:
        """Change a colleague's role and end their sessions.

        Raises InvalidInput: field_type, not_found, forbidden for one's own account, and the errors
        of `Actor.require_owner`; immutable for the last owner.
        """
        if role not in ROLES:
            raise InvalidInput(Problem.FIELD_TYPE, f"a role is one of {', '.join(ROLES)}", "role")
        with self._database.administering("change role") as tx:
            row = _colleague(tx, by, account_id)
            tx.accounts.raise_version(row.id, role=role)
            tx.sessions.end_all(row.id)
            tx.second_factors.end_pending(row.id)
            self.recorder(by, "role changed", f"{row.email} ({role})")(tx)

    def disable(self, by: Actor, account_id: str) -> None:
        """Disable a colleague's account and end its sessions. Raises the errors of `set_role`."""
        with self._database.administering("disable account") as tx:
            row = _colleague(tx, by, account_id)
            end_all(tx, row.id, disabled=self._now())
            self.recorder(by, "account disabled", row.email)(tx)

    def every(self) -> Sequence[AccountRow]:
        """Return the accounts of all organisations, sorted by organisation and address."""
        with self._database.reading("list all accounts") as tx:
            return tx.accounts.every()

    def state_of(self, row: AccountRow) -> str:
        """Return "open", "locked" or "disabled"."""
        if row.disabled is not None:
            return "disabled"
        return "locked" if self._is_locked(row) else "open"

    def unlock(self, email: str) -> AccountRow:
        """Forget an account's wrong passwords; for the command line. A disabled one stays disabled.

        Returns the account as it was. Raises InvalidInput(not_found).
        """
        with self.command(email, "account unlocked") as (tx, row):
            tx.accounts.change(row.id, failures=0, locked_until=None)
        return row

    def reset_password(self, email: str, new: str) -> tuple[AccountRow, WaysLeft]:
        """Set an account's password, end its sessions and unlock it; for the command line.

        A disabled account stays disabled. Returns the account as it was, and the ways to sign in
        that stay. Raises InvalidInput: not_found, field_type for a password that is too short or
        too long.
        """
        new_hash = self._passwords.hash(new)
        with self.command(email, "password reset") as (tx, row):
            end_all(tx, row.id, password=new_hash, failures=0, locked_until=None)
            return row, ways_left(tx, row.id)

    def disable_address(self, email: str) -> Person:
        """Disable an account and end its sessions; for the command line. Raises not_found."""
        with self.command(email, "account disabled") as (tx, row):
            end_all(tx, row.id, disabled=self._now())
        return person_of(row)

    @contextmanager
    def command(self, email: str, action: str) -> Iterator[tuple[Transaction, AccountRow]]:
        """Open a transaction with the account of an address, and record the action at its end.

        Raises InvalidInput(not_found).
        """
        with self._database.administering(action) as tx:
            row = tx.accounts.by_email(folded(email))
            if row is None:
                raise InvalidInput(
                    Problem.NOT_FOUND,
                    "no account has this address; `frankly admin list` shows all",
                    "email",
                )
            yield tx, row
            self._record(tx, row.organisation, COMMAND_LINE, action, row.email)

    def recorder(self, by: Actor, action: str, subject: str) -> Record:
        """Return a function that records an action within another service's transaction."""

        def record(tx: Transaction) -> None:
            by.acted(tx)
            self._record(tx, by.organisation, by.actor, action, subject)

        return record

    def credential_recorder(self, by: Actor, action: str, subject: str) -> Record:
        """Return a `recorder` of an action on what gives access: API keys, invitations, webhooks.

        It raises InvalidInput(unauthenticated) if the access was taken away since it was checked.
        """

        def record(tx: Transaction) -> None:
            by.require_unchanged(tx)
            self.recorder(by, action, subject)(tx)

        return record

    def command_recorder(self, organisation: str, action: str, subject: str) -> Record:
        """Return a function that records a command-line action within another transaction."""
        return lambda tx: self._record(tx, organisation, COMMAND_LINE, action, subject)

    def trail(
        self, organisation: str, before: int | None = None, limit: int = 50
    ) -> Sequence[AuditEvent]:
        """Return an organisation's events, newest first."""
        with self._database.reading("read trail") as tx:
            return tx.audit.newest(organisation, before, limit)

    def about(
        self, organisation: str, subjects: Sequence[str], limit: int, action: str | None = None
    ) -> Sequence[AuditEvent]:
        """Return an organisation's events about one of these subjects, newest first.

        action : only events with this action.
        """
        with self._database.reading("read trail") as tx:
            return tx.audit.about(organisation, subjects, limit, action)

    def backed_up(self) -> tuple[str | None, int]:
        """Return the time of the newest backup on record, and the days since then.

        A database that was restored has a backup too. Without one, the time is None and the days are
        those since the trail's first event.
        """
        with self._database.reading("read trail") as tx:
            backup, first = tx.audit.newest_of(MAIN, (BACKED_UP, RESTORED)), tx.audit.oldest(MAIN)
        since = backup or first
        days = (self._clock.now() - parse_time(since.at)).days if since else 0
        return backup.at if backup else None, days

    def _is_right(self, row: AccountRow | None, password: str, browser: str | None) -> bool:
        """Return True if the password is right and the account is neither disabled nor locked.

        Counts a wrong password as a failure.

        browser : the cookie of one of the account's known browsers, or None.
        """
        # Unknown and locked accounts are checked too: the response time must not show which exist.
        matches = self._passwords.check(
            row.password if row else None, password, known=browser is not None
        )
        if row is None or row.disabled is not None:
            return False
        if browser is not None:
            if not matches:
                with self._database.transaction("count failure") as tx:
                    tx.browsers.count_failure(token_hash(browser), TRIES)
            # The counter of the account counts strangers' attempts, and a success in a known
            # browser must not reset it.
            return matches
        if self._is_locked(row):
            return False
        if matches and not row.failures:
            return True
        return self._judge(row.id, matches=matches)

    def _judge(self, account_id: str, *, matches: bool) -> bool:
        """Count a wrong password, or forget the earlier ones; return False if it is wrong or locked.

        Other requests may have locked the account while this password was checked: then it is
        refused like those that come later, and neither counts nor ends the lock.
        """
        with self._database.transaction("judge password") as tx:
            row = tx.accounts.get(account_id, for_change=True)
            if row is None or self._is_locked(row):
                return False
            failures, lock_s = (0, 0) if matches else after_failure(row.failures)
            locked = format_time(self._clock.now() + timedelta(seconds=lock_s)) if lock_s else None
            tx.accounts.change(account_id, failures=failures, locked_until=locked)
            return matches

    def _is_locked(self, row: AccountRow) -> bool:
        return is_locked(row.locked_until, self._clock.now())

    def _record(
        self, tx: Transaction, organisation: str, actor: str, action: str, subject: str
    ) -> None:
        tx.audit.add(AuditEvent(self._now(), organisation, actor, action, subject))

    def _now(self) -> str:
        return time_text(self._clock.now())


def folded(email: str) -> str:
    """Return an e-mail address in the form for storage and comparison: trimmed, lower case."""
    return email.strip().lower()


def _colleague(tx: Transaction, by: Actor, account_id: str) -> AccountRow:
    """Return the account that an owner is about to change.

    Raises the errors of `Actor.require_owner`, and InvalidInput: forbidden if the account is their own;
    not_found; immutable for the last owner.
    """
    # Read in this transaction, not at the request's start: otherwise two owners who demote each
    # other at the same moment would leave the organisation without an owner.
    by.require_owner(tx)
    row = tx.accounts.get(account_id)
    # Accounts of other organisations are reported as not found.
    if row is None or row.organisation != by.organisation:
        raise InvalidInput(Problem.NOT_FOUND, "there is no such account", "account")
    if row.id == by.id:
        # Otherwise the last owner could leave the organisation without an owner.
        raise InvalidInput(
            Problem.FORBIDDEN,
            "you cannot change your own account here: ask another owner",
            "account",
        )
    # A person leaves at least themselves; an API key may be the only one left.
    owners = [one.id for one in tx.accounts.of_organisation(by.organisation) if _is_owner(one)]
    if owners == [row.id]:
        raise InvalidInput(
            Problem.IMMUTABLE, "this is the last owner: make another one first", "account"
        )
    return row


def _is_owner(row: AccountRow) -> bool:
    return row.role == "owner" and row.disabled is None


def _refused() -> InvalidInput:
    return InvalidInput(
        Problem.UNAUTHENTICATED,
        "address and password do not match, or the account is locked after too many "
        "tries: wait and try again",
    )
