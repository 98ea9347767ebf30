# SPDX-License-Identifier: Apache-2.0
"""Design jobs and their progress, stored so that any process of the server can report it."""

from dataclasses import dataclass

from sqlalchemy import CheckConstraint, ForeignKey, Integer, String, Table, Text, select

from frankly_server.store.access import RowsById
from frankly_server.store.schema import HexBytes, column, key_column, metadata

jobs = Table(
    "jobs",
    metadata,
    key_column("id", HexBytes(16), "random"),
    column("survey", HexBytes(16), "the survey being published", ForeignKey("surveys.id")),
    column("state", String(16), "running, cancelling, done, failed or cancelled"),
    column("done", Integer, "blocks designed"),
    column("total", Integer, "number of blocks"),
    column(
        "detail",
        Text,
        "id of the current block, digest of the new version, or problem (RFC 9457) of the failure",
    ),
    column("updated", String(20), "UTC, RFC 3339"),
    CheckConstraint(
        "state IN ('running', 'cancelling', 'done', 'failed', 'cancelled')", name="state"
    ),
)


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job: ``done`` of ``total`` blocks are designed; ``updated`` is RFC 3339."""

    id: str
    survey: str
    state: str
    done: int
    total: int
    detail: str
    updated: str


class JobsTable(RowsById[JobRow]):
    """The `jobs` table within one transaction."""

    _table = jobs
    _kind = JobRow

    def running(self, survey: str) -> list[JobRow]:
        """Return a survey's jobs that are not marked as ended, even if their process is gone."""
        unfinished = (jobs.c.survey == survey) & jobs.c.state.in_(("running", "cancelling"))
        return self._every(JobRow, select(jobs).where(unfinished))

    def ask_to_stop(self, job_id: str, now: str) -> bool:
        """Set a running job to ``cancelling``; return False if it is not running."""
        # Compare-and-set in one statement, because the job may end between a read and a write.
        running = (jobs.c.id == job_id) & (jobs.c.state == "running")
        return self._update(jobs, running, state="cancelling", updated=now) == 1
