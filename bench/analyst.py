# SPDX-License-Identifier: Apache-2.0
"""Benchmark the analyst's weights and models: coverage, efficiency and speed, from released counts alone.

coverage: coverage of 95% intervals of coefficients, marginal effects, weighted shares, ratios,
medians and changes in simulated surveys of 500, 2,000 and 10,000 reports. A cell is one estimate at one size.
If the model refuses the counts of a survey (an infinite estimate), there is no interval; `refused`
is the largest share of such surveys in a cell. efficiency: Fisher's bound over the variance of the
saturated logistic model. speed: one model from 10 million and from 100 thousand reports over 10
public covariates.

Exits 1 if a coverage is below 93% by more than 3.5 Monte Carlo errors, their median is not between 94% and
96.5%, the efficiency is below 0.97, or a model of 1 million reports takes more than 10 seconds.
"""

import argparse
import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

import numpy as np
from _analyst.cases import Case, Fitted, models, weighted
from _analyst.speed import seconds
from _runner import Result, Samples, load, markdown, once, print_result
from frankly_analyst.errors import InvalidRequest

SIZES = (500, 2000, 10_000)
LEAST, MOST, ERRORS = 0.93, 0.965, 3.5
PARTS = ("coverage", "efficiency", "speed")


@dataclass(frozen=True)
class Cell:
    """Coverage of one estimate at one size; refused : share of surveys without an interval."""

    case: str
    kind: str
    estimate: str
    n: int
    runs: int
    coverage: float
    refused: float

    @property
    def below(self) -> float:
        """Number of Monte Carlo errors by which the coverage is below 93%; negative if above."""
        return (LEAST - self.coverage) / math.sqrt(LEAST * (1 - LEAST) / self.runs)

    @property
    def above(self) -> float:
        """Number of Monte Carlo errors by which the coverage is above 96.5%; 0 for a median, whose steps are large."""
        if self.kind == "median":
            return 0.0
        return (self.coverage - MOST) / math.sqrt(MOST * (1 - MOST) / self.runs)


def measure(case: Case, n: int, runs: int, seed: int) -> list[Cell]:
    """Return a cell for each estimate of a case."""
    rng, template = np.random.default_rng(seed), case.survey.template()
    held: list[list[bool]] = []
    names: Sequence[str] = ()
    for _ in range(runs):
        sample = case.survey.drawn(template, n, case.sampling, rng)
        try:
            ends = case.ends(sample)
        except InvalidRequest as error:
            if error.code != "unsupported":
                raise
            continue
        names = [name for name, *_ in ends]
        held.append([low <= truth <= high for _, low, high, truth in ends])
    coverage, refused = np.mean(held, axis=0), 1 - len(held) / runs
    return [
        Cell(case.name, case.kind, name, n, len(held), float(c), refused)
        for name, c in zip(names, coverage, strict=True)
    ]


def efficiency(runs: int, n: int = 10_000) -> float:
    """Return Fisher's bound over the variance of the saturated logistic model's slope."""
    case = next(models())
    fitted = Fitted(case.survey, "q ~ g", "logistic")
    rng, template = np.random.default_rng(7), case.survey.template()
    fits = [fitted.fit(case.survey.drawn(template, n, "strata", rng)).beta[1] for _ in range(runs)]
    p, q = case.survey.shares[:, 0], (case.survey.shares @ case.survey.laws[0])[:, 0]
    slope = case.survey.laws[0][0, 0] - case.survey.laws[0][1, 0]
    # Fisher information of one report about its stratum's log odds, and the bound for the
    # difference of two strata.
    information = (slope * p * (1 - p)) ** 2 / (q * (1 - q)) * n * case.survey.chances
    return float((1 / information).sum() / np.var(fits, ddof=1))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument(
        "--runs", type=int, default=1000, help="simulated surveys per case and size"
    )
    parser.add_argument(
        "--part", choices=PARTS, action="append", help="only this part; may be repeated"
    )
    parser.add_argument("--only", default="", help="only cases with this text in their name")
    chosen = parser.parse_args()
    parts, before = chosen.part or PARTS, load()
    samples: Samples = {}
    extra: dict[str, Any] = {"part": bool(chosen.part or chosen.only), "runs": chosen.runs}
    if "coverage" in parts:
        cells = grid(chosen.runs, chosen.only)
        samples |= once(figures(cells))
        extra["covered"] = rows(cells)
        if not chosen.json:
            print(*markdown(extra["covered"]), sep="\n")
    if "efficiency" in parts:
        samples["efficiency_of_the_saturated_logistic_model"] = [efficiency(4 * chosen.runs)]
    if "speed" in parts:
        samples |= seconds()
    print_result(result(samples, extra), as_json=chosen.json, before=before)


def grid(runs: int, only: str = "", sizes: Sequence[int] = SIZES) -> list[Cell]:
    """Return all cells whose case's name contains `only`; processes share the cases."""
    names = [case.name for case in _cases()]
    jobs = [(i, n, runs) for n in sizes for i, name in enumerate(names) if only in name]
    with ProcessPoolExecutor() as workers:
        return [cell for cells in workers.map(_job, jobs) for cell in cells]


@cache
def _cases() -> list[Case]:
    return [*models(), *weighted()]


def _job(job: tuple[int, int, int]) -> list[Cell]:
    i, n, runs = job
    return measure(_cases()[i], n, runs, 1000 * i + n)


def figures(cells: Sequence[Cell]) -> dict[str, float]:
    """Return the figures that have bounds."""
    return {
        "cells": float(len(cells)),
        "coverage_median": median(cell.coverage for cell in cells),
        "coverage_least": min(cell.coverage for cell in cells),
        "coverage_errors_below_93": max(cell.below for cell in cells),
        "refused": max(cell.refused for cell in cells),
    }


def result(samples: Samples, extra: dict[str, Any]) -> Result:
    """Return the samples with their bounds."""
    at_most = {
        "coverage_errors_below_93": ERRORS,
        "coverage_median": 0.965,
        "model_of_1_million_s": 10.0,
    }
    at_least = {"coverage_median": 0.94, "efficiency_of_the_saturated_logistic_model": 0.97}
    if not extra["part"]:
        at_least["cells"] = 200
    return Result(
        "analyst",
        samples,
        {k: v for k, v in at_most.items() if k in samples},
        {k: v for k, v in at_least.items() if k in samples},
        extra,
    )


def rows(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return, by case and size, the number of estimates and the least and median coverage."""
    found = []
    for kind, case, n in sorted({(cell.kind, cell.case, cell.n) for cell in cells}):
        own = [c for c in cells if (c.kind, c.case, c.n) == (kind, case, n)]
        coverages = [c.coverage for c in own]
        found.append(
            {
                "kind": kind,
                "case": case,
                "n": n,
                "estimates": len(own),
                "least": min(coverages),
                "median": median(coverages),
                "refused": max(c.refused for c in own),
            }
        )
    return found


if __name__ == "__main__":
    main()
