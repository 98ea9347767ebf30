# SPDX-License-Identifier: Apache-2.0
"""Estimates: how often margins hold in simulated surveys; how long an answer takes at 10 thousand and 10 million.

Exits 1 if a guaranteed margin falls short of its level by more than 3 standard errors, or the ratio is above 1.5.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from itertools import product
from statistics import median

import numpy as np
from _estimate.coverage import GUARANTEED, JOINT, POINTWISE, Cell, measure
from _estimate.designs import SIZES, TRUTHS, cases
from frankly_server.estimate import estimate
from numpy.typing import NDArray

LEVEL, LIMIT, MOST_RATIO = 0.95, 3.0, 1.5
FEW, MANY = 10_000, 10_000_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--runs", type=int, default=200, help="simulated surveys per cell (the issue names 2000)")
    chosen = parser.parse_args()
    cells = [
        measure(case, truth, n, chosen.runs, seed=1000 * i + n)
        for (i, case), n, truth in product(enumerate(cases()), SIZES, TRUTHS)
    ]
    figures = _latency()
    short = [(cell.case, cell.n, cell.truth, m) for cell in cells for m in GUARANTEED if cell.below(m, LEVEL) > LIMIT]
    holds = not short and figures["ratio_latency"] <= MOST_RATIO
    if chosen.json:
        body = {"bench": "estimate", "runs": chosen.runs, **figures, "short": short, "holds": holds}
        print(json.dumps(body | {"cells": [vars(cell) for cell in cells]}, indent=2))
    else:
        print(_table(cells))
        for name, value in figures.items():
            print(f"{name:>32}  {value:.6f}")
    sys.exit(0 if holds else 1)


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
