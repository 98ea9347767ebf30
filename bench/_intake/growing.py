# SPDX-License-Identifier: Apache-2.0
"""A growing survey, two questions of 16 choices: rate and memory of intake, cost of estimates."""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import fmean, median

from _runner import Samples, once, ratios, turns
from frankly_server.analysis import Analysis, encode
from frankly_server.scale import DuckDB, count, export
from frankly_server.store import Database

from _intake import load
from _intake.served import Served, ours, prepared
from _intake.surveys import published, rows_of

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.frankly_server.scale.bulk import fill

CASE, JOINT = "two_of_16", ["b0", "b1"]
SIZE, TOGETHER, CONNECTIONS = 1000, 10, 2
FEW, ROUNDS = 10_000, 21


def grown(url: str, reports: int, few: int = FEW, *, asked: bool = True) -> Samples:
    """Send reports in batches of 1,000; return figures of intake and, if `asked`, of `loaded`."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with ours(home / "server", url, CASE) as server:
            figures = _sent(server, reports)
            # Exported before other reports are loaded by SQL, whose ordered ids take less space per
            # row.
            database = Database(url)
            figures["database_bytes_per_report"] = [_bytes(database, url) / reports]
            database.close()
            if asked:
                _release(url, server.document.survey)
            return figures | (
                _read(url, server.document.survey, few, home / "export") if asked else {}
            )


def loaded(url: str, reports: int, few: int = FEW) -> Samples:
    """Load reports by SQL (PostgreSQL); return figures of estimates, of export and of counting."""
    document = prepared(url, CASE)
    database = Database(url)
    fill(database, document, reports)
    database.close()
    with tempfile.TemporaryDirectory() as folder:
        return _read(url, document.survey, few, Path(folder) / "export")


def _release(url: str, survey: str) -> None:
    """Release every report of a survey."""
    database = Database(url)
    with database.transaction("release") as tx:
        for row in tx.documents.versions(survey):
            tx.releases.release(
                survey, row.digest, 2, "2026-06-02T00:00:00Z", is_over=lambda: False
            )
    database.close()


def _read(url: str, survey: str, few: int, folder: Path) -> Samples:
    database = Database(url)
    figures = _asked(database, survey, few) | _exported(database, survey, folder)
    database.close()
    return figures


def _sent(server: Served, reports: int) -> Samples:
    """Send batches; measure memory after the first tenth, when caches are warm, and every tenth."""
    step = SIZE * TOGETHER
    memory, rates, cpu = [], [], []
    for sent in range(0, reports, step):
        # Created just before they are sent, so that the client's memory does not grow either.
        batches = load.batches(server.document, TOGETHER, SIZE)
        felt = load.run(server, batches, CONNECTIONS)
        rates.append(SIZE * felt.per_s)
        cpu.append(felt.cpu_s / SIZE)
        if (sent + step) * 10 // reports > sent * 10 // reports:
            memory.append(server.memory_bytes())
    third = max(1, len(rates) // 3)
    return {
        "reports_sent": [float(reports)],
        "batch_per_s": rates,
        "batch_cpu_s_per_million": [1e6 * fmean(cpu)],  # mean: CPU time is counted in ticks
        "memory_warm_bytes": [float(memory[0])],
        "memory_most_bytes": [float(max(memory))],
        "ratio_memory": [max(memory) / memory[0]],
        "ratio_rate": [median(rates[-third:]) / median(rates[:third])],
    }


def _asked(database: Database, survey: str, few: int) -> Samples:
    """Time shares and the joint table of the grown survey and of one with few reports, in turns."""
    small = published(database, CASE, "5e" * 16)
    rows = rows_of(small, few, Random(3))
    for at in range(0, few, SIZE):
        with database.transaction("fill") as tx:
            tx.reports.add(rows[at : at + SIZE])
    with database.transaction("release") as tx:
        tx.releases.release(
            small.survey, small.digest, 2, "2026-06-02T00:00:00Z", is_over=lambda: False
        )
    analysis = Analysis(database)

    def asked(of: str, targets: list[str] | None) -> Callable[[], tuple[float, float]]:
        def trial() -> tuple[float, float]:
            start, cpu = time.perf_counter(), time.process_time()
            encode(analysis.estimates(of, targets=targets))
            return time.perf_counter() - start, time.process_time() - cpu

        return trial

    timings = turns(
        {
            "estimate_many": asked(survey, None),
            "estimate_few": asked(small.survey, None),
            "crosstab_many": asked(survey, JOINT),
            "crosstab_few": asked(small.survey, JOINT),
        },
        ROUNDS,
    )
    seconds = {name: [pair[0] for pair in values] for name, values in timings.items()}
    return {
        **{f"{name}_s": values for name, values in seconds.items()},
        **{f"{name}_cpu_s": [pair[1] for pair in values] for name, values in timings.items()},
        "ratio_estimate": ratios(seconds["estimate_many"], seconds["estimate_few"]),
        "ratio_crosstab": ratios(seconds["crosstab_many"], seconds["crosstab_few"]),
    }


def _exported(database: Database, survey: str, folder: Path) -> Samples:
    """Export the grown survey, count it with DuckDB, compare its estimates with the database's."""
    start, cpu = time.perf_counter(), time.process_time()
    manifest = export(database, survey, folder)
    exported, export_cpu = time.perf_counter(), time.process_time()
    counted = count([folder], DuckDB())
    counted_at, count_cpu = time.perf_counter(), time.process_time()
    for targets in (None, JOINT):
        answers = [
            source.estimates(survey, targets=targets)
            for source in (counted.analysis(), Analysis(database))
        ]
        if encode(answers[0]["questions"]) != encode(answers[1]["questions"]):
            raise AssertionError("the export's estimates differ from the database's")
    size = sum((folder / file).stat().st_size for file in manifest.files())
    return once(
        {
            "reports": float(manifest.rows),
            "export_per_s": manifest.rows / (exported - start),
            "duckdb_per_s": manifest.rows / (counted_at - exported),
            "export_cpu_s_per_million": 1e6 * (export_cpu - cpu) / manifest.rows,
            "duckdb_cpu_s_per_million": 1e6 * (count_cpu - export_cpu) / manifest.rows,
            "parquet_bytes_per_report": size / manifest.rows,
        }
    )


def _bytes(database: Database, url: str) -> int:
    if url.startswith("sqlite"):
        database.forget_deleted()  # writes the log into the database file
        return Path(url.removeprefix("sqlite:///")).stat().st_size
    with database.engine.connect() as connection:
        return int(
            connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one()
        )
