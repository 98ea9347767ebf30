# SPDX-License-Identifier: Apache-2.0
"""Releasing what is pending: at the published times, or by an operator's word."""

import os
import threading
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import structlog
from frankly_protocol.clock import Clock, format_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import FranklyError

from frankly_server.store import Database, DocumentRow, Transaction
from frankly_server.times import PERIOD, next_release

_LOOK_S: Final = 10.0
"""Seconds between looks at the clock: a machine that slept, or whose clock was set, is noticed."""
_log: Final = structlog.get_logger("frankly.releases")


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a document says of its releases; is_over is true from one period after its last report on."""

    every: str
    step: int
    over: datetime


class Releasing:
    """Releases what is pending: at published times in a thread, or at once by an operator's word."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._rules: dict[str, _Rule] = {}  # by digest; documents never change
        self._pid, self._stopped = 0, threading.Event()

    def release(self, every: str | None = None, survey: str | None = None) -> int:
        """Release the pending reports of all documents, or of those of one period or survey; return how many.

        Raises StoreUnavailable or DocumentRejected for a document that cannot be released, after all others.
        """
        with self._database.reading("list documents") as tx:
            rows = tx.documents.all() if survey is None else tx.documents.versions(survey)
        n, failed = 0, None
        for row in rows:
            try:
                n += self._release(row) if every in (None, self._rule(row).every) else 0
            except FranklyError as error:  # of one document: the others are released all the same
                failed = error
        self._database.forget_deleted()
        if failed is not None:
            raise failed
        return n

    def wake(self) -> None:
        """Start the thread if this process has none: what is started before a fork dies in it."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            threading.Thread(target=self._run, name="frankly-releases", daemon=True).start()

    def stop(self) -> None:
        """End the thread after its round."""
        self._stopped.set()

    def release_due(self, since: datetime, now: datetime) -> None:
        """Release what has a published time after `since` and up to `now`; what fails is logged and waits."""
        for every in PERIOD:
            if next_release(every, since) > now:
                continue
            try:
                self.release(every)
            except FranklyError as error:
                _log.warning("release failed", error=error.code)
            except Exception as error:  # noqa: BLE001 - a thread has nobody else to tell
                _log.error("release broken", error=type(error).__name__)

    def _release(self, row: DocumentRow) -> int:
        rule, now = self._rule(row), self._clock.now()
        with self._database.transaction("release") as tx:
            is_over = now >= rule.over or tx.standings.get(row.survey).state in ("closed", "archived")
            n = tx.releases.release(row.survey, row.digest, rule.step, format_time(now), is_over=is_over)
            _close_if_met(tx, row.survey)
        return n

    def _rule(self, row: DocumentRow) -> _Rule:
        if row.digest not in self._rules:
            document = SurveyDocument.parse(Envelope.from_bytes(row.envelope, SURVEY_TYPE).payload)
            ends, every = min(document.closes, document.expires), document.release_every
            self._rules[row.digest] = _Rule(every, document.release_step, ends + PERIOD[every])
        return self._rules[row.digest]

    def _run(self) -> None:
        seen = self._clock.now()
        while not self._stopped.wait(_LOOK_S):
            now = self._clock.now()
            self.release_due(seen, now)
            seen = now


def _close_if_met(tx: Transaction, survey: str) -> None:
    """Close a survey whose stop rule is met by its released reports."""
    standing = tx.standings.get(survey)
    stop = standing.stop_reports
    if standing.state == "open" and stop is not None and tx.batches.number(survey) >= stop:
        tx.standings.put(survey, replace(standing, state="closed"))
