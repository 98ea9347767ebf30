# SPDX-License-Identifier: Apache-2.0
"""One door to the database, with named transactions."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import cached_property
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from frankly_server.store.accounts import Accounts
from frankly_server.store.api_keys import ApiKeys
from frankly_server.store.audit import AuditTrail
from frankly_server.store.batches import Batches
from frankly_server.store.counts import Counts
from frankly_server.store.days import Days
from frankly_server.store.documents import Documents
from frankly_server.store.engines import check_durability, make_engine, reading
from frankly_server.store.errors import StoreUnavailable, UnsafeStore
from frankly_server.store.exporting import Exporting
from frankly_server.store.jobs import Jobs
from frankly_server.store.log import LogEntries
from frankly_server.store.partitions import Partitions
from frankly_server.store.releases import Releases
from frankly_server.store.reports import ReportRow, Reports, insert_pending
from frankly_server.store.schema import SCHEMA_VERSION
from frankly_server.store.sessions import Sessions
from frankly_server.store.standings import Standings
from frankly_server.store.surveys import Surveys
from frankly_server.store.tables import Tables
from frankly_server.store.tokens import Tokens
from frankly_server.store.webhooks import Webhooks
from frankly_server.store.whole import Whole

_log: Final = structlog.get_logger("frankly.store")


class Transaction:
    """What can be done inside one transaction: one attribute per aggregate."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @cached_property
    def surveys(self) -> Surveys:
        """Drafts, by id and by name."""
        return Surveys(self._connection)

    @cached_property
    def documents(self) -> Documents:
        """Published, immutable documents."""
        return Documents(self._connection)

    @cached_property
    def reports(self) -> Reports:
        """Randomised reports, each kept once."""
        return Reports(self._connection)

    @cached_property
    def counts(self) -> Counts:
        """The sufficient statistic of every estimate."""
        return Counts(self._connection)

    @cached_property
    def releases(self) -> Releases:
        """Pending reports into batches."""
        return Releases(self._connection)

    @cached_property
    def batches(self) -> Batches:
        """What was released, and when."""
        return Batches(self._connection)

    @cached_property
    def whole(self) -> Whole:
        """Released reports by all that they hold."""
        return Whole(self._connection)

    @cached_property
    def exporting(self) -> Exporting:
        """Reports by ranges of ids, a page at a time."""
        return Exporting(self._connection)

    @cached_property
    def partitions(self) -> Partitions:
        """Surveys whose reports are in a table of their own."""
        return Partitions(self._connection)

    @cached_property
    def days(self) -> Days:
        """Refusals per day and reason."""
        return Days(self._connection)

    @cached_property
    def log(self) -> LogEntries:
        """The transparency log: published digests in order, and witnesses' signatures."""
        return LogEntries(self._connection)

    @cached_property
    def tokens(self) -> Tokens:
        """Hashes of invite tokens, spent or not."""
        return Tokens(self._connection)

    @cached_property
    def api_keys(self) -> ApiKeys:
        """Hashed API keys."""
        return ApiKeys(self._connection)

    @cached_property
    def standings(self) -> Standings:
        """Whose surveys are, and their states."""
        return Standings(self._connection)

    @cached_property
    def jobs(self) -> Jobs:
        """Design jobs."""
        return Jobs(self._connection)

    @cached_property
    def accounts(self) -> Accounts:
        """People who may sign in."""
        return Accounts(self._connection)

    @cached_property
    def sessions(self) -> Sessions:
        """Who is signed in."""
        return Sessions(self._connection)

    @cached_property
    def audit(self) -> AuditTrail:
        """What people did."""
        return AuditTrail(self._connection)

    @cached_property
    def webhooks(self) -> Webhooks:
        """Whom to tell what becomes of surveys, and what is still to be told."""
        return Webhooks(self._connection)

    @cached_property
    def tables(self) -> Tables:
        """Every table as plain rows."""
        return Tables(self._connection)


class Database:
    """A pool of connections to one SQLite file or one PostgreSQL database.

    Safe to share between threads. Every statement runs inside a named transaction, whose name shows up in logs.
    """

    def __init__(self, database_url: str) -> None:
        self.engine: Engine = make_engine(database_url)
        # SQLite has one writer at a time: queueing here is fair and instant, its own busy wait sleeps and retries.
        alone = self.engine.dialect.name == "sqlite"
        self._writing = threading.Lock() if alone else nullcontext()
        self._driver_error: type[Exception] = self.engine.dialect.loaded_dbapi.Error

    @contextmanager
    def transaction(self, name: str) -> Iterator[Transaction]:
        """Run a writing transaction: committed when the block ends, undone when it raises.

        Raises StoreUnavailable if the database cannot do it; the caller may try again.
        """
        with self._writing, self._translated(name), self.engine.begin() as connection:
            yield Transaction(connection)

    def add_reports(self, rows: Sequence[ReportRow]) -> set[str]:
        """Do what `Reports.add` does in one statement that is a transaction of its own: one journey, then it is kept.

        Raises StoreUnavailable. Reports without tokens need no more, and the usual way costs several times as much.
        """
        with (
            self._writing,
            self._translated("accept reports"),
            closing(self.engine.raw_connection()) as pooled,
        ):
            try:
                return insert_pending(pooled.driver_connection, self.engine.dialect, rows)
            except self._driver_error:
                pooled.invalidate()  # it may be broken, and nothing has looked
                raise

    @contextmanager
    def reading(self, name: str) -> Iterator[Transaction]:
        """Run a transaction that only reads, sees one moment, and never waits for writers. Raises StoreUnavailable."""
        with self._translated(name), self.engine.connect() as plain:
            connection = reading(plain)
            with connection.begin():
                yield Transaction(connection)

    def check(self, *, started: bool = False) -> None:
        """Refuse to start on a database that may lose reports or has another schema.

        started : the program runs already. It then goes on under a newer schema: migrations keep the release before
        working until its processes have been replaced.
        Raises UnsafeStore, whose one line says what to do, or StoreUnavailable.
        """
        with self._translated("start"), self.engine.connect() as plain:
            connection = reading(plain)
            check_durability(connection)
            found = schema_version(connection)
        if found is None:
            raise UnsafeStore("the database has no tables yet; run `frankly migrate` once")
        if found != SCHEMA_VERSION and not (started and _is_newer(found)):
            raise UnsafeStore(
                f"the database has schema version {found}, this program needs {SCHEMA_VERSION}; "
                "run `frankly migrate` with the newest version of the two"
            )

    def forget_deleted(self) -> None:
        """Take what was deleted off the disk: out of SQLite's log, out of PostgreSQL's tables of reports and tokens.

        Raises StoreUnavailable.
        """
        # Neither runs inside a transaction, which SQLAlchemy's own connections always open.
        with self._translated("forget deleted"), closing(self.engine.raw_connection()) as connection:
            if self.engine.dialect.name == "sqlite":
                connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
                return
            driver: Any = connection.driver_connection
            driver.execute("SET statement_timeout = 0")
            driver.execute("VACUUM (SKIP_LOCKED) reports, tokens")  # whoever else releases does it then
            driver.execute("SET statement_timeout = '30s'")

    def close(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()

    @contextmanager
    def _translated(self, name: str) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, PoolTimeout, self._driver_error) as error:
            # The driver's message may quote a row: only its kind is kept.
            cause = error.orig if isinstance(error, DBAPIError) else error
            _log.warning("transaction failed", transaction=name, error=type(cause).__name__)
            raise StoreUnavailable(name, cause) from None


def _is_newer(version: str) -> bool:
    """Tell whether a version that this program does not know comes after its own: versions are counted."""
    return version.isascii() and version.isdigit() and int(version) > int(SCHEMA_VERSION)


def schema_version(connection: Connection) -> str | None:
    """Return the schema version a database carries, or None if it has no tables of ours."""
    try:
        if not inspect(connection).has_table("alembic_version"):
            return None
        row = connection.exec_driver_sql("SELECT version_num FROM alembic_version").first()
    except SQLAlchemyError:
        raise StoreUnavailable("read schema version") from None
    return None if row is None else str(row[0])
