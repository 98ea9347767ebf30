# SPDX-License-Identifier: Apache-2.0
"""Exporting a survey's reports as Parquet segments: partitioned by document and ranges of ids, resumable, exactly once.

An export runs beside a server that takes reports. Stored reports never change, so a range whose number of reports is
the one of its segment needs nothing; any other is exported again. Running an export twice leaves the newest state.
"""

import fcntl
import hashlib
import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.durable import sync_folder, written_whole
from frankly_server.scale.columns import needed, schema, table
from frankly_server.scale.manifest import ExportBroken, Exported, Manifest, Segment
from frankly_server.store import Database, Layout
from frankly_server.store.exporting import FIRST, LAST, ExportedRow

ROWS: Final = 1_000_000
"""Reports of a segment: some ten megabytes."""
_GROUP: Final = 50_000
"""Rows that are held in memory at a time."""
Range = tuple[str, str]


def export(database: Database, survey: str, folder: Path, *, rows: int = ROWS) -> Manifest:
    """Bring the export of a survey (its id) in `folder` up to date, and return its manifest.

    rows : most reports in a segment. A run that was killed, at any point, is taken up where its manifest ends.
    Raises InvalidInput: survey_unknown, unsupported without pyarrow, field_type for `rows`; ExportBroken if the folder
    holds another survey's export; StoreUnavailable.
    """
    if rows < 1:
        raise InvalidInput(Problem.FIELD_TYPE, "a segment holds at least one report", "rows")
    needed("pyarrow.parquet", "parquet")
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        return _exported(database, survey, folder, rows)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other exports out of a folder; the lock ends with the process, however that ends."""
    with (folder / ".lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ExportBroken("another export is writing to this folder: wait for it", "folder") from None
        yield


def _exported(database: Database, survey: str, folder: Path, rows: int) -> Manifest:
    before = Manifest.read(folder)
    manifest = _begun(database, survey, before)
    _tidy(folder, before)
    for place in range(len(manifest.documents)):
        for gap in _gaps(manifest.documents[place].segments):
            manifest = _filled(database, folder, manifest, place, gap, rows)
    manifest = replace(manifest, complete=True)
    manifest.write(folder)
    _tidy(folder, manifest)
    return manifest


def _begun(database: Database, survey: str, before: Manifest | None) -> Manifest:
    """Return what of an earlier manifest still holds, for every version there is now."""
    if before is not None and before.survey != survey:
        raise ExportBroken("this folder holds the export of another survey: choose another folder", "folder")
    kept = {} if before is None else {each.digest: each.segments for each in before.documents}
    with database.reading("begin export") as tx:
        documents = tx.documents.versions(survey)
        if not documents:
            raise InvalidInput(Problem.SURVEY_UNKNOWN, "no survey is published under this id", "survey")
        found = []
        for row in documents:
            segments = tuple(
                each
                for each in kept.get(row.digest, ())
                if tx.exporting.number(survey, row.digest, each.after, each.last) == each.rows
            )
            found.append(Exported(row.digest, row.version, row.envelope, segments))
    return Manifest(survey, tuple(found))


def _gaps(segments: Sequence[Segment]) -> Iterator[Range]:
    """Yield the ranges of ids that no segment covers."""
    reached = FIRST
    for each in segments:
        if each.after > reached:
            yield reached, each.after
        reached = each.last
    if reached < LAST:
        yield reached, LAST


def _filled(database: Database, folder: Path, manifest: Manifest, place: int, gap: Range, rows: int) -> Manifest:
    """Export a range, segment by segment; the manifest on disk names each as soon as it is whole."""
    after, last = gap
    while after < last:
        segment = _segment(database, folder, manifest, place, (after, last), rows)
        own = manifest.documents[place]
        segments = tuple(sorted((*own.segments, segment), key=lambda each: each.after))
        documents = list(manifest.documents)
        documents[place] = replace(own, segments=segments)
        manifest = replace(manifest, documents=tuple(documents))
        manifest.write(folder)
        after = segment.last
    return manifest


def _segment(database: Database, folder: Path, manifest: Manifest, place: int, within: Range, rows: int) -> Segment:
    """Write the first `rows` reports of a range; all of it is read in one moment of the database."""
    own, (after, last) = manifest.documents[place], within
    home = folder / f"document={own.digest.removeprefix('sha256:')}"
    if not home.exists():
        home.mkdir()
        sync_folder(folder)
    path = home / f"part-{secrets.token_hex(8)}.parquet"
    with (
        database.reading("export") as tx,
        written_whole(path) as file,
        closing(tx.exporting.rows(manifest.survey, own.digest, after, last)) as found,
    ):
        n, reached = _write(file, Layout.read(own.envelope), islice(found, rows))
        if n < rows or next(found, None) is None:
            reached = last
    with path.open("rb") as whole:
        digest = hashlib.file_digest(whole, "sha256").hexdigest()
    return Segment(str(path.relative_to(folder)), after, reached, n, digest)


def _write(file: Any, layout: Layout, rows: Iterator[ExportedRow]) -> tuple[int, str]:
    """Write rows in groups; return how many there were and the last one's id."""
    parquet, wanted, n, reached = needed("pyarrow.parquet", "parquet"), schema(layout), 0, FIRST
    with parquet.ParquetWriter(file, wanted, compression="zstd") as writer:
        while (first := next(rows, None)) is not None:
            group = list(chain([first], islice(rows, _GROUP - 1)))
            writer.write_table(table(layout, group, wanted))
            n, reached = n + len(group), group[-1][0].hex()
    return n, reached


def _tidy(folder: Path, manifest: Manifest | None) -> None:
    """Remove files that no manifest names: what a killed run left, and segments that were exported again."""
    named = set() if manifest is None else set(manifest.files())
    for path in folder.glob("document=*/*"):
        if str(path.relative_to(folder)) not in named:
            path.unlink()
    for path in folder.glob(".manifest.json-*"):
        with suppress(FileNotFoundError):
            path.unlink()
