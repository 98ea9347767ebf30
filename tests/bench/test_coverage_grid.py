# SPDX-License-Identifier: Apache-2.0
"""The grid of the coverage bench: it computes what the product does, and its demands can be missed."""

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
demands = importlib.import_module("_estimate.demands")
designs = importlib.import_module("_estimate.designs")
grid = importlib.import_module("_estimate.grid")
linear = importlib.import_module("_estimate.linear")
shipped = importlib.import_module("_estimate.shipped")
sys.path.pop(0)
RUNS = 200
NAMES = ("lip", "secret-ldp", "srlip", "families/oue", "families/warner", "families/subset-selection")


@pytest.fixture(scope="module")
def every() -> dict[str, Any]:
    return {each.name: each for each in shipped.example_designs()}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_computed_at_once_is_the_product_s(every: dict[str, Any], name: str) -> None:
    chosen = every[name]
    case, rng = designs.case_of(name, chosen.mechanism), np.random.default_rng(4)
    for targets in grid.targets_of(chosen).values():
        table = linear.Linear(case, targets, chosen.prior)
        for n, p in zip((30, 100, 2000), list(shipped.truths(case.law.shape[0], chosen.prior).values()), strict=False):
            assert linear.compare(table, rng.multinomial(n, p @ case.law)) < 1e-6


def test_cells_of_two_symbols_are_enumerated_and_demands_hold(every: dict[str, Any]) -> None:
    cells = [cell for name in ("families/warner", "hamming") for cell in grid.cells(every[name], 40, seed=1)]
    assert {cell.exactly for cell in cells} == {True, False}
    assert {cell.kind for cell in cells} == {"shares", "differences", "ratio"}
    for found in demands.figures(cells):
        if found.design == "families/warner":
            assert found.figure <= demands.limit(found.demand), found


def test_a_cell_that_falls_short_is_found(every: dict[str, Any]) -> None:
    cell = next(iter(grid.cells(every["families/warner"], RUNS, seed=1)))
    worse = replace(cell, coverage={m: found - 0.2 for m, found in cell.coverage.items()})
    assert all(f.figure > demands.limit(f.demand) for f in demands.figures([worse]) if f.demand == "score_errors_below")


def test_everything_that_is_shipped_is_in_the_grid() -> None:
    folder = shipped.ROOT / "server/frankly_server/surveys/templates"
    assert {path.stem for path in folder.glob("*.yaml")} <= {path.stem for path in shipped.SURVEYS}
    assert {path.parent.name for path in shipped.SURVEYS} >= {"affairs", "workplace", "multi", "templates"}
