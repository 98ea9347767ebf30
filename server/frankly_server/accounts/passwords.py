# SPDX-License-Identifier: Apache-2.0
"""argon2id, a few at a time: each check takes 64 MiB, and a flood of sign-ins must not take all memory."""

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
    """More people are signing in than passwords can be checked: 503, try again."""

    def __init__(self) -> None:
        super().__init__("too many people are signing in right now; try again in a moment", code=Problem.TOO_MANY.code)


class Passwords:
    """Hashes and checks passwords, at most `at_once` at the same time.

    hasher : default argon2id with 64 MiB, 3 passes and 4 lanes (RFC 9106's second choice). wait_s : how long a caller
    queues before Busy. queue : how many may; the next is Busy at once, so that people who sign in never hold all the
    threads that take reports.
    """

    def __init__(
        self, hasher: PasswordHasher | None = None, at_once: int = 2, wait_s: float = _WAIT_S, queue: int = 2
    ) -> None:
        self._hasher = hasher or PasswordHasher()
        self._slots = threading.BoundedSemaphore(at_once)
        self._places = threading.BoundedSemaphore(at_once + queue)
        self._wait_s = wait_s
        self._nobody: str | None = None

    def hash(self, password: str) -> str:
        """Return what is kept of a password. Raises InvalidInput(field_type) if it is too short or too long, Busy."""
        if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
            words = f"a password has {MIN_LENGTH} to {MAX_LENGTH} characters; a few words together are easy to remember"
            raise InvalidInput(Problem.FIELD_TYPE, words, "password")
        with self._slot():
            return self._hasher.hash(_bytes(password))

    def check(self, kept: str | None, password: str) -> bool:
        """Tell whether a password is the kept one; None (nobody) takes as long and is never right. Raises Busy."""
        with self._slot():
            if self._nobody is None:
                self._nobody = self._hasher.hash(secrets.token_bytes(32))
            try:
                self._hasher.verify(kept or self._nobody, _bytes(password[:MAX_LENGTH]))
            except (VerificationError, InvalidHashError):
                return False
            return kept is not None

    @contextmanager
    def _slot(self) -> Iterator[None]:
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


def _bytes(password: str) -> bytes:
    """Return the same bytes however a keyboard composed the accents."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
