# SPDX-License-Identifier: Apache-2.0
"""From exports to the counts a database would hold, and to estimates by the very code that reads those."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, Self, cast

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis import Analysis
from frankly_server.scale import engines
from frankly_server.scale.columns import symbols_of
from frankly_server.scale.engines import ALONE, Engine
from frankly_server.scale.manifest import ExportBroken, Exported, Manifest
from frankly_server.store import Alike, CountKey, Database, DocumentRow, Layout, PairKey


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts of one survey's exports: a stand-in for the database, of which estimates read nothing else.

    rows : in the segments. reports : different ones; the rest were duplicates. read : yields what whole reports to the
    document of a digest hold, which is read from the segments again, and only for tables that counts cannot tell.
    """

    survey: str
    documents: tuple[Exported, ...]
    found: Mapping[str, engines.Counted]
    rows: int
    read: Callable[[str], Iterator[engines.Whole]]

    @property
    def reports(self) -> int:
        """How many different reports there are."""
        return sum(each.reports for each in self.found.values())

    def singles(self, digest: str) -> dict[CountKey, int]:
        """Return what `store.Counts.of_document` returns of a database with these reports."""
        cells = self.found[digest].cells.items()
        return {CountKey(digest, c.block, c.stratum, c.symbol): n for c, n in cells if c.other == ALONE}

    def pairs(self, digest: str) -> dict[PairKey, int]:
        """Return what `store.Counts.pairs` returns, of all pairs of blocks."""
        cells = self.found[digest].cells.items()
        return {
            PairKey(digest, c.block, c.other, c.stratum, c.symbol, c.other_symbol): n
            for c, n in cells
            if c.other != ALONE
        }

    def analysis(self) -> Analysis:
        """Return the estimator over these counts; it cannot tell them from a database's."""
        return Analysis(cast("Database", _Reading(self)))


def count(folders: Sequence[Path], engine: Engine) -> Counted:
    """Count exports of one survey, from one database or several: a report that is in more than one counts once.

    Every segment's digest is checked first. Raises ExportBroken (unfinished, damaged, of different surveys, one id with
    two contents), InvalidInput(unsupported) if the engine is not installed.
    """
    manifests = [_whole(folder) for folder in folders]
    if len({manifest.survey for manifest in manifests}) != 1:
        raise ExportBroken("these are exports of different surveys", "folder")
    versions: dict[str, Exported] = {}
    files: dict[str, list[Path]] = {}
    for folder, manifest in zip(folders, manifests, strict=True):
        for each in manifest.documents:
            versions.setdefault(each.digest, each)
            paths = [segment.check(folder) for segment in each.segments if segment.rows]
            files.setdefault(each.digest, []).extend(paths)
    layouts = {digest: Layout.of(each.document()) for digest, each in versions.items()}
    rows = {digest: sum(e.rows for m in manifests for e in m.documents if e.digest == digest) for digest in versions}
    found = {
        digest: engine.count(paths, layouts[digest], rows[digest]) if paths else engines.Counted(Counter(), 0)
        for digest, paths in files.items()
    }
    _require_apart(engine, files, found)
    documents = tuple(sorted(versions.values(), key=lambda each: each.version))

    def read(digest: str) -> Iterator[engines.Whole]:
        return engine.together(files[digest], layouts[digest], rows[digest]) if files[digest] else iter(())

    return Counted(manifests[0].survey, documents, found, sum(rows.values()), read)


def _whole(folder: Path) -> Manifest:
    manifest = Manifest.read(folder)
    if manifest is None:
        raise ExportBroken("there is no export here: see `frankly scale export`", str(folder.name))
    if not manifest.complete:
        raise ExportBroken("this export is not finished: run `frankly scale export` again", str(folder.name))
    return manifest


def _require_apart(engine: Engine, files: Mapping[str, list[Path]], found: Mapping[str, engines.Counted]) -> None:
    """Refuse ids that were used under two documents: a database would have kept one of them."""
    used = [paths for paths in files.values() if paths]
    if len(used) > 1:
        ids = engine.distinct([path for paths in used for path in paths])
        if ids != sum(each.reports for each in found.values()):
            raise ExportBroken("an id stands for reports of two versions: these exports do not belong together")


class _Reading:
    """What `Analysis` asks of a database, answered from counts."""

    def __init__(self, counted: Counted) -> None:
        self._counted = counted

    @contextmanager
    def reading(self, _name: str) -> Iterator[Self]:
        yield self

    @cached_property
    def documents(self) -> "_Documents":
        return _Documents(self._counted)

    @cached_property
    def counts(self) -> "_Counts":
        return _Counts(self._counted)

    @cached_property
    def whole(self) -> "_Whole":
        return _Whole(self._counted)

    @cached_property
    def batches(self) -> "_Batches":
        return _Batches()


class _Documents:
    def __init__(self, counted: Counted) -> None:
        self._counted = counted

    def versions(self, survey: str) -> list[DocumentRow]:
        if survey != self._counted.survey:
            return []
        return [
            DocumentRow(each.digest, survey, each.version, each.digest, each.envelope)
            for each in self._counted.documents
        ]


class _Whole:
    def __init__(self, counted: Counted) -> None:
        self._counted = counted

    def of_document(self, _survey: str, digest: str) -> Iterator[Alike]:
        document = next(each for each in self._counted.documents if each.digest == digest).document()
        mechanisms, layout = [block.mechanism for block in document.blocks], Layout.of(document)
        for stratum, values, n in self._counted.read(digest):
            yield Alike(0, symbols_of(mechanisms, layout, values), stratum, n)


class _Batches:
    """Exports name no release."""

    def newest(self, _digest: str) -> int:
        return 0


class _Counts:
    def __init__(self, counted: Counted) -> None:
        self._counted = counted

    def of_document(self, digest: str) -> Mapping[CountKey, int]:
        return self._counted.singles(digest)

    def pairs(self, digest: str, block: int, other: int) -> Mapping[PairKey, int]:
        every = self._counted.pairs(digest)
        return {key: n for key, n in every.items() if (key.block, key.other) == (block, other)}

    def by_day(self, *_arguments: Any) -> NoReturn:
        words = "exports tell no days, which are kept apart from reports: ask the database"
        raise InvalidInput(Problem.UNSUPPORTED, words, "by")
