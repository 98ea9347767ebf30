# SPDX-License-Identifier: Apache-2.0
"""Releases of pending reports, by a thread at the release times or by an operator's command."""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING, Final

import structlog
from frankly_protocol.clock import Clock, format_time, parse_time
from frankly_protocol.documents import CLOCK_SKEW, SurveyDocument
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.intake.times import PERIOD, next_release
from frankly_server.store import AuditEvent, Database, DocumentRow, Record, Transaction

if TYPE_CHECKING:
    # Lazy, because most commands import this module, and estimates import numpy.
    from frankly_server.analysis import Publishing

_LOOK_S: Final = 10.0
"""Seconds between two checks of the clock.

A single long wait would miss the next release if the machine sleeps or its clock is set.
"""
_APART: Final = timedelta(hours=1)
"""Shortest time between any other release and one outside the published times over HTTP."""
_WAIT: Final = timedelta(hours=23)
_LATEST: Final = timedelta(days=8)
"""Shortest and longest time between the first release that finds a document over and its last one:
a day, but the thread's checks are some seconds late, and servers may run on one day a week only."""
_STOP_RULE: Final = "the stop rule"  # who closes a survey, in the audit trail
_SET: Final = timedelta(minutes=1)
"""A clock that gains or loses more than this between two checks has been set."""
_log: Final = structlog.get_logger("frankly.releases")


def _seconds() -> float:
    # Unlike the monotonic clock, this one counts the time in which the machine sleeps.
    return (
        time.clock_gettime(time.CLOCK_BOOTTIME)
        if hasattr(time, "CLOCK_BOOTTIME")
        else time.monotonic()
    )


@dataclass(frozen=True, slots=True)
class _Rule:
    """Release rule of a document.

    every : release period. step : smallest number of reports in a batch. over : one day after the
    last possible report. The last release is a day after the first one at or after `over`.
    item : id of the instructed item, or None. arms : id of the arms, and of each; None without arms.
    """

    every: str
    step: int
    over: datetime
    item: str | None
    arms: tuple[str, tuple[str, ...]] | None


class TooSoon(InvalidInput):
    """Another release is less than an hour away; ask again after `retry_after_s` seconds."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(
            Problem.TOO_MANY,
            "a release was asked for, or is published, within an hour of now: two in short order would "
            "tell when the answers between them were given. Wait for the published time, or ask again "
            f"in {retry_after_s} s",
        )
        self.retry_after_s = retry_after_s


class Releasing:
    """Service that releases pending reports: in a thread at the release times, or by `release`.

    publishing : writer of the estimates in `v_estimates` after each release, or None. timer :
    seconds since any moment, which no setting of the clock changes.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        publishing: "Publishing | None" = None,
        timer: Callable[[], float] = _seconds,
    ) -> None:
        self._database, self._clock, self._publishing = database, clock, publishing
        self._timer, self._last, self._was_set = timer, (clock.now(), timer()), False
        self._rules: dict[str, _Rule] = {}  # by digest; documents never change
        self._pid, self._stopped = 0, threading.Event()

    def release(self, every: str | None = None, survey: str | None = None) -> int:
        """Release the pending reports of all documents; return the number of released reports.

        every : restrict to documents with this period that have not been released since their
        latest release time. survey : restrict to documents of this survey. If a document cannot be
        released, or the bytes of deleted rows cannot be removed, raises StoreUnavailable or
        DocumentRejected after releasing all others.
        """
        with self._database.reading("list documents") as tx:
            rows = tx.documents.all() if survey is None else tx.documents.versions(survey)
        n, failed = 0, None
        for row in rows:
            try:
                n += self._release(row, every) if every in (None, self._rule(row).every) else 0
            except FranklyError as error:  # one broken document must not block the others
                failed = error
        try:
            self._database.forget_deleted()
        except FranklyError as error:  # the reports have been released
            failed = error
        self._publish(survey)
        if failed is not None:
            raise failed
        return n

    def release_now(
        self, survey: str, record: Record, asked_at: Callable[[Transaction], str | None]
    ) -> int:
        """Release a survey's pending reports outside the published times; return their number.

        record : writes the event, in an administering transaction before the release, of which a
        part may fail. asked_at : reads the time of the last such event.

        Raises TooSoon unless an hour lies between this release and every other of the survey, before
        and afterwards: of two in short order, the difference would tell when the reports between them
        arrived, even if one of them released nothing. Raises InvalidInput(immutable) for a survey
        that was not published, and the errors of `release`.
        """
        with self._database.reading("list documents") as tx:
            rows = tx.documents.versions(survey)
        if not rows:
            raise InvalidInput(Problem.IMMUTABLE, "publish the survey first", "survey")
        now, published = self._clock.now(), set[datetime]()
        for rule in map(self._rule, rows):
            if now < rule.over + PERIOD["day"] + _APART:
                following = next_release(rule.every, now)
                published |= {following - PERIOD[rule.every], following}
        with self._database.administering("record release") as tx:
            # A server that was down releases later than at the published time.
            past = [asked_at(tx), *(tx.batches.newest_time(row.digest) for row in rows)]
            others = published | {parse_time(one) for one in past if one is not None}
            near = [one for one in others if abs(one - now) < _APART]
            if near:
                raise TooSoon(ceil((max(near) + _APART - now).total_seconds()))
            record(tx)
        return self.release(survey=survey)

    def wake(self) -> None:
        """Start the thread if this process has none: threads do not survive a fork."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            # daemon, so that the process can end without waiting for the next check of the clock.
            threading.Thread(target=self._run, name="frankly-releases", daemon=True).start()

    def stop(self) -> None:
        """End the thread after its current round."""
        self._stopped.set()

    def release_due(self, since: datetime, now: datetime) -> None:
        """Release the documents that have a release time in (since, now]; log failures.

        Reports of a failed release stay pending until the next one.
        """
        for every in PERIOD:
            if next_release(every, since) > now:
                continue
            try:
                self.release(every)
            except FranklyError as error:
                _log.warning("release failed", error=error.code)
            # An exception would end the thread, and so all later releases.
            except Exception as error:  # noqa: BLE001
                _log.error("release failed unexpectedly", error=type(error).__name__)

    def _publish(self, survey: str | None) -> None:
        """Write estimates after a release. Log a failure; the next release tries again."""
        if self._publishing is None:
            return
        try:
            self._publishing.refresh(survey)
        # The reports have been released; an error in the estimates must not undo that.
        except Exception as error:  # noqa: BLE001
            _log.warning("estimates were not published", error=type(error).__name__)

    def _release(self, row: DocumentRow, every: str | None) -> int:
        rule, now = self._rule(row), self._clock.now()
        # All servers release at the published times. A second release some seconds after the first
        # would reveal which reports arrived in between, so there is at most one per interval. The
        # interval ends after `now`, because the clocks of servers differ.
        unless_in = (
            (format_time(next_release(every, now) - PERIOD[every]), format_time(now + CLOCK_SKEW))
            if every
            else None
        )
        with self._database.transaction("release") as tx:

            def is_over() -> bool:
                by_time = _time_is_over(tx, row.digest, rule.over, now)
                return by_time or tx.survey_states.get(row.survey).state in ("closed", "archived")

            n = tx.releases.release(
                row.survey,
                row.digest,
                rule.step,
                format_time(now),
                is_over=is_over,
                unless_in=unless_in,
                item=rule.item,
                arms=rule.arms,
            )
            _close_if_met(tx, row.survey, now)
        return n

    def _rule(self, row: DocumentRow) -> _Rule:
        if row.digest not in self._rules:
            document = SurveyDocument.from_envelope(row.envelope)
            ends, every = min(document.closes, document.expires), document.release_every
            # A day, even for hourly releases: the last release deletes reports that are too few to
            # release, so it must not run while the survey is open, even if a clock is ahead.
            item = None if document.instructed is None else document.instructed.id
            over = ends + PERIOD["day"]
            arms = None if document.arms is None else (document.arms.id, document.arms.ids)
            self._rules[row.digest] = _Rule(every, document.release_step, over, item, arms)
        return self._rules[row.digest]

    def check(self) -> None:
        """Look at the clock: release what is due since the last look.

        If the clock was set, what was noted at its old times is forgotten first. Notes that the
        clock contradicts are forgotten at full hours too, as another process may have left them.
        """
        (previous, before), now, seconds = self._last, self._clock.now(), self._timer()
        self._last = now, seconds
        gained = abs((now - previous) - timedelta(seconds=seconds - before))
        self._was_set = self._was_set or gained > _SET
        if self._was_set or next_release("hour", previous) != next_release("hour", now):
            self._forget_over(now)
        self.release_due(previous, now)

    def _forget_over(self, now: datetime) -> None:
        """Forget when documents were found over: all if the clock was set, or those that are not."""
        try:
            with self._database.reading("list documents") as tx:
                noted = [row for row in tx.documents.all() if row.over_since]
            wrong = [row for row in noted if self._was_set or now < self._rule(row).over]
            if wrong:
                with self._database.transaction("forget a wrong time") as tx:
                    for row in wrong:
                        tx.documents.note_over(row.digest, None)
        # An exception would end the thread. A set clock is remembered until this succeeds.
        except Exception as error:  # noqa: BLE001
            _log.warning("a wrong time is not forgotten", error=type(error).__name__)
        else:
            self._was_set = False

    def _run(self) -> None:
        self._last = self._clock.now(), self._timer()
        while not self._stopped.wait(_LOOK_S):
            self.check()


def _time_is_over(tx: Transaction, digest: str, over: datetime, now: datetime) -> bool:
    """Return True if two releases, a day apart, found the document over.

    The last release deletes and strips reports, so one look at the clock is not enough: it may be
    years ahead, and right again an hour later. Two looks far apart may be two wrong clocks, so the
    second one then counts as the first.
    """
    row = tx.documents.get(digest)
    since = None if row is None or row.over_since is None else parse_time(row.over_since)
    if now < over:
        if since is not None:
            tx.documents.note_over(digest, None)
        return False
    waited = None if since is None else now - since
    if waited is None or not timedelta() <= waited <= _LATEST:
        tx.documents.note_over(digest, format_time(now))
        return False
    return waited >= _WAIT


def _close_if_met(tx: Transaction, survey: str, now: datetime) -> None:
    """Close an open survey if its released reports reach its stop rule, and record it."""
    state_row = tx.survey_states.get(survey)
    stop = state_row.stop_reports
    if state_row.state == "open" and stop is not None and tx.batches.number(survey) >= stop:
        tx.survey_states.put(survey, replace(state_row, state="closed"))
        row = tx.surveys.get(survey)
        name = survey if row is None else row.name
        tx.audit.add(
            AuditEvent(format_time(now), state_row.organisation, _STOP_RULE, "survey closed", name)
        )
