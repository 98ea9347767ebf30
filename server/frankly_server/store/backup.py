# SPDX-License-Identifier: Apache-2.0
"""Backups that verify themselves: one zip, the same for SQLite and PostgreSQL, read from one moment of the database.

A backup holds a JSON line per row and a manifest with the number of rows and the SHA-256 of every table. The same rows
make the same bytes. It holds what the database holds: noisy reports, hashes of keys and tokens; no signing key.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from frankly_protocol.errors import FranklyError
from sqlalchemy.exc import DBAPIError, StatementError

from frankly_server.store.database import Database, Transaction
from frankly_server.store.schema import SCHEMA_VERSION
from frankly_server.store.tables import TABLES

FORMAT: Final = "frankly.backup/1"
_MANIFEST: Final = "manifest.json"
_MAX_MANIFEST_BYTES: Final = 1 << 20
_MAX_LINE_BYTES: Final = 32 << 20
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


class BackupBroken(FranklyError):
    """A backup that is not whole, or not of this schema; nothing was changed."""

    def __init__(self, detail: str, field: str | None = None) -> None:
        super().__init__(detail, code="integrity", field=field)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a backup holds: the schema's version, and per table (rows, SHA-256 of its lines)."""

    schema: str
    tables: Mapping[str, tuple[int, str]]

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return sum(n for n, _ in self.tables.values())


def save(database: Database, target: BinaryIO) -> Contents:
    """Write a backup of everything that was committed when it began; writers are not held up.

    Raises StoreUnavailable, or BackupBroken if the counts do not follow from the reports.
    """
    database.check()
    found: dict[str, tuple[int, str]] = {}
    with database.reading("backup") as tx, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in TABLES:
            found[name] = _write_table(packed, name, _lines(tx, name))
        _require_counts(tx)
        packed.writestr(_entry(_MANIFEST), json.dumps(_manifest(found), indent=1, sort_keys=True))
    return Contents(SCHEMA_VERSION, found)


def verify(source: BinaryIO) -> Contents:
    """Read a backup to its end and compare it with its own manifest. Raises BackupBroken."""
    with _opened(source) as packed:
        contents = _read_manifest(packed)
        for name in contents.tables:
            for _ in _read_table(packed, name, contents):
                pass
    return contents


def restore(database: Database, source: BinaryIO) -> Contents:
    """Fill an empty database from a backup: all of it, verified row by row afterwards, or nothing.

    Raises BackupBroken if the database holds rows already, or if the backup is not whole; StoreUnavailable.
    """
    database.check()
    with _opened(source) as packed, database.transaction("restore") as tx:
        contents = _read_manifest(packed)
        if not tx.tables.is_empty():
            raise BackupBroken("the database holds data already; restore into a new one", "database_url")
        for name in contents.tables:
            try:
                tx.tables.fill(name, _read_table(packed, name, contents))
            except (StatementError, DBAPIError, ValueError, TypeError, KeyError):
                raise BackupBroken("a row does not fit its table", name) from None
        for name, told in contents.tables.items():
            if _digest(_lines(tx, name)) != told:
                raise BackupBroken("what was stored differs from the backup", name)
        _require_counts(tx)
    return contents


def _require_counts(tx: Transaction) -> None:
    for survey in tx.surveys.all():
        if tx.counts.recount(survey.id):
            raise BackupBroken("the counts of a survey do not follow from its reports", survey.name)


def _lines(tx: Transaction, name: str) -> Iterator[bytes]:
    for row in tx.tables.rows(name):
        yield json.dumps(row, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def _digest(lines: Iterator[bytes]) -> tuple[int, str]:
    n, digest = 0, hashlib.sha256()
    for line in lines:
        n += 1
        digest.update(line)
    return n, digest.hexdigest()


def _write_table(packed: zipfile.ZipFile, name: str, lines: Iterator[bytes]) -> tuple[int, str]:
    with packed.open(_entry(_member(name)), "w", force_zip64=True) as file:

        def written() -> Iterator[bytes]:
            for line in lines:
                file.write(line)
                yield line

        return _digest(written())


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)  # no time: the same rows make the same bytes
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _member(name: str) -> str:
    return f"tables/{name}.jsonl"


def _manifest(found: Mapping[str, tuple[int, str]]) -> dict[str, Any]:
    tables = {name: {"rows": n, "sha256": digest} for name, (n, digest) in found.items()}
    return {"format": FORMAT, "schema": SCHEMA_VERSION, "tables": tables}


def _opened(source: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(source)
    except (zipfile.BadZipFile, OSError):
        raise BackupBroken("this is no backup, or only a part of one") from None


def _read_manifest(packed: zipfile.ZipFile) -> Contents:
    try:
        with packed.open(_MANIFEST) as file:
            body = json.loads(file.read(_MAX_MANIFEST_BYTES))
        contents = Contents(
            str(body["schema"]), {str(name): (int(t["rows"]), str(t["sha256"])) for name, t in body["tables"].items()}
        )
        if body["format"] != FORMAT:
            raise BackupBroken(f"this program reads {FORMAT}", "format")
    except (KeyError, ValueError, TypeError, AttributeError, zipfile.BadZipFile, OSError):
        raise BackupBroken("the manifest is missing or cannot be read", _MANIFEST) from None
    if contents.schema != SCHEMA_VERSION:
        words = f"the backup has schema {contents.schema}, this program {SCHEMA_VERSION}: restore with its own version"
        raise BackupBroken(words, "schema")
    if set(contents.tables) != set(TABLES):
        raise BackupBroken("the backup's tables are not this schema's", "tables")
    return Contents(contents.schema, {name: contents.tables[name] for name in TABLES})


def _read_table(packed: zipfile.ZipFile, name: str, contents: Contents) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table; raises BackupBroken at its end if they are not those the manifest tells of."""
    digest, n = hashlib.sha256(), 0
    try:
        with packed.open(_member(name)) as file:
            while line := file.readline(_MAX_LINE_BYTES):
                n += 1
                digest.update(line)
                yield _row(line, name)
    except (KeyError, zipfile.BadZipFile, OSError, EOFError):
        raise BackupBroken("a table is missing or damaged", name) from None
    if (n, digest.hexdigest()) != contents.tables[name]:
        raise BackupBroken("a table is not what the manifest says", name)


def _row(line: bytes, name: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict) or set(row) != set(TABLES[name].columns.keys()):
        raise BackupBroken("a row does not fit its table", name)
    return row
