# SPDX-License-Identifier: Apache-2.0
"""Surveys with reports of every kind and of two versions in a database, and exports with duplicates."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as arrow
import pyarrow.parquet as parquet
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import Mechanism
from frankly_server.analysis import encode
from frankly_server.scale import Manifest, Segment, export
from frankly_server.store import CountKey, Database, PairKey, ReportRow

from tests.frankly_protocol.samples import survey
from tests.frankly_server.samples import SURVEY, put
from tests.frankly_server.store.counted import block, kept, mechanisms, symbols

STRATA = ("", '{"region":"north"}', '{"region":"süd"}')


def filled(database: Database, n: int, seed: int = 1) -> list[SurveyDocument]:
    """Publish two versions of a survey with all mechanism kinds and store n reports, most on the
    first version."""
    rng = Random(seed)
    documents: list[SurveyDocument] = []
    for version in (1, 2):
        drawn = mechanisms(rng) if version == 1 else mechanisms(rng)[:3]
        made = survey(*(block(f"b{i}", m) for i, m in enumerate(drawn)), survey_id=SURVEY)
        previous = documents[-1].digest if documents else None
        documents.append(put(database, replace(made, version=version, prev=previous)))
        store(
            database,
            rows(documents[-1], drawn, n * 3 // 4 if version == 1 else n - n * 3 // 4, rng),
        )
    return documents


def rows(
    document: SurveyDocument, drawn: Sequence[Mechanism], n: int, rng: Random
) -> list[ReportRow]:
    """Return n reports with random ids, truths and strata."""
    return [
        ReportRow(
            SURVEY,
            f"{rng.getrandbits(128):032x}",
            document.digest,
            symbols(drawn, rng),
            rng.choice(STRATA),
        )
        for _ in range(n)
    ]


def store(database: Database, found: Sequence[ReportRow]) -> None:
    """Store reports and release them."""
    with database.transaction("fill") as tx:
        tx.reports.add(found)
        for digest in {row.document for row in found}:
            tx.releases.release(SURVEY, digest, 1, "2026-06-02T00:00:00Z", is_over=lambda: False)


def counted(
    database: Database, document: SurveyDocument
) -> tuple[dict[CountKey, int], dict[PairKey, int]]:
    """Return all counts of a document in the database."""
    with database.reading("check") as tx:
        return kept(tx, document.digest, len(document.blocks))


def ids_in(folder: Path) -> list[str]:
    """Return the id of every row of every segment that the manifest names."""
    manifest = Manifest.read(folder)
    assert manifest is not None
    return [
        value.hex()
        for file in manifest.files()
        for value in parquet.read_table(folder / file)["id"].to_pylist()
    ]


def with_duplicates(folder: Path, target: Path, every: int = 100) -> int:
    """Write another export with one in `every` reports of `folder`; return the number of reports."""
    manifest = Manifest.read(folder)
    assert manifest is not None
    target.mkdir()
    documents, copied = [], 0
    for i, each in enumerate(manifest.documents):
        tables = [parquet.read_table(folder / segment.file) for segment in each.segments]
        table = arrow.concat_tables(tables)
        table = table.take(list(range(0, len(table), every)))
        copied += len(table)
        documents.append(
            replace(each, segments=(segment_of(target, f"copies-{i}.parquet", table),))
        )
    replace(manifest, documents=tuple(documents)).write(target)
    return copied


def segment_of(folder: Path, name: str, table: arrow.Table) -> Segment:
    """Write a table as a segment that covers all ids."""
    parquet.write_table(table, folder / name)
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    return Segment(name, "", "f" * 32, len(table), digest)


def edited(folder: Path, **changes: object) -> None:
    """Change fields of the manifest's first segment."""
    path = folder / "manifest.json"
    body = json.loads(path.read_text())
    body["documents"][0]["segments"][0].update(changes)
    path.write_text(json.dumps(body))


def from_export(body: dict[str, Any]) -> bytes:
    """Return a response as computed from an export, which names no release."""
    documents = [each | {"release": 0} for each in body["inputs"]["documents"]]
    return encode(body | {"inputs": body["inputs"] | {"documents": documents}})


def ready(database: Database, folder: Path) -> Path:
    filled(database, 40)
    export(database, SURVEY, folder, rows=15)
    return folder


def conflicting(database: Database, home: Path) -> list[Path]:
    """Return two exports in which one id belongs to two reports of one document."""
    folder = ready(database, home / "a")
    manifest = Manifest.read(folder)
    assert manifest is not None
    first = manifest.documents[0]
    first_row = parquet.read_table(folder / first.segments[0].file).slice(0, 1)
    changed = first_row.set_column(1, "stratum", arrow.array(["elsewhere"]))
    bad = home / "b"
    bad.mkdir()
    replace(
        manifest, documents=(replace(first, segments=(segment_of(bad, "x.parquet", changed),)),)
    ).write(bad)
    return [folder, bad]
