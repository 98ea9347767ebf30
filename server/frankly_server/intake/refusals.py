# SPDX-License-Identifier: Apache-2.0
"""Counting refused reports without letting a flood of them at the database."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable

from frankly_protocol.errors import InvalidInput

from frankly_server.buckets import Buckets
from frankly_server.store import Database, StoreUnavailable

PER_S, BURST = 5.0, 100.0
_EVERYONE = ""


class Refusals:
    """Day-grain counters of refusals by survey and problem code.

    Written at once as long as they are few. In a flood they are added up in memory and written with the next one that
    comes when a write is allowed again, or by `flush`: at most PER_S transactions a second. A crash may lose counts of
    refusals, never of reports.
    """

    def __init__(self, database: Database, now: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._now = now
        self._allowed = Buckets(PER_S, BURST)
        self._guard = threading.Lock()
        self._unwritten: Counter[tuple[str, str, str]] = Counter()  # survey, UTC day, code

    def add(self, survey: str, day: str, refusals: Iterable[InvalidInput]) -> None:
        """Count refusals of a published survey. A database that is down must not hide them: nothing is raised."""
        with self._guard:
            self._unwritten.update((survey, day, refusal.code) for refusal in refusals)
        if self._allowed.take(_EVERYONE, self._now()).wait_s == 0.0:
            self.flush()

    def flush(self) -> None:
        """Write what was added up; what cannot be written is kept for the next time."""
        with self._guard:
            counted, self._unwritten = self._unwritten, Counter()
        if not counted:
            return
        try:
            with self._database.transaction("count refusals") as tx:
                for (survey, day, code), n in sorted(counted.items()):
                    tx.days.add(survey, day, {code: n})
        except StoreUnavailable:  # logged by the store
            with self._guard:
                self._unwritten.update(counted)
