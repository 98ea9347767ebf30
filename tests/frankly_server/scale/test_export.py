# SPDX-License-Identifier: Apache-2.0
"""Exports, which contain every report exactly once, wherever a run was stopped."""

import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as parquet
import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism, SubsetMechanism, UnaryMechanism
from frankly_server.scale import ExportBroken, Manifest, export
from frankly_server.store import Database, DocumentRow, SurveyRow

from tests.frankly_server.samples import SURVEY, stored
from tests.frankly_server.scale.filled import edited, filled, ids_in, rows, store
from tests.frankly_server.store.counted import SMALL, number


def stored_ids(database: Database) -> list[str]:
    with database.reading("check") as tx:
        return sorted(row.id for row in stored(tx, SURVEY))


def test_every_report_is_exported_once_and_unchanged(database: Database, tmp_path: Path) -> None:
    documents = filled(database, 120)
    manifest = export(database, SURVEY, tmp_path, rows=25)
    assert manifest == Manifest.read(tmp_path)
    assert manifest.complete
    assert (manifest.rows, sorted(ids_in(tmp_path))) == (120, stored_ids(database))
    with database.reading("check") as tx:
        stored_rows = {row.id: row for row in stored(tx, SURVEY)}
    for each, document in zip(manifest.documents, documents, strict=True):
        assert each.digest == document.digest
        assert max(segment.rows for segment in each.segments) <= 25
        assert all(
            hashlib.sha256((tmp_path / s.file).read_bytes()).hexdigest() == s.sha256
            for s in each.segments
        )
        for segment in each.segments:
            found = parquet.read_table(tmp_path / segment.file).to_pylist()
            assert [row["id"] for row in found] == sorted(row["id"] for row in found)
            for row in found:
                stored_row = stored_rows[row["id"].hex()]
                assert (stored_row.document, stored_row.strata) == (document.digest, row["stratum"])
                for i, (b, symbol) in enumerate(
                    zip(document.blocks, stored_row.symbols, strict=True)
                ):
                    assert row[f"b{i}"] == column(b.numbered_mechanism, symbol)


def test_an_export_is_brought_up_to_date(sqlite: Database, tmp_path: Path) -> None:
    documents = filled(sqlite, 60)
    first = export(sqlite, SURVEY, tmp_path, rows=20)
    assert export(sqlite, SURVEY, tmp_path, rows=20) == first
    drawn = [block.numbered_mechanism for block in documents[0].blocks]
    store(sqlite, rows(documents[0], drawn, 7, Random(9)))
    second = export(sqlite, SURVEY, tmp_path, rows=20)
    assert sorted(ids_in(tmp_path)) == stored_ids(sqlite)
    assert second.documents[1] == first.documents[1]  # nothing new, so not written again
    named = {*second.files()}
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.glob("document=*/*")} == named


def column(mechanism: Mechanism, symbol: Any) -> Any:
    """Return the value of a symbol in a segment: its number, or the positions of a larger set."""
    if isinstance(mechanism, UnaryMechanism | SubsetMechanism) and mechanism.answers > SMALL:
        return [x for x in range(mechanism.answers) if int(symbol, 16) >> x & 1]
    return number(mechanism, symbol)


class Stopped(BaseException):
    """Simulated end of the process."""


def test_a_run_stopped_at_any_point_is_resumed(
    sqlite: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test stops a run before each fsync, rename, unlink and mkdir; the next run completes the export."""
    filled(sqlite, 40)
    real = {name: getattr(os, name) for name in ("fsync", "rename", "unlink", "mkdir")}
    stops = 0
    for point in range(1000):
        folder, left = tmp_path / str(point), [point]
        folder.mkdir()

        def stopping(name: str, left: list[int] = left) -> Any:
            def call(*arguments: Any, **options: Any) -> Any:
                if left[0] == 0:
                    raise Stopped
                left[0] -= 1
                return real[name](*arguments, **options)

            return call

        with monkeypatch.context() as patched:
            for name in real:
                patched.setattr(os, name, stopping(name))
            try:
                export(sqlite, SURVEY, folder, rows=10)
            except Stopped:
                stops += 1
            else:
                break
        before = Manifest.read(folder)
        assert before is None or len(ids_in(folder)) == before.rows
        assert export(sqlite, SURVEY, folder, rows=10).complete
        assert sorted(ids_in(folder)) == stored_ids(sqlite)
    assert stops > 20


def test_a_killed_export_is_resumed(
    sqlite: Database, sqlite_url: str, tmp_path: Path, full: bool
) -> None:
    filled(sqlite, 150)
    code = (
        "import sys; from pathlib import Path; from frankly_server.scale import export; "
        "from frankly_server.store import Database; "
        "export(Database(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), rows=2)"
    )
    folder = tmp_path / "out"
    for kill in range(20 if full else 1):
        process = subprocess.Popen([sys.executable, "-c", code, sqlite_url, SURVEY, str(folder)])
        wanted, deadline = 5 * (kill + 1), time.monotonic() + 120
        while len(list(folder.glob("document=*/*"))) < wanted and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        assert process.poll() is None, "the export must still run when it is killed"
        process.send_signal(signal.SIGKILL)
        process.wait()
    export(sqlite, SURVEY, folder, rows=50)
    assert sorted(ids_in(folder)) == stored_ids(sqlite)


def test_two_exports_do_not_write_to_one_folder(sqlite: Database, tmp_path: Path) -> None:
    filled(sqlite, 4)
    with (tmp_path / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ExportBroken, match="another export"):
            export(sqlite, SURVEY, tmp_path)


def test_impossible_exports_are_refused(sqlite: Database, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no survey"):
        export(sqlite, SURVEY, tmp_path)
    document = filled(sqlite, 4)[0]
    with pytest.raises(InvalidInput, match="at least one"):
        export(sqlite, SURVEY, tmp_path, rows=0)
    export(sqlite, SURVEY, tmp_path)
    with sqlite.transaction("another") as tx:
        envelope = tx.documents.versions(SURVEY)[0].envelope
        tx.surveys.add(SurveyRow("cd" * 16, "another", "{}"))
        tx.documents.add(
            DocumentRow("sha256:" + "cd" * 32, "cd" * 16, 1, document.digest, envelope)
        )
    with pytest.raises(ExportBroken, match="another survey"):
        export(sqlite, "cd" * 16, tmp_path)


MANIFESTS = {
    "no JSON": b"{",
    "another format": json.dumps({"format": "frankly.segments/9"}).encode(),
    "a list": b"[]",
    "no documents": json.dumps({"format": "frankly.segments/1", "survey": SURVEY}).encode(),
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_broken_manifests_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "manifest.json").write_bytes(MANIFESTS[name])
    with pytest.raises(ExportBroken):
        Manifest.read(tmp_path)


@pytest.mark.parametrize("file", ["../x.parquet", "/etc/passwd", "a/../../b"])
def test_segments_outside_the_folder_are_refused(
    sqlite: Database, tmp_path: Path, file: str
) -> None:
    filled(sqlite, 4)
    export(sqlite, SURVEY, tmp_path)
    edited(tmp_path, file=file)
    with pytest.raises(ExportBroken):
        Manifest.read(tmp_path)
