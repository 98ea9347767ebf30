# SPDX-License-Identifier: Apache-2.0
"""Estimates: margins in simulated surveys; answers at 10 thousand and 10 million reports; and beside other aggregators.

coverage: how often margins hold. latency: one estimate from counts and from symbols. stored: an answer of the analysts'
service over bulk-loaded SQLite databases. rivals: pure-ldp and multi-freq-ldpy on the same reports, in environments of
their own (see bench/sdk.py). products: errors of our projection beside clipping at several truths.

Exits 1 if a guaranteed margin falls short of its level by more than 3 standard errors, a latency grows by more than
1.5, or a rival is less than 10 times as slow as we are from counts, faster from reports, or has a smaller squared
error: unbiased beside unbiased. Products that may not leave [0, 1] are both biased: 1% is allowed between those.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from itertools import product
from statistics import median
from typing import Any

import numpy as np
from _estimate.coverage import GUARANTEED, JOINT, POINTWISE, Cell, measure
from _estimate.designs import SIZES, TRUTHS, cases
from _estimate.products import errors
from _estimate.rivals import compare
from _estimate.stored import latencies
from frankly_server.estimate import estimate
from numpy.typing import NDArray

LEVEL, LIMIT, MOST_RATIO = 0.95, 3.0, 1.5
FEW, MANY = 10_000, 10_000_000
PARTS = ("coverage", "latency", "stored", "rivals", "products")
LEAST = {"_counts": 10.0, "_reports": 1.0}
MOST_ERROR = {"_unbiased": 1 + 1e-6, "_projected": 1.01}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--runs", type=int, default=200, help="simulated surveys per cell (the issue names 2000)")
    parser.add_argument("--reports", type=int, default=MANY, help="reports that everybody aggregates")
    parser.add_argument("--stored", type=int, default=MANY, help="reports in the larger database")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part; may be repeated")
    chosen = parser.parse_args()
    parts = chosen.part or PARTS
    cells = _coverage(chosen.runs) if "coverage" in parts else []
    figures = _latency() if "latency" in parts else {}
    figures |= latencies(chosen.stored) if "stored" in parts else {}
    figures |= compare(chosen.reports) if "rivals" in parts else {}
    figures |= errors() if "products" in parts else {}
    short: list[Any] = [
        (cell.case, cell.n, cell.truth, m) for cell in cells for m in GUARANTEED if cell.below(m, LEVEL) > LIMIT
    ]
    short += [name for name, value in figures.items() if not _kept(name, value)]
    if chosen.json:
        body = {"bench": "estimate", "runs": chosen.runs, "reports": chosen.reports, **figures, "short": short}
        print(json.dumps(body | {"holds": not short, "cells": [vars(cell) for cell in cells]}, indent=2))
    else:
        if cells:
            print(_table(cells))
        for name, value in figures.items():
            print(f"{name:>40}  {value:.6f}")
        for what in short:
            print(f"falls short: {what}")
    sys.exit(1 if short else 0)


def _coverage(runs: int) -> list[Cell]:
    return [
        measure(case, truth, n, runs, seed=1000 * i + n)
        for (i, case), n, truth in product(enumerate(cases()), SIZES, TRUTHS)
    ]


def _kept(name: str, value: float) -> bool:
    """Tell whether a ratio is within what is asked of it; other figures are told only."""
    if name.startswith("mse_ratio_"):
        return value <= next(most for end, most in MOST_ERROR.items() if name.endswith(end))
    if name.startswith(("ratio_latency", "ratio_stored")):
        return value <= MOST_RATIO
    least = next((limit for end, limit in LEAST.items() if name.startswith("ratio_") and name.endswith(end)), None)
    return least is None or value >= least


def _table(cells: list[Cell]) -> str:
    """Return coverages in percent, by case and n, the least over the truths; `variance` is the worst of its scores."""
    methods = [*POINTWISE, *JOINT]
    lines = ["| design | n | " + " | ".join(methods) + " | variance |", "|---|---|" + "---|" * (len(methods) + 1)]
    for name in dict.fromkeys(cell.case for cell in cells):
        for n in SIZES:
            here = [cell for cell in cells if (cell.case, cell.n) == (name, n)]
            figures = [_least([cell.coverage[m] for cell in here]) for m in methods]
            worst = max(cell.variance_z for cell in here)
            lines.append(f"| {name} | {n} | " + " | ".join(figures) + f" | {worst:.1f} |")
    return "\n".join(lines)


def _least(found: list[float | None]) -> str:
    known = [v for v in found if v is not None]
    return f"{100 * min(known):.1f}" if len(known) == len(found) else "–"


def _latency() -> dict[str, float]:
    """Time estimates from counts, and from the symbols of 10 million reports themselves, for 5 answers."""
    case = next(case for case in cases() if case.name == "GRR a=5 ε=1")
    rng = np.random.default_rng(3)
    truth = case.truth("skewed")
    counts = {n: [int(c) for c in rng.multinomial(n, truth @ case.law)] for n in (FEW, MANY)}
    seconds = {n: _median(lambda n=n: estimate(case.mechanism, counts[n])) for n in counts}  # type: ignore[misc]
    symbols: NDArray[np.int64] = rng.choice(case.law.shape[1], size=MANY, p=truth @ case.law)

    def from_symbols() -> None:
        estimate(case.mechanism, [int(c) for c in np.bincount(symbols, minlength=case.law.shape[1])])

    return {
        "estimate_10_thousand_s": seconds[FEW],
        "estimate_10_million_s": seconds[MANY],
        "ratio_latency": seconds[MANY] / seconds[FEW],
        "estimate_10_million_symbols_s": _median(from_symbols, 5),
    }


def _median(trial: Callable[[], object], rounds: int = 101) -> float:
    trial()
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        trial()
        found.append(time.perf_counter() - start)
    return median(found)


if __name__ == "__main__":
    main()
