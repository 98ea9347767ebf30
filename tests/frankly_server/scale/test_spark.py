# SPDX-License-Identifier: Apache-2.0
"""Spark cluster, which counts exports as the database does, even if one of two workers is killed."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from frankly_server.analysis import Analysis, encode
from frankly_server.scale import DuckDB, ExportBroken, ExportCounts, Spark, count, export
from frankly_server.store import Database, upgrade

from tests.frankly_server.samples import SURVEY, published
from tests.frankly_server.scale.bulk import fill
from tests.frankly_server.scale.cluster import Cluster
from tests.frankly_server.scale.filled import (
    conflicting,
    counted,
    filled,
    from_export,
    with_duplicates,
)

REPORTS = int(os.environ.get("SCALE_REPORTS", "20000000"))
OPTIONS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "16",  # for two cores; the default is 200
    "spark.network.timeout": "600s",  # on a busy machine, a slow worker is not a dead worker
}

pytestmark = [
    pytest.mark.full_only,
    pytest.mark.filterwarnings("default"),
]  # warnings from Spark's own code


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    home = tmp_path / "cluster"
    home.mkdir()
    with Cluster(home) as cluster:
        yield cluster


def test_every_kind_of_mechanism(cluster: Cluster, sqlite: Database, tmp_path: Path) -> None:
    documents = filled(sqlite, 400)
    export(sqlite, SURVEY, tmp_path / "a", rows=90)
    copies = with_duplicates(tmp_path / "a", tmp_path / "b", every=10)
    found = count([tmp_path / "a", tmp_path / "b"], Spark(cluster.url, OPTIONS))
    assert (found.rows, found.reports) == (400 + copies, 400)
    for document in documents:
        assert (found.singles(document.digest), found.pairs(document.digest)) == counted(
            sqlite, document
        )
    names = [block.questions[0].id for block in documents[1].blocks]
    for targets in (None, names):
        answer = from_export(Analysis(sqlite).estimates(SURVEY, targets=targets))
        assert encode(found.analysis().estimates(SURVEY, targets=targets)) == answer


def test_many_reports_and_a_worker_that_dies(
    cluster: Cluster, postgres_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def log(words: str) -> None:
        with capsys.disabled():
            sys.stderr.write(f"{REPORTS} reports: {words}, {time.monotonic() - start:.0f} s\n")

    start = time.monotonic()
    database = Database(postgres_url)
    upgrade(database)
    fill(database, published(database), REPORTS)
    log("in PostgreSQL")
    export(database, SURVEY, tmp_path / "a")
    log("exported")
    copies = with_duplicates(tmp_path / "a", tmp_path / "b", every=100)
    assert copies >= REPORTS // 100
    folders = [tmp_path / "a", tmp_path / "b"]
    with database.reading("check") as tx:
        [row] = tx.documents.versions(SURVEY)
        kept, pairs = (
            dict(tx.counts.of_document(row.digest)),
            dict(tx.counts.pairs(row.digest, 0, 1)),
        )
    answer = from_export(Analysis(database).estimates(SURVEY))

    def check(found: ExportCounts) -> None:
        assert (found.reports, found.rows) == (REPORTS, REPORTS + copies)
        assert (found.singles(row.digest), found.pairs(row.digest)) == (kept, pairs)
        assert encode(found.analysis().estimates(SURVEY)) == answer

    check(count(folders, DuckDB()))
    log(f"and {copies} copies counted by DuckDB as the database counts them")
    check(count(folders, Spark(cluster.url, OPTIONS)))
    log("by Spark")
    # The worker is killed while a task runs, which the log of its executor shows.
    killed: list[float] = []
    killer = threading.Thread(target=_kill_at_work, args=(cluster, tmp_path / "cluster", killed))
    killer.start()
    found = count(folders, Spark(cluster.url, OPTIONS))
    done = time.monotonic()
    killer.join()
    assert len(killed) == 1, "a task must run on the worker that is killed"
    assert killed[0] < done
    check(found)
    log("by Spark, one of its two workers killed")
    database.close()


def _kill_at_work(cluster: Cluster, home: Path, killed: list[float]) -> None:
    before, deadline = len(list(home.glob("work-1/app-*/*/stderr"))), time.monotonic() + 600
    while time.monotonic() < deadline:
        logs = sorted(home.glob("work-1/app-*/*/stderr"))
        if len(logs) > before and "Running task" in max(logs, key=_begun).read_text(
            errors="replace"
        ):
            cluster.kill_worker()
            killed.append(time.monotonic())
            return
        time.sleep(0.05)


def _begun(log: Path) -> float:
    return log.stat().st_mtime


def test_one_id_with_two_contents_is_refused(
    cluster: Cluster, sqlite: Database, tmp_path: Path
) -> None:
    folders = conflicting(sqlite, tmp_path)
    with pytest.raises(ExportBroken, match="more than one report"):
        count(folders, Spark(cluster.url, OPTIONS))
