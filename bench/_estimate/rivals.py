# SPDX-License-Identifier: Apache-2.0
"""Time and squared errors of our estimates, pure-ldp's and multi-freq-ldpy's on equal reports."""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _runner import Samples, once
from _sdk.places import environment
from frankly_design.estimate import Estimate, SetCounts, estimate
from numpy.typing import NDArray

from _estimate import reports
from _estimate.peer import PEERS
from _estimate.products import clipped

Figures = dict[str, float]
_PRODUCTS = ("unbiased", "projected")
SAME: dict[str, dict[str, str]] = {
    "pure-ldp": {"unbiased": "unbiased"},
    "multi-freq-ldpy": {"unbiased": "clipped", "projected": "projected"},
}
"""By peer: name of a comparison -> our figure in it.

unbiased : estimates that may leave [0, 1]; if the peer clips its own, ours are clipped in the same
way. projected : our biased estimate against the peer's.
"""


def compare(n: int) -> Samples:
    """Return seconds, ratios (theirs to ours) and ratios of mean squared errors (ours to theirs), by kind and peer.

    Peers that cannot be installed are skipped; `peers_missing` is their number.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reports.write(folder, n)
        seconds, errors = _ours(folder)
        figures = {f"ours_{key}_s": value for key, value in seconds.items()}
        missing = 0
        for peer in PEERS:
            if (measured := _theirs(peer, folder)) is None:
                missing += 1
                continue
            figures |= _against(peer, measured, seconds, errors)
    return once(figures | {"peers_missing": float(missing)})


def _against(
    peer: str, measured: dict[str, Any], seconds: Figures, errors: dict[str, float]
) -> Figures:
    slug, figures = peer.replace("-", "_"), {}
    for kind in ("grr", "unary"):
        theirs = measured[f"{kind}_s"]
        figures[f"{slug}_{kind}_s"] = theirs
        figures[f"ratio_{slug}_{kind}_counts"] = theirs / seconds[f"{kind}_counts"]
        figures[f"ratio_{slug}_{kind}_reports"] = theirs / seconds[f"{kind}_reports"]
        their_error = _error(np.array(measured[f"{kind}_batches"]))
        for figure, ours in SAME[peer].items():
            figures[f"mse_ratio_{slug}_{kind}_{figure}"] = errors[f"{kind}_{ours}"] / their_error
    return figures


def _ours(folder: Path) -> tuple[Figures, dict[str, float]]:
    """Return seconds from counts and from reports, and mean squared errors by kind and estimate."""
    symbols, vectors = np.load(folder / "grr.npy"), np.load(folder / "unary.npy")
    sources: dict[
        str, tuple[NDArray[np.uint8], Callable[[NDArray[np.uint8]], Any], Callable[[Any], Estimate]]
    ] = {
        "grr": (symbols, _table_counts, lambda counts: estimate(reports.grr(), counts)),
        "unary": (vectors, SetCounts.of_vectors, lambda counts: estimate(reports.unary(), counts)),
    }
    seconds: dict[str, float] = {}
    errors: dict[str, float] = {}
    for kind, (data, count, fit) in sources.items():
        counts = count(data)
        seconds[f"{kind}_counts"] = _least(lambda fit=fit, counts=counts: fit(counts), 20)  # type: ignore[misc]
        seconds[f"{kind}_reports"] = _least(
            lambda fit=fit, count=count, data=data: fit(count(data)),  # type: ignore[misc]
            3,
        )
        batches = [fit(count(part)) for part in np.array_split(data, reports.BATCHES)]
        shares = {
            name: np.array([getattr(values, name) for values in batches], dtype=float)
            for name in _PRODUCTS
        }
        errors |= {f"{kind}_{name}": _error(values) for name, values in shares.items()}
        errors[f"{kind}_clipped"] = _error(clipped(shares["unbiased"]))
    return seconds, errors


def _table_counts(symbols: NDArray[np.uint8]) -> list[int]:
    return [int(c) for c in np.bincount(symbols, minlength=reports.K)]


def _theirs(peer: str, folder: Path) -> dict[str, Any] | None:
    python = environment(peer)
    if python is None:
        return None
    numbers = map(str, (reports.EPSILON, reports.K, reports.BATCHES))
    command = [str(python), str(Path(__file__).parent / "peer.py"), peer, str(folder), *numbers]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: dict[str, Any] = json.loads(process.stdout)
    return measured


def _error(shares: NDArray[np.float64]) -> float:
    return float(np.mean((shares - reports.truth()) ** 2))


def _least(trial: Callable[[], object], rounds: int) -> float:
    """Return the least of several times, because cold caches and other processes only add time."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        trial()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
