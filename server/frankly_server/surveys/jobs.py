# SPDX-License-Identifier: Apache-2.0
"""Background jobs that publish surveys, because a design can take a minute per block.

A job runs in a thread of the process that started it, and designs in another process. Few run at
once, because they read, check and sign surveys beside reports; the others wait. A job's row in the
database shows its progress to all processes, and contains the request to stop. A job whose row
has not changed for 15 minutes counts as lost, and publishing can be started again. A version is
stored in one transaction at the end, so it is never half published.
"""

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

from frankly_protocol import canonical
from frankly_protocol.clock import Clock, format_time, parse_time
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem, problem_body

from frankly_server.store import Database, Record, unrecorded
from frankly_server.store.jobs import JobRow
from frankly_server.surveys.obstacles import require_accepting
from frankly_server.surveys.searches import Busy, draft_apart
from frankly_server.surveys.surveys import Surveys

# The row changes with every block, and a search takes at most a minute. So if the row is older than
# this, its process has ended.
_LOST_S: Final = 15 * 60
_CHECK_S: Final = 0.3
_UNCHANGED: Final = "unchanged "
MOST_JOBS: Final = 16
"""Number of jobs that run or wait in this process."""
MOST_OF_ONE: Final = 8
"""Number of them that belong to one organisation, so that it leaves room to others."""
DESIGNS: Final = 2
"""Number of surveys that this process publishes at once; others wait."""
RETRY_S: Final = 60
"""Seconds after which it is worth asking again for a job: about as long as one takes."""
_TOUCH_S: Final = 60.0
FOR_OPERATOR_ONLY: Final = frozenset(
    {Problem.KEY_FILE, Problem.UNSAFE_SETTING, Problem.FILE_EXISTS, Problem.USAGE}
)
"""Problems whose details name files and settings of the server."""

PublishRecorder = Callable[[int, str], Record]


def problem_of(job: JobRow) -> dict[str, Any] | None:
    """Return the problem (RFC 9457) because of which a job failed, None if it did not."""
    return dict(canonical.loads(job.detail.encode())) if job.state == "failed" else None


def reason_of(job: JobRow) -> str:
    """Return in words why a job failed or was cancelled."""
    problem = problem_of(job)
    if problem is None:
        return job.detail
    field, detail = problem["field"], problem["detail"]
    return f"{field}: {detail}" if field else str(detail)


def _text_of(problem: Problem, detail: str, field: str | None) -> str:
    return canonical.dumps(problem_body(problem, detail, field)).decode()


def _said_of(error: FranklyError) -> str:
    """Return the problem that a failed job shows to everybody who may see the survey."""
    problem = Problem.from_code(error.code) or Problem.INTERNAL
    if problem in FOR_OPERATOR_ONLY:
        detail = "the server is not set up for this yet; its operator can run `frankly doctor`"
        return _text_of(Problem.UNAVAILABLE, detail, None)
    return _text_of(problem, error.detail, error.field)


def published_by(job: JobRow) -> tuple[str, bool]:
    """Return (digest of a finished job's version, True if the job published it)."""
    return job.detail.removeprefix(_UNCHANGED), not job.detail.startswith(_UNCHANGED)


class _Cancelled(Exception):
    """Raised in the job's thread once it must stop."""


class Jobs:
    """Service that starts, reads and cancels publishing jobs."""

    def __init__(self, database: Database, surveys: Surveys, clock: Clock) -> None:
        self._database, self._surveys, self._clock = database, surveys, clock
        self._turns = threading.Semaphore(DESIGNS)
        # Number of jobs of this process by organisation; changed with the lock held.
        self._number, self._lock = Counter[str](), threading.Lock()

    def start(
        self,
        survey_id: str,
        recorder: PublishRecorder = lambda *_: unrecorded,
        record: Record = unrecorded,
    ) -> str:
        """Start publishing a draft and return the job's id.

        recorder : see `Surveys.publish`. record : called in the transaction of the start. Raises
        InvalidInput: survey_unknown, closed if the survey accepts no more reports, immutable while
        another job publishes it, and Busy while many other surveys are published here.
        """
        with self._database.reading("survey state") as tx:
            organisation = tx.survey_states.get(survey_id).organisation
        self._enter(organisation)
        try:
            job = self._added(survey_id, record)
            # A daemon thread, so that a stopping server does not wait for the search.
            threading.Thread(
                target=self._run,
                args=(job, recorder, organisation),
                name="frankly-design",
                daemon=True,
            ).start()
        except BaseException:
            self._leave(organisation)
            raise
        return job.id

    def _added(self, survey_id: str, record: Record) -> JobRow:
        """Store a new job's row, before its thread starts: a page can show it immediately."""
        total = len(self._surveys.draft(survey_id).parts)
        job = JobRow(secrets.token_hex(16), survey_id, "running", 0, total, "", self._now())
        with self._database.administering("start job") as tx:
            require_accepting(tx, survey_id)
            if any(not self._is_lost(row) for row in tx.jobs.running(survey_id)):
                raise InvalidInput(
                    Problem.IMMUTABLE, "this survey is being published already", "survey"
                )
            tx.jobs.add(job)
            record(tx)
        return job

    def _enter(self, organisation: str) -> None:
        """Count a job. Raises Busy if there are too many: each that waits reads its row 3 times a second."""
        with self._lock:
            if self._number[organisation] >= MOST_OF_ONE:
                raise Busy("publishing other surveys of yours", RETRY_S)
            if self._number.total() >= MOST_JOBS:
                raise Busy("publishing other surveys", RETRY_S)
            self._number[organisation] += 1

    def _leave(self, organisation: str) -> None:
        with self._lock:
            self._number[organisation] -= 1

    def get(self, survey_id: str, job_id: str) -> JobRow:
        """Return a survey's job; a lost job counts as failed. Raises InvalidInput(not_found)."""
        with self._database.reading("read job") as tx:
            row = tx.jobs.get(job_id)
        if row is None or row.survey != survey_id:
            raise InvalidInput(Problem.NOT_FOUND, "there is no such job", "job")
        if row.state in ("running", "cancelling") and self._is_lost(row):
            return JobRow(
                row.id,
                survey_id,
                "failed",
                row.done,
                row.total,
                _text_of(Problem.UNAVAILABLE, "the server stopped; start again", None),
                row.updated,
            )
        return row

    def cancel(self, survey_id: str, job_id: str, record: Record = unrecorded) -> bool:
        """Request a running job to stop; return False if it has ended, is lost or was cancelled.

        The job stops within a second. Raises InvalidInput(not_found).
        """
        self.get(survey_id, job_id)
        with self._database.administering("cancel job") as tx:
            row = tx.jobs.get(job_id)
            if row is None or self._is_lost(row) or not tx.jobs.ask_to_stop(job_id, self._now()):
                return False
            record(tx)
            return True

    def _run(self, job: JobRow, recorder: PublishRecorder, organisation: str) -> None:
        """Publish, and write the result or the error into the job's row."""
        timer = self._timer(job.id)
        try:
            with self._turn(job.id, timer):
                published = self._surveys.publish(
                    job.survey, self._progress(job.id), timer, recorder, draft_apart
                )
            unchanged = _UNCHANGED if published.status == "unchanged" else ""
            self._end(job.id, "done", unchanged + published.digest)
        except _Cancelled:
            self._end(job.id, "cancelled", "stopped on request; nothing was published")
        except FranklyError as error:
            self._end(job.id, "failed", _said_of(error))
        except Exception as error:  # noqa: BLE001 - a thread has no caller that could report it
            detail = f"an internal error ({type(error).__name__}); please report it"
            self._end(job.id, "failed", _text_of(Problem.INTERNAL, detail, None))
        finally:
            self._leave(organisation)

    @contextmanager
    def _turn(self, job_id: str, timer: Callable[[], float]) -> Iterator[None]:
        """Wait while other surveys are being published here. Raises _Cancelled once the job must stop."""
        touched = time.monotonic()
        while not self._turns.acquire(timeout=_CHECK_S):
            timer()
            # Otherwise the job would count as lost.
            if time.monotonic() - touched > _TOUCH_S:
                touched = time.monotonic()
                with self._database.transaction("job waits") as tx:
                    tx.jobs.change(job_id, updated=self._now())
        try:
            self._require_running(job_id)
            yield
        finally:
            self._turns.release()

    def _progress(self, job_id: str) -> Callable[[int, int, str], None]:
        def report(done: int, total: int, block: str) -> None:
            self._require_running(job_id)
            with self._database.transaction("job progress") as tx:
                tx.jobs.change(job_id, done=done, total=total, detail=block, updated=self._now())

        return report

    def _timer(self, job_id: str) -> Callable[[], float]:
        """Return a clock that is read during the search; it raises _Cancelled once the job must stop."""
        # A list, because the inner function replaces the value.
        last_check = [time.monotonic()]

        def timer() -> float:
            now = time.monotonic()
            # The search reads its clock often, so a query each time would be too slow.
            if now - last_check[0] > _CHECK_S:
                last_check[0] = now
                self._require_running(job_id)
            return now

        return timer

    def _require_running(self, job_id: str) -> None:
        with self._database.reading("ask job") as tx:
            row = tx.jobs.get(job_id)
        if row is None or row.state != "running":
            raise _Cancelled

    def _end(self, job_id: str, state: str, detail: str) -> None:
        with self._database.transaction("end job") as tx:
            tx.jobs.change(job_id, state=state, detail=detail, updated=self._now())

    def _is_lost(self, row: JobRow) -> bool:
        # In both directions, because the clock may have been ahead when the row was written.
        return abs(self._clock.now() - parse_time(row.updated)) > timedelta(seconds=_LOST_S)

    def _now(self) -> str:
        return format_time(self._clock.now().replace(microsecond=0))
