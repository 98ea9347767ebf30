# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of accounts: a password, a clock that tests set, refusals, codes of an
authenticator app."""

import base64
import hashlib
import hmac
from datetime import datetime, timedelta

import pytest
from argon2 import PasswordHasher
from frankly_protocol.errors import InvalidInput
from frankly_server.accounts import Accounts, Person
from frankly_server.accounts.sessions import person_of

from tests.frankly_protocol.samples import NOW

PASSWORD = "correct horse battery"
CHEAP = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)


class Hands:
    """A clock that tests advance."""

    def __init__(self) -> None:
        self.at: datetime = NOW

    def now(self) -> datetime:
        return self.at

    def wait(self, seconds: int) -> None:
        self.at += timedelta(seconds=seconds)


def as_now(accounts: Accounts, person: Person) -> Person:
    """Return a person as their next request reads them: each change raises the account's version."""
    return next(person_of(row) for row in accounts.every() if row.id == person.id)


def refused(act: object, *arguments: object) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        act(*arguments)  # type: ignore[operator]
    return caught.value


def code(secret: str, at_s: int) -> str:
    """Return the code of a base32 secret by RFC 6238, computed independently from HMAC-SHA-1."""
    digest = hmac.new(
        base64.b32decode(secret), (at_s // 30).to_bytes(8, "big"), hashlib.sha1
    ).digest()
    offset = digest[-1] & 15
    value = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return f"{value % 10**6:06d}"
