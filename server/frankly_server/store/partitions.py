# SPDX-License-Identifier: Apache-2.0
"""Partitions of the reports table on PostgreSQL; dropping one quickly erases its survey's reports.

`reports` is partitioned by survey, and its partitions are in a separate schema. Reports of a
survey without its own partition are in the default partition. On SQLite there is a single table.
"""

from typing import Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from sqlalchemy import text

from frankly_server.store.access import TableAccess
from frankly_server.store.schema import is_id

SCHEMA: Final = "frankly_reports"
DEFAULT: Final = f"{SCHEMA}.reports_default"
_NAMES: Final = text(
    "SELECT tablename FROM pg_tables WHERE schemaname = :schema AND tablename LIKE 'survey\\_%'"
)


class Partitions(TableAccess):
    """The partitions of `reports` within one transaction."""

    @property
    def supported(self) -> bool:
        """Return True if this kind of database has partitions."""
        return self._is_postgresql

    def surveys(self) -> set[str]:
        """Return the ids of the surveys that have their own partition; none on SQLite."""
        if not self.supported:
            return set()
        names = self._connection.scalars(_NAMES, {"schema": SCHEMA})
        return {name.removeprefix("survey_") for name in names}

    def make(self, survey: str) -> bool:
        """Create a survey's partition and move its reports there; return False if it exists.

        New reports of all surveys wait during the move, so call this while the survey is small.
        Raises InvalidInput(unsupported) on SQLite.
        """
        if not self.supported:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "only PostgreSQL has partitions; SQLite keeps everything in one file",
                "database_url",
            )
        if survey in self.surveys():
            return False
        partition = _table(survey)
        # The lock blocks writers between INSERT and DELETE. Readers see the reports in the old
        # table, and wait only from ATTACH on.
        for statement in (
            "SET LOCAL statement_timeout = 0",
            "LOCK TABLE reports IN SHARE ROW EXCLUSIVE MODE",
            f"CREATE TABLE {partition} (LIKE reports INCLUDING ALL)",
            f"INSERT INTO {partition} SELECT * FROM {DEFAULT} WHERE survey = '\\x{survey}'",  # noqa: S608 - hex digits
            f"DELETE FROM {DEFAULT} WHERE survey = '\\x{survey}'",  # noqa: S608
            f"ALTER TABLE reports ATTACH PARTITION {partition} FOR VALUES IN ('\\x{survey}')",
        ):
            self._connection.exec_driver_sql(statement)
        return True

    def hold(self, survey: str, *, block: bool) -> None:
        """Wait for another erasure and for running inserts of reports, and block new ones until the end.

        Call this before erasing a survey. block : False to wait for another erasure only. Otherwise
        reports of other surveys also wait until this transaction ends; after five seconds
        (lock_timeout) they are refused with 503 and can be sent again. If the survey has its own
        partition, reports do not wait yet: `empty` takes the lock later. On SQLite no lock is
        needed, because there is one writer at a time.
        """
        if not self.supported:
            return
        self._connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        # One erasure at a time, so that a partition listed here still exists when `empty` drops it.
        self._connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('frankly erase'))")
        if block and survey not in self.surveys():
            self._connection.exec_driver_sql("LOCK TABLE ONLY reports IN SHARE ROW EXCLUSIVE MODE")

    def empty(self, survey: str) -> int | None:
        """Drop a survey's partition; return the number of its reports, None if it has no partition.

        The time to drop a partition does not depend on the number of reports. The time to count
        them does, but counting blocks no other transaction; reports that arrive during the count
        are deleted but not counted. Later reports are stored in the default partition.
        """
        if survey not in self.surveys():
            return None
        partition = _table(survey)
        self._connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        count = f"SELECT count(*) FROM {partition}"  # noqa: S608 - hex digits
        n = int(self._connection.exec_driver_sql(count).scalar_one())
        # Lock the parent first, like readers and writers do; the opposite order could cause
        # deadlocks.
        self._connection.exec_driver_sql("LOCK TABLE ONLY reports IN ACCESS EXCLUSIVE MODE")
        self._connection.exec_driver_sql(f"DROP TABLE {partition}")
        return n


def _table(survey: str) -> str:
    """Return the name of a survey's partition."""
    # The id becomes part of SQL statements, so it must consist of hex digits.
    if not is_id(survey):
        raise InvalidInput(Problem.SURVEY_UNKNOWN, "a survey id is 32 hexadecimal digits", "survey")
    return f"{SCHEMA}.survey_{survey}"
