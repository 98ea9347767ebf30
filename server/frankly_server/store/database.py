# SPDX-License-Identifier: Apache-2.0
"""Connection pool and named transactions; only migrations use the engine directly."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from frankly_server.store.accounts import AccountsTable
from frankly_server.store.api_keys import ApiKeysTable
from frankly_server.store.audit import AuditTrail
from frankly_server.store.batches import BatchesTable
from frankly_server.store.browsers import BrowsersTable
from frankly_server.store.counts import CountsTables
from frankly_server.store.days import DaysTable
from frankly_server.store.documents import DocumentsTable
from frankly_server.store.earlier_drafts import EarlierDrafts
from frankly_server.store.engines import check_durability, make_engine, reading, try_to_write
from frankly_server.store.errors import StoreUnavailable, UnsafeStore
from frankly_server.store.exporting import ReportExport
from frankly_server.store.idempotency import IdempotentRequestsTable
from frankly_server.store.jobs import JobsTable
from frankly_server.store.log import LogEntriesTable
from frankly_server.store.organisations import OrganisationsTable
from frankly_server.store.partitions import Partitions
from frankly_server.store.passkeys import PasskeysTable
from frankly_server.store.published_estimates import PublishedEstimates
from frankly_server.store.released_reports import ReleasedReports
from frankly_server.store.releases import Releases
from frankly_server.store.reports import ReportRow, ReportsTable, insert_pending
from frankly_server.store.schema import SCHEMA_VERSION
from frankly_server.store.second_factors import SecondFactorsTables
from frankly_server.store.sessions import SessionsTable
from frankly_server.store.survey_states import SurveyStatesTable
from frankly_server.store.surveys import SurveysTable
from frankly_server.store.tables import Tables
from frankly_server.store.tokens import TokensTable
from frankly_server.store.webhooks import WebhookTables

_TURN_S: Final = 5.0
_TRY_S: Final = 5.0
"""Seconds between two attempts to write while the disk is full or read-only."""
BEFORE_0_1_0: Final = (
    "a database of a checkout from before 0.1.0 cannot be migrated, and its backups cannot be "
    "restored: delete the SQLite file, or create an empty PostgreSQL database, then run `frankly migrate`"
)
_log: Final = structlog.get_logger("frankly.store")


class Transaction:
    """One open transaction, with one attribute per table or group of tables."""

    surveys = SurveysTable.of_transaction()
    earlier_drafts = EarlierDrafts.of_transaction()
    documents = DocumentsTable.of_transaction()
    reports = ReportsTable.of_transaction()
    counts = CountsTables.of_transaction()
    releases = Releases.of_transaction()
    batches = BatchesTable.of_transaction()
    published_estimates = PublishedEstimates.of_transaction()
    released_reports = ReleasedReports.of_transaction()
    exporting = ReportExport.of_transaction()
    partitions = Partitions.of_transaction()
    days = DaysTable.of_transaction()
    log = LogEntriesTable.of_transaction()
    tokens = TokensTable.of_transaction()
    api_keys = ApiKeysTable.of_transaction()
    idempotent_requests = IdempotentRequestsTable.of_transaction()
    survey_states = SurveyStatesTable.of_transaction()
    jobs = JobsTable.of_transaction()
    accounts = AccountsTable.of_transaction()
    sessions = SessionsTable.of_transaction()
    browsers = BrowsersTable.of_transaction()
    second_factors = SecondFactorsTables.of_transaction()
    passkeys = PasskeysTable.of_transaction()
    organisations = OrganisationsTable.of_transaction()
    audit = AuditTrail.of_transaction()
    webhooks = WebhookTables.of_transaction()
    tables = Tables.of_transaction()

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def lock_administration(self) -> None:
        """Wait for other administering transactions. SQLite needs no lock: it has one writer."""
        if self._connection.dialect.name == "postgresql":
            self._connection.exec_driver_sql(
                "SELECT pg_advisory_xact_lock(hashtext('frankly administration'))"
            )


Record = Callable[[Transaction], None]
"""Function that adds an action's event to the audit trail, in the transaction of the action."""


def unrecorded(_tx: Transaction) -> None:
    """Record nothing, for callers without an actor."""


class Database:
    """A pool of connections to one SQLite file or one PostgreSQL database.

    Safe to share between threads. If a transaction fails, the log shows its name.
    """

    def __init__(self, database_url: str) -> None:
        self.engine: Engine = make_engine(database_url)
        # SQLite has one writer at a time. Threads wait on this lock, which wakes the next thread
        # immediately, whereas SQLite's busy handler sleeps and retries. Between processes only the busy
        # handler works.
        self._writing = threading.Lock() if self.engine.dialect.name == "sqlite" else None
        self._driver_error: type[Exception] = self.engine.dialect.loaded_dbapi.Error
        self._write_fault, self._next_try = "", 0.0

    @contextmanager
    def transaction(self, name: str) -> Iterator[Transaction]:
        """Run a writing transaction: commit at the end of the block, roll back on an exception.

        Raises StoreUnavailable if the database fails; the caller may try again.
        """
        with self._translated(name), self._turn(), self.engine.begin() as connection:
            yield Transaction(connection)

    @contextmanager
    def administering(self, name: str) -> Iterator[Transaction]:
        """Run a writing transaction for an admin's action; such transactions are serialised.

        Until the commit, no other transaction of this kind changes the rows that it has read:
        SQLite has one writer, and on PostgreSQL an advisory lock, which does not block reports, is
        held. Raises StoreUnavailable.
        """
        with self.transaction(name) as tx:
            tx.lock_administration()
            yield tx

    def add_reports(self, rows: Sequence[ReportRow]) -> set[str]:
        """Insert reports as `ReportsTable.add` does, in autocommit mode; return the new ids.

        Reports without tokens need no transaction, so one round trip to PostgreSQL suffices. BEGIN,
        INSERT and COMMIT through SQLAlchemy cost several times as much. Raises StoreUnavailable.
        """
        with self._translated("accept reports"), self._turn(), self._driver_connection() as driver:
            report_ids = insert_pending(driver, self.engine.dialect, rows)
        self._write_fault = ""
        return report_ids

    @contextmanager
    def reading(self, name: str) -> Iterator[Transaction]:
        """Run a read transaction on one snapshot of the database, without waiting for writers.

        Raises StoreUnavailable.
        """
        with self._translated(name), self.engine.connect() as pooled:
            connection = reading(pooled)
            with connection.begin():
                yield Transaction(connection)

    def is_there(self) -> bool:
        """Return False for an SQLite file that does not exist; connecting would create it."""
        url = self.engine.url
        return url.get_backend_name() != "sqlite" or Path(url.database or "").exists()

    def has_tables(self) -> bool:
        """Return False if the database has no tables yet, or is not there. Raises StoreUnavailable."""
        if not self.is_there():
            return False
        with self._translated("look for tables"), self.engine.connect() as connection:
            return schema_version(connection) is not None

    def check(self, *, started: bool = False) -> None:
        """Raise UnsafeStore if the database may lose reports or has another schema version.

        started : True if the program is already running. A newer schema is then acceptable, because
        migrations keep the previous release working until its processes have been replaced. If the
        last write failed because the disk is full or read-only, StoreUnavailable is raised until a
        write succeeds. Raises UnsafeStore with one line on what to do, or StoreUnavailable.
        """
        with self._translated("start"), self.engine.connect() as pooled:
            connection = reading(pooled)
            check_durability(connection)
            version = schema_version(connection)
        if version is None:
            raise UnsafeStore("the database has no tables yet; run `frankly migrate` once")
        if version != SCHEMA_VERSION and not (started and _is_newer(version)):
            raise UnsafeStore(
                f"the database has schema version {version}, this program needs {SCHEMA_VERSION}; "
                f"run `frankly migrate` with the newer of the two versions; {BEFORE_0_1_0}"
            )
        if started and self._write_fault:
            self._try_again()

    @property
    def write_fault(self) -> str:
        """Hint for the operator if the last write failed on a full or read-only disk, else ""."""
        return self._write_fault

    def check_writable(self) -> None:
        """Raise StoreUnavailable unless the database can be written."""
        with self._translated("write"), self._turn(), self.engine.begin() as connection:
            try_to_write(connection)
        self._write_fault = ""

    def _try_again(self) -> None:
        # A server that is not ready receives no reports, so there might be no other writes. The
        # interval limits the attempts, because anyone may request /health/ready.
        if (now := time.monotonic()) < self._next_try:
            raise StoreUnavailable("write")
        self._next_try = now + _TRY_S
        try:
            self.check_writable()
        except StoreUnavailable as error:
            if error.is_not_writable:
                raise
            # For example, the user may not create temporary tables. The next report retries.
            self._write_fault = ""

    def forget_deleted(self) -> None:
        """Remove the bytes of deleted rows from the disk, and on SQLite the order of arrival too.

        On SQLite the deleted bytes are in the write-ahead log, on PostgreSQL in the tables of
        reports and tokens. Raises StoreUnavailable.
        """
        # Checkpoint and VACUUM cannot run inside a transaction, which SQLAlchemy's connections
        # always open.
        with self._translated("forget deleted"), self._driver_connection() as driver:
            if self.engine.dialect.name == "sqlite":
                # Rows are ordered by their random keys only within the index of each page: their
                # bytes, and the pages, are where there was space when they arrived. VACUUM writes
                # the whole file again, in the order of the keys. Its copy is kept in memory: the
                # folder of temporary files may be on a disk that is not encrypted.
                driver.execute("PRAGMA temp_store=MEMORY")
                with self._turn():
                    driver.execute("VACUUM")
                driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                return
            driver.execute("SET statement_timeout = 0")
            # SKIP_LOCKED: another process with the lock usually vacuums after its own release.
            driver.execute("VACUUM (SKIP_LOCKED) reports, tokens")
            driver.execute("SET statement_timeout = '30s'")

    def close(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()

    @contextmanager
    def _driver_connection(self) -> Iterator[Any]:
        """Yield a driver connection in autocommit mode."""
        with closing(self.engine.raw_connection()) as pooled:
            try:
                yield pooled.driver_connection
            except BaseException:
                # The connection may be broken, or have settings that SQLAlchemy would not reset.
                pooled.invalidate()
                raise

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for this thread's turn to write to SQLite, at most _TURN_S seconds."""
        if self._writing is None:
            yield
            return
        # Without a limit, each queued writer in turn would wait for the full busy timeout.
        if not self._writing.acquire(timeout=_TURN_S):
            raise PoolTimeout("other writers take too long")
        try:
            yield
        finally:
            self._writing.release()

    @contextmanager
    def _translated(self, name: str) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, PoolTimeout, self._driver_error) as error:
            # The driver's message may quote a row, so only the type of the error is logged.
            cause = error.orig if isinstance(error, DBAPIError) else error
            failure = StoreUnavailable(name, cause)
            if failure.is_not_writable:
                self._write_fault = failure.hint
            reason = {"reason": failure.hint} if failure.hint else {}
            kind = type(cause).__name__
            _log.warning("transaction failed", transaction=name, error=kind, **reason)
            raise failure from None


def _is_newer(version: str) -> bool:
    """Return True if a schema version is later than this program's.

    Versions are consecutive numbers.
    """
    return version.isascii() and version.isdigit() and int(version) > int(SCHEMA_VERSION)


def schema_version(connection: Connection) -> str | None:
    """Return the database's schema version, or None if it has no Frankly tables."""
    try:
        if not inspect(connection).has_table("alembic_version"):
            return None
        row = connection.exec_driver_sql("SELECT version_num FROM alembic_version").first()
    except SQLAlchemyError:
        raise StoreUnavailable("read schema version") from None
    return None if row is None else str(row[0])
