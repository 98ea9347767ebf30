# SPDX-License-Identifier: Apache-2.0
"""Timed estimation of shares by a peer library, run in the peer's environment; prints JSON.

python peer.py NAME FOLDER EPSILON K BATCHES

Before timing starts, reports are read and converted to the fastest form for each aggregator.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Aggregate = Callable[[Any], Any]


def pure_ldp(epsilon: float, k: int) -> tuple[Aggregate, Aggregate]:
    """Return the aggregators of pure-ldp, whose server objects receive one report at a time."""
    oracles = importlib.import_module("pure_ldp.frequency_oracles")

    def grr(reports: Any) -> Any:
        server = oracles.DEServer(epsilon, k)
        for report in reports:
            server.aggregate(report)
        return _shares(server, k, len(reports))

    def unary(reports: Any) -> Any:
        server = oracles.UEServer(epsilon, k, use_oue=True)
        for report in reports:
            server.aggregate(report)
        return _shares(server, k, len(reports))

    return grr, unary


def _shares(server: Any, k: int, n: int) -> list[float]:
    # The library counts items from 1.
    return [float(server.estimate(item + 1, suppress_warnings=True)) / n for item in range(k)]


def multi_freq_ldpy(epsilon: float, k: int) -> tuple[Aggregate, Aggregate]:
    """Return the aggregators of multi-freq-ldpy, which clip at 0 and rescale to 1."""
    direct = importlib.import_module("multi_freq_ldpy.pure_frequency_oracles.GRR").GRR_Aggregator_MI
    unary = importlib.import_module("multi_freq_ldpy.pure_frequency_oracles.UE").UE_Aggregator_MI
    return lambda reports: direct(reports, k, epsilon), lambda reports: unary(reports, epsilon)


PEERS = {"pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq_ldpy}


def main(arguments: list[str]) -> None:
    """Time both mechanisms on all reports, and estimate shares for each of the first batches."""
    name, folder, epsilon, k, batches = arguments
    grr, unary = PEERS[name](float(epsilon), int(k))
    symbols = np.load(f"{folder}/grr.npy").tolist()
    # float32 sums these ones exactly, and can be added to float64 or float32 without a copy.
    vectors = np.load(f"{folder}/unary.npy").astype(np.float32)
    results: dict[str, Any] = {}
    for kind, aggregate, reports in (("grr", grr, symbols), ("unary", unary, vectors)):
        start = time.perf_counter()
        aggregate(reports)
        results[f"{kind}_s"] = time.perf_counter() - start
        chunks = np.array_split(reports, int(batches))
        results[f"{kind}_batches"] = [[float(v) for v in aggregate(part)] for part in chunks]
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1:])
