# SPDX-License-Identifier: Apache-2.0
"""Counts of refused reports, written at a limited rate to protect the database in a flood."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable

from frankly_protocol.errors import InvalidInput

from frankly_server.intake.buckets import Buckets
from frankly_server.store import Database, StoreUnavailable

# Mean rate of write transactions per second, and burst; reports need the database too.
PER_S, BURST = 5.0, 100.0
_EVERYONE = ""  # one bucket for all surveys


class Refusals:
    """Daily counters of refusals by survey and problem code.

    A few refusals are written immediately. In a flood they are summed in memory, and written with
    the next refusal for which the rate allows a transaction (PER_S per second on average), or by
    `flush`. A crash may lose counts of refusals; reports do not depend on them.
    """

    def __init__(self, database: Database, now: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._now = now
        self._allowed = Buckets(PER_S, BURST)
        self._guard = threading.Lock()
        self._unwritten: Counter[tuple[str, str, str]] = Counter()  # survey, UTC day, code

    def add(self, survey: str, day: str, refusals: Iterable[InvalidInput]) -> None:
        """Count refusals of a published survey; does not raise if the database fails."""
        with self._guard:
            self._unwritten.update((survey, day, refusal.code) for refusal in refusals)
        if self._allowed.take(_EVERYONE, self._now()).wait_s == 0.0:
            self.flush()

    def flush(self) -> None:
        """Write the sums; if the database fails, they stay in memory for the next attempt."""
        # The counts are swapped under the lock and written after releasing it, so that other
        # requests do not wait for the database here.
        with self._guard:
            pending, self._unwritten = self._unwritten, Counter()
        if not pending:
            return
        try:
            with self._database.transaction("count refusals") as tx:
                for (survey, day, code), n in sorted(pending.items()):
                    tx.days.add(survey, day, {code: n})
        except StoreUnavailable:  # logged by the store
            with self._guard:
                self._unwritten.update(pending)
