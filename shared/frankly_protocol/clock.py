# SPDX-License-Identifier: Apache-2.0
"""Clocks, passed as arguments so that tests can set the time; the time format of documents."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


class Clock(Protocol):
    """A source of the current time."""

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the machine's current time in UTC."""
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class FixedClock:
    """A clock that always returns the same time; for tests and for replaying a past decision."""

    at: datetime

    def now(self) -> datetime:
        """Return `at`."""
        return self.at


def format_time(moment: datetime) -> str:
    """Return `moment` as ``YYYY-MM-DDTHH:MM:SSZ``, the only time format in documents.

    Raises ValueError if `moment` has no time zone.
    """
    if moment.tzinfo is None:
        raise ValueError("times must be aware")
    return moment.astimezone(UTC).strftime(_FORMAT)


def parse_time(text: str) -> datetime:
    """Return the aware UTC time written as ``YYYY-MM-DDTHH:MM:SSZ``.

    Raises ValueError for any other text.
    """
    # Checked first, because strptime also accepts digits of other scripts.
    if len(text) != 20 or not text.isascii():
        raise ValueError("a time is written YYYY-MM-DDTHH:MM:SSZ, in UTC")
    moment = datetime.strptime(text, _FORMAT).replace(tzinfo=UTC)
    if moment.strftime(_FORMAT) != text:  # strptime also accepts a space for a leading zero
        raise ValueError("a time is written YYYY-MM-DDTHH:MM:SSZ, in UTC")
    return moment
