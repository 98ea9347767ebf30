# SPDX-License-Identifier: Apache-2.0
"""Design jobs and their progress, stored so that any process of the server can report it."""

from dataclasses import dataclass

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    String,
    Table,
    Text,
    select,
    update,
)

from frankly_server.store.access import RowsById
from frankly_server.store.schema import HexBytes, metadata

jobs = Table(
    "jobs",
    metadata,
    Column("id", HexBytes(16), primary_key=True, comment="random"),
    Column(
        "survey",
        HexBytes(16),
        ForeignKey("surveys.id"),
        nullable=False,
        comment="the survey being published",
    ),
    Column(
        "state",
        String(16),
        nullable=False,
        comment="running, cancelling, done, failed or cancelled",
    ),
    Column("done", Integer, nullable=False, comment="blocks designed"),
    Column("total", Integer, nullable=False, comment="number of blocks"),
    Column(
        "detail",
        Text,
        nullable=False,
        comment="id of the current block, digest of the new version, or reason of the failure",
    ),
    Column("updated", String(20), nullable=False, comment="UTC, RFC 3339"),
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
        cancellation = update(jobs).where(running).values(state="cancelling", updated=now)
        return bool(self._connection.execute(cancellation).rowcount)
