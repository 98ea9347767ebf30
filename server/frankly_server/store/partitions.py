# SPDX-License-Identifier: Apache-2.0
"""A survey's reports in a table of their own on PostgreSQL, which goes at once when the survey is erased.

`reports` is partitioned by survey. Partitions live in a schema of their own; without one of its own a survey's reports
are in the default partition, like those of all small surveys. SQLite has one table.
"""

from typing import Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from sqlalchemy import Connection, text

from frankly_server.store.schema import is_id

SCHEMA: Final = "frankly_reports"
DEFAULT: Final = f"{SCHEMA}.reports_default"
_NAMES: Final = text("SELECT tablename FROM pg_tables WHERE schemaname = :schema AND tablename LIKE 'survey\\_%'")


class Partitions:
    """The partitions of `reports` within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def supported(self) -> bool:
        """Whether this kind of database has partitions."""
        return self._connection.dialect.name == "postgresql"

    def surveys(self) -> set[str]:
        """Return the ids of the surveys that have a partition of their own; none on SQLite."""
        if not self.supported:
            return set()
        return {name.removeprefix("survey_") for name in self._connection.scalars(_NAMES, {"schema": SCHEMA})}

    def make(self, survey: str) -> bool:
        """Give a survey (its id) a partition of its own and move its reports there; False if it has one.

        Reports of any survey that come meanwhile wait: do it before a survey is large, or while it is paused.
        Raises InvalidInput(unsupported) on SQLite.
        """
        if not self.supported:
            words = "only PostgreSQL has partitions; SQLite keeps everything in one file"
            raise InvalidInput(Problem.UNSUPPORTED, words, "database_url")
        if survey in self.surveys():
            return False
        own = _table(survey)
        for statement in (
            "SET LOCAL statement_timeout = 0",
            "LOCK TABLE reports IN SHARE ROW EXCLUSIVE MODE",
            f"CREATE TABLE {own} (LIKE reports INCLUDING ALL)",
            f"INSERT INTO {own} SELECT * FROM {DEFAULT} WHERE survey = '\\x{survey}'",  # noqa: S608 - hex digits
            f"DELETE FROM {DEFAULT} WHERE survey = '\\x{survey}'",  # noqa: S608
            f"ALTER TABLE reports ATTACH PARTITION {own} FOR VALUES IN ('\\x{survey}')",
        ):
            self._connection.exec_driver_sql(statement)
        return True

    def hold(self, survey: str) -> None:
        """Wait for reports that are on their way, and let none in until the transaction ends: before erasing.

        Reports of other surveys wait as well, and are refused for the moment (503, to be sent again) once they have
        waited five seconds, unless the survey has a partition of its own, which `empty` holds by itself. On SQLite a
        writing transaction is alone anyway.
        """
        if not self.supported:
            return
        self._connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        # One at a time: a partition that is seen here is still there when it is dropped.
        self._connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('frankly erase'))")
        if survey not in self.surveys():
            self._connection.exec_driver_sql("LOCK TABLE ONLY reports IN SHARE ROW EXCLUSIVE MODE")

    def empty(self, survey: str) -> int | None:
        """Remove all reports of a survey with its partition; return how many there were, None without a partition.

        Dropping takes no longer for a billion reports than for one; counting them first does, and keeps nobody waiting:
        reports that come meanwhile go too, uncounted. Later ones are kept in the default partition.
        """
        if survey not in self.surveys():
            return None
        own = _table(survey)
        self._connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        n = int(self._connection.exec_driver_sql(f"SELECT count(*) FROM {own}").scalar_one())  # noqa: S608
        # The parent first, as readers and writers do: the other way round they would wait for each other for ever.
        self._connection.exec_driver_sql("LOCK TABLE ONLY reports IN ACCESS EXCLUSIVE MODE")
        self._connection.exec_driver_sql(f"DROP TABLE {own}")
        return n


def _table(survey: str) -> str:
    """Return the name of a survey's partition; the id becomes a part of statements, so it must be hex digits."""
    if not is_id(survey):
        raise InvalidInput(Problem.SURVEY_UNKNOWN, "a survey id is 32 hexadecimal digits", "survey")
    return f"{SCHEMA}.survey_{survey}"
