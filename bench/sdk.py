# SPDX-License-Identifier: Apache-2.0
"""The SDK beside pure-ldp, multi-freq-ldpy and OpenDP in one run: an answer randomised, imports, installed size.

The peers are installed into environments of their own in the temporary folder; what cannot be installed is left out and
counted. pure-ldp and multi-freq-ldpy draw floats from generators that can be predicted; OpenDP and we use a secure
source. A report's whole way (open and verify, seal, send, erase) has no counterpart among them.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from _runner import Result, Seen, main, once, ratios, timed, times, turns
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
    seen = _imports(places) | _sizes(places) | _randomising(places) | reports(REPORT_ROUNDS)
    seen["peers_missing"] = [float(sum(places[name] is None for name in PEERS))]
    most = {"import_sdk_s": LIMIT_IMPORT_S}
    most |= {name: LIMIT_FASTEST for name in seen if name.startswith("ratio_fastest_")}
    most |= {
        name: 1.0
        for name in seen
        if name.startswith(("ratio_secure_", "ratio_size_", "ratio_import_smallest"))
    }
    return Result("sdk", seen, most)


def _randomising(places: dict[str, Path | None]) -> Seen:
    """Return CPU seconds per answer of everybody, and our ratio to the fastest peer and to the secure one."""
    ours = {
        f"{family}_{k}": per_call(call, CALLS, ROUNDS)
        for k in SIZES
        for family, call in samplers(k)
    }
    peers: dict[str, Seen] = {}
    script = str(Path(__file__).parent / "_sdk" / "peer.py")
    for name in PEERS:
        if (python := places[name]) is not None:
            command = [str(python), script, name, str(CALLS), str(ROUNDS), *map(str, SIZES)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            peers[name] = json.loads(done.stdout)
    seen = {
        f"{_slug(name)}_{case}_us": times(1e6, values)
        for name, cases in {OURS: ours, **peers}.items()
        for case, values in cases.items()
    }
    for case, values in ours.items():
        others = {name: cases[case] for name, cases in peers.items()}
        for what, those in (
            ("fastest", others),
            ("secure", {name: others[name] for name in SECURE if name in others}),
        ):
            if those:
                seen[f"ratio_{what}_{case}"] = ratios(values, min(those.values(), key=median))
    return seen


def _imports(places: dict[str, Path | None]) -> Seen:
    """Time whole processes: what is imported first, and from where, is then the same for all."""
    trials = {
        "python": _process(sys.executable, "pass"),
        "requests": _process(sys.executable, "import requests"),
    }
    trials |= {
        name: _process(str(python), IMPORTS[name])
        for name, python in places.items()
        if python is not None
    }
    trials[OURS] = _process(sys.executable, IMPORTS[OURS])
    seconds = turns(trials, IMPORT_ROUNDS)
    bare = seconds.pop("python")
    taken = {
        name: [a - b for a, b in zip(values, bare, strict=True)] for name, values in seconds.items()
    }
    ours = taken.pop(OURS)
    seen = {f"import_{_slug(name)}_s": values for name, values in taken.items()}
    seen |= {
        "import_sdk_s": ours,
        "python_s": bare,
        "ratio_import_requests": ratios(ours, taken["requests"]),
    }
    if peers := [taken[name] for name in PEERS if name in taken]:
        seen["ratio_import_smallest_peer"] = ratios(ours, min(peers, key=median))
    return seen


def _sizes(places: dict[str, Path | None]) -> Seen:
    """Return megabytes on disk with all dependencies, and our ratio to the smallest peer."""
    sizes = {name: installed_mb(python) for name, python in places.items() if python is not None}
    figures = {f"installed_{_slug(name)}_mb": size for name, size in sizes.items()}
    peers = [size for name, size in sizes.items() if name != OURS]
    if OURS in sizes and peers:
        figures["ratio_size_smallest_peer"] = sizes[OURS] / min(peers)
    return once(figures)


def _slug(name: str) -> str:
    return name.replace("-", "_")


def _process(python: str, code: str) -> Callable[[], float]:
    return timed(partial(subprocess.run, [python, "-c", code], check=True))


if __name__ == "__main__":
    main(__doc__, measure)
