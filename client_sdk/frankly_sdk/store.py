# SPDX-License-Identifier: Apache-2.0
"""What one install remembers: an SQLite file with full sync, so that what is sealed stays sealed through a power cut.

The truth is never written. A rollback journal is used, not a write-ahead log: erased symbols would live on in a log.
With journal_mode=TRUNCATE and synchronous=FULL, SQLite syncs the journal's end too, so a commit cannot be undone later.
"""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from frankly_protocol.audit import FormLevel

from frankly_sdk._trusted import Remembered
from frankly_sdk.errors import StoreError

_VERSION = 1
_BUSY_S = 15.0
_SCHEMA = """
CREATE TABLE keys (origin TEXT PRIMARY KEY, envelope BLOB NOT NULL);
CREATE TABLE surveys (survey TEXT PRIMARY KEY, version INTEGER NOT NULL, digest TEXT NOT NULL, envelope BLOB NOT NULL);
CREATE TABLE evidence (digest TEXT PRIMARY KEY, envelope BLOB NOT NULL);
CREATE TABLE answers (
    survey TEXT PRIMARY KEY, collect_url TEXT NOT NULL, report_id TEXT NOT NULL, body BLOB,
    state TEXT NOT NULL CHECK (state IN ('sealed', 'sent', 'refused')),
    level TEXT NOT NULL, ceiling TEXT
);
"""


@dataclass(frozen=True, slots=True)
class Sealed:
    """One survey's answer: the exact bytes to send while `state` is ``sealed``, afterwards None."""

    survey: str
    collect_url: str
    report_id: str = field(repr=False)
    body: bytes | None = field(repr=False)
    state: str


class Store:
    """One store file. Safe to use from several threads; several processes may open the same file.

    Raises StoreError, from every method, if the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        with _translated(path):
            # Made by us with mode 0600 before SQLite opens it: nobody else may read what this install has answered.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._path = path
            self._db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            for pragma in ("journal_mode=TRUNCATE", "synchronous=FULL", "secure_delete=ON", "fullfsync=ON"):
                self._db.execute(f"PRAGMA {pragma}").fetchall()
        self._create()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the write lock of this file; commit durably at the end, roll back on any error."""
        with self._lock:
            with _translated(self._path):
                self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise
            try:
                with _translated(self._path):
                    self._db.execute("COMMIT")
            except StoreError:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise

    def keys(self, origin: str) -> bytes | None:
        """Return the keys envelope accepted last from a server."""
        row = self._one("SELECT envelope FROM keys WHERE origin = ?", origin)
        return None if row is None else row[0]

    def survey(self, survey: str) -> Remembered | None:
        """Return the document accepted last for a survey."""
        row = self._one("SELECT version, digest, envelope FROM surveys WHERE survey = ?", survey)
        return None if row is None else Remembered(*row)

    def remember(self, origin: str, keys: bytes, survey: str, document: Remembered) -> None:
        """Keep accepted keys and an accepted document, in one transaction."""
        with self.transaction():
            self._run("INSERT OR REPLACE INTO keys VALUES (?, ?)", origin, keys)
            values = (survey, document.version, document.digest, document.envelope)
            self._run("INSERT OR REPLACE INTO surveys VALUES (?, ?, ?, ?)", *values)

    def keep_evidence(self, documents: dict[str, bytes]) -> None:
        """Keep envelopes that contradict each other, by digest."""
        with self.transaction():
            for digest, envelope in documents.items():
                self._run("INSERT OR IGNORE INTO evidence VALUES (?, ?)", digest, envelope)

    def evidence(self) -> dict[str, bytes]:
        """Return the envelopes kept as evidence, by digest."""
        with self._lock, _translated(self._path):
            return dict(self._db.execute("SELECT digest, envelope FROM evidence"))

    def answer(self, survey: str) -> Sealed | None:
        """Return what was sealed for a survey, None if it has not been answered here."""
        row = self._one("SELECT survey, collect_url, report_id, body, state FROM answers WHERE survey = ?", survey)
        return None if row is None else Sealed(*row)

    def outbox(self) -> list[Sealed]:
        """Return every sealed report that is not acknowledged yet."""
        wanted = (
            "SELECT survey, collect_url, report_id, body, state FROM answers WHERE state = 'sealed' ORDER BY survey"
        )
        with self._lock, _translated(self._path):
            return [Sealed(*row) for row in self._db.execute(wanted)]

    def seal(self, sealed: Sealed, form: FormLevel) -> None:
        """Write a sealed report with what it costs; call it inside `transaction`, whose end makes it durable."""
        level, ceiling = _text(form.level), _text(form.ceiling)
        values = (sealed.survey, sealed.collect_url, sealed.report_id, sealed.body, sealed.state, level, ceiling)
        self._run("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", *values)

    def close_answer(self, survey: str, state: str) -> None:
        """Erase symbols and id of an acknowledged or finally refused report; its cost stays, and that there was one."""
        with self.transaction():
            self._run("UPDATE answers SET state = ?, body = NULL, report_id = '' WHERE survey = ?", state, survey)

    def spent(self) -> list[FormLevel]:
        """Return the cost of every survey answered here; it never shrinks and never renews itself."""
        with self._lock, _translated(self._path):
            rows = self._db.execute("SELECT level, ceiling FROM answers ORDER BY survey").fetchall()
            return [FormLevel(_ratio(level), _ratio(ceiling), ()) for level, ceiling in rows]

    def close(self) -> None:
        """Close the file."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._db.close()

    def _create(self) -> None:
        try:
            if self._version() != _VERSION:
                with self.transaction():
                    self._migrate()
        except BaseException:
            self.close()
            raise

    def _version(self) -> int:
        row = self._one("PRAGMA user_version")
        return 0 if row is None else int(row[0])

    def _migrate(self) -> None:
        version = self._version()
        if version == _VERSION:
            return  # another process was faster
        if version > _VERSION:
            raise StoreError("the store was written by a newer version of the app; update the app")
        for statement in _SCHEMA.strip().split(";\n"):
            self._run(statement)
        self._run(f"PRAGMA user_version = {_VERSION}")

    def _one(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        with self._lock, _translated(self._path):
            row: tuple[Any, ...] | None = self._db.execute(statement, values).fetchone()
            return row

    def _run(self, statement: str, *values: object) -> None:
        with _translated(self._path):
            self._db.execute(statement, values)


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        # SQLite's own words name tables and conditions, never values.
        raise StoreError(f"the store {path} cannot be used: {error}; nothing was sent") from None


def _text(ratio: Fraction | None) -> str | None:
    return None if ratio is None else f"{ratio.numerator}/{ratio.denominator}"


def _ratio(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)
