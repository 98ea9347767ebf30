# SPDX-License-Identifier: Apache-2.0
"""A fake clock for tests, advanced by the test."""

import threading
from datetime import UTC, datetime, timedelta

# Polling interval, in real seconds, for the time that the test sets.
_LOOK_S = 0.005


class FakeClock:
    """A wall clock, a timer and a sleep that agree with each other; sleeping takes no real time.

    at : aware start time, 2026-01-01 by default, so that tests do not depend on the day they run.
    naps : the requested durations of all sleeps, in seconds.
    """

    def __init__(self, at: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._at = at
        self._passed = 0.0
        self.naps: list[float] = []

    def now(self) -> datetime:
        """Return the time of the wall clock."""
        return self._at + timedelta(seconds=self._passed)

    def timer(self) -> float:
        """Return the seconds since the start, which never run backwards."""
        return self._passed

    def sleep(self, seconds: float) -> None:
        """Advance the time, and append `seconds` to `naps`."""
        self.naps.append(seconds)
        self._passed += seconds

    def wait(self, event: threading.Event, seconds: float) -> None:
        """Wait until an event is set, or until the test has advanced the time by `seconds`.

        The background sender uses it to wait in real time until the test acts.
        """
        until = self._passed + seconds
        while self._passed < until and not event.wait(_LOOK_S):
            pass

    def advance(self, by: timedelta) -> None:
        """Advance the time without a sleep."""
        self._passed += by.total_seconds()

    def set(self, at: datetime) -> None:
        """Set the wall clock, possibly backwards, as a user may; the timer does not change."""
        self._at = at - timedelta(seconds=self._passed)
