# SPDX-License-Identifier: Apache-2.0
"""Design jobs and their progress, stored because any server process may be asked for it."""

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from frankly_server.store.people import jobs
from frankly_server.store.schema import is_id


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
        if not is_id(job_id):
            return None
        row = self._connection.execute(select(jobs).where(jobs.c.id == job_id)).mappings().first()
        return None if row is None else JobRow(**row)

    def running(self, survey: str) -> list[JobRow]:
        """Return a survey's jobs that have not reported their end.

        A job of a killed process stays here.
        """
        unfinished = (jobs.c.survey == survey) & jobs.c.state.in_(("running", "cancelling"))
        query = select(jobs).where(unfinished)
        return [JobRow(**row) for row in self._connection.execute(query).mappings()]

    def change(self, job_id: str, **values: str | int) -> None:
        """Set columns of one job."""
        self._connection.execute(update(jobs).where(jobs.c.id == job_id).values(**values))

    def ask_to_stop(self, job_id: str, now: str) -> bool:
        """Set a running job to ``cancelling``; return False if it does not run any more."""
        # Compare and set in one statement: the job may end between a read and a write.
        running = (jobs.c.id == job_id) & (jobs.c.state == "running")
        cancellation = update(jobs).where(running).values(state="cancelling", updated=now)
        return bool(self._connection.execute(cancellation).rowcount)
