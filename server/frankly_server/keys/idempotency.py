# SPDX-License-Identifier: Apache-2.0
"""Idempotency keys: a request that is sent twice is carried out once, and answered twice.

The claim of a request is written in the transaction of its action, so that both are stored or none.
Responses may contain secrets that are shown once. They are stored encrypted with a key that is made
of the API key, of which the server has only a hash: a copy of the database does not contain them.
The header is that of the IETF draft "The Idempotency-Key HTTP Header Field".
"""

import hashlib
import hmac
import re
import secrets
from datetime import timedelta
from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from frankly_protocol.clock import Clock, format_time
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.store import Database, IdempotentRequestRow, Transaction

KEPT: Final = timedelta(hours=24)
"""Time for which a request is remembered."""
MOST: Final = 2_000
"""Requests with idempotency keys of one API key in that time."""
MOST_BYTES: Final = 2**16
"""Longest response that is kept: about 300 invitations."""
_KEY: Final = re.compile(r'"([!#-~]{1,255})"|([!#-~]{1,255})', re.ASCII)
_NONCE_BYTES: Final = 12


class Attempt:
    """One request with an idempotency key.

    answer : the response to the same request before, None if it has not been carried out.
    """

    def __init__(
        self, database: Database, clock: Clock, row: IdempotentRequestRow, secret: bytes
    ) -> None:
        self._database, self._clock, self._row = database, clock, row
        self._cipher, self._is_claimed = AESGCM(secret), False
        self.answer: bytes | None = None

    def claim(self, tx: Transaction) -> None:
        """Write that the request is carried out, in the transaction of its (first) action.

        Raises InvalidInput: idempotency_conflict if the same request has been carried out meanwhile,
        idempotency_mismatch for another one, too_many if the API key has sent `MOST` in a day.
        """
        if self._is_claimed:
            return
        since = _since(self._clock)
        if tx.idempotent_requests.number(self._row.holder, since) >= MOST:
            raise InvalidInput(
                Problem.TOO_MANY,
                f"one API key may send {MOST:,} requests with idempotency keys in 24 hours",
            )
        if not tx.idempotent_requests.add(self._row, since):
            self._require_same(tx.idempotent_requests.get(self._row.id, since))
            raise _conflict("the same request is being carried out: send it again in a moment")
        self._is_claimed = True

    def keep(self, answer: bytes, *, is_refusal: bool = False) -> None:
        """Store the response, encrypted, unless it is too long.

        is_refusal : True for a response after which nothing was done, as a rule; it is stored only if
        an earlier step of the request was. Raises StoreUnavailable.
        """
        if len(answer) > MOST_BYTES or (is_refusal and not self._is_claimed):
            return
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = nonce + self._cipher.encrypt(nonce, answer, bytes.fromhex(self._row.request))
        with self._database.administering("keep response") as tx:
            # What changed nothing has made no claim. A refusal undoes the claim, too, if it ended the
            # transaction of the first action; then there is no row of this attempt.
            if not is_refusal:
                tx.idempotent_requests.add(self._row, _since(self._clock))
            tx.idempotent_requests.keep(self._row.id, self._row.attempt, sealed)

    def look(self) -> None:
        """Read the response to the same request before, if it has been carried out.

        Raises InvalidInput: idempotency_mismatch if the key was sent with another request,
        idempotency_conflict if the response is not kept.
        """
        with self._database.reading("find request") as tx:
            row = tx.idempotent_requests.get(self._row.id, _since(self._clock))
        if row is None:
            return
        self._require_same(row)
        if row.answer is None:
            raise _conflict(
                "this request was carried out, but its response is not kept (or not yet): read what it "
                "changed"
            )
        nonce, text = row.answer[:_NONCE_BYTES], row.answer[_NONCE_BYTES:]
        self.answer = self._cipher.decrypt(nonce, text, bytes.fromhex(row.request))

    def _require_same(self, row: IdempotentRequestRow | None) -> None:
        if row is not None and row.request != self._row.request:
            raise InvalidInput(
                Problem.IDEMPOTENCY_MISMATCH,
                "each request needs a key of its own: send another one",
                "Idempotency-Key",
            )


class IdempotentRequests:
    """Service that finds earlier requests with the same idempotency key of the same API key."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def attempt(self, token: str, holder: str, key: str, request: bytes) -> Attempt:
        """Return an attempt at a request.

        token, holder : the API key and its prefix. request : all that was asked. Raises InvalidInput:
        field_type for a malformed idempotency key, and the errors of `Attempt.look`.
        """
        found = _KEY.fullmatch(key)
        if found is None:
            raise InvalidInput(
                Problem.FIELD_TYPE,
                "an idempotency key is 1 to 255 visible ASCII characters, such as a UUID",
                "Idempotency-Key",
            )
        name = (found.group(1) or found.group(2)).encode()
        row = IdempotentRequestRow(
            _mac(token, b"id " + name).hex(),
            holder,
            hashlib.sha256(request).hexdigest(),
            secrets.token_hex(16),
            None,
            format_time(self._clock.now().replace(microsecond=0)),
        )
        attempt = Attempt(self._database, self._clock, row, _mac(token, b"answer " + name))
        attempt.look()
        return attempt


def _mac(token: str, text: bytes) -> bytes:
    """Return 32 bytes that only the holder of the API key can compute."""
    return hmac.digest(token.encode(), b"frankly idempotency " + text, "sha256")


def _since(clock: Clock) -> str:
    return format_time(clock.now().replace(microsecond=0) - KEPT)


def _conflict(detail: str) -> InvalidInput:
    return InvalidInput(Problem.IDEMPOTENCY_CONFLICT, detail, "Idempotency-Key")
