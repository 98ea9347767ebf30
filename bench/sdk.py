# SPDX-License-Identifier: Apache-2.0
"""The SDK beside pure-ldp, multi-freq-ldpy and OpenDP in one run: an answer randomised, imports, installed size.

The peers are installed into environments of their own in the temporary folder; what cannot be installed is left out and
counted. pure-ldp and multi-freq-ldpy draw floats from generators that can be predicted; OpenDP and we use a secure
source. A report's whole way (open and verify, seal, send, erase) has no counterpart among them.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from _runner import Result, main, medians
from _sdk.ours import reports, samplers
from _sdk.peer import PEERS, per_call
from _sdk.places import IMPORTS, OURS, environment, installed_mb

SIZES, CALLS, ROUNDS = (2, 16, 64), 2000, 7
SECURE = ("opendp",)
IMPORT_ROUNDS, REPORT_ROUNDS = 9, 9
LIMIT_IMPORT_S, LIMIT_FASTEST = 0.2, 5.0


def measure() -> Result:
    """Measure all; a limit on a peer exists only if the peer could be installed."""
    places = {name: environment(name) for name in IMPORTS}
    figures = _imports(places) | _sizes(places) | _randomising(places)
    figures |= {name: statistics.median(seen) for name, seen in reports(REPORT_ROUNDS).items()}
    figures["peers_missing"] = float(sum(places[name] is None for name in PEERS))
    limits = {"import_sdk_s": LIMIT_IMPORT_S}
    limits |= {name: LIMIT_FASTEST for name in figures if name.startswith("ratio_fastest_")}
    limits |= {
        name: 1.0 for name in figures if name.startswith(("ratio_secure_", "ratio_size_", "ratio_import_smallest"))
    }
    return Result("sdk", figures, limits=limits)


def _randomising(places: dict[str, Path | None]) -> dict[str, float]:
    """Return seconds per answer of everybody, and our ratio to the fastest peer and to the secure one."""
    seen = {OURS: {f"{f}_{k}": per_call(call, CALLS, ROUNDS) for k in SIZES for f, call in samplers(k)}}
    script = str(Path(__file__).parent / "_sdk" / "peer.py")
    for name in PEERS:
        if (python := places[name]) is not None:
            command = [str(python), script, name, str(CALLS), str(ROUNDS), *map(str, SIZES)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            seen[name] = json.loads(done.stdout)
    figures = {f"{_slug(name)}_{case}_us": 1e6 * s for name, cases in seen.items() for case, s in cases.items()}
    for case, ours in seen[OURS].items():
        others = {name: cases[case] for name, cases in seen.items() if name != OURS}
        if others:
            figures[f"ratio_fastest_{case}"] = ours / min(others.values())
        if secure := [seconds for name, seconds in others.items() if name in SECURE]:
            figures[f"ratio_secure_{case}"] = ours / min(secure)
    return figures


def _imports(places: dict[str, Path | None]) -> dict[str, float]:
    """Time whole processes: what is imported first, and from where, is then the same for all."""
    trials = {"python": _process(sys.executable, "pass"), "requests": _process(sys.executable, "import requests")}
    trials |= {name: _process(str(python), IMPORTS[name]) for name, python in places.items() if python is not None}
    trials[OURS] = _process(sys.executable, IMPORTS[OURS])
    seconds = medians(trials, IMPORT_ROUNDS)
    bare = seconds.pop("python")
    figures = {f"import_{_slug(name)}_s": s - bare for name, s in seconds.items()}
    figures["import_sdk_s"] = figures.pop(f"import_{_slug(OURS)}_s")
    figures["python_s"] = bare
    if peers := [figures[f"import_{_slug(name)}_s"] for name in PEERS if places[name] is not None]:
        figures["ratio_import_smallest_peer"] = figures["import_sdk_s"] / min(peers)
    figures["ratio_import_requests"] = figures["import_sdk_s"] / figures["import_requests_s"]
    return figures


def _sizes(places: dict[str, Path | None]) -> dict[str, float]:
    """Return megabytes on disk with all dependencies, and our ratio to the smallest peer."""
    sizes = {name: installed_mb(python) for name, python in places.items() if python is not None}
    figures = {f"installed_{_slug(name)}_mb": size for name, size in sizes.items()}
    peers = [size for name, size in sizes.items() if name != OURS]
    if OURS in sizes and peers:
        figures["ratio_size_smallest_peer"] = sizes[OURS] / min(peers)
    return figures


def _slug(name: str) -> str:
    return name.replace("-", "_")


def _process(python: str, code: str) -> Callable[[], float]:
    def trial() -> float:
        start = time.perf_counter()
        subprocess.run([python, "-c", code], check=True)
        return time.perf_counter() - start

    return trial


if __name__ == "__main__":
    main(__doc__, measure)
