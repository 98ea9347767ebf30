# SPDX-License-Identifier: Apache-2.0
"""Cost of pair counts per report, and their saving per estimate, as ratios within one run.

`before`: only symbols of tables are counted; estimates of sets and two-way tables read every
report. Both variants run the same code on the same database and differ only in the layout.
"""

import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from _counts.surveys import CASES, layout_before, published, rows_of
from _runner import Result, Samples, main, ratios, times, turns
from frankly_protocol.documents import SurveyDocument
from frankly_server.analysis import Analysis
from frankly_server.store import Database, Layout, ReportRow, upgrade
from frankly_server.store import counts as counting

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.postgres import PostgresServer, find_binaries

BATCH, ROUNDS = 500, 9
FEW, MANY = 1_000, 200_000
MOST_LATENCY = 1.5
LOAD = 5_000
TARGETS: dict[str, Any] = {"unary_16": None, "two_tables": ["b0", "b1"]}
"""Targets of the estimates, by survey."""


def measure() -> Result:
    """Measure both databases."""
    samples = Samples()
    with tempfile.TemporaryDirectory() as folder:
        samples |= on(f"sqlite:///{folder}/bench.db", "sqlite")
    server = PostgresServer(find_binaries(None))
    server.start()
    try:
        samples |= on(server.create(), "postgresql")
    finally:
        server.stop()
    at_most = {
        f"ratio_latency_{case}_{kind}": MOST_LATENCY
        for case in TARGETS
        for kind in ("sqlite", "postgresql")
    }
    return Result("intake_counts", samples, at_most)


def on(url: str, kind: str) -> Samples:
    """Measure one empty database: reports written in both layouts, then estimates."""
    database = Database(url)
    upgrade(database)
    samples = Samples()
    for number, name in enumerate(CASES, 1):
        samples |= {
            f"{key}_{kind}": value
            for key, value in _writing(database, name, f"{number:032x}").items()
        }
    for name in TARGETS:
        samples |= {f"{key}_{kind}": value for key, value in _latency(database, name).items()}
    database.close()
    return samples


def _writing(database: Database, name: str, survey: str) -> Samples:
    """Time a single report and a batch with commit and release, in both layouts."""
    document = published(database, name, survey)
    rows = rows_of(document, BATCH, Random(1))

    def written(size: int, *, before: bool) -> Callable[[], float]:
        def trial() -> float:
            fresh = [
                ReportRow(survey, secrets.token_hex(16), r.document, r.symbols, r.strata)
                for r in rows
            ]
            with _counted_as(document, before=before):
                start = time.perf_counter()
                for at in range(0, 20 * size if size == 1 else size, size):
                    with database.transaction("bench") as tx:
                        tx.reports.add(fresh[at : at + size])
                with database.transaction("bench") as tx:
                    tx.releases.release(
                        survey, document.digest, 2, "2026-06-02T00:00:00Z", is_over=False
                    )
                return (time.perf_counter() - start) / (20 if size == 1 else size)

        return trial

    seconds = turns(
        {
            f"{size}_{when}": written(size, before=when == "before")
            for size in (1, BATCH)
            for when in ("before", "after")
        },
        ROUNDS,
    )
    return {
        f"single_{name}_ms": times(1e3, seconds["1_after"]),
        f"ratio_single_{name}": ratios(seconds["1_after"], seconds["1_before"]),
        f"batch_{name}_ms": times(1e3, seconds[f"{BATCH}_after"]),
        f"ratio_batch_{name}": ratios(seconds[f"{BATCH}_after"], seconds[f"{BATCH}_before"]),
    }


def _latency(database: Database, name: str) -> Samples:
    """Time an estimate at two numbers of reports, from counts and from reports, in turns."""
    loaded = {n: _loaded(database, name, n) for n in (FEW, MANY)}
    analysis = Analysis(database)

    def answered(document: SurveyDocument, *, before: bool) -> Callable[[], float]:
        def trial() -> float:
            with _read_as(document, before=before):
                start = time.perf_counter()
                analysis.estimates(document.survey, targets=TARGETS[name])
                return time.perf_counter() - start

        return trial

    seconds = turns(
        {
            f"{n}_{when}": answered(loaded[n], before=when == "before")
            for n in loaded
            for when in ("before", "after")
        },
        ROUNDS,
    )
    return {
        f"estimate_{name}_{MANY}_ms": times(1e3, seconds[f"{MANY}_after"]),
        f"ratio_latency_{name}": ratios(seconds[f"{MANY}_after"], seconds[f"{FEW}_after"]),
        f"ratio_latency_before_{name}": ratios(seconds[f"{MANY}_before"], seconds[f"{FEW}_before"]),
        f"ratio_estimate_{name}": ratios(seconds[f"{MANY}_after"], seconds[f"{MANY}_before"]),
    }


def _loaded(database: Database, name: str, n: int) -> SurveyDocument:
    document = published(database, name, secrets.token_hex(16))
    every = rows_of(document, n, Random(n))
    for start in range(0, n, LOAD):
        with database.transaction("load") as tx:
            tx.reports.add(every[start : start + LOAD])
    with database.transaction("release") as tx:
        tx.releases.release(
            document.survey, document.digest, 2, "2026-06-02T00:00:00Z", is_over=False
        )
    return document


@contextmanager
def _counted_as(document: SurveyDocument, *, before: bool) -> Iterator[None]:
    """Make the store count in the old layout."""
    layouts = {document.digest: layout_before(document)} if before else {}
    with patch.dict(counting._layouts, layouts):  # noqa: SLF001 - no public way for the old layout
        yield


@contextmanager
def _read_as(document: SurveyDocument, *, before: bool) -> Iterator[None]:
    if not before:
        yield
        return
    with patch.object(Layout, "of", staticmethod(lambda _: layout_before(document))):
        yield


if __name__ == "__main__":
    main(__doc__ or "", measure)
