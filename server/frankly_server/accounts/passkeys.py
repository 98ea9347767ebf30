# SPDX-License-Identifier: Apache-2.0
"""Passkeys (WebAuthn): sign-in without a password, and so without the queue of password checks."""

import hmac
import ipaddress
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

from frankly_design.numeric.lazy import LazyModule
from frankly_protocol.clock import Clock
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.accounts.second_factor import forget_unused_codes, new_codes
from frankly_server.accounts.service import Accounts
from frankly_server.accounts.sessions import (
    Person,
    SignedIn,
    end_others,
    require_unchanged,
    start_session,
    time_text,
)
from frankly_server.keys import Keyring
from frankly_server.store import Database, PasskeyRow

if TYPE_CHECKING:
    import webauthn
    from webauthn import helpers
    from webauthn.helpers import structs
else:
    webauthn, helpers, structs = map(
        LazyModule, ("webauthn", "webauthn.helpers", "webauthn.helpers.structs")
    )

_T = TypeVar("_T")
_MOST: Final = 10
_CHALLENGE_S: Final = 10 * 60
_MICRO: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Ceremony:
    """Options for the browser's WebAuthn call, as JSON, and the challenge they contain, as hex."""

    options: str
    challenge: str


class Passkeys:
    """Passkeys of all accounts in one database.

    public_url : the server's address as people see it, which is the origin that WebAuthn expects;
    its host is the relying party.
    """

    def __init__(
        self, database: Database, clock: Clock, accounts: Accounts, keys: Keyring, public_url: str
    ) -> None:
        self._database, self._clock, self._accounts = database, clock, accounts
        self._keys, self._origin = keys, public_url
        self._host = urlsplit(public_url).hostname or ""

    @property
    def available(self) -> bool:
        """True unless the server's address is an IP address, which WebAuthn does not accept."""
        try:
            ipaddress.ip_address(self._host)
        except ValueError:
            return True
        return False

    def of(self, person: Person) -> Sequence[PasskeyRow]:
        """Return the person's passkeys, oldest first."""
        with self._database.reading("list passkeys") as tx:
            return tx.passkeys.of_account(person.id)

    def begin(self, person: Person, token: str) -> Ceremony:
        """Return the options for creating a passkey. token : token of the browser's session."""
        challenge = self._challenge(f"register {person.id} {token}")
        options = webauthn.generate_registration_options(
            rp_id=self._host,
            rp_name="Frankly",
            user_id=bytes.fromhex(person.id),
            user_name=person.email,
            challenge=challenge,
            # A passkey replaces the password, so possession of the device must not be enough.
            authenticator_selection=structs.AuthenticatorSelectionCriteria(
                resident_key=structs.ResidentKeyRequirement.REQUIRED,
                user_verification=structs.UserVerificationRequirement.REQUIRED,
            ),
            # An authenticator that already has a passkey of this account does not create another.
            exclude_credentials=[
                structs.PublicKeyCredentialDescriptor(
                    id=helpers.base64url_to_bytes(passkey.credential)
                )
                for passkey in self.of(person)
            ],
        )
        return Ceremony(webauthn.options_to_json(options), challenge.hex())

    def register(
        self,
        person: Person,
        password: str,
        token: str,
        challenge: str,
        credential: str,
        name: str,
        browser: str = "",
    ) -> Sequence[str]:
        """Add a passkey; return recovery codes if it is the account's first second factor.

        token, challenge : as for `begin`. credential : the browser's response, as JSON. name : 1 to
        64 characters. Raises the errors of `Accounts.require_password`, and InvalidInput:
        field_type for the name, unauthenticated for an invalid response, forbidden beyond ten
        passkeys, file_exists if the account already has this passkey.
        """
        if not 1 <= len(name) <= 64 or not name.isprintable():
            raise InvalidInput(Problem.FIELD_TYPE, "a name has 1 to 64 characters", "name")
        self._accounts.require_password(person, password, browser)
        issued = self._issued(f"register {person.id} {token}", challenge)
        made = _checked(
            lambda: webauthn.verify_registration_response(
                credential=credential,
                expected_challenge=bytes.fromhex(challenge),
                expected_rp_id=self._host,
                expected_origin=self._origin,
                require_user_verification=True,
            )
        )
        sent = helpers.parse_registration_credential_json(credential)
        _require_own_page(sent.response.client_data_json)
        row = PasskeyRow(
            helpers.bytes_to_base64url(made.credential_id),
            person.id,
            made.credential_public_key,
            made.sign_count,
            issued,
            name,
            time_text(self._clock.now()),
        )
        with self._database.administering("add passkey") as tx:
            require_unchanged(tx, person)
            # Counted under the lock, so that two forms sent at once cannot exceed the limit.
            if len(tx.passkeys.of_account(person.id)) >= _MOST:
                raise InvalidInput(
                    Problem.FORBIDDEN,
                    f"an account has at most {_MOST} passkeys: remove one",
                    "passkey",
                )
            if tx.passkeys.get(row.credential) is not None:
                raise InvalidInput(
                    Problem.FILE_EXISTS, "this passkey has been added already", "passkey"
                )
            tx.accounts.raise_version(person.id)
            tx.passkeys.add(row)
            self._accounts.recorder(person, "second factor added", f"passkey {name}")(tx)
            return [] if tx.second_factors.codes(person.id) else new_codes(tx, person.id)

    def remove(self, person: Person, password: str, credential: str, browser: str = "") -> None:
        """Remove a passkey, and end what somebody may have signed in to with it (`end_others`).

        Raises the errors of `Accounts.require_password`, and not_found.
        """
        self._accounts.require_password(person, password, browser)
        with self._database.administering("remove passkey") as tx:
            require_unchanged(tx, person)
            if not tx.passkeys.remove(person.id, credential):
                raise InvalidInput(Problem.NOT_FOUND, "there is no such passkey", "passkey")
            end_others(tx, person, browser)
            forget_unused_codes(tx, person.id)
            self._accounts.recorder(person, "second factor removed", "passkey")(tx)

    def ask(self, token: str) -> Ceremony:
        """Return the options for signing in with a passkey. token : value of the browser cookie."""
        challenge = self._challenge(f"sign in {token}")
        options = webauthn.generate_authentication_options(
            rp_id=self._host,
            challenge=challenge,
            user_verification=structs.UserVerificationRequirement.REQUIRED,
        )
        return Ceremony(webauthn.options_to_json(options), challenge.hex())

    def sign_in(self, token: str, challenge: str, credential: str, browser: str = "") -> SignedIn:
        """Start a session for the owner of a passkey, even while their password is locked.

        token, challenge : as for `ask`. credential : the browser's response, as JSON; each response
        works once. browser : as for `Accounts.sign_in`. Raises InvalidInput(unauthenticated).
        """
        issued = self._issued(f"sign in {token}", challenge)
        answer = _checked(lambda: helpers.parse_authentication_credential_json(credential))
        with self._database.reading("find passkey") as tx:
            row = tx.passkeys.get(helpers.bytes_to_base64url(answer.raw_id))
            account = tx.accounts.get(row.account) if row else None
        if row is None or account is None or account.disabled is not None:
            raise _refused()
        # If the authenticator names an account, it must be the passkey's account (WebAuthn 7.2).
        if answer.response.user_handle not in (None, bytes.fromhex(row.account)):
            raise _refused()
        used = _checked(
            lambda: webauthn.verify_authentication_response(
                credential=answer,
                expected_challenge=bytes.fromhex(challenge),
                expected_rp_id=self._host,
                expected_origin=self._origin,
                credential_public_key=row.public_key,
                credential_current_sign_count=row.sign_count,
                require_user_verification=True,
            )
        )
        _require_own_page(answer.response.client_data_json)
        with self._database.transaction("sign in") as tx:
            # Before the passkey is locked: every other transaction locks the account first.
            require_unchanged(tx, account)
            # One UPDATE checks and records the use, so two copies of a response cannot both
            # succeed.
            if not tx.passkeys.use(row.credential, issued, used.new_sign_count):
                raise _refused()
            return start_session(tx, account, self._clock.now(), browser)

    def _challenge(self, purpose: str) -> bytes:
        """Return a challenge that `_issued` can verify without a stored copy."""
        # The challenge contains its time of issue, so it can expire. The MAC binds it to the
        # browser's token and to the purpose.
        head = self._now().to_bytes(8, "big") + secrets.token_bytes(16)
        return head + self._mac(head, purpose)

    def _issued(self, purpose: str, challenge: str) -> int:
        """Return the time of issue of a challenge, in microseconds since 1970.

        Raises InvalidInput(unauthenticated) unless this server issued the challenge to this browser
        and for this purpose within the last ten minutes.
        """
        data = _checked(lambda: bytes.fromhex(challenge))
        head, issued = data[:24], int.from_bytes(data[:8], "big")
        fresh = 0 <= self._now() - issued < _CHALLENGE_S * _MICRO
        if not hmac.compare_digest(data[24:], self._mac(head, purpose)) or not fresh:
            raise _refused()
        return issued

    def _mac(self, head: bytes, purpose: str) -> bytes:
        return bytes.fromhex(self._keys.mac("passkey", head + purpose.encode()))

    def _now(self) -> int:
        now = self._clock.now()
        return int(now.timestamp()) * _MICRO + now.microsecond


def _require_own_page(client_data: bytes) -> None:
    # The library does not look at it (WebAuthn 7.1 and 7.2): a page of another origin has the
    # admin pages in a frame.
    if helpers.parse_client_data_json(client_data).cross_origin:
        raise _refused()


def _checked(check: Callable[[], _T]) -> _T:
    """Return the result of `check`; raise InvalidInput(unauthenticated) if it fails."""
    try:
        return check()
    # The library does not wrap the errors of its parsers, so every exception is caught.
    except Exception:  # noqa: BLE001
        raise _refused() from None


def _refused() -> InvalidInput:
    return InvalidInput(
        Problem.UNAUTHENTICATED,
        "this passkey was not accepted: try again, or use your password",
        "passkey",
    )
