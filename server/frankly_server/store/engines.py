# SPDX-License-Identifier: Apache-2.0
"""SQLite and PostgreSQL, each set up so that what is committed stays, and checked before anything is promised."""

import math
import os
import time
from contextlib import suppress
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, InvalidatePoolError

from frankly_server.store.errors import UnsafeStore

_MODE: Final = "frankly_mode"
_BEGIN: Final = {
    "sqlite": {"write": "BEGIN IMMEDIATE", "read": "BEGIN"},  # a reader turned writer could find its snapshot stale
    "postgresql": {"write": "BEGIN", "read": "BEGIN ISOLATION LEVEL REPEATABLE READ"},
}
"""How a transaction opens. The drivers open none, so a statement outside of one is a transaction of its own."""
_POOL = {
    "pool_size": 16,
    "max_overflow": 0,
    "pool_timeout": 5,
    "hide_parameters": True,
    "pool_reset_on_return": None,  # whoever begins a transaction ends it; the drivers begin none
}
_BUSY_TIMEOUT_S: Final = 10
_USED: Final = "frankly_used"
_FRESH_S: Final = 1.0
"""A pooled connection used so lately, and since the last was given up, is taken without asking if it still stands."""
_POSTGRESQL_SESSION: Final = (
    "SET lock_timeout = '5s'",
    "SET statement_timeout = '30s'",
    "SET idle_in_transaction_session_timeout = '60s'",
    "SET default_transaction_isolation = 'read committed'",
)
_DURABLE: Final = {"fsync": "on", "full_page_writes": "on"}


def make_engine(database_url: str) -> Engine:
    """Return an engine for ``sqlite:///path`` or ``postgresql://…``; nothing is opened yet.

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
    """Return the connection set up for a transaction that only reads and sees one moment of the database."""
    return connection.execution_options(**{_MODE: "read"})


def check_durability(connection: Connection) -> None:
    """Raise UnsafeStore unless this database keeps what it has acknowledged through a power loss."""
    if connection.dialect.name == "sqlite":
        if int(_scalar(connection, "PRAGMA synchronous")) < 2 or _scalar(connection, "PRAGMA journal_mode") != "wal":
            raise UnsafeStore("this SQLite file does not keep journal_mode=WAL with synchronous=FULL; use a local disk")
        return
    for setting, wanted in _DURABLE.items():
        if _scalar(connection, f"SHOW {setting}") != wanted:
            raise UnsafeStore(f"PostgreSQL runs with {setting}=off and could lose accepted reports; turn it on")
    if _scalar(connection, "SHOW synchronous_commit") == "off":
        raise UnsafeStore("PostgreSQL runs with synchronous_commit=off and could lose accepted reports; turn it on")


def _parse(database_url: str) -> URL:
    try:
        url = make_url(database_url)
    except ArgumentError:
        raise UnsafeStore("the database URL cannot be read; write sqlite:///path or postgresql://host/name") from None
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "sqlite+pysqlite"):
        raise UnsafeStore("only sqlite:///path and postgresql://host/name are supported")
    if not url.database or url.database == ":memory:" or url.query:
        raise UnsafeStore("SQLite needs a file, as in sqlite:///path, and takes no URL options")
    return url


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": _BUSY_TIMEOUT_S}, **_POOL)

    @event.listens_for(engine, "do_connect")
    def _make_private(_dialect: Any, _record: Any, arguments: list[Any], _options: Any) -> None:
        # Made before SQLite would make it readable for everybody; its WAL takes over the mode. A file that is there is
        # never opened: closing it would drop every lock this process has on it (POSIX), and the next process to close
        # the database would take itself for the last one and remove the log under us.
        with suppress(OSError):
            os.close(os.open(arguments[0], os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions are opened above, not by the driver's guess
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}")

    return engine


def _postgresql(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"connect_timeout": 5, "autocommit": True}, **_POOL)

    @event.listens_for(engine, "connect", insert=True)  # before SQLAlchemy itself stumbles over another encoding
    def _connect(connection: Any, _record: Any) -> None:
        if connection.info.parameter_status("server_encoding") != "UTF8":
            raise UnsafeStore(
                "this PostgreSQL database is not in UTF-8; make it with ENCODING 'UTF8' TEMPLATE template0"
            )
        with connection.cursor() as cursor:
            for statement in _POSTGRESQL_SESSION:
                cursor.execute(statement)

    given_up = -math.inf

    @event.listens_for(engine, "invalidate")
    def _doubt(_connection: Any, _record: Any, _error: Any) -> None:
        nonlocal given_up  # what ended one may have ended them all
        given_up = time.monotonic()

    @event.listens_for(engine, "checkin")
    def _note(_connection: Any, record: Any) -> None:
        record.info[_USED] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def _look(connection: Any, record: Any, _proxy: Any) -> None:
        # A journey to the database that transactions close after each other need not pay for: one of them would notice.
        now = time.monotonic()
        used = record.info.get(_USED, now)
        if (used <= given_up or now - used >= _FRESH_S) and not _answers(engine, connection):
            raise InvalidatePoolError

    return engine


def _answers(engine: Engine, connection: Any) -> bool:
    """Tell whether the database is still at the other end."""
    try:
        return bool(engine.dialect.do_ping(connection))
    except engine.dialect.loaded_dbapi.Error:
        return False


def _scalar(connection: Connection, statement: str) -> Any:
    return connection.exec_driver_sql(statement).scalar_one()
