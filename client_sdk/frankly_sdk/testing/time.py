# SPDX-License-Identifier: Apache-2.0
"""A fake clock for tests, advanced by the test."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """A clock for the calendar, a timer and a sleep that agree with each other.

    Sleeping takes no time.

    at : aware; a fixed moment by default, so that tests do not depend on the day they run. `naps`
    are the seconds that were slept.
    """

    def __init__(self, at: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._at = at
        self._passed = 0.0
        self.naps: list[float] = []

    def now(self) -> datetime:
        """Return the calendar's time."""
        return self._at + timedelta(seconds=self._passed)

    def timer(self) -> float:
        """Return seconds that never run backwards."""
        return self._passed

    def sleep(self, seconds: float) -> None:
        """Let time pass, and remember how long."""
        self.naps.append(seconds)
        self._passed += seconds

    def advance(self, by: timedelta) -> None:
        """Advance the time without a sleep."""
        self._passed += by.total_seconds()

    def set(self, at: datetime) -> None:
        """Set the wall clock, possibly backwards, as people do with devices.

        The timer does not notice.
        """
        self._at = at - timedelta(seconds=self._passed)
