# SPDX-License-Identifier: Apache-2.0
"""Periods of estimates: UTC days of release, ISO weeks and months."""

import re
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
PERIODS: Final = ("day", "week", "month")
DAYS: Final = "days"
"""Label of rows about a single span of days."""
ALL_TIME: Final = ""
"""The period of all reports."""


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `since` to `until` inclusive, ``YYYY-MM-DD`` in UTC; None means no limit."""

    since: str | None = None
    until: str | None = None

    @classmethod
    def read(cls, since: Any, until: Any) -> "Span":
        """Return the span between two days or None values. Raises InvalidInput(field_type)."""
        span = cls(_day(since, "since"), _day(until, "until"))
        if span.since is not None and span.until is not None and span.since > span.until:
            raise InvalidInput(Problem.FIELD_TYPE, "the last day is before the first", "until")
        return span

    def __bool__(self) -> bool:
        return self.since is not None or self.until is not None

    def __contains__(self, day: str) -> bool:
        return (self.since is None or day >= self.since) and (
            self.until is None or day <= self.until
        )

    def __str__(self) -> str:
        """Interval in ISO 8601-2 notation: ``2026-05-01/2026-05-31``, an open end as ``..``."""
        return f"{self.since or '..'}/{self.until or '..'}"

    def period(self, day: str, by: str | None) -> str | None:
        """Return the period of a day: by "day", "week" (``2026-W18``) or "month" (``2026-05``).

        Returns the span as text if `by` is None, and None if the day lies outside the span.
        """
        if day not in self:
            return None
        if by is None:
            return str(self)
        if by == "week":
            # The ISO year: the first days of January may belong to the last week of the previous
            # year.
            year, week, _ = date.fromisoformat(day).isocalendar()
            return f"{year:04d}-W{week:02d}"
        return day if by == "day" else day[:7]


ALL_DAYS: Final = Span()


def _day(value: Any, field: str) -> str | None:
    if value is None:
        return None
    refused = "write a day in UTC as 2026-05-31"
    # Other ISO forms, such as 20260531, do not sort correctly as text.
    if isinstance(value, str) and _DAY.fullmatch(value):
        try:
            return date.fromisoformat(value).isoformat()
        except ValueError:
            refused = "an impossible date: the calendar has none such"
    raise InvalidInput(Problem.FIELD_TYPE, refused, field)
