# SPDX-License-Identifier: Apache-2.0
"""Resumable export of a survey's reports as Parquet segments, each report exactly once.

An export can run while the server accepts reports; another run brings it up to date. Stored reports
never change, so a segment stays valid while its range of ids has the same number of reports; other
ranges are exported again. Remove the folder of an export after its survey has been erased.
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

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.keys.durable import sync_folder, written_whole
from frankly_server.scale.columns import optional_module, schema, table
from frankly_server.scale.manifest import ExportBroken, ExportedDocument, Manifest, Segment
from frankly_server.store import Database, DocumentRow, Layout
from frankly_server.store.exporting import FIRST, LAST, ExportedRow

ROWS: Final = 1_000_000
"""Default number of reports in a segment; their random ids alone take 16 MB."""
_GROUP: Final = 50_000
"""Number of rows in a Parquet row group; all of them are in memory at once."""
Range = tuple[str, str]  # ids with after < id ≤ last


def export(database: Database, survey: str, folder: Path, *, rows: int = ROWS) -> Manifest:
    """Bring the export of a survey (its id) in `folder` up to date and return its manifest.

    rows : largest number of reports in a segment. After a killed run, the next run continues from
    the manifest on disk.

    Raises InvalidInput: survey_unknown, unsupported without pyarrow, field_type for `rows` below 1;
    ExportBroken if the folder contains another survey's export or is in use; StoreUnavailable.
    """
    if rows < 1:
        raise InvalidInput(Problem.FIELD_TYPE, "a segment has at least one report", "rows")
    optional_module("pyarrow.parquet")  # fails before any file is written
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        return _export_locked(database, survey, folder, rows)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other exports; the OS releases the lock of a killed process."""
    with (folder / ".lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ExportBroken(
                "another export is writing to this folder: wait for it", "folder"
            ) from None
        yield


def _export_locked(database: Database, survey: str, folder: Path, rows: int) -> Manifest:
    previous = Manifest.read(folder)
    manifest = _start(database, survey, previous)
    _remove_unnamed_files(folder, previous)
    for index in range(len(manifest.documents)):
        for gap in _gaps(manifest.documents[index].segments):
            manifest = _fill(database, folder, manifest, index, gap, rows)
    manifest = replace(manifest, complete=True)
    manifest.write(folder)
    # Replaced segments are removed last, so that the manifest on disk never lists a missing file.
    _remove_unnamed_files(folder, manifest)
    return manifest


def _start(database: Database, survey: str, previous: Manifest | None) -> Manifest:
    """Return a manifest of all published versions with the segments that are still up to date."""
    if previous is not None and previous.survey != survey:
        raise ExportBroken(
            "this folder contains the export of another survey: choose another folder", "folder"
        )
    segments_of = (
        {} if previous is None else {row.digest: row.segments for row in previous.documents}
    )
    with database.reading("begin export") as tx:
        rows = tx.documents.versions(survey)
        if not rows:
            raise InvalidInput(
                Problem.SURVEY_UNKNOWN, "no survey is published under this id", "survey"
            )
        documents = []
        for row in rows:
            _require_columns(row)
            segments = tuple(
                segment
                for segment in segments_of.get(row.digest, ())
                if tx.exporting.number(survey, row.digest, segment.after, segment.last)
                == segment.rows
            )
            documents.append(ExportedDocument(row.digest, row.version, row.envelope, segments))
    return Manifest(survey, tuple(documents))


def _require_columns(row: DocumentRow) -> None:
    """Raise InvalidInput(unsupported) for a document whose reports do not fit into columns."""
    document = SurveyDocument.from_envelope(row.envelope)
    forms = [block.form is not None for block in document.blocks]
    for is_so, what in ((any(forms), "on a form with one level"), (document.arms, "with arms")):
        if is_so:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                f"reports {what} cannot be exported; their estimates read counts, whose number "
                "does not grow with the reports",
                "survey",
            )


def _gaps(segments: Sequence[Segment]) -> Iterator[Range]:
    """Yield the ranges of ids that no segment covers; the segments are sorted by `after`."""
    reached = FIRST
    for segment in segments:
        if segment.after > reached:
            yield reached, segment.after
        reached = segment.last
    if reached < LAST:
        yield reached, LAST


def _fill(
    database: Database, folder: Path, manifest: Manifest, index: int, gap: Range, rows: int
) -> Manifest:
    """Export a range of the document at `index`, segment by segment; return the new manifest.

    The manifest on disk is replaced after every segment, so a killed run loses at most one.
    """
    after, last = gap
    while after < last:
        segment = _write_segment(database, folder, manifest, index, (after, last), rows)
        document = manifest.documents[index]
        segments = tuple(sorted((*document.segments, segment), key=lambda segment: segment.after))
        documents = list(manifest.documents)
        documents[index] = replace(document, segments=segments)
        manifest = replace(manifest, documents=tuple(documents))
        manifest.write(folder)
        after = segment.last
    return manifest


def _write_segment(
    database: Database, folder: Path, manifest: Manifest, index: int, within: Range, rows: int
) -> Segment:
    """Write the first `rows` reports of a range, read from one snapshot of the database."""
    document, (after, last) = manifest.documents[index], within
    subfolder = folder / f"document={document.digest.removeprefix('sha256:')}"
    if not subfolder.exists():
        # The folder must be on disk before a manifest lists files in it.
        subfolder.mkdir()
        sync_folder(folder)
    # A new name, because the manifest still lists the old segment of this range.
    path = subfolder / f"part-{secrets.token_hex(8)}.parquet"
    with (
        database.reading("export") as tx,
        written_whole(path) as file,
        closing(tx.exporting.rows(manifest.survey, document.digest, after, last)) as reports,
    ):
        n, reached = _write(
            file, Layout.of(SurveyDocument.from_envelope(document.envelope)), islice(reports, rows)
        )
        # If there are no further reports, the segment covers the range to its end. A later report
        # then changes the segment's number of reports.
        if n < rows or next(reports, None) is None:
            reached = last
    with path.open("rb") as segment_file:
        digest = hashlib.file_digest(segment_file, "sha256").hexdigest()
    return Segment(str(path.relative_to(folder)), after, reached, n, digest)


def _write(file: Any, layout: Layout, rows: Iterator[ExportedRow]) -> tuple[int, str]:
    """Write rows in groups; return their number and the last row's id (FIRST if there are none)."""
    parquet, arrow_schema = optional_module("pyarrow.parquet"), schema(layout)
    n, reached = 0, FIRST
    with parquet.ParquetWriter(file, arrow_schema, compression="zstd") as writer:
        # One row group per iteration. Reading one row ahead avoids an empty last group.
        while (first := next(rows, None)) is not None:
            group = list(chain([first], islice(rows, _GROUP - 1)))
            writer.write_table(table(layout, group, arrow_schema))
            n, reached = n + len(group), group[-1][0].hex()
    return n, reached


def _remove_unnamed_files(folder: Path, manifest: Manifest | None) -> None:
    """Remove files that are not in the manifest: replaced segments, and files of killed runs."""
    named = set() if manifest is None else set(manifest.files())
    for path in folder.glob("document=*/*"):
        if str(path.relative_to(folder)) not in named:
            path.unlink()
    # Temporary files that `written_whole` leaves behind if a run is killed.
    for path in folder.glob(".manifest.json-*"):
        with suppress(FileNotFoundError):
            path.unlink()
