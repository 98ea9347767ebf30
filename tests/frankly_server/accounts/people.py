# SPDX-License-Identifier: Apache-2.0
"""A password, a clock that is moved by hand, and a refusal as a value, for the tests of accounts."""

from datetime import datetime, timedelta

import pytest
from argon2 import PasswordHasher
from frankly_protocol.errors import InvalidInput

from tests.frankly_protocol.samples import NOW

PASSWORD = "correct horse battery"
CHEAP = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.at: datetime = NOW

    def now(self) -> datetime:
        return self.at

    def wait(self, seconds: int) -> None:
        self.at += timedelta(seconds=seconds)


def refused(act: object, *arguments: object) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        act(*arguments)  # type: ignore[operator]
    return caught.value
