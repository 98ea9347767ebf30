# SPDX-License-Identifier: Apache-2.0
"""Periods that estimates are told apart by: UTC days of release, and the weeks and months made of them."""

from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

PERIODS: Final = ("day", "week", "month")
DAYS: Final = "days"
"""What rows of one span of days are labelled by."""
ALL_TIME: Final = ""
"""The period that holds every report."""


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `since` to `until`, ``YYYY-MM-DD`` in UTC, both included; None has no end on that side."""

    since: str | None = None
    until: str | None = None

    @classmethod
    def read(cls, since: Any, until: Any) -> "Span":
        """Return the span between two days or Nones. Raises InvalidInput(field_type)."""
        found = cls(_day(since, "since"), _day(until, "until"))
        if found.since is not None and found.until is not None and found.since > found.until:
            raise InvalidInput(Problem.FIELD_TYPE, "the last day lies before the first", "until")
        return found

    def __bool__(self) -> bool:
        return self.since is not None or self.until is not None

    def __contains__(self, day: str) -> bool:
        return (self.since is None or day >= self.since) and (self.until is None or day <= self.until)

    def __str__(self) -> str:
        """As ISO 8601-2 writes it: ``2026-05-01/2026-05-31``, an open end as ``..``."""
        return f"{self.since or '..'}/{self.until or '..'}"

    def period(self, day: str, by: str | None) -> str | None:
        """Return the day, ISO week (``2026-W18``) or month (``2026-05``) of a day, the span itself without `by`.

        None if the day is outside.
        """
        if day not in self:
            return None
        if by is None:
            return str(self)
        if by == "week":
            year, week, _ = date.fromisoformat(day).isocalendar()
            return f"{year:04d}-W{week:02d}"
        return day if by == "day" else day[:7]


ALL_DAYS: Final = Span()


def _day(value: Any, field: str) -> str | None:
    if value is None:
        return None
    try:
        if isinstance(value, str) and date.fromisoformat(value).isoformat() == value:
            return value
    except ValueError:
        pass
    raise InvalidInput(Problem.FIELD_TYPE, "write a day in UTC as 2026-05-31", field)
