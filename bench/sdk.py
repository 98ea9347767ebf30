# SPDX-License-Identifier: Apache-2.0
"""Compare the SDK with pure-ldp, multi-freq-ldpy and OpenDP: randomising, imports, installed size.

The peers are installed into environments in the temporary folder; `peers_missing` counts those
that cannot be installed. pure-ldp and multi-freq-ldpy draw floats from predictable generators;
OpenDP and Frankly use a secure source. No peer has a counterpart to a whole report (open and
verify, seal, send, erase).

Imports take the CPU time of new processes that find their bytecode, as after an installation, less
that of an empty process. ratio_import_dependencies: of the SDK, divided by that of requests and
cryptography's keys, its dependencies. ratio_import_with_http: the same with requests and our
adapter, which the SDK only imports for a server over HTTP.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

from _runner import Result, Samples, main, once, ratios, times, turns
from _sdk.ours import reports, samplers
from _sdk.peer import PEERS, per_call
from _sdk.places import IMPORTS, OURS, environment, installed_mb

SIZES, CALLS, ROUNDS = (2, 16, 64), 2000, 7
SECURE = ("opendp",)
IMPORT_ROUNDS, REPORT_ROUNDS = 9, 9
LIMIT_FASTEST = 5.0
LIMITS_IMPORT = {"ratio_import_dependencies": 1.25, "ratio_import_with_http": 2.0}
DEPENDENCIES = "import requests, cryptography.hazmat.primitives.asymmetric.ed25519"
WITH_HTTP = "import frankly_sdk._http"


def measure() -> Result:
    """Measure everything; limits relative to a peer apply only if it could be installed."""
    places = {name: environment(name) for name in IMPORTS}
    samples = _imports(places) | _sizes(places) | _randomising(places) | reports(REPORT_ROUNDS)
    samples["peers_missing"] = [float(sum(places[name] is None for name in PEERS))]
    at_most = dict(LIMITS_IMPORT)
    at_most |= {name: LIMIT_FASTEST for name in samples if name.startswith("ratio_fastest_")}
    at_most |= {
        name: 1.0
        for name in samples
        if name.startswith(("ratio_secure_", "ratio_size_", "ratio_import_smallest"))
    }
    return Result("sdk", samples, at_most)


def _randomising(places: dict[str, Path | None]) -> Samples:
    """Return each library's CPU time per answer, and our ratio to the fastest and secure peer."""
    ours = {
        f"{family}_{k}": per_call(call, CALLS, ROUNDS)
        for k in SIZES
        for family, call in samplers(k)
    }
    peers: dict[str, Samples] = {}
    script = str(Path(__file__).parent / "_sdk" / "peer.py")
    for name in PEERS:
        if (python := places[name]) is not None:
            command = [str(python), script, name, str(CALLS), str(ROUNDS), *map(str, SIZES)]
            process = subprocess.run(command, check=True, capture_output=True, text=True)
            peers[name] = json.loads(process.stdout)
    samples = {
        f"{_slug(name)}_{case}_us": times(1e6, values)
        for name, cases in {OURS: ours, **peers}.items()
        for case, values in cases.items()
    }
    for case, values in ours.items():
        peer_cases = {name: cases[case] for name, cases in peers.items()}
        for unit, by_case in (
            ("fastest", peer_cases),
            ("secure", {name: peer_cases[name] for name in SECURE if name in peer_cases}),
        ):
            if by_case:
                samples[f"ratio_{unit}_{case}"] = ratios(values, min(by_case.values(), key=median))
    return samples


def _imports(places: dict[str, Path | None]) -> Samples:
    """Measure imports in new processes, so that all start from the same state."""
    trials = {
        "python": _process(sys.executable, "pass"),
        "dependencies": _process(sys.executable, DEPENDENCIES),
        "sdk_with_http": _process(sys.executable, WITH_HTTP),
    }
    trials |= {
        name: _process(str(python), IMPORTS[name])
        for name, python in places.items()
        if python is not None
    }
    trials[OURS] = _process(sys.executable, IMPORTS[OURS])
    seconds = turns(trials, IMPORT_ROUNDS)
    bare = seconds.pop("python")
    import_seconds = {
        name: [a - b for a, b in zip(values, bare, strict=True)] for name, values in seconds.items()
    }
    ours = import_seconds.pop(OURS)
    samples = {f"import_{_slug(name)}_s": values for name, values in import_seconds.items()}
    samples |= {
        "import_sdk_s": ours,
        "python_s": bare,
        "ratio_import_dependencies": ratios(ours, import_seconds["dependencies"]),
        "ratio_import_with_http": ratios(
            import_seconds["sdk_with_http"], import_seconds["dependencies"]
        ),
    }
    if peers := [import_seconds[name] for name in PEERS if name in import_seconds]:
        samples["ratio_import_smallest_peer"] = ratios(ours, min(peers, key=median))
    return samples


def _sizes(places: dict[str, Path | None]) -> Samples:
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
    """Return a trial that returns the CPU seconds of a process.

    CPU time, because other work on the machine would change a short wall time. The first run stores
    the bytecode of what is imported.
    """
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environ["PYTHONPYCACHEPREFIX"] = str(
        Path(tempfile.gettempdir()) / f"frankly-bench-{os.getuid()}" / "bytecode"
    )

    def run() -> float:
        before = _cpu_s()
        subprocess.run([python, "-c", code], check=True, env=environ)
        return _cpu_s() - before

    return run


def _cpu_s() -> float:
    """Return the CPU seconds of all ended child processes."""
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main(__doc__, measure)
