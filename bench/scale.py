# SPDX-License-Identifier: Apache-2.0
"""Memory and time of estimates for a survey that grows to many reports through the batch endpoint.

ratio_memory: largest memory of the server over its memory after a tenth of the reports.
ratio_estimate: time of an estimate over its time at 10,000 reports; ratio_crosstab: the same for
the joint table of two questions with 16 choices, from stored counts. Then the reports are exported
as Parquet and counted by DuckDB; the resulting estimates must be byte-identical. The figures in the
docs are for --reports 10000000. --loaded inserts the reports by SQL, which takes a minute, and
measures everything except intake; --sent measures only intake.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from _intake.growing import grown, loaded
from _runner import Result, Samples, load, print_result

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.postgres import PostgresServer, find_binaries

MOST = {"ratio_memory": 1.2, "ratio_estimate": 1.2, "crosstab_many_s": 2.0}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--reports", type=int, default=200_000, help="sent in batches of 1,000")
    parser.add_argument("--on", choices=("sqlite", "postgresql"), default="postgresql")
    part = parser.add_mutually_exclusive_group()
    part.add_argument(
        "--loaded", action="store_true", help="insert the reports by SQL (PostgreSQL)"
    )
    part.add_argument("--sent", action="store_true", help="measure intake alone")
    chosen = parser.parse_args()
    if chosen.loaded and chosen.on != "postgresql":
        parser.error("--loaded needs PostgreSQL")
    before = load()
    samples = measure(chosen.on, chosen.reports, by_sql=chosen.loaded, asked=not chosen.sent)
    at_most = {name: limit for name, limit in MOST.items() if name in samples}
    extra = {"on": chosen.on, "part": chosen.loaded or chosen.sent}
    print_result(Result("scale", samples, at_most, extra=extra), as_json=chosen.json, before=before)


def measure(kind: str, reports: int, *, by_sql: bool = False, asked: bool = True) -> Samples:
    """Measure on a temporary database."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            return grown(f"sqlite:///{folder}/frankly.db", reports, asked=asked)
    server = PostgresServer(find_binaries(None))
    server.start()
    try:
        return (
            loaded(server.create(), reports)
            if by_sql
            else grown(server.create(), reports, asked=asked)
        )
    finally:
        server.stop()


if __name__ == "__main__":
    main()
