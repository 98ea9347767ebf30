# SPDX-License-Identifier: Apache-2.0
"""Intake against the limit of its own stack, in the same run: single reports and batches of 500, both databases.

Surveys of 1, 4 and 12 blocks by two strata, under the server as it is deployed. Beside it stand two bare Flask routes
under the same gunicorn that do one INSERT and COMMIT: `plain` first parses and validates the same report in plain
code, `bare` takes what comes. wrk sends reports under random ids over 1, 8 and 64 connections; with four blocks our own
client does too.

ratio_DATABASE_BLOCKS_CONNECTIONS_ROUTE: stored reports a second, ours over that route's. p50_…: medians of latencies,
likewise. ratio_own_…: by our own client. cpu_…_s: CPU of the server a report, which other work on the machine does not
change. ratio_…_released: the ratio to `plain` if every report also pays its share of a release of all of them.
ratio_batch_…: reports a second of batches of 500 over HTTP, over COPY in transactions of 500 into such a table.
Trials take turns; each figure is a median.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from _intake import load, wrk
from _intake.copying import Copying
from _intake.served import Served, bare, ours
from _runner import Result, Seen, ratios, tell, turns
from _runner import load as machine_load
from frankly_protocol.clock import SystemClock
from frankly_server.intake.releasing import Releasing
from frankly_server.store import Database

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.postgres import PostgresServer, find_binaries

KINDS = ("sqlite", "postgresql")
BLOCKS = {1: "one_by_group", 4: "four_by_group", 12: "twelve_by_group"}
CONNECTIONS, OWN = (1, 8, 64), (1, 8)
ASKED, SIZE = 4, 500
"""Blocks of the survey that limits are about; reports in a batch."""
LEAST = {"plain": 0.9, "bare": 0.8, "batch": 0.6, "released": 0.7}
MOST_P50 = 1.2
Found = dict[str, list[load.Loaded]]
Trials = Mapping[str, Callable[[], load.Loaded]]


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--rounds", type=int, default=7, help="trials of each kind")
    parser.add_argument("--seconds", type=int, default=2, help="seconds of a trial")
    parser.add_argument("--batches", type=int, default=20, help=f"batches of {SIZE} in a trial")
    parser.add_argument(
        "--on", choices=KINDS, action="append", help="only this database; may be repeated"
    )
    parser.add_argument(
        "--blocks",
        type=int,
        choices=BLOCKS,
        action="append",
        help="only this survey; may be repeated",
    )
    chosen = parser.parse_args()
    before, seen = machine_load(), Seen()
    for kind in chosen.on or KINDS:
        for blocks in chosen.blocks or BLOCKS:
            seen |= measure(kind, blocks, chosen.rounds, chosen.seconds, chosen.batches)
    tell(result(seen), as_json=chosen.json, before=before)


def result(seen: Seen) -> Result:
    """Return what was measured, with what is asked of its ratios; other figures are told only."""
    of_four = [name for name in seen if f"_{ASKED}_" in name]
    least = {
        name: LEAST[end]
        for name in of_four
        if name.startswith("ratio_") and (end := name.split("_")[-1]) in LEAST
    }
    most = {
        name: MOST_P50 for name in of_four if name.startswith("p50_") and name.endswith("_1_plain")
    }
    return Result("intake", seen, most, least)


def measure(kind: str, blocks: int, rounds: int, seconds: int, batches: int) -> Seen:
    """Measure one kind of database, which is made and removed, and one survey."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        home = Path(folder)
        if kind == "sqlite":
            urls = [f"sqlite:///{home / name}.db" for name in ("ours", "plain", "bare")]
        else:
            server = PostgresServer(find_binaries(None))
            server.start()
            stack.callback(server.stop)
            urls = [server.create() for _ in range(4)]
        for name in ("ours", "plain", "bare"):
            (home / name).mkdir()
        mine = stack.enter_context(ours(home / "ours", urls[0], BLOCKS[blocks]))
        plain = stack.enter_context(bare(home / "plain", urls[1], mine.document, validates=True))
        taking = stack.enter_context(bare(home / "bare", urls[2], mine.document))
        found = _singles(
            f"{kind}_{blocks}",
            {"ours": mine, "plain": plain, "bare": taking},
            blocks,
            rounds,
            seconds,
        )
        if blocks == ASKED:
            copying = Copying(urls[3], mine.document) if kind == "postgresql" else None
            found |= _batches(f"{kind}_{blocks}", mine, copying, rounds, batches)
            found |= _with_release(f"{kind}_{blocks}", mine, found)
            if copying is not None:
                copying.close()
    return found


def _singles(
    where: str, servers: Mapping[str, Served], blocks: int, rounds: int, seconds: int
) -> Seen:
    seen = Seen()
    for connections in CONNECTIONS:
        trials: Trials = {
            name: _by_wrk(server, connections, seconds) for name, server in servers.items()
        }
        seen |= _figures(f"{where}_{connections}", turns(trials, rounds))
    for connections in OWN if blocks == ASKED else ():
        # As many as keep it busy as long as wrk.
        n = max(2 * connections, int(seconds * seen[f"{where}_{connections}_per_s"][0]))
        trials = {name: _by_us(server, connections, n) for name, server in servers.items()}
        found = _figures(f"own_{where}_{connections}", turns(trials, rounds))
        seen |= {name: values for name, values in found.items() if name.startswith("ratio_")}
    return seen


def _by_wrk(server: Served, connections: int, seconds: int) -> Callable[[], load.Loaded]:
    return lambda: wrk.run(server, connections, seconds)


def _by_us(server: Served, connections: int, n: int) -> Callable[[], load.Loaded]:
    return lambda: load.run(server, load.singles(server.document, n), connections)


def _figures(where: str, found: Found) -> Seen:
    mine = found["ours"]
    seen = {
        f"{where}_per_s": [each.per_s for each in mine],
        f"{where}_p50_s": [each.p50_s for each in mine],
        f"{where}_p99_s": [each.p99_s for each in mine],
        **{
            f"cpu_{where}_{name}_s": [each.cpu_s for each in trials]
            for name, trials in found.items()
        },
    }
    for name in ("plain", "bare"):
        theirs = found[name]
        seen[f"ratio_{where}_{name}"] = ratios(
            [each.per_s for each in mine], [each.per_s for each in theirs]
        )
        seen[f"p50_{where}_{name}"] = ratios(
            [each.p50_s for each in mine], [each.p50_s for each in theirs]
        )
    return seen


def _with_release(where: str, mine: Served, found: Seen) -> Seen:
    """Release all that was stored, and return what that leaves of each ratio."""
    database = Database(mine.url)
    start = time.perf_counter()
    n = Releasing(database, SystemClock()).release()
    each_s = (time.perf_counter() - start) / n
    database.close()
    seen = Seen({f"{where}_release_per_s": [1 / each_s]})
    for connections in CONNECTIONS:
        name = f"{where}_{connections}"
        pairs = zip(found[f"ratio_{name}_plain"], found[f"{name}_per_s"], strict=True)
        seen[f"ratio_{name}_released"] = [ratio / (1 + per_s * each_s) for ratio, per_s in pairs]
    return seen


def _batches(where: str, mine: Served, copying: Copying | None, rounds: int, n: int) -> Seen:
    def gateway() -> float:
        return SIZE * load.run(mine, load.batches(mine.document, n, SIZE), 1).per_s

    trials: dict[str, Callable[[], float]] = {"ours": gateway}
    if copying is not None:
        trials["copy"] = lambda: copying.per_s(n * SIZE, SIZE)
    found = turns(trials, rounds)
    figures = {f"{where}_batch_per_s": found["ours"]}
    if copying is not None:
        figures[f"{where}_copy_per_s"] = found["copy"]
        figures[f"ratio_{where}_batch"] = ratios(found["ours"], found["copy"])
    return figures


if __name__ == "__main__":
    main()
