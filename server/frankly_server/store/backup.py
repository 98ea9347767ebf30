# SPDX-License-Identifier: Apache-2.0
"""Backups: one self-verifying zip file of one snapshot, the same for SQLite and PostgreSQL.

A backup consists of one JSON line per row, a manifest with the number of rows and the SHA-256 of
every table, and, if it was saved with a key, a signature of the manifest; other members are
refused. Equal rows give equal members. The contents are those of the database: randomised reports,
hashes of keys, tokens and passwords, and the secrets of TOTP and webhooks. Signing keys are not
included.
"""

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from frankly_protocol.errors import FranklyError
from sqlalchemy.exc import DBAPIError, StatementError

from frankly_server.store.database import Database, Transaction
from frankly_server.store.schema import SCHEMA_VERSION, metadata
from frankly_server.store.tables import kept_tables

FORMAT: Final = "frankly.backup/1"
Check = Callable[[bytes, bytes | None], object]
"""Function of a manifest and its signature (or None) that raises an error to refuse them."""
_MANIFEST: Final = "manifest.json"
_SIGNATURE: Final = "manifest.sig"
# The file may come from anywhere; these limits prevent it from filling the memory.
_MAX_MANIFEST_BYTES: Final = 1 << 20
_MAX_LINE_BYTES: Final = 32 << 20
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the earliest date that a zip entry can carry


class BackupBroken(FranklyError):
    """The backup is incomplete, damaged or of another schema version; the database is unchanged."""

    def __init__(self, detail: str, field: str | None = None) -> None:
        super().__init__(detail, code="integrity", field=field)


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of a backup: schema version, and (number of rows, SHA-256 of the lines) per table.

    saved : UTC time.
    """

    schema: str
    tables: Mapping[str, tuple[int, str]]
    saved: str

    @property
    def rows(self) -> int:
        """Return the total number of rows."""
        return sum(n for n, _ in self.tables.values())


def save(
    database: Database,
    target: BinaryIO,
    saved: str = "",
    sign: Callable[[bytes], bytes] | None = None,
) -> Contents:
    """Write a backup of everything committed before it begins, without blocking writers.

    It contains no sessions, waiting sign-ins or known browsers.

    saved : UTC time. sign : function that returns the signature of the manifest; None for an
    unsigned backup. Raises StoreUnavailable, UnsafeStore, or BackupBroken if the counts disagree
    with the reports.
    """
    database.check()
    digests: dict[str, tuple[int, str]] = {}
    with (
        database.reading("backup") as tx,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in kept_tables():
            digests[name] = _write_table(archive, name, _lines(tx, name))
        _require_counts(tx)

        manifest = json.dumps(_manifest(digests, saved), indent=1, sort_keys=True).encode()
        archive.writestr(_entry(_MANIFEST), manifest)
        if sign is not None:
            archive.writestr(_entry(_SIGNATURE), sign(manifest))
    return Contents(SCHEMA_VERSION, digests, saved)


def verify(source: BinaryIO, check: Check | None = None) -> Contents:
    """Read a backup to its end and compare it with its manifest.

    check : function that raises an error unless the signature fits the manifest. Raises
    BackupBroken if a table differs from the manifest or cannot be read, and the errors of `check`.
    """
    with _opened(source) as archive:
        contents = _read_manifest(archive, check)
        for name in contents.tables:
            for _ in _read_table(archive, name, contents):
                pass
    return contents


def restore(database: Database, source: BinaryIO, check: Check | None = None) -> Contents:
    """Fill an empty database from a backup in one transaction, then compare its tables.

    check : function that raises an error unless the signature fits the manifest.
    Raises BackupBroken if the database already has rows, or if the backup is incomplete or
    damaged; StoreUnavailable, UnsafeStore, and the errors of `check`.
    """
    database.check()
    with _opened(source) as archive, database.transaction("restore") as tx:
        contents = _read_manifest(archive, check)
        if not tx.tables.is_empty():
            raise BackupBroken(
                "the database holds data already; restore into a new one", "database_url"
            )
        for name in contents.tables:
            try:
                tx.tables.fill(name, _read_table(archive, name, contents))
            except (StatementError, DBAPIError, ValueError, TypeError, KeyError):
                raise BackupBroken("a row does not fit its table", name) from None
        # If the database stores a value in another form (encoding, padding), only reading it back
        # shows this.
        for name, expected in contents.tables.items():
            if _digest(_lines(tx, name)) != expected:
                raise BackupBroken("the stored rows differ from the backup", name)
        _require_counts(tx)
    return contents


def _require_counts(tx: Transaction) -> None:
    for survey in tx.surveys.all():
        if tx.counts.recount(survey.id):
            raise BackupBroken("the counts of a survey disagree with its reports", survey.name)


def _lines(tx: Transaction, name: str) -> Iterator[bytes]:
    for row in tx.tables.rows(name):
        yield json.dumps(row, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def _digest(lines: Iterator[bytes]) -> tuple[int, str]:
    n, digest = 0, hashlib.sha256()
    for line in lines:
        n += 1
        digest.update(line)
    return n, digest.hexdigest()


def _write_table(archive: zipfile.ZipFile, name: str, lines: Iterator[bytes]) -> tuple[int, str]:
    with archive.open(_entry(_member(name)), "w", force_zip64=True) as file:

        def write_each() -> Iterator[bytes]:
            for line in lines:
                file.write(line)
                yield line

        return _digest(write_each())


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)  # a fixed time, so that equal rows give equal members
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _member(name: str) -> str:
    return f"tables/{name}.jsonl"


def _manifest(digests: Mapping[str, tuple[int, str]], saved: str) -> dict[str, Any]:
    tables = {name: {"rows": n, "sha256": digest} for name, (n, digest) in digests.items()}
    return {"format": FORMAT, "schema": SCHEMA_VERSION, "saved": saved, "tables": tables}


def _opened(source: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(source)
    except (zipfile.BadZipFile, OSError):
        raise BackupBroken("this is not a backup, or only a part of one") from None


def _read_manifest(archive: zipfile.ZipFile, check: Check | None) -> Contents:
    try:
        manifest = _small_member(archive, _MANIFEST)
        if check is not None:
            signed = _SIGNATURE in archive.namelist()
            check(manifest, _small_member(archive, _SIGNATURE) if signed else None)
        body = json.loads(manifest)
        tables = {
            str(name): (int(t["rows"]), str(t["sha256"])) for name, t in body["tables"].items()
        }
        contents = Contents(str(body["schema"]), tables, str(body["saved"]))
        if body["format"] != FORMAT:
            raise BackupBroken(f"this program reads {FORMAT}", "format")
    except (KeyError, ValueError, TypeError, AttributeError, zipfile.BadZipFile, OSError):
        raise BackupBroken("the manifest is missing or cannot be read", _MANIFEST) from None
    if contents.schema != SCHEMA_VERSION:
        raise BackupBroken(
            f"the backup has schema {contents.schema}, this program {SCHEMA_VERSION}: restore "
            "with the version that saved it",
            "schema",
        )
    if contents.tables.keys() != kept_tables().keys():
        raise BackupBroken("the tables of the backup are not those of this schema", "tables")
    named = {_MANIFEST, _SIGNATURE, *map(_member, contents.tables)}
    # This program would ignore a member that is not in the manifest, but another program could
    # read it.
    members = archive.namelist()
    if not set(members) <= named or len(set(members)) < len(members):
        raise BackupBroken(
            "the file holds a member twice, or one that its manifest does not name", "members"
        )
    # In the order of foreign keys, not of the manifest, because a row can be inserted only after
    # the row that it refers to.
    return Contents(
        contents.schema, {name: contents.tables[name] for name in kept_tables()}, contents.saved
    )


def _small_member(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as file:
        return file.read(_MAX_MANIFEST_BYTES)


def _read_table(
    archive: zipfile.ZipFile, name: str, contents: Contents
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table.

    Raises BackupBroken at the end if they do not match the manifest.
    """
    digest, n = hashlib.sha256(), 0
    try:
        with archive.open(_member(name)) as file:
            while line := file.readline(_MAX_LINE_BYTES):
                n += 1
                digest.update(line)
                yield _row(line, name)
    except (KeyError, zipfile.BadZipFile, OSError, EOFError):
        raise BackupBroken("a table is missing or damaged", name) from None
    if (n, digest.hexdigest()) != contents.tables[name]:
        raise BackupBroken("a table differs from the manifest", name)


def _row(line: bytes, name: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict) or set(row) != set(metadata.tables[name].columns.keys()):
        raise BackupBroken("a row does not fit its table", name)
    return row
