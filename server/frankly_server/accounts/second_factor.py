# SPDX-License-Identifier: Apache-2.0
"""Second factors: time-based one-time passwords (TOTP, RFC 6238) and recovery codes."""

import base64
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import pyotp
from frankly_protocol.clock import Clock, format_time
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.accounts.lockout import after_failure, is_locked
from frankly_server.accounts.service import Accounts
from frankly_server.accounts.sessions import (
    Person,
    SignedIn,
    end_all,
    end_others,
    has_second_factor,
    is_token,
    person_of,
    require_unchanged,
    start_session,
    time_text,
    token_hash,
)
from frankly_server.store import Database, SecondFactorRow, Transaction

_STEP_S: Final = 30
_DIGITS: Final = 6
_CODES: Final = 10
_CODE_BYTES: Final = 10
_GROUP: Final = 4
_LONGEST_LOCK_S: Final = 8 * 3600
"""Longer than for passwords: codes have only six digits, and trying them requires the password."""


@dataclass(frozen=True, slots=True)
class SecondFactorState:
    """Second factor of a person, for their account page.

    totp : True if sign-ins need a code from an app. new_secret : a new secret in base32 until its
    first code has been entered, else None. link : that secret as an otpauth address, or None.
    codes : number of unused recovery codes.
    """

    totp: bool
    new_secret: str | None = field(repr=False)
    link: str | None = field(repr=False)
    codes: int


class SecondFactors:
    """Second factors of all accounts in one database.

    issuer : name of this server in authenticator apps.
    """

    def __init__(self, database: Database, clock: Clock, accounts: Accounts, issuer: str) -> None:
        self._database, self._clock = database, clock
        self._accounts, self._issuer = accounts, issuer

    def state(self, person: Person) -> SecondFactorState:
        """Return the person's second factor."""
        with self._database.reading("second factor") as tx:
            row, codes = tx.second_factors.get(person.id), tx.second_factors.codes(person.id)
        totp = row.totp_since is not None
        secret = None if totp else row.totp_secret
        link = secret and pyotp.TOTP(secret).provisioning_uri(
            name=person.email, issuer_name=self._issuer
        )
        return SecondFactorState(totp, secret, link, codes)

    def begin_totp(self, person: Person, password: str, browser: str = "") -> None:
        """Create a new secret, which takes effect once `confirm_totp` has accepted its first code.

        Raises the errors of `Accounts.require_password`, and InvalidInput(file_exists) if the
        account already uses TOTP.
        """
        self._accounts.require_password(person, password, browser)
        with self._database.administering("begin TOTP") as tx:
            require_unchanged(tx, person)
            if tx.second_factors.lock(person.id).totp_since is not None:
                raise InvalidInput(
                    Problem.FILE_EXISTS, "an app is already set up: remove it first", "code"
                )
            # A second call replaces a secret whose first code has not been entered.
            tx.second_factors.change(person.id, totp_secret=pyotp.random_base32(), last_step=0)

    def confirm_totp(self, person: Person, code: str) -> Sequence[str]:
        """Require codes from the app from now on; return recovery codes if the account had none.

        Raises InvalidInput: unauthenticated for a wrong code, not_found if there is no new secret.
        """
        now = self._clock.now()
        with self._database.administering("confirm TOTP") as tx:
            require_unchanged(tx, person)
            row = tx.second_factors.lock(person.id)
            if row.totp_secret is None or row.totp_since is not None:
                raise InvalidInput(Problem.NOT_FOUND, "begin with a new secret", "code")
            step = _step_of(row, _plain(code), now)
            if step is None:
                raise InvalidInput(
                    Problem.UNAUTHENTICATED,
                    "this is not the app's code: look at it again, and at the device's clock",
                    "code",
                )
            # Sign-ins require codes only from now on, so a mistyped secret cannot lock its owner
            # out.
            tx.accounts.raise_version(person.id)
            tx.second_factors.change(person.id, totp_since=time_text(now), last_step=step)
            self._accounts.recorder(person, "second factor added", "codes of an app")(tx)
            return [] if tx.second_factors.codes(person.id) else new_codes(tx, person.id)

    def renew_codes(self, person: Person, password: str, browser: str = "") -> Sequence[str]:
        """Replace the recovery codes, and end what the old ones may have opened (`end_others`).

        Raises the errors of `Accounts.require_password`, and InvalidInput(not_found).
        """
        self._accounts.require_password(person, password, browser)
        with self._database.administering("recovery codes") as tx:
            require_unchanged(tx, person)
            if not has_second_factor(tx, person.id):
                raise InvalidInput(
                    Problem.NOT_FOUND, "the account has no second factor", "recovery"
                )
            end_others(tx, person, browser)
            self._accounts.recorder(person, "recovery codes made", person.email)(tx)
            # The old codes become invalid, because their owner may have lost the list.
            return new_codes(tx, person.id)

    def remove_totp(self, person: Person, password: str, browser: str = "") -> None:
        """Stop requiring codes from an app, and end what they may have opened (`end_others`).

        Raises the errors of `Accounts.require_password`.
        """
        self._accounts.require_password(person, password, browser)
        with self._database.administering("remove TOTP") as tx:
            require_unchanged(tx, person)
            end_others(tx, person, browser)
            tx.second_factors.change(person.id, totp_secret=None, totp_since=None)
            forget_unused_codes(tx, person.id)
            self._accounts.recorder(person, "second factor removed", "codes of an app")(tx)

    def members(self, organisation: str) -> tuple[bool, set[str]]:
        """Return (True if members need a second factor, ids of the accounts that have one)."""
        with self._database.reading("second factors") as tx:
            needed = tx.organisations.needs_second_factor(organisation)
            return needed, tx.second_factors.of_organisation(organisation)

    def require(self, by: Person, needed: bool) -> None:
        """Require a second factor of all members of an owner's organisation, or stop requiring it.

        Members without one are redirected to the account page until they add one. Raises
        the errors of `Person.require_owner`.
        """
        with self._database.administering("require second factor") as tx:
            by.require_owner(tx)
            tx.organisations.set_second_factor(by.organisation, needed)
            action = "second factor required" if needed else "second factor not required"
            self._accounts.recorder(by, action, by.organisation)(tx)

    def waits(self, token: str) -> bool:
        """Return True if this is the token of a sign-in that waits for its second factor."""
        with self._database.reading("find sign-in") as tx:
            return self._pending(tx, token) is not None

    def finish(self, token: str, code: str, browser: str = "") -> SignedIn:
        """Finish a sign-in with a code of the app or a recovery code, each of which works once.

        token : the token of SecondFactorNeeded. browser : as for `Accounts.sign_in`. Raises
        InvalidInput(unauthenticated); its field is "sign-in" if the pending sign-in has expired.
        Five wrong codes lock this step of the account for a minute; every further five double the
        time, up to 8 hours. The lock also applies to known browsers.
        """
        # Read before the transaction: strangers must not take the database's write lock.
        with self._database.reading("find sign-in") as tx:
            account_id = self._pending(tx, token)
        if account_id is None:
            raise _too_late()
        now = self._clock.now()
        with self._database.transaction("second factor") as tx:
            row = tx.second_factors.lock(account_id)
            account = tx.accounts.get(account_id)
            # Read again under the lock: the sign-in may have been ended in between.
            if account is None or account.disabled is not None or not self._pending(tx, token):
                raise _too_late()
            accepted = self._accept(tx, row, _plain(code), now)
            if accepted:
                tx.second_factors.end_pending(account.id)
                return start_session(tx, account, now, browser)
        # Raised after the transaction, which must commit the counted failure.
        raise InvalidInput(
            Problem.UNAUTHENTICATED,
            "the code is wrong or was used before, or there were too many tries: wait and try again",
            "code",
        )

    def reset(self, email: str) -> Person:
        """Remove an account's second factors and end its sessions; for the command line.

        Raises InvalidInput(not_found).
        """
        with self._accounts.command(email, "second factor reset") as (tx, row):
            end_all(tx, row.id)
            tx.second_factors.remove(row.id)
            tx.passkeys.remove(row.id)
        return person_of(row)

    def _pending(self, tx: Transaction, token: str) -> str | None:
        if not is_token(token):
            return None
        return tx.second_factors.pending(token_hash(token), time_text(self._clock.now()))

    def _accept(self, tx: Transaction, row: SecondFactorRow, code: str, now: datetime) -> bool:
        """Use a code; return True if it is right. Count a wrong one; accept none during a lock."""
        # No code is compared during a lock, because each comparison would be another guess.
        if is_locked(row.locked_until, now, _LONGEST_LOCK_S):
            return False
        step = _step_of(row, code, now) if row.totp_since else None
        if step is not None or tx.second_factors.use_code(row.account, token_hash(code)):
            last = row.last_step if step is None else step
            tx.second_factors.change(row.account, last_step=last, failures=0, locked_until=None)
            return True
        # Six digits can be guessed, so this lock grows far longer than the lock after wrong
        # passwords.
        failures, lock_s = after_failure(row.failures, _LONGEST_LOCK_S)
        locked = format_time(now + timedelta(seconds=lock_s)) if lock_s else None
        tx.second_factors.change(row.account, failures=failures, locked_until=locked)
        return False


def new_codes(tx: Transaction, account_id: str) -> Sequence[str]:
    """Replace an account's recovery codes by ten new ones of 80 bits; return the new codes."""
    codes = [_readable(secrets.token_bytes(_CODE_BYTES)) for _ in range(_CODES)]
    tx.second_factors.put_codes(account_id, [token_hash(_plain(code)) for code in codes])
    return codes


def forget_unused_codes(tx: Transaction, account_id: str) -> None:
    """Delete the recovery codes of an account that no longer has a second factor."""
    if not has_second_factor(tx, account_id):
        tx.second_factors.put_codes(account_id, [])


def _too_late() -> InvalidInput:
    return InvalidInput(
        Problem.UNAUTHENTICATED, "the sign-in took too long: begin again", "sign-in"
    )


def _readable(random: bytes) -> str:
    # Base32 has no 0, 1 or 8, which look like letters, and groups are easy to copy from paper.
    text = base64.b32encode(random).decode().lower()
    return "-".join(text[i : i + _GROUP] for i in range(0, len(text), _GROUP))


def _plain(code: str) -> str:
    """Return a typed code without spaces and hyphens, in lower case."""
    return "".join(code.split()).replace("-", "").lower()


def _step_of(row: SecondFactorRow, code: str, now: datetime) -> int | None:
    """Return the time step that the code belongs to, or None for a wrong code.

    The code may be of the current, the previous or the next step, because clocks differ and typing
    takes time. Steps up to the last used one are refused.
    """
    if row.totp_secret is None or len(code) != _DIGITS:
        return None
    totp, current = pyotp.TOTP(row.totp_secret), int(now.timestamp()) // _STEP_S
    for step in (current - 1, current, current + 1):
        right = totp.generate_otp(step).encode()
        # surrogatepass: a code with lone surrogates is a wrong code and must not raise an
        # exception.
        if step > row.last_step and hmac.compare_digest(
            right, code.encode("utf-8", "surrogatepass")
        ):
            return step
    return None
