# SPDX-License-Identifier: Apache-2.0
"""Password hashing with argon2id; the number of concurrent checks (64 MiB each) is bounded."""

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
    """Too many concurrent password checks: 429, to be tried again."""

    def __init__(self) -> None:
        super().__init__(
            "too many people are signing in right now; try again in a moment",
            code=Problem.TOO_MANY.code,
        )


class _Queue:
    """Bounded concurrency: `at_once` callers work, `waiting` more wait for at most `wait_s`."""

    def __init__(self, at_once: int, waiting: int, wait_s: float) -> None:
        self._slots = threading.BoundedSemaphore(at_once)
        self._places = threading.BoundedSemaphore(at_once + waiting)
        self._wait_s = wait_s

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold a slot. Raises Busy at once if the queue is full, or after `wait_s`."""
        # The first semaphore bounds the callers that wait, the second those that hash.
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
    """Hashes and checks passwords, at most `at_once` of strangers at the same time.

    hasher : default argon2id with 64 MiB, 3 passes and 4 lanes (RFC 9106's second choice).
    wait_s : longest time in the queue, in seconds, before Busy is raised. queue : length of the
    queue. A caller that finds it full gets Busy at once, so that people who sign in never hold all
    the threads that take reports.

    One more slot with a queue of its own is for the people whom the server knows already: those
    who are signed in, and known browsers. Strangers can never fill it.
    """

    def __init__(
        self,
        hasher: PasswordHasher | None = None,
        at_once: int = 2,
        wait_s: float = _WAIT_S,
        queue: int = 2,
    ) -> None:
        self._hasher = hasher or PasswordHasher()
        # Two queues: a flood of strangers must leave a slot for the people of this server.
        self._strangers = _Queue(at_once, queue, wait_s)
        self._known = _Queue(1, queue, wait_s)
        # Made at the first check: at start it would delay every command with these services.
        self._decoy_hash: str | None = None

    def hash(self, password: str) -> str:
        """Return the hash of a new password, which only people known to the server set.

        Raises InvalidInput(field_type) if it is too short or too long, and Busy.
        """
        if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
            message = (
                f"a password has {MIN_LENGTH} to {MAX_LENGTH} characters; a few words together "
                "are easy to remember"
            )
            raise InvalidInput(Problem.FIELD_TYPE, message, "password")
        with self._known.slot():
            return self._hasher.hash(_bytes(password))

    def check(self, stored_hash: str | None, password: str, *, known: bool = False) -> bool:
        """Return True if a password matches the stored hash. Raises Busy.

        None as the stored hash (no such account) is False, after the same work. known : the
        request carries the cookie of one of the account's known browsers.
        """
        with (self._known if known else self._strangers).slot():
            # The time of the answer must not show which addresses have accounts.
            if self._decoy_hash is None:
                self._decoy_hash = self._hasher.hash(secrets.token_bytes(32))
            try:
                # Cut at the longest password that can be set: hashing more would only cost time.
                self._hasher.verify(stored_hash or self._decoy_hash, _bytes(password[:MAX_LENGTH]))
            # A damaged hash in the database is a wrong password, not a fault.
            except (VerificationError, InvalidHashError):
                return False
            return stored_hash is not None


def _bytes(password: str) -> bytes:
    """Return the bytes to hash: NFKC makes composed and decomposed accents the same password."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
