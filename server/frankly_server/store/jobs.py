# SPDX-License-Identifier: Apache-2.0
"""Design jobs and their progress, stored so that any process of the server can report it."""

from dataclasses import dataclass

from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    ForeignKey,
    Integer,
    String,
    Table,
    Text,
    insert,
    select,
    update,
)

from frankly_server.store.schema import HexBytes, is_id, metadata

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
    Column("total", Integer, nullable=False, comment="blocks in all"),
    Column(
        "detail",
        Text,
        nullable=False,
        comment="the block at work, the digest published, or why it failed",
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


class JobsTable:
    """The `jobs` table within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, row: JobRow) -> None:
        """Insert a new job."""
        values = {name: getattr(row, name) for name in JobRow.__slots__}
        self._connection.execute(insert(jobs).values(values))

    def get(self, job_id: str) -> JobRow | None:
        """Return the job with this id, or None."""
        # The text comes from a URL, and one that is not an id cannot be bound to the column.
        if not is_id(job_id):
            return None
        row = self._connection.execute(select(jobs).where(jobs.c.id == job_id)).mappings().first()
        return None if row is None else JobRow(**row)

    def running(self, survey: str) -> list[JobRow]:
        """Return a survey's jobs that have not reported their end, even if their process is gone."""
        unfinished = (jobs.c.survey == survey) & jobs.c.state.in_(("running", "cancelling"))
        query = select(jobs).where(unfinished)
        return [JobRow(**row) for row in self._connection.execute(query).mappings()]

    def change(self, job_id: str, **values: str | int) -> None:
        """Set columns of one job."""
        self._connection.execute(update(jobs).where(jobs.c.id == job_id).values(**values))

    def ask_to_stop(self, job_id: str, now: str) -> bool:
        """Set a running job to ``cancelling``; return False if it is not running."""
        # Compare and set in one statement: the job may end between a read and a write.
        running = (jobs.c.id == job_id) & (jobs.c.state == "running")
        cancellation = update(jobs).where(running).values(state="cancelling", updated=now)
        return bool(self._connection.execute(cancellation).rowcount)
