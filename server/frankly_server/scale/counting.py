# SPDX-License-Identifier: Apache-2.0
"""Counts of exported reports, with the same rules as the database, and estimates from them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self, cast

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis import Analysis
from frankly_server.scale import engines
from frankly_server.scale.columns import symbols_of
from frankly_server.scale.engines import NO_BLOCK, Engine
from frankly_server.scale.manifest import ExportBroken, ExportedDocument, Manifest
from frankly_server.store import CountKey, Database, DocumentRow, IdenticalReports, Layout, PairKey


@dataclass(frozen=True, slots=True)
class ExportCounts:
    """Counts of one survey's exports, which replace the database as the source of estimates.

    by_digest : counts by document. rows : number of rows in the segments, including duplicates.
    read : function from a document's digest to its grouped reports. It reads the segments again,
    and is called only for estimates that cannot be computed from counts.
    """

    survey: str
    documents: tuple[ExportedDocument, ...]
    by_digest: Mapping[str, engines.DocumentCounts]
    rows: int
    read: Callable[[str], Iterator[engines.GroupedReports]]

    @property
    def reports(self) -> int:
        """Return the number of distinct reports."""
        return sum(counts.reports for counts in self.by_digest.values())

    def singles(self, digest: str) -> dict[CountKey, int]:
        """Return the counts of single blocks; see `store.counts.CountsTables.of_document`."""
        cells = self.by_digest[digest].cells.items()
        return {
            CountKey(digest, c.block, c.stratum, c.symbol): n
            for c, n in cells
            if c.other == NO_BLOCK
        }

    def pairs(self, digest: str) -> dict[PairKey, int]:
        """Return the counts of all pairs of blocks; see `store.counts.CountsTables.pairs`."""
        cells = self.by_digest[digest].cells.items()
        return {
            PairKey(digest, c.block, c.other, c.stratum, c.symbol, c.other_symbol): n
            for c, n in cells
            if c.other != NO_BLOCK
        }

    def analysis(self) -> Analysis:
        """Return an `Analysis` that reads these counts instead of a database."""
        # Not a subclass of Database, which needs a connection. `Analysis` calls only these methods.
        return Analysis(cast("Database", _ExportDatabase(self)))


def count(folders: Sequence[Path], engine: Engine) -> ExportCounts:
    """Count exports of one survey, from one or several databases.

    A report in several exports is counted once. The digest of every non-empty segment is checked
    before the segments are counted.

    Raises ExportBroken if an export is missing, unfinished or damaged, if the exports are of
    different surveys, or if two reports have the same id; InvalidInput(unsupported) if the engine
    is not installed.
    """
    manifests = [_complete_manifest(folder) for folder in folders]
    if len({manifest.survey for manifest in manifests}) != 1:
        raise ExportBroken("these are exports of different surveys", "folder")
    versions: dict[str, ExportedDocument] = {}
    files: dict[str, list[Path]] = {}
    rows: Counter[str] = Counter()
    for folder, manifest in zip(folders, manifests, strict=True):
        for exported in manifest.documents:
            # Several exports may contain the same version; the digest identifies it.
            versions.setdefault(exported.digest, exported)
            paths = [segment.check(folder) for segment in exported.segments if segment.rows]
            files.setdefault(exported.digest, []).extend(paths)
            rows[exported.digest] += exported.rows
    layouts = {digest: Layout.of(exported.document()) for digest, exported in versions.items()}
    empty = engines.DocumentCounts(Counter(), 0)
    by_digest = {
        digest: engine.count(paths, layouts[digest], rows[digest]) if paths else empty
        for digest, paths in files.items()
    }
    _require_disjoint_ids(engine, files, by_digest)
    documents = tuple(sorted(versions.values(), key=lambda exported: exported.version))

    def read(digest: str) -> Iterator[engines.GroupedReports]:
        if not files[digest]:
            return iter(())
        return engine.grouped_reports(files[digest], layouts[digest], rows[digest])

    return ExportCounts(manifests[0].survey, documents, by_digest, sum(rows.values()), read)


def _complete_manifest(folder: Path) -> Manifest:
    manifest = Manifest.read(folder)
    if manifest is None:
        raise ExportBroken("there is no export here: see `frankly scale export`", str(folder.name))
    if not manifest.complete:
        raise ExportBroken(
            "this export is not finished: run `frankly scale export` again", str(folder.name)
        )
    return manifest


def _require_disjoint_ids(
    engine: Engine, files: Mapping[str, list[Path]], by_digest: Mapping[str, engines.DocumentCounts]
) -> None:
    """Raise ExportBroken if an id occurs under two documents, which no database would store."""
    # The engine has already checked for conflicts within each document. Columns differ between
    # documents, so only the numbers of ids are compared.
    nonempty = [paths for paths in files.values() if paths]
    if len(nonempty) > 1:
        ids = engine.distinct([path for paths in nonempty for path in paths])
        if ids != sum(counts.reports for counts in by_digest.values()):
            raise ExportBroken(
                "reports of two versions have the same id: these exports do not belong together"
            )


class _ExportDatabase:
    """Substitute for `Database` and `Transaction` with the members that `Analysis` uses."""

    def __init__(self, counts: ExportCounts) -> None:
        self.documents = _ExportDocuments(counts)
        self.counts = _ExportCountsTables(counts)
        self.released_reports = _ExportReports(counts)
        self.batches = _ExportBatches()

    @contextmanager
    def reading(self, _name: str) -> Iterator[Self]:
        yield self


@dataclass(frozen=True, slots=True)
class _ExportDocuments:
    _counts: ExportCounts

    def versions(self, survey: str) -> list[DocumentRow]:
        if survey != self._counts.survey:
            return []
        # The fourth field is the digest of the draft. Exports do not contain it and estimates do
        # not read it, so the document's digest is used.
        return [
            DocumentRow(
                exported.digest, survey, exported.version, exported.digest, exported.envelope
            )
            for exported in self._counts.documents
        ]


@dataclass(frozen=True, slots=True)
class _ExportReports:
    _counts: ExportCounts

    def of_document(self, _survey: str, digest: str) -> Iterator[IdenticalReports]:
        document = next(row for row in self._counts.documents if row.digest == digest).document()
        layout = Layout.of(document)
        for stratum, values, n in self._counts.read(digest):
            yield IdenticalReports(0, symbols_of(layout, values), stratum, n)


class _ExportBatches:
    """Batches of an export. There are none, because exports do not record releases."""

    def newest(self, _digest: str) -> int:
        return 0  # as for a document without any release

    def of_document(self, _digest: str) -> tuple[()]:
        return ()  # so nothing is corrected by an instructed item


@dataclass(frozen=True, slots=True)
class _ExportCountsTables:
    _counts: ExportCounts

    def of_document(self, digest: str) -> Mapping[CountKey, int]:
        return self._counts.singles(digest)

    def pairs(self, digest: str, block: int, other: int) -> Mapping[PairKey, int]:
        pairs = self._counts.pairs(digest)
        return {key: n for key, n in pairs.items() if (key.block, key.other) == (block, other)}

    def by_day(self, *_arguments: Any) -> NoReturn:
        # Only batches and counts have a day; reports, and therefore exports, have no time.
        raise InvalidInput(
            Problem.UNSUPPORTED, "exports contain no days: use estimates from the database", "by"
        )
