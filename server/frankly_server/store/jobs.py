# SPDX-License-Identifier: Apache-2.0
"""Design jobs: how far they are, for whichever process is asked."""

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from frankly_server.store.people import jobs
from frankly_server.store.schema import is_id


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job: ``done`` of ``total`` blocks; ``updated`` is RFC 3339."""

    id: str
    survey: str
    state: str
    done: int
    total: int
    detail: str
    updated: str


class Jobs:
    """The `jobs` table within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, row: JobRow) -> None:
        """Insert a new job."""
        self._connection.execute(insert(jobs).values({name: getattr(row, name) for name in JobRow.__slots__}))

    def get(self, job_id: str) -> JobRow | None:
        """Return the job with this id, or None."""
        if not is_id(job_id):
            return None
        found = self._connection.execute(select(jobs).where(jobs.c.id == job_id)).mappings().first()
        return None if found is None else JobRow(**found)

    def running(self, survey: str) -> list[JobRow]:
        """Return a survey's jobs that have not ended, as far as they told."""
        wanted = (jobs.c.survey == survey) & jobs.c.state.in_(("running", "cancelling"))
        return [JobRow(**row) for row in self._connection.execute(select(jobs).where(wanted)).mappings()]

    def change(self, job_id: str, **values: str | int) -> None:
        """Set columns of one job."""
        self._connection.execute(update(jobs).where(jobs.c.id == job_id).values(**values))

    def ask_to_stop(self, job_id: str, now: str) -> bool:
        """Set a job to ``cancelling`` if it still runs, in one step with looking; return whether it did."""
        still = (jobs.c.id == job_id) & (jobs.c.state == "running")
        asked = update(jobs).where(still).values(state="cancelling", updated=now)
        return bool(self._connection.execute(asked).rowcount)
