# SPDX-License-Identifier: Apache-2.0
"""Coverage of models and weighted estimates in simulated surveys, at small counts."""

import importlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
bench = importlib.import_module("analyst")
corrected = importlib.import_module("_estimate.coverage").corrected
sys.path.pop(0)
CHEAP = (
    "linear, ε 1",
    "raked, GRR ε 1.5",
    "post-stratified, GRR ε 1.5",
    "GRR ε 1.5, strata",
    "logistic, saturated, ε 2",
)


def test_intervals_cover_in_small_surveys() -> None:
    """Coverage is 93 to 96.5%, but for 3.5 Monte Carlo standard errors per cell, corrected for the
    number of cells."""
    cases = [case for case in (*bench.models(), *bench.weighted()) if case.name in CHEAP]
    assert {case.kind for case in cases} == {"model", "weights", "ratio", "median", "change"}
    cells = [cell for i, case in enumerate(cases) for cell in bench.measure(case, 2000, 50, seed=i)]
    assert len(cells) >= 20
    for cell in cells:
        assert max(cell.below, cell.above) <= corrected(3.5, len(cells)), cell
        assert cell.refused == 0


def test_a_result_names_the_bounds_that_it_breaks() -> None:
    samples = {
        "cells": [201.0],
        "coverage_median": [0.97],
        "coverage_errors_below_93": [3.6],
        "model_of_1_million_s": [11.0],
        "efficiency_of_the_saturated_logistic_model": [0.9],
    }
    assert set(bench.result(samples, {"part": False}).short) == set(samples) - {"cells"}


@pytest.mark.full_only
def test_the_whole_grid_keeps_its_bounds() -> None:
    cells = bench.grid(1000)
    assert max(cell.above for cell in cells) <= corrected(3.5, len(cells))
    assert (
        bench.result({k: [v] for k, v in bench.figures(cells).items()}, {"part": False}).short == []
    )
    assert bench.efficiency(4000) >= 0.97
