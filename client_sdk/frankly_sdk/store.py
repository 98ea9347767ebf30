# SPDX-License-Identifier: Apache-2.0
"""What one install remembers: an SQLite file with full sync, so that what is sealed stays sealed through a power cut.

The truth is never written. A rollback journal is used, not a write-ahead log: erased symbols would live on in a log.
With journal_mode=TRUNCATE and synchronous=FULL, SQLite syncs the journal's end too, so a commit cannot be undone later
(a journal that is deleted instead may come back after a power cut, and take the sealed value with it).
"""

import contextlib
import hmac
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from frankly_protocol.audit import Charge
from frankly_protocol.errors import RandomnessError

from frankly_sdk._trusted import Remembered
from frankly_sdk.errors import StoreError

_VERSION = 3
_BUSY_S = 15.0
_SEALED = "survey, respondent, digest, collect_url, report_id, body, state, code"
_MAX_EVIDENCE = 16  # envelopes: enough to show, too few to fill a disk with
_PRAGMAS = ("synchronous=FULL", "secure_delete=ON", "fullfsync=ON")
_SCHEMA = """
CREATE TABLE keys (origin TEXT PRIMARY KEY, envelope BLOB NOT NULL);
CREATE TABLE surveys (survey TEXT PRIMARY KEY, version INTEGER NOT NULL, digest TEXT NOT NULL, envelope BLOB NOT NULL);
CREATE TABLE evidence (digest TEXT PRIMARY KEY, envelope BLOB NOT NULL);
"""
# respondent : '' for the one person an install usually is of; otherwise a keyed hash, see `respondent_name`.
_ANSWERS = """
CREATE TABLE answers (
    survey TEXT NOT NULL, respondent TEXT NOT NULL, digest TEXT NOT NULL, collect_url TEXT NOT NULL,
    report_id TEXT NOT NULL, body BLOB, state TEXT NOT NULL CHECK (state IN ('sealed', 'sent', 'refused')),
    code TEXT NOT NULL, level TEXT NOT NULL, ceiling TEXT, free TEXT, free_delta TEXT NOT NULL DEFAULT '0/1',
    PRIMARY KEY (respondent, survey)
);
CREATE INDEX outbox ON answers (survey, report_id) WHERE state = 'sealed';
CREATE TABLE salt (salt BLOB NOT NULL)
"""
# The newest head seen of each log, and the proof with which each logged document was accepted.
_LOG = """
CREATE TABLE checkpoints (origin TEXT PRIMARY KEY, size INTEGER NOT NULL, note BLOB NOT NULL);
CREATE TABLE proofs (digest TEXT PRIMARY KEY, proof BLOB NOT NULL)
"""
# Version 1 knew one respondent only, and no logs.
_AS_IN_1 = """
INSERT INTO answers (survey, respondent, digest, collect_url, report_id, body, state, code, level, ceiling)
    SELECT survey, '', digest, collect_url, report_id, body, state, code, level, ceiling FROM answers_1;
DROP TABLE answers_1
"""
# Version 2 counted no δ: every block of its answers counts its ceiling.
_DELTAS = """
ALTER TABLE answers ADD COLUMN free TEXT;
ALTER TABLE answers ADD COLUMN free_delta TEXT NOT NULL DEFAULT '0/1'
"""
_STEPS = {
    0: (_SCHEMA, _ANSWERS, _LOG),
    1: ("ALTER TABLE answers RENAME TO answers_1", _ANSWERS, _AS_IN_1, _LOG),
    2: (_DELTAS,),
}

# Held through every transaction and every fork: a fork in the middle of one would leave a child that believes it holds
# the lock, and whose exit would roll the parent's transaction back. It also covers the making of new files.
_GATE = threading.RLock()
os.register_at_fork(before=_GATE.acquire, after_in_parent=_GATE.release, after_in_child=_GATE.release)


@dataclass(frozen=True, slots=True)
class Sealed:
    """One respondent's answer to a survey: the exact bytes to send while `state` is ``sealed``, afterwards None.

    respondent : as `Store.respondent_name` gives it, empty for the owner of the install. digest : of the document that
    was answered. code : why it is in this state, as in a receipt.
    """

    survey: str
    respondent: str = field(repr=False)
    digest: str
    collect_url: str
    report_id: str = field(repr=False)
    body: bytes | None = field(repr=False)
    state: str = "sealed"
    code: str = ""


@dataclass(slots=True)
class _Connection:
    """SQLite's handle, with the process it belongs to; the lock keeps other threads out of a transaction."""

    db: sqlite3.Connection
    pid: int
    lock: threading.RLock = field(default_factory=threading.RLock)
    ready: bool = False


class Store:
    """One store file. Safe to use from several threads and after a fork; several processes may open the same file.

    Raises StoreError, from every method, if the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._current = self._connect()
        try:
            self._is_ready()
        except BaseException:
            self.close()
            raise

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the write lock of this file; commit durably at the end, roll back on any error."""
        own = self._own()
        with own.lock, _GATE:
            self._run("BEGIN IMMEDIATE")
            try:
                self._create()
                yield
                self._run("COMMIT")
            except BaseException:
                own.ready = False  # what was created here is undone as well
                with contextlib.suppress(sqlite3.Error):
                    own.db.execute("ROLLBACK")
                raise

    def keys(self, chain: str) -> bytes | None:
        """Return the keys envelope accepted last on a chain (a server's origin, or that and the app's own keys)."""
        return next((row[0] for row in self._rows("SELECT envelope FROM keys WHERE origin = ?", chain)), None)

    def remember_keys(self, chain: str, keys: bytes, follows: bytes | None) -> None:
        """Keep accepted keys, unless others than those they follow have been kept meanwhile."""
        with self.transaction():
            if self.keys(chain) in (None, follows):
                self._run("INSERT OR REPLACE INTO keys VALUES (?, ?)", chain, keys)

    def survey(self, survey: str) -> Remembered | None:
        """Return the document accepted last for a survey."""
        rows = self._rows("SELECT version, digest, envelope FROM surveys WHERE survey = ?", survey)
        return next((Remembered(*row) for row in rows), None)

    def remember(self, survey: str, document: Remembered, instead_of: str | None = None) -> None:
        """Keep an accepted document; a version never gives way to a lower one, except to replace `instead_of`.

        instead_of : the digest of a document whose signers have been withdrawn since; it no longer counts.
        """
        with self.transaction():
            self._run(
                "INSERT INTO surveys VALUES (?, ?, ?, ?) ON CONFLICT (survey) DO UPDATE SET version = excluded.version,"
                " digest = excluded.digest, envelope = excluded.envelope WHERE excluded.version > version"
                " OR digest = ?",
                *(survey, document.version, document.digest, document.envelope, instead_of),
            )

    def keep_evidence(self, documents: dict[str, bytes]) -> None:
        """Keep envelopes that contradict each other, by digest; the first ones, if there are very many."""
        with self.transaction():
            for digest, envelope in documents.items():
                self._run(
                    "INSERT OR IGNORE INTO evidence SELECT ?, ? WHERE (SELECT count(*) FROM evidence) < ?",
                    *(digest, envelope, _MAX_EVIDENCE),
                )

    def checkpoint(self, origin: str) -> bytes | None:
        """Return the newest head seen of a log."""
        return next((row[0] for row in self._rows("SELECT note FROM checkpoints WHERE origin = ?", origin)), None)

    def proof(self, digest: str) -> bytes | None:
        """Return the proof with which a document was accepted last."""
        return next((row[0] for row in self._rows("SELECT proof FROM proofs WHERE digest = ?", digest)), None)

    def remember_log(self, origin: str, size: int, note: bytes, digest: str, proof: bytes) -> None:
        """Keep a head and a document's proof; a head never gives way to a smaller one."""
        with self.transaction():
            self._run(
                "INSERT INTO checkpoints VALUES (?, ?, ?) ON CONFLICT (origin) DO UPDATE SET size = excluded.size,"
                " note = excluded.note WHERE excluded.size >= size",
                *(origin, size, note),
            )
            self._run("INSERT OR REPLACE INTO proofs VALUES (?, ?)", digest, proof)

    def evidence(self) -> dict[str, bytes]:
        """Return the envelopes kept as evidence, by digest."""
        return dict(self._rows("SELECT digest, envelope FROM evidence"))

    def respondent_name(self, key: str) -> str:
        """Return the name under which a respondent's ledger is kept: a hash keyed with this store's own random salt.

        The key itself (a number on a list, a telephone number) is never written. The empty key stays empty: it is the
        one person an install usually belongs to.
        """
        return hmac.digest(self._salt(), key.encode("utf-8", "surrogatepass"), "sha256").hex() if key else ""

    def _salt(self) -> bytes:
        if not (rows := self._rows("SELECT salt FROM salt")):
            try:
                fresh = secrets.token_bytes(32)
            except (OSError, NotImplementedError):
                raise RandomnessError from None
            with self.transaction():  # whoever comes second finds the first one's
                self._run("INSERT INTO salt SELECT ? WHERE NOT EXISTS (SELECT 1 FROM salt)", fresh)
            rows = self._rows("SELECT salt FROM salt")
        return bytes(rows[0][0])

    def answer(self, survey: str, respondent: str = "") -> Sealed | None:
        """Return what was sealed for a survey, None if this respondent has not answered it here."""
        where = "survey = ? AND respondent = ?"
        rows = self._rows(f"SELECT {_SEALED} FROM answers WHERE {where}", survey, respondent)  # noqa: S608  constants
        return next((Sealed(*row) for row in rows), None)

    def outbox(self) -> list[Sealed]:
        """Return every sealed report that is not acknowledged yet.

        Ordered by survey and random id: the order in which answers were given never shows. One respondent has at most
        one report per survey, each of at most 16 KiB, and the ledger bounds the surveys; nothing is ever dropped.
        """
        rows = self._rows(f"SELECT {_SEALED} FROM answers WHERE state = 'sealed' ORDER BY survey, report_id")  # noqa: S608
        return [Sealed(*row) for row in rows]

    def reserve(
        self, survey: str, digest: str, collect_url: str, length: int, charge: Charge, respondent: str = ""
    ) -> None:
        """Enter the cost of an answer and room for its report of `length` bytes; call it inside `transaction`.

        SQLite now opens and fills its journal: a disk that is full or not writable says so before anything is drawn.
        """
        self._run(
            "INSERT INTO answers VALUES (?, ?, ?, ?, ?, zeroblob(?), 'sealed', '', ?, ?, ?, ?)",
            *(survey, respondent, digest, collect_url, "0" * 32, length),
            *map(_text, (charge.odds or Fraction(0), charge.odds, None, charge.delta)),
        )

    def seal(self, survey: str, report_id: str, body: bytes, respondent: str = "") -> Sealed:
        """Fill the room reserved; call it inside the same `transaction`, whose end makes it durable."""
        self._run(
            "UPDATE answers SET report_id = ?, body = ? WHERE survey = ? AND respondent = ?",
            *(report_id, body, survey, respondent),
        )
        sealed = self.answer(survey, respondent)
        if sealed is None:
            raise StoreError("nothing was reserved for this answer; nothing was sent")
        return sealed

    def close_answer(self, survey: str, state: str, code: str, respondent: str = "") -> None:
        """Erase symbols and id of an acknowledged or finally refused report; its cost stays, and that there was one."""
        with self.transaction():
            self._run(
                "UPDATE answers SET state = ?, code = ?, body = NULL, report_id = ''"
                " WHERE survey = ? AND respondent = ? AND state = 'sealed'",
                *(state, code, survey, respondent),
            )

    def spent(self, respondent: str = "") -> list[Charge]:
        """Return the cost of every survey this respondent answered here; it never shrinks and never renews itself."""
        wanted = "ceiling, free_delta"
        rows = self._rows(f"SELECT {wanted} FROM answers WHERE respondent = ? ORDER BY survey", respondent)  # noqa: S608
        return [Charge(_ratio(odds), Fraction(delta)) for odds, delta in rows]

    def close(self) -> None:
        """Close the file."""
        own = self._current
        if own.pid == os.getpid():
            with own.lock, contextlib.suppress(sqlite3.Error):
                own.db.close()

    def _own(self) -> _Connection:
        """Return this process's connection: SQLite's handles must not be used on the other side of a fork."""
        if self._current.pid != os.getpid():
            self._current = self._connect()
        return self._current

    def _connect(self) -> _Connection:
        with _translated(self._path), _GATE:
            # Made by us with mode 0600 before SQLite opens it: nobody else may read what this install has answered. A
            # file that exists is never opened here, for closing it would drop every lock this process has on it.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            if not self._path.is_file():
                raise StoreError(f"{self._path} is no file; name one for this install's store")
            db = sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            try:
                if db.execute("PRAGMA journal_mode=TRUNCATE").fetchone() != ("truncate",):
                    raise StoreError("the store cannot be written durably; nothing was sent")
                for pragma in _PRAGMAS:
                    db.execute(f"PRAGMA {pragma}")
                if self._path.stat().st_mode & 0o077:  # only now: it is a database, and not somebody's other file
                    self._path.chmod(0o600)
            except BaseException:
                db.close()
                raise
            return _Connection(db, os.getpid())

    def _is_ready(self) -> bool:
        """Tell whether the tables are there; a store is made with the first thing it has to remember."""
        own = self._own()
        with own.lock, _GATE, _translated(self._path):
            if not own.ready:
                (version,) = own.db.execute("PRAGMA user_version").fetchone()
                if version not in (*_STEPS, _VERSION):
                    raise StoreError("the store was written by a newer version of the app; update the app")
                own.ready = version == _VERSION
            return own.ready

    def _create(self) -> None:
        if not self._is_ready():
            with _translated(self._path):
                (version,) = self._own().db.execute("PRAGMA user_version").fetchone()
            for statement in ";".join(_STEPS[version]).split(";"):
                self._run(statement)
            self._run(f"PRAGMA user_version = {_VERSION}")

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        own = self._own()
        # The gate too: a child forked in the middle of a read would inherit a lock that nobody lets go of.
        with own.lock, _GATE, _translated(self._path):
            return own.db.execute(statement, values).fetchall() if self._is_readable() else []

    def _is_readable(self) -> bool:
        """Tell whether there is anything to read; a store of the version before is brought up to date first."""
        if self._is_ready():
            return True
        (version,) = self._own().db.execute("PRAGMA user_version").fetchone()
        if version:
            with self.transaction():
                pass
        return bool(version)

    def _run(self, statement: str, *values: object) -> None:
        with _translated(self._path):
            self._own().db.execute(statement, values)


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError, ValueError) as error:  # ValueError: a path with a NUL
        # SQLite's own words name tables and conditions, never values.
        raise StoreError(f"the store {path} cannot be used: {error}; nothing was sent") from None


def _text(ratio: Fraction | None) -> str | None:
    return None if ratio is None else f"{ratio.numerator}/{ratio.denominator}"


def _ratio(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)
