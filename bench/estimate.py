# SPDX-License-Identifier: Apache-2.0
"""Benchmark estimates: coverage of margins, response times, and comparison with other libraries.

coverage: coverage of margins in simulated surveys: by the server's code for twelve designs, and
from the scores of single reports for every example design, survey template and demo survey, with
cross-tables, differences, ratios and pooled versions (limits: _estimate/demands.py; cells that miss
one, and those that two of them leave out, are printed). latency: one estimate from counts and from
symbols. stored: a response of the analysts' service over bulk-loaded SQLite databases. rivals:
pure-ldp and multi-freq-ldpy on the same reports, in separate environments (see bench/sdk.py).
products: errors of our projection and of clipping at several truths.

Exits 1 if a guaranteed margin falls short of its level by more than 3 standard errors, a latency
ratio exceeds 1.5, a limit of the shipped designs is missed, or a rival is less than 10 times as
slow as our code from counts, is faster from reports, or has a smaller squared error (for biased
estimates inside [0, 1], by more than 1%).
"""

import argparse
import math
from dataclasses import asdict
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from _estimate import demands, grid, shipped, sums
from _estimate.coverage import GUARANTEED, JOINT, POINTWISE, Cell, measure
from _estimate.designs import SIZES, TRUTHS, cases
from _estimate.products import errors
from _estimate.rivals import compare
from _estimate.stored import latencies
from _runner import Result, Samples, load, markdown, print_result, ratios, timed, turns
from frankly_design.estimate import estimate
from numpy.typing import NDArray

LEVEL, LIMIT, MOST_RATIO = 0.95, 3.0, 1.5
FEW, MANY = 10_000, 10_000_000
PARTS = ("coverage", "latency", "stored", "rivals", "products")
LEAST = {"_counts": 10.0, "_reports": 1.0}
MOST = {"ratio_latency": MOST_RATIO, "ratio_stored": MOST_RATIO}
MOST_ERROR = {"_unbiased": 1 + 1e-6, "_projected": 1.01}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument(
        "--runs", type=int, default=200, help="simulated surveys per cell of the twelve designs"
    )
    parser.add_argument(
        "--grid-runs",
        type=int,
        default=4000,
        help="simulated surveys per cell of the shipped designs",
    )
    parser.add_argument(
        "--reports", type=int, default=MANY, help="reports that every library aggregates"
    )
    parser.add_argument("--stored", type=int, default=MANY, help="reports in the larger database")
    parser.add_argument(
        "--part", choices=PARTS, action="append", help="only this part; may be repeated"
    )
    parser.add_argument(
        "--only", default="", help="only shipped designs with this text in their name"
    )
    chosen = parser.parse_args()
    chosen_parts = chosen.part or PARTS
    before = load()
    cells = _coverage(chosen.runs) if "coverage" in chosen_parts else []
    samples = _latency() if "latency" in chosen_parts else Samples()
    samples |= latencies(chosen.stored) if "stored" in chosen_parts else {}
    samples |= compare(chosen.reports) if "rivals" in chosen_parts else {}
    samples |= errors() if "products" in chosen_parts else {}
    if cells:
        samples |= {
            f"coverage_{m}_errors_below": [max(cell.below(m, LEVEL) for cell in cells)]
            for m in GUARANTEED
        }
    held = _grid(chosen.grid_runs, chosen.only) if "coverage" in chosen_parts else []
    figures = list(demands.figures(held))
    for name in dict.fromkeys(figure.demand for figure in figures):
        samples[f"shipped_{name}"] = [
            max(figure.figure for figure in figures if figure.demand == name)
        ]
    if held:
        samples["shipped_cells"] = [len(held)]
        # A share of all cells says nothing about a few designs.
        shares = {} if chosen.only else demands.shares_of_exceptions(figures, len(held))
        samples |= {f"shipped_{name}": [share] for name, share in shares.items()}
        wide = [figure for figure in figures if figure.demand == "score_width_anywhere"]
        samples["shipped_cells_of_wide_scores"] = [
            sum(figure.figure > demands.USUAL["score_width"] for figure in wide)
        ]
    missed = [
        asdict(figure)
        for figure in figures
        if figure.figure > demands.LIMITS.get(figure.demand, math.inf)
    ]
    extra: dict[str, Any] = {"part": bool(chosen.part or chosen.only)} | (
        {"coverage": _rows(cells)} if cells else {}
    )
    if held:
        beyond = [asdict(figure) for figure in demands.exceptions(figures)]
        extra |= {"shipped": demands.rows(held), "missed": missed, "exceptions": beyond}
        extra["usual"] = demands.USUAL
    if cells and not chosen.json:
        for table in (extra["coverage"], extra["shipped"], missed, extra["exceptions"]):
            print(*(markdown(table) if table else ()), sep="\n")
    print_result(result(samples, extra), as_json=chosen.json, before=before)


def result(samples: Samples, extra: dict[str, Any]) -> Result:
    """Return the samples with their bounds; figures without a bound are only printed."""
    at_most = {
        name: limit for start, limit in MOST.items() for name in samples if name.startswith(start)
    }
    at_most |= {name: LIMIT for name in samples if name.startswith("coverage_")}
    at_most |= {
        f"shipped_{name}": limit
        for name, limit in demands.LIMITS.items()
        if f"shipped_{name}" in samples
    }
    errors_of = [name for name in samples if name.startswith("mse_ratio_")]
    at_most |= {
        name: limit for end, limit in MOST_ERROR.items() for name in errors_of if name.endswith(end)
    }
    rivals = [name for name in samples if name.startswith("ratio_") and name not in at_most]
    at_least = {
        name: limit for end, limit in LEAST.items() for name in rivals if name.endswith(end)
    }
    return Result("estimate", samples, at_most, at_least, extra)


def _coverage(runs: int) -> list[Cell]:
    return [
        measure(case, truth, n, runs, seed=1000 * i + n)
        for (i, case), n, truth in product(enumerate(cases()), SIZES, TRUTHS)
    ]


def _grid(runs: int, only: str) -> list[grid.Coverage]:
    """Return the cells of all shipped and the twelve designs whose names contain `only`."""
    designs = [design for design in shipped.example_designs() if only in design.name]
    twelve = [
        shipped.Shipped(case.name, case.mechanism, None, (case.mechanism.answers,), shipped.USUAL)
        for case in cases()
    ]
    others = [design for design in (*shipped.surveys(), *twelve) if only in design.name]
    every = [*designs, *others]
    held = [
        cell
        for i, design in enumerate(every)
        for make_cells in (grid.cells, sums.ratios)
        for cell in make_cells(design, runs, seed=1000 * i)
    ]
    # `pooled` needs the designs named in POOLS.
    return held if only else held + list(sums.pooled(designs, runs, seed=5))


def _rows(cells: list[Cell]) -> list[dict[str, Any]]:
    """Return coverages by design and n, the least over the truths; None if a method has none."""
    rows = []
    for name, n in product(dict.fromkeys(cell.case for cell in cells), SIZES):
        cells_of_size = [cell for cell in cells if (cell.case, cell.n) == (name, n)]
        least = {
            m: _least([cell.coverage[m] for cell in cells_of_size]) for m in (*POINTWISE, *JOINT)
        }
        rows.append(
            {
                "design": name,
                "n": n,
                **least,
                "variance": max(cell.variance_z for cell in cells_of_size),
            }
        )
    return rows


def _least(rates: list[float | None]) -> float | None:
    defined = [v for v in rates if v is not None]
    return min(defined) if len(defined) == len(rates) else None


def _latency() -> Samples:
    """Time estimates from counts, and from the symbols of 10 million reports, for 5 answers."""
    case = next(case for case in cases() if case.name == "GRR a=5 ε=1")
    rng = np.random.default_rng(3)
    truth = case.truth("skewed")
    counts = {n: [int(c) for c in rng.multinomial(n, truth @ case.law)] for n in (FEW, MANY)}
    of_few, of_many = (timed(partial(estimate, case.mechanism, counts[n])) for n in (FEW, MANY))
    seconds = turns({"few": of_few, "many": of_many}, 101)
    symbols: NDArray[np.int64] = rng.choice(case.law.shape[1], size=MANY, p=truth @ case.law)

    def from_symbols() -> None:
        estimate(
            case.mechanism, [int(c) for c in np.bincount(symbols, minlength=case.law.shape[1])]
        )

    return {
        "estimate_10_thousand_s": seconds["few"],
        "estimate_10_million_s": seconds["many"],
        "ratio_latency": ratios(seconds["many"], seconds["few"]),
        "estimate_10_million_symbols_s": turns({"": timed(from_symbols)}, 5)[""],
    }


if __name__ == "__main__":
    main()
