# SPDX-License-Identifier: Apache-2.0
"""Intake compared with the limit of its stack: single reports and batches of 500, both databases.

Surveys of 1, 4 and 12 blocks with two public questions, on the server as deployed. It is compared
with two Flask routes on the same gunicorn that do one INSERT and COMMIT: `plain` first validates
the report in plain code, `bare` accepts everything. wrk sends reports with random ids over 1, 8 and
64 connections; with four blocks, the client of this bench also sends reports, over 1 and 8
connections.

ratio_DATABASE_BLOCKS_CONNECTIONS_ROUTE: reports stored per second, ours divided by that route's.
p50_…: the same for median latencies. ratio_own_…: with the client of this bench. cpu_…_s: CPU time
of the server per report, independent of other work on the machine. ratio_…_released: the ratio to
`plain` if the time of releasing all reports is included. ratio_…_batch_plain: the same for batches
of 500 over one connection, which `plain` stores by COPY on PostgreSQL, without looking for
duplicates. ratio_…_batch_copy: to the rate of COPY into such a table in transactions of 500,
without HTTP and without validation. Trials alternate; each figure is a median.

beside_DATABASE_4_…: single reports, 40 per second over four connections, while 32 clients with eight
API keys send an expensive plan in a loop; managed_…: while they try, create, change, publish, list and
release surveys; alone_…: without these clients, before and after.
No report may be refused, /health/ready must stay 200, and plans are counted by status.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

from _intake import beside, load, wrk
from _intake.copying import Copying
from _intake.served import Served, bare, ours
from _runner import Result, Samples, print_result, ratios, turns
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
"""Number of blocks of the survey that has limits; reports in a batch."""
LEAST = {"batch_plain": 0.4, "plain": 0.9, "bare": 0.8, "released": 0.7}
"""Least ratio by the end of its name; the first end that fits counts."""
MOST_P50 = 1.2
MOST_BESIDE = {"refused": 0.0, "not_ready": 0.0, "p99_s": 0.25}
PARTS = ("compared", "batches", "beside")
"""`batches` is the last part of `compared`."""
Found = dict[str, list[load.Loaded]]
Trials = Mapping[str, Callable[[], load.Loaded]]


def main() -> None:
    """Measure and print."""
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
    parser.add_argument("--part", choices=PARTS, help="only this part")
    parser.add_argument(
        "--beside-seconds", type=float, default=20, help="seconds of reports beside planning"
    )
    chosen = parser.parse_args()
    before, samples = machine_load(), Samples()
    for kind in chosen.on or KINDS:
        if chosen.part == "batches":
            samples |= batches_alone(kind, chosen.rounds, chosen.batches)
        elif chosen.part != "beside":
            for blocks in chosen.blocks or BLOCKS:
                samples |= measure(kind, blocks, chosen.rounds, chosen.seconds, chosen.batches)
        if chosen.part in (None, "beside"):
            samples |= beside_planning(kind, chosen.beside_seconds)
    is_part = bool(chosen.part or chosen.on or chosen.blocks)
    print_result(result(samples, is_part=is_part), as_json=chosen.json, before=before)


def result(samples: Samples, *, is_part: bool = False) -> Result:
    """Return the samples with their bounds; figures without one are only printed."""
    of_four = [name for name in samples if f"_{ASKED}_" in name]
    at_least = {
        name: LEAST[ends[0]]
        for name in of_four
        if name.startswith("ratio_") and (ends := [e for e in LEAST if name.endswith(f"_{e}")])
    }
    at_most = {
        name: MOST_P50 for name in of_four if name.startswith("p50_") and name.endswith("_1_plain")
    }
    at_most |= {
        name: bound
        for name in of_four
        for end, bound in MOST_BESIDE.items()
        if name.startswith(("beside_", "managed_")) and name.endswith(f"_{ASKED}_{end}")
    }
    return Result("intake", samples, at_most, at_least, {"part": is_part})


def measure(kind: str, blocks: int, rounds: int, seconds: int, batches: int) -> Samples:
    """Measure one survey on a temporary database of one kind."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        home = Path(folder)
        urls = _databases(kind, home, stack)
        for name in ("ours", "plain", "bare"):
            (home / name).mkdir()
        mine = stack.enter_context(ours(home / "ours", urls[0], BLOCKS[blocks]))
        validating = stack.enter_context(
            bare(home / "plain", urls[1], mine.document, validates=True)
        )
        taking = stack.enter_context(bare(home / "bare", urls[2], mine.document))
        samples = _singles(
            f"{kind}_{blocks}",
            {"ours": mine, "plain": validating, "bare": taking},
            blocks,
            rounds,
            seconds,
        )
        if blocks == ASKED:
            samples |= _batches(kind, mine, validating, urls[3], rounds, batches)
            samples |= _with_release(f"{kind}_{blocks}", mine, samples)
    return samples


def batches_alone(kind: str, rounds: int, batches: int) -> Samples:
    """Measure batches, without single reports, on a temporary database of one kind."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        home = Path(folder)
        urls = _databases(kind, home, stack)
        for name in ("ours", "plain"):
            (home / name).mkdir()
        mine = stack.enter_context(ours(home / "ours", urls[0], BLOCKS[ASKED]))
        plain = stack.enter_context(bare(home / "plain", urls[1], mine.document, validates=True))
        return _batches(kind, mine, plain, urls[3], rounds, batches)


def beside_planning(kind: str, seconds: float) -> Samples:
    """Measure reports beside planning on a temporary database of one kind."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        url, *_ = _databases(kind, Path(folder), stack)
        return beside.measure(Path(folder), url, f"{kind}_{ASKED}", seconds)


def _databases(kind: str, home: Path, stack: ExitStack) -> list[str]:
    """Return the URLs of four new databases; `stack` stops their server."""
    if kind == "sqlite":
        return [f"sqlite:///{home / f'{i}.db'}" for i in range(4)]
    server = PostgresServer(find_binaries(None))
    server.start()
    stack.callback(server.stop)
    return [server.create() for _ in range(4)]


def _singles(
    where: str, servers: Mapping[str, Served], blocks: int, rounds: int, seconds: int
) -> Samples:
    samples = Samples()
    for connections in CONNECTIONS:
        trials: Trials = {
            name: _by_wrk(server, connections, seconds) for name, server in servers.items()
        }
        samples |= _figures(f"{where}_{connections}", turns(trials, rounds))
    for connections in OWN if blocks == ASKED else ():
        # Enough requests to run for about as long as wrk.
        n = max(2 * connections, int(seconds * samples[f"{where}_{connections}_per_s"][0]))
        trials = {name: _by_us(server, connections, n) for name, server in servers.items()}
        own_figures = _figures(f"own_{where}_{connections}", turns(trials, rounds))
        samples |= {
            name: values for name, values in own_figures.items() if name.startswith("ratio_")
        }
    return samples


def _by_wrk(server: Served, connections: int, seconds: int) -> Callable[[], load.Loaded]:
    return lambda: wrk.run(server, connections, seconds)


def _by_us(server: Served, connections: int, n: int) -> Callable[[], load.Loaded]:
    return lambda: load.run(server, load.singles(server.document, n), connections)


def _figures(where: str, trials_of: Found) -> Samples:
    mine = trials_of["ours"]
    samples = {
        f"{where}_per_s": [loaded.per_s for loaded in mine],
        f"{where}_p50_s": [loaded.p50_s for loaded in mine],
        f"{where}_p99_s": [loaded.p99_s for loaded in mine],
        **{
            f"cpu_{where}_{name}_s": [loaded.cpu_s for loaded in trials]
            for name, trials in trials_of.items()
        },
    }
    for name in ("plain", "bare"):
        theirs = trials_of[name]
        samples[f"ratio_{where}_{name}"] = ratios(
            [loaded.per_s for loaded in mine], [loaded.per_s for loaded in theirs]
        )
        samples[f"p50_{where}_{name}"] = ratios(
            [loaded.p50_s for loaded in mine], [loaded.p50_s for loaded in theirs]
        )
    return samples


def _with_release(where: str, mine: Served, measured: Samples) -> Samples:
    """Release all stored reports; return each ratio with the time of release included."""
    database = Database(mine.url)
    start = time.perf_counter()
    n = Releasing(database, SystemClock()).release()
    each_s = (time.perf_counter() - start) / n
    database.close()
    samples = Samples({f"{where}_release_per_s": [1 / each_s]})
    for connections in CONNECTIONS:
        name = f"{where}_{connections}"
        pairs = zip(measured[f"ratio_{name}_plain"], measured[f"{name}_per_s"], strict=True)
        samples[f"ratio_{name}_released"] = [ratio / (1 + per_s * each_s) for ratio, per_s in pairs]
    return samples


def _batches(kind: str, mine: Served, plain: Served, copy_url: str, rounds: int, n: int) -> Samples:
    where = f"{kind}_{ASKED}"

    def gateway(server: Served) -> float:
        return SIZE * load.run(server, load.batches(server.document, n, SIZE), 1).per_s

    trials: dict[str, Callable[[], float]] = {
        "ours": lambda: gateway(mine),
        "plain": lambda: gateway(plain),
    }
    with ExitStack() as stack:
        if kind == "postgresql":
            copying = stack.enter_context(closing(Copying(copy_url, mine.document)))
            trials["copy"] = lambda: copying.per_s(n * SIZE, SIZE)
        rates = turns(trials, rounds)
    ours_per_s = rates.pop("ours")
    figures = {f"{where}_batch_per_s": ours_per_s}
    for name, theirs in rates.items():
        figures[f"{where}_batch_{name}_per_s"] = theirs
        figures[f"ratio_{where}_batch_{name}"] = ratios(ours_per_s, theirs)
    return figures


if __name__ == "__main__":
    main()
