# SPDX-License-Identifier: Apache-2.0
"""Counts and estimates of exports, which equal the database's byte for byte; duplicates count once."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.analysis import Analysis, encode
from frankly_server.analysis.result import READ
from frankly_server.scale import (
    DuckDB,
    ExportBroken,
    ExportCounts,
    Manifest,
    columns,
    count,
    export,
)
from frankly_server.store import Database

from tests.frankly_server.samples import SURVEY, stored
from tests.frankly_server.scale.filled import (
    conflicting,
    counted,
    edited,
    filled,
    from_export,
    ready,
    segment_of,
    with_duplicates,
)
from tests.refusals import refusal


@pytest.mark.parametrize("slice_rows", [100, 10_000])
def test_counts_and_estimates_equal_those_of_the_database(
    database: Database, tmp_path: Path, slice_rows: int
) -> None:
    documents = filled(database, 160)
    export(database, SURVEY, tmp_path / "a", rows=90)
    copies = with_duplicates(tmp_path / "a", tmp_path / "b", every=10)
    assert copies >= 16
    export_counts = count([tmp_path / "a", tmp_path / "b"], DuckDB(slice_rows=slice_rows))
    assert (export_counts.rows, export_counts.reports) == (160 + copies, 160)
    for document in documents:
        assert (
            export_counts.singles(document.digest),
            export_counts.pairs(document.digest),
        ) == counted(database, document)
    analysis, tables = Analysis(database), [q.id for q in documents[1].blocks[0].questions]
    for targets in (None, tables) if len(tables) > 1 else (None,):
        answer = from_export(analysis.estimates(SURVEY, targets=targets))
        assert encode(export_counts.analysis().estimates(SURVEY, targets=targets)) == answer


@pytest.mark.parametrize("seed", [1, 7])  # 7 includes a large set
def test_tables_from_whole_reports_equal_those_of_the_database(
    sqlite: Database, tmp_path: Path, seed: int
) -> None:
    """Pairs with sets and tables of all three questions are counted from whole reports, each id once."""
    documents = filled(sqlite, 400, seed)
    export(sqlite, SURVEY, tmp_path / "a")
    with_duplicates(tmp_path / "a", tmp_path / "b", every=10)
    export_counts = count([tmp_path / "a", tmp_path / "b"], DuckDB(slice_rows=150))
    names = [block.questions[0].id for block in documents[1].blocks]
    read = 0
    for questions in (names, names[:2], names[1:]):
        answer = Analysis(sqlite).estimates(SURVEY, targets=questions)
        assert answer["questions"][0]["status"] == "ok"
        read += READ in answer["notes"]
        assert encode(export_counts.analysis().estimates(SURVEY, targets=questions)) == from_export(
            answer
        )
    assert read >= 1
    assert sorted_whole(export_counts, documents[0].digest) == stored_whole(
        sqlite, documents[0].digest
    )


def sorted_whole(export_counts: ExportCounts, digest: str) -> list[tuple[str, int]]:
    """Return the contents of whole reports as JSON, each with the number of such reports."""
    total: Counter[str] = Counter()
    # The source of an export has the same reading interface as a database.
    database: Any = export_counts.analysis()._database
    for _, symbols, stratum, n in database.released_reports.of_document(SURVEY, digest):
        total[json.dumps([symbols, stratum])] += n
    return sorted(total.items())


def stored_whole(database: Database, digest: str) -> list[tuple[str, int]]:
    with database.reading("check") as tx:
        rows = [row for row in stored(tx, SURVEY) if row.document == digest]
    return sorted(Counter(json.dumps([list(row.symbols), row.strata]) for row in rows).items())


def test_a_survey_without_reports_is_counted(sqlite: Database, tmp_path: Path) -> None:
    filled(sqlite, 0)
    export(sqlite, SURVEY, tmp_path)
    counted = count([tmp_path], DuckDB())
    assert counted.reports == 0
    assert encode(counted.analysis().estimates(SURVEY)) == from_export(
        Analysis(sqlite).estimates(SURVEY)
    )


def test_figures_that_exports_lack_are_refused(sqlite: Database, tmp_path: Path) -> None:
    filled(sqlite, 40)
    export(sqlite, SURVEY, tmp_path)
    analysis = count([tmp_path], DuckDB()).analysis()
    assert refusal(InvalidInput, analysis.estimates, "00" * 16).code == "survey_unknown"
    with pytest.raises(InvalidInput, match="no days"):
        count([tmp_path], DuckDB()).analysis()._database.counts.by_day("x")  # type: ignore[attr-defined]


def test_a_changed_segment_is_found(sqlite: Database, tmp_path: Path) -> None:
    folder = ready(sqlite, tmp_path)
    path = min(folder.glob("document=*/*"))
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    with pytest.raises(ExportBroken, match="not the one"):
        count([folder], DuckDB())
    path.unlink()
    with pytest.raises(ExportBroken, match="missing"):
        count([folder], DuckDB())


def test_incomplete_exports_are_refused(sqlite: Database, tmp_path: Path) -> None:
    folder = ready(sqlite, tmp_path)
    manifest = Manifest.read(folder)
    assert manifest is not None
    replace(manifest, complete=False).write(folder)
    with pytest.raises(ExportBroken, match="not finished"):
        count([folder], DuckDB())
    (folder / "manifest.json").unlink()
    with pytest.raises(ExportBroken, match="no export"):
        count([folder], DuckDB())
    replace(manifest, survey="cd" * 16).write(folder)
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    manifest.write(other_folder)
    with pytest.raises(ExportBroken, match="different surveys"):
        count([folder, other_folder], DuckDB())


def test_an_exchanged_document_is_refused(sqlite: Database, tmp_path: Path) -> None:
    folder = ready(sqlite, tmp_path)
    manifest = Manifest.read(folder)
    assert manifest is not None
    first, second = manifest.documents
    replace(manifest, documents=(replace(first, envelope=second.envelope), second)).write(folder)
    with pytest.raises(ExportBroken, match="not the one"):
        count([folder], DuckDB())


def test_one_id_with_two_contents_is_refused(sqlite: Database, tmp_path: Path) -> None:
    """A database would have stored the first report; an export does not show which report was first."""
    with pytest.raises(ExportBroken, match="more than one report"):
        count(conflicting(sqlite, tmp_path), DuckDB())


def test_one_id_under_two_documents_is_refused(sqlite: Database, tmp_path: Path) -> None:
    folder = ready(sqlite, tmp_path / "a")
    manifest = Manifest.read(folder)
    assert manifest is not None
    first, second = manifest.documents
    first_row = parquet.read_table(folder / first.segments[0].file).slice(0, 1)
    foreign = (
        parquet.read_table(folder / second.segments[0].file)
        .slice(0, 1)
        .set_column(0, "id", first_row.column("id"))
    )
    bad = tmp_path / "b"
    bad.mkdir()
    replace(
        manifest, documents=(replace(second, segments=(segment_of(bad, "y.parquet", foreign),)),)
    ).write(bad)
    with pytest.raises(ExportBroken, match="two versions"):
        count([folder, bad], DuckDB())


def test_a_missing_package_is_named() -> None:
    with pytest.raises(InvalidInput, match="pip install a_module_that_is_nowhere"):
        columns.optional_module("a_module_that_is_nowhere.part")


def test_edited_numbers_of_rows_do_not_change_counts(sqlite: Database, tmp_path: Path) -> None:
    folder = ready(sqlite, tmp_path)
    right = count([folder], DuckDB())
    edited(folder, rows=3 * 10**7)
    assert count([folder], DuckDB()).by_digest == right.by_digest
