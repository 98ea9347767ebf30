# SPDX-License-Identifier: Apache-2.0
"""Password hashing with argon2id. Each check needs 64 MiB, so concurrent checks are limited."""

import secrets
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

MIN_LENGTH, MAX_LENGTH = 12, 1000
_WAIT_S: Final = 5.0


class Busy(FranklyError):
    """Too many concurrent password checks (HTTP 429); trying again later may help."""

    def __init__(self) -> None:
        super().__init__(
            "too many people are signing in right now; try again in a moment",
            code=Problem.TOO_MANY.code,
        )


class _Queue:
    """Semaphore for `at_once` callers, with up to `waiting` more that wait at most `wait_s`."""

    def __init__(self, at_once: int, waiting: int, wait_s: float) -> None:
        self._slots = threading.BoundedSemaphore(at_once)
        self._places = threading.BoundedSemaphore(at_once + waiting)
        self._wait_s = wait_s

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold a slot. Raises Busy immediately if the queue is full, or after `wait_s`."""
        # `_places` limits working and waiting callers together, `_slots` only working ones.
        if not self._places.acquire(blocking=False):
            raise Busy
        try:
            if not self._slots.acquire(timeout=self._wait_s):
                raise Busy
            try:
                yield
            finally:
                self._slots.release()
        finally:
            self._places.release()


class Passwords:
    """Password hashing and checking, with at most `at_once` concurrent checks for strangers.

    hasher : default argon2id with 64 MiB, 3 passes and 4 lanes (RFC 9106's second choice).
    wait_s : longest time in the queue, in seconds, before Busy is raised. queue : length of the
    queue. If it is full, Busy is raised immediately, so that sign-ins cannot occupy all the
    threads that accept reports.

    A separate slot with its own queue serves signed-in people and known browsers. Strangers
    cannot occupy it.
    """

    def __init__(
        self,
        hasher: PasswordHasher | None = None,
        at_once: int = 2,
        wait_s: float = _WAIT_S,
        queue: int = 2,
    ) -> None:
        self._hasher = hasher or PasswordHasher()
        # Two queues, because a flood of strangers must not keep known people from signing in.
        self._strangers = _Queue(at_once, queue, wait_s)
        self._known = _Queue(1, queue, wait_s)
        # Computed at the first check: computing it here would delay every command that uses
        # accounts.
        self._decoy_hash: str | None = None

    def hash(self, password: str) -> str:
        """Return the hash of a new password, in the slot that strangers cannot occupy.

        Raises InvalidInput(field_type) if it is too short or too long, and Busy.
        """
        if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
            raise InvalidInput(
                Problem.FIELD_TYPE,
                f"a password has {MIN_LENGTH} to {MAX_LENGTH} characters; a few words together "
                "are easy to remember",
                "password",
            )
        with self._known.slot():
            return self._hasher.hash(_bytes(password))

    def check(self, stored_hash: str | None, password: str, *, known: bool = False) -> bool:
        """Return True if a password matches the stored hash. Raises Busy.

        stored_hash : None if there is no such account; the result is then False, after the same
        amount of work. known : True if the request has the cookie of a known browser of the
        account.
        """
        with (self._known if known else self._strangers).slot():
            # The response time must not show which addresses have accounts.
            if self._decoy_hash is None:
                self._decoy_hash = self._hasher.hash(secrets.token_bytes(32))
            try:
                # Cut at the length of the longest password that can be set, which bounds the work.
                self._hasher.verify(stored_hash or self._decoy_hash, _bytes(password[:MAX_LENGTH]))
            # If the hash in the database is damaged, every password is wrong.
            except (VerificationError, InvalidHashError):
                return False
            return stored_hash is not None


def _bytes(password: str) -> bytes:
    """Return the bytes to hash: NFKC makes composed and decomposed accents the same password."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
