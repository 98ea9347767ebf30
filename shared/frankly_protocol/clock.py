# SPDX-License-Identifier: Apache-2.0
"""Clocks, passed as arguments so that tests can set the time; the time format of documents."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
_FORM = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


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

    Raises ValueError for any other text, and for times that do not exist, such as 30 February.
    """
    if not _FORM.fullmatch(text):
        raise ValueError("write a UTC time as 2026-12-31T23:59:59Z")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    # Newer versions of Python read 24:00:00 as the next day.
    if moment is None or f"{moment:%m-%dT%H:%M:%SZ}" != text[5:]:
        raise ValueError("an impossible date or time: the calendar has none such")
    return moment
