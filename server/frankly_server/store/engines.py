# SPDX-License-Identifier: Apache-2.0
"""Database engines for SQLite and PostgreSQL: connection settings and durability check."""

import errno
import math
import os
import sqlite3
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, ExceptionContext, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, InvalidatePoolError

from frankly_server.store.errors import READ_ONLY, UnsafeStore

_MODE: Final = "frankly_mode"
# IMMEDIATE takes SQLite's write lock at the start. Otherwise a transaction that reads before it
# writes would fail with SQLITE_BUSY_SNAPSHOT if another transaction has written in between, and
# waiting would not help. REPEATABLE READ gives readers on PostgreSQL one snapshot, which readers
# on SQLite always have.
_BEGIN: Final = {
    "sqlite": {"write": "BEGIN IMMEDIATE", "read": "BEGIN"},
    "postgresql": {"write": "BEGIN", "read": "BEGIN ISOLATION LEVEL REPEATABLE READ"},
}
"""Statement that begins a transaction. The drivers are in autocommit mode and begin none."""
_POOL = {
    "pool_size": 16,
    "max_overflow": 0,
    "pool_timeout": 5,
    "hide_parameters": True,
    # A ROLLBACK on return is unnecessary: `Database` ends every transaction that it begins, and
    # the drivers begin none.
    "pool_reset_on_return": None,
}
_BUSY_TIMEOUT_S: Final = 10
_BUSY_PAUSE_S: Final = 0.01
_ROOM_BYTES: Final = 1 << 20
_USED: Final = "frankly_used"
_FRESH_S: Final = 1.0
"""A pooled connection that was used less than this many seconds ago is reused without a ping."""
# Server-side timeouts, because a stuck client could otherwise hold locks and block intake.
_POSTGRESQL_SESSION: Final = (
    "SET lock_timeout = '5s'",
    "SET statement_timeout = '30s'",
    "SET idle_in_transaction_session_timeout = '60s'",
    "SET default_transaction_isolation = 'read committed'",
)
_DURABLE: Final = ("fsync", "full_page_writes", "synchronous_commit")


def make_engine(database_url: str) -> Engine:
    """Return an engine for ``sqlite:///path`` or ``postgresql://…`` without opening a connection.

    Raises UnsafeStore for other databases and for SQLite without a file.
    """
    url = _parse(database_url)
    engine = _sqlite(url) if url.get_backend_name() == "sqlite" else _postgresql(url)
    begin = _BEGIN[engine.dialect.name]

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin[connection.get_execution_options().get(_MODE, "write")])

    return engine


def reading(connection: Connection) -> Connection:
    """Return the connection, configured so that each transaction reads one snapshot."""
    return connection.execution_options(**{_MODE: "read"})


def check_durability(connection: Connection) -> None:
    """Raise UnsafeStore unless committed transactions of this database survive a power loss."""
    if connection.dialect.name == "sqlite":
        synchronous = int(_scalar(connection, "PRAGMA synchronous"))
        # 2 is FULL. On file systems without shared memory, SQLite silently stays in another
        # journal mode.
        if synchronous < 2 or _scalar(connection, "PRAGMA journal_mode") != "wal":
            raise UnsafeStore(
                "this SQLite file does not keep journal_mode=WAL with synchronous=FULL; use a local disk"
            )
        return
    for setting in _DURABLE:
        if _scalar(connection, f"SHOW {setting}") == "off":
            raise UnsafeStore(
                f"PostgreSQL runs with {setting}=off and could lose accepted reports; turn it on"
            )


def try_to_write(connection: Connection) -> None:
    """Write to the disk without changing any data, and find 1 MiB of room; the caller commits.

    A full disk refuses only new pages; a read-only database refuses every write. A disk with room
    for a page only would refuse batches.
    """
    if connection.dialect.name == "sqlite":
        version = int(_scalar(connection, "PRAGMA user_version"))
        connection.exec_driver_sql(f"PRAGMA user_version = {version}")
        _take_room(Path(str(connection.engine.url.database)).resolve().parent)
        return
    # 512 rows of nearly 2 KiB, too short to be compressed, in a table that no other session sees.
    connection.exec_driver_sql(
        "CREATE TEMPORARY TABLE writable ON COMMIT DROP AS "
        "SELECT repeat('x', 1900) FROM generate_series(1, 512)"
    )


def _take_room(folder: Path) -> None:
    # Written, because file systems do not tell what quotas and reserved blocks leave. The file has
    # no name, and is gone when it is closed.
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_ROOM_BYTES))
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        message = "database or disk is full" if is_full else "disk I/O error"
        raise sqlite3.OperationalError(message) from None


def _parse(database_url: str) -> URL:
    try:
        url = make_url(database_url)
    except ArgumentError:
        raise UnsafeStore(
            "the database URL cannot be read; write sqlite:///path or postgresql://host/name"
        ) from None
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "sqlite+pysqlite"):
        raise UnsafeStore("only sqlite:///path and postgresql://host/name are supported")
    if not url.database or url.database == ":memory:" or url.query:
        raise UnsafeStore("SQLite needs a file, as in sqlite:///path, and accepts no URL options")
    return url


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": _BUSY_TIMEOUT_S}, **_POOL)

    @event.listens_for(engine, "do_connect")
    def _make_private(_dialect: Any, _record: Any, arguments: list[Any], _options: Any) -> None:
        # SQLite would create the file, and its write-ahead log, readable by all users. O_EXCL,
        # because an existing file must not be opened here: closing it would drop all POSIX locks of
        # this process on the file. Another process that closes the database would then find no
        # other user, and delete the write-ahead log while this process uses it.
        with suppress(OSError):
            os.close(os.open(arguments[0], os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # autocommit: only `_begin` begins transactions
        _use_write_ahead_log(connection)
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}")

    return engine


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Set the journal mode; retry if another process sets it on a new file at the same time.

    SQLite does not call its busy handler here: two processes that open a new file together would
    each hold a lock that the other waits for, so SQLite refuses one of them immediately.
    """
    give_up = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
        time.sleep(_BUSY_PAUSE_S)


def _postgresql(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"connect_timeout": 5, "autocommit": True}, **_POOL)

    # insert=True, because SQLAlchemy's listener fails on other encodings with an obscure error.
    @event.listens_for(engine, "connect", insert=True)
    def _connect(connection: Any, _record: Any) -> None:
        if connection.info.parameter_status("server_encoding") != "UTF8":
            raise UnsafeStore(
                "this PostgreSQL database is not in UTF-8; "
                "create it with ENCODING 'UTF8' TEMPLATE template0"
            )
        with connection.cursor() as cursor:
            for statement in _POSTGRESQL_SESSION:
                cursor.execute(statement)

    last_failure = -math.inf

    @event.listens_for(engine, "invalidate")
    def _note_failure(_connection: Any, _record: Any, _error: Any) -> None:
        # A restart of PostgreSQL ends all connections, so connections last used before this
        # failure are pinged when they are next taken from the pool.
        nonlocal last_failure
        last_failure = time.monotonic()

    # A connection opened while the database was read-only stays read-only. All connections
    # are reopened, so that the server recovers by itself.
    @event.listens_for(engine, "handle_error")
    def _leave_read_only(context: ExceptionContext) -> None:
        if getattr(context.original_exception, "sqlstate", None) == READ_ONLY:
            context.is_disconnect = True

    @event.listens_for(engine, "checkin")
    def _note_use(_connection: Any, record: Any) -> None:
        record.info[_USED] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def _ping_if_stale(connection: Any, record: Any, _proxy: Any) -> None:
        # Replaces SQLAlchemy's pool_pre_ping, which costs an extra round trip per transaction.
        now = time.monotonic()
        used = record.info.get(_USED, now)
        if (used <= last_failure or now - used >= _FRESH_S) and not _is_alive(engine, connection):
            raise InvalidatePoolError

    return engine


def _is_alive(engine: Engine, connection: Any) -> bool:
    """Return True if the database responds on this connection."""
    try:
        return bool(engine.dialect.do_ping(connection))
    except engine.dialect.loaded_dbapi.Error:
        return False


def _scalar(connection: Connection, statement: str) -> Any:
    return connection.exec_driver_sql(statement).scalar_one()
