# SPDX-License-Identifier: Apache-2.0
"""API keys: 32 random bytes, shown once, stored as a SHA-256 hash.

A fast hash is enough, because a random secret of 256 bits cannot be guessed.
"""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from frankly_protocol.clock import Clock, format_time
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.schema import unsafe_character

from frankly_server.store import ApiKeyRow, Database, Record, unrecorded
from frankly_server.store.survey_states import MAIN

READER: Final = "reader"
"""Role of a key in the address of one survey's results page, which is all that it opens."""
ROLES: Final = (READER, "analyst", "admin", "owner")
"""reader : opens one results page. analyst : reads estimates and counts. admin : also manages surveys
and keys. owner : also accounts."""
_START: Final = "frankly_live_"
_PREFIX_LENGTH: Final = 8
_TOKEN: Final = re.compile(_START + r"[A-Za-z0-9_-]{43}", re.ASCII)
_PREFIX: Final = re.compile(r"[A-Za-z0-9_-]{8}", re.ASCII)
_DECOY_HASH: Final = "0" * 64
_REFUSAL: Final = "the API key is unknown, revoked or malformed"


@dataclass(frozen=True, slots=True)
class Principal:
    """The holder of an API key, with its role and its prefix (shown in lists and the audit trail).

    organisation : owner of the surveys that the key can use. surveys : ids of the surveys that the
    key is limited to; empty for all surveys of the organisation.
    """

    role: str
    prefix: str
    organisation: str = MAIN
    surveys: tuple[str, ...] = ()

    def opens(self, survey_id: str, organisation: str) -> bool:
        """Return True if the key may use a survey; otherwise callers treat the survey as unknown."""
        return organisation == self.organisation and (not self.surveys or survey_id in self.surveys)


class Access:
    """Creates, checks and revokes API keys."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def create(
        self,
        role: str,
        label: str,
        organisation: str = MAIN,
        surveys: Sequence[str] = (),
        recorder: Callable[[str], Record] = lambda _: unrecorded,
        most: str = ROLES[-1],
    ) -> str:
        """Return a new key for all or some surveys of an organisation; it is not stored.

        recorder : function from the key's prefix to the writer of the event. most : the role with the
        most rights that the key may get. Raises InvalidInput: field_type for an unknown role, a label
        that is empty or too long, or a reader without exactly one survey, text_characters for a label
        that is not safe to show, forbidden for a role above `most`.
        """
        if role not in ROLES:
            raise InvalidInput(Problem.FIELD_TYPE, f"a role is one of {', '.join(ROLES)}", "role")
        if ROLES.index(role) > ROLES.index(most):
            raise InvalidInput(
                Problem.FORBIDDEN, f"you can make keys up to the role {most}", "role"
            )
        # The address of a results page contains nothing but the key, so the key names the survey.
        if role == READER and len(surveys) != 1:
            raise InvalidInput(
                Problem.FIELD_TYPE, "a key of the role reader opens exactly one survey", "surveys"
            )
        if not 1 <= len(label) <= 200:
            raise InvalidInput(Problem.FIELD_TYPE, "a label has 1 to 200 characters", "label")
        # Lists and the audit trail show labels, and control characters could fake entries there.
        if unsafe_character(label):
            raise InvalidInput(
                Problem.TEXT_CHARACTERS, "use letters, digits and ordinary punctuation", "label"
            )
        secret = base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode("ascii")
        token = _START + secret
        # The prefix identifies the row and the key; the other 35 characters stay secret.
        row = ApiKeyRow(
            secret[:_PREFIX_LENGTH],
            _hash(token),
            role,
            label,
            format_time(self._clock.now()),
            organisation=organisation,
            surveys=tuple(surveys),
        )
        with self._database.administering("create api key") as tx:
            tx.api_keys.add(row)
            recorder(row.prefix)(tx)
        return token

    def authenticate_link(self, secret: str) -> Principal:
        """Return the holder of a reader's key. secret : the key without its fixed beginning.

        Raises InvalidInput(unauthenticated), with the same message for every cause and other roles.
        """
        principal = self.authenticate(_START + secret)
        if principal.role != READER:
            raise InvalidInput(Problem.UNAUTHENTICATED, _REFUSAL)
        return principal

    def authenticate(self, token: str) -> Principal:
        """Return the holder of a key.

        Raises InvalidInput(unauthenticated), with the same message for every cause.
        """
        row = None
        if _TOKEN.fullmatch(token):
            with self._database.reading("authenticate") as tx:
                row = tx.api_keys.get(token[len(_START) :][:_PREFIX_LENGTH])
        # Hashes are compared even without a row, so that the time does not reveal known prefixes.
        matches = hmac.compare_digest(_hash(token), row.hash if row else _DECOY_HASH)
        if row is None or not matches or row.revoked is not None:
            raise InvalidInput(Problem.UNAUTHENTICATED, _REFUSAL)
        return Principal(row.role, row.prefix, row.organisation, row.surveys)

    def revoke(
        self,
        prefix: str,
        organisation: str | None = None,
        record: Record = unrecorded,
        most: str = ROLES[-1],
    ) -> None:
        """Revoke a key with immediate effect.

        organisation : required owner of the key; None accepts any owner. most : the role with the most
        rights that may be revoked. Raises InvalidInput: not_found if there is no such key or it is
        already revoked, forbidden for a role above `most`.
        """
        with self._database.administering("revoke api key") as tx:
            if not _PREFIX.fullmatch(prefix):
                raise InvalidInput(Problem.NOT_FOUND, "no working key has this prefix", "prefix")
            row = tx.api_keys.get(prefix)
            # A key of another organisation gets the same error, so that prefixes stay unknown.
            foreign = (
                organisation is not None and row is not None and row.organisation != organisation
            )
            if row is None or foreign or row.revoked is not None:
                raise InvalidInput(Problem.NOT_FOUND, "no working key has this prefix", "prefix")
            if ROLES.index(row.role) > ROLES.index(most):
                raise InvalidInput(
                    Problem.FORBIDDEN, f"you can revoke keys up to the role {most}", "prefix"
                )
            # Before the revocation, because a key may revoke itself.
            record(tx)
            tx.api_keys.revoke(prefix, format_time(self._clock.now()))

    def list(self) -> list[ApiKeyRow]:
        """Return every key, oldest first, without its secret."""
        with self._database.reading("list api keys") as tx:
            return tx.api_keys.all()


def link_secret(token: str) -> str:
    """Return the part of a key that stands in the address of a results page."""
    return token.removeprefix(_START)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
