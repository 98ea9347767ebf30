# SPDX-License-Identifier: Apache-2.0
"""SQLite with full sync: commits survive a power cut, and erased data is overwritten.

The database uses a rollback journal instead of a write-ahead log, because erased symbols would
remain in such a log. The journal is overwritten too: it contains the pages as they were before a
transaction, so after an erasure it would still contain the erased data.

- journal_mode=PERSIST: a commit zeroes the journal's header and, with synchronous=FULL, syncs it,
  so a commit cannot be undone later. A deleted journal could reappear after a power cut, and the
  blocks of a deleted or truncated journal would not be overwritten.
- locking_mode=EXCLUSIVE until the journal mode is set: setting it reads the file, and would
  otherwise roll back a journal of a killed process in the default mode, which deletes the journal.
- temp_store=MEMORY: no page is copied to a temporary file.
"""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frankly_sdk import _platform
from frankly_sdk._tables import VERSION, is_known, steps_from
from frankly_sdk.errors import StoreError

_BUSY_S = 15.0
_PRAGMAS = ("synchronous=FULL", "secure_delete=ON", "fullfsync=ON", "temp_store=MEMORY")
# Chunk size, in bytes, for reading and overwriting the journal.
_CHUNK = 64 * 2**10

# Held during every transaction and every fork: after a fork in the middle of a transaction, the
# child would seem to hold the lock, and its exit would roll back the parent's transaction. It is
# also held while a new file is created.
_GATE = threading.RLock()
_platform.on_fork(before=_GATE.acquire, after_in_parent=_GATE.release, after_in_child=_GATE.release)


@dataclass(slots=True)
class _Connection:
    """SQLite's handle, with the id of its process.

    The lock keeps other threads out of a transaction.
    """

    db: sqlite3.Connection
    pid: int
    lock: threading.RLock = field(default_factory=threading.RLock)
    ready: bool = False

    def __del__(self) -> None:
        # An app may never close its client; from 3.13 on, Python warns of open databases.
        with contextlib.suppress(Exception):
            self.db.close()


class Database:
    """The SQLite file of one store.

    Safe to use from several threads and after a fork; several processes may open the same file.

    Raises StoreError, from every method, if the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._journal = path.with_name(f"{path.name}-journal")
        self._current = self._connect()
        try:
            self._is_ready()
            self._finish_overwriting()
        except BaseException:
            self.close()
            raise

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the write lock of this file; commit durably at the end, roll back on any error."""
        connection = self._connection()
        with connection.lock, _GATE:
            self.run("BEGIN IMMEDIATE")
            try:
                self._create()
                yield
                self.run("COMMIT")
            except BaseException:
                connection.ready = False  # newly created tables are rolled back too
                with contextlib.suppress(sqlite3.Error):
                    connection.db.execute("ROLLBACK")
                raise

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query; an empty list if the store has no tables yet."""
        connection = self._connection()
        # Reads take the gate too: a child forked in the middle of a read would inherit a lock that
        # is never released.
        with connection.lock, _GATE, _translated(self._path):
            return (
                connection.db.execute(statement, values).fetchall() if self._is_readable() else []
            )

    def run(self, statement: str, *values: object) -> None:
        """Run a statement; call it inside `transaction` if the statement reads or writes rows."""
        with _translated(self._path):
            self._connection().db.execute(statement, values)

    def overwrite_journal(self) -> None:
        """Overwrite the contents of earlier transactions in the journal with zeros, and sync.

        The exclusive lock keeps all other connections from using the journal meanwhile; an
        unfinished transaction of a killed process is rolled back before this lock is granted. If
        this process is killed before the end, the next `Database` of this file overwrites the
        journal.
        """
        connection = self._connection()
        with connection.lock, _GATE, _translated(self._path):
            connection.db.execute("BEGIN EXCLUSIVE")
            try:
                # The journal may be opened and closed here, because SQLite locks the database file,
                # not the journal.
                with (
                    contextlib.suppress(FileNotFoundError),
                    self._journal.open("r+b", buffering=0) as file,
                ):
                    _overwrite(file.fileno())
            finally:
                connection.db.execute("ROLLBACK")

    def close(self) -> None:
        """Close the file."""
        connection = self._current
        if connection.pid == os.getpid():
            with connection.lock, contextlib.suppress(sqlite3.Error):
                connection.db.close()

    def _finish_overwriting(self) -> None:
        """Overwrite an earlier process's journal, unless another process is using the file.

        The other process overwrites the journal after its next erasure, and every process that opens
        the file later checks again.
        """
        with _translated(self._path):
            if self._journal.exists() and any(map(_has_bytes, _chunks(self._journal))):
                # No waiting here: opening must not block while another process writes.
                self.run("PRAGMA busy_timeout = 0")
                with contextlib.suppress(StoreError):
                    self.overwrite_journal()
                self.run(f"PRAGMA busy_timeout = {round(1000 * _BUSY_S)}")

    def _connection(self) -> _Connection:
        """Return this process's connection; SQLite handles must not be used across a fork."""
        if self._current.pid != os.getpid():
            self._current = self._connect()
        return self._current

    def _connect(self) -> _Connection:
        with _translated(self._path), _GATE:
            # Created with mode 0600 before SQLite opens it, so that no other user can read this
            # install's answers. An existing file is never opened here, because closing it would
            # drop all locks that this process has on it.
            with contextlib.suppress(FileExistsError):
                _platform.create_private(self._path)
            if not self._path.is_file():
                raise StoreError(
                    f"{self._path} is not a file; give a file for this install's store"
                )
            # isolation_level=None: no implicit BEGIN, because `transaction` sends its own. The lock
            # of `_Connection` separates threads.
            db = sqlite3.connect(
                self._path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            try:
                _set_up(db)
                # Runs after _set_up, which raises an error for a file that is not a database.
                _platform.make_private(self._path)
            except BaseException:
                db.close()
                raise
            return _Connection(db, os.getpid())

    def _is_ready(self) -> bool:
        """Return True if the tables have the current version.

        The first transaction creates or upgrades them. Raises StoreError for a newer version.
        """
        connection = self._connection()
        with connection.lock, _GATE, _translated(self._path):
            if not connection.ready:
                (version,) = connection.db.execute("PRAGMA user_version").fetchone()
                if not is_known(version):
                    raise StoreError(
                        "the store was written by a newer version of the app; update the app"
                    )
                connection.ready = version == VERSION
            return connection.ready

    def _create(self) -> None:
        if not self._is_ready():
            with _translated(self._path):
                (version,) = self._connection().db.execute("PRAGMA user_version").fetchone()
            for statement in steps_from(version):
                self.run(statement)

    def _is_readable(self) -> bool:
        """Return True if there are tables to read, after upgrading a store of an earlier version."""
        if self._is_ready():
            return True
        (version,) = self._connection().db.execute("PRAGMA user_version").fetchone()
        if version:
            with self.transaction():
                pass
        return bool(version)


def _set_up(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA locking_mode=EXCLUSIVE")
    if db.execute("PRAGMA journal_mode=PERSIST").fetchone() != ("persist",):
        raise StoreError("the store cannot be written durably; nothing was sent")
    db.execute("PRAGMA locking_mode=NORMAL")
    db.execute("PRAGMA user_version").fetchone()  # the first read in this mode releases the lock
    for pragma in _PRAGMAS:
        db.execute(f"PRAGMA {pragma}")


def _overwrite(handle: int) -> None:
    """Overwrite every chunk that is not all zeros, in place; sync if any chunk was overwritten."""
    offset, is_clean = 0, True
    # Read in chunks, so that a large journal does not fill the memory.
    while chunk := _platform.read_at(handle, _CHUNK, offset):
        if _has_bytes(chunk):
            is_clean = False
            offset += _platform.write_at(handle, bytes(len(chunk)), offset)
        else:
            offset += len(chunk)
    # A sync is slow, and pointless if nothing was overwritten.
    if not is_clean:
        _platform.sync(handle)


def _has_bytes(chunk: bytes) -> bool:
    return chunk.count(0) < len(chunk)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            yield chunk


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError, ValueError) as error:  # ValueError: path with a NUL
        # SQLite's messages name tables and conditions, never values, so they may be shown.
        raise StoreError(f"the store {path} cannot be used: {error}; nothing was sent") from None
