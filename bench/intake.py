# SPDX-License-Identifier: Apache-2.0
"""Intake against the limit of its own stack, in the same run: single reports and batches of 500, both databases.

ratio_single_*: durable reports a second over HTTP with 8 connections, ours over a bare Flask route that does one INSERT
and COMMIT under the same server. ratio_alone_*: the same with one connection. ratio_p99_*: 0.99 quantiles of the
latencies with 8 connections. ratio_batch_postgresql: rows a second of batches of 500 over HTTP, over COPY in
transactions of 500 into the same table. ratio_cpu_*: CPU of the server a report, ours over the bare one: this one other
work on the machine does not change. Trials take turns; each figure is a median.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from _intake import load
from _intake.copying import Copying
from _intake.served import Served, bare, ours
from _runner import Result, Seen, ratios, tell, turns
from _runner import load as machine_load

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.postgres import PostgresServer, find_binaries

LEAST = {"ratio_single": 0.8, "ratio_batch": 0.5}
MOST = {"ratio_p99": 3.0}
SIZE, CONNECTIONS = 500, 8


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--rounds", type=int, default=5, help="trials of each kind")
    parser.add_argument("--reports", type=int, default=1000, help="single reports in a trial")
    parser.add_argument("--batches", type=int, default=20, help=f"batches of {SIZE} in a trial")
    parser.add_argument("--on", choices=("sqlite", "postgresql"), action="append", help="only this database")
    chosen = parser.parse_args()
    before, seen = machine_load(), Seen()
    for kind in chosen.on or ("sqlite", "postgresql"):
        seen |= measure(kind, chosen.rounds, chosen.reports, chosen.batches)
    tell(result(seen), as_json=chosen.json, before=before)


def result(seen: Seen) -> Result:
    """Return what was measured, with what is asked of its ratios; other figures are told only."""
    least = {name: limit for start, limit in LEAST.items() for name in seen if name.startswith(start)}
    most = {name: limit for start, limit in MOST.items() for name in seen if name.startswith(start)}
    return Result("intake", seen, most, least)


def measure(kind: str, rounds: int, reports: int, batches: int) -> Seen:
    """Measure one kind of database, which is made and removed."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        if kind == "sqlite":
            urls = [f"sqlite:///{home / name}.db" for name in ("ours", "bare")]
            return _on(kind, urls, home, rounds, reports, batches)
        server = PostgresServer(find_binaries(None))
        server.start()
        try:
            return _on(kind, [server.create() for _ in range(3)], home, rounds, reports, batches)
        finally:
            server.stop()


def _on(kind: str, urls: list[str], home: Path, rounds: int, reports: int, batches: int) -> Seen:
    with ours(home / "ours", urls[0]) as mine, bare(home, urls[1]) as plain:
        found = _singles(kind, mine, plain, rounds, reports)
        copying = Copying(urls[2]) if len(urls) > 2 else None
        found |= _batches(kind, mine, copying, rounds, batches)
        if copying is not None:
            copying.close()
    return found


def _singles(kind: str, mine: Served, plain: Served, rounds: int, n: int) -> Seen:
    def trial(server: Served, connections: int, count: int) -> load.Loaded:
        return load.run(server, load.singles(server.document, count), connections)

    pairs = turns({"ours": lambda: trial(mine, CONNECTIONS, n), "bare": lambda: trial(plain, CONNECTIONS, n)}, rounds)
    alone = turns({"ours": lambda: trial(mine, 1, n // 4), "bare": lambda: trial(plain, 1, n // 4)}, rounds)

    def both(figure: Callable[[load.Loaded], float], found: Mapping[str, list[load.Loaded]]) -> list[float]:
        return ratios([figure(each) for each in found["ours"]], [figure(each) for each in found["bare"]])

    return {
        f"single_{kind}_per_s": [each.per_s for each in pairs["ours"]],
        f"bare_{kind}_per_s": [each.per_s for each in pairs["bare"]],
        f"ratio_single_{kind}": both(lambda each: each.per_s, pairs),
        f"ratio_alone_{kind}": both(lambda each: each.per_s, alone),
        f"ratio_p99_{kind}": both(lambda each: each.quantile(0.99), pairs),
        f"p99_{kind}_s": [each.quantile(0.99) for each in pairs["ours"]],
        f"ratio_cpu_{kind}": both(lambda each: each.cpu_s, pairs),
        f"cpu_{kind}_s": [each.cpu_s for each in pairs["ours"]],
    }


def _batches(kind: str, mine: Served, copying: Copying | None, rounds: int, n: int) -> Seen:
    def gateway() -> float:
        return SIZE * load.run(mine, load.batches(mine.document, n, SIZE), 1).per_s

    trials: dict[str, Callable[[], float]] = {"ours": gateway}
    if copying is not None:
        trials["copy"] = lambda: copying.per_s(n * SIZE, SIZE)
    found = turns(trials, rounds)
    figures = {f"batch_{kind}_per_s": found["ours"]}
    if copying is not None:
        figures["copy_postgresql_per_s"] = found["copy"]
        figures["ratio_batch_postgresql"] = ratios(found["ours"], found["copy"])
    return figures


if __name__ == "__main__":
    main()
