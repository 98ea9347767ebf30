# SPDX-License-Identifier: Apache-2.0
"""Grid of the coverage bench: it reproduces the library's figures, and its bounds can fail."""

import importlib
import sys
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
demands = importlib.import_module("_estimate.demands")
designs = importlib.import_module("_estimate.designs")
grid = importlib.import_module("_estimate.grid")
linear = importlib.import_module("_estimate.linear")
shipped = importlib.import_module("_estimate.shipped")
sums = importlib.import_module("_estimate.sums")
sys.path.pop(0)
RUNS = 200
NAMES = ("lip", "srlip", "families/oue", "families/warner")


@pytest.fixture(scope="module")
def every() -> dict[str, Any]:
    return {example.name: example for example in shipped.example_designs()}


@pytest.mark.parametrize("name", NAMES)
def test_vectorised_figures_equal_those_of_the_product(every: dict[str, Any], name: str) -> None:
    chosen = every[name]
    case = designs.case_of(name, chosen.mechanism)
    for kind, targets in grid.targets_of(chosen).items():
        table = linear.Linear(case, targets, chosen.prior)
        for n, (truth, p) in zip(
            (30, 100, 2000), shipped.truths(case.law.shape[0], chosen.prior).items(), strict=False
        ):
            grid.cell(table, (name, kind, truth), p, n, grid.CHECKED + 1, seed=4)


def test_changed_margins_are_detected(
    every: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wider(*arguments: Any) -> Any:
        value, margins = linear.product_margins(*arguments)
        return value, replace(
            margins, score=tuple((low, high + 1e-3) for low, high in margins.score)
        )

    monkeypatch.setattr(grid, "product_margins", wider)
    with pytest.raises(grid.Mismatch, match="score of ldp, target 0"):
        list(grid.cells(every["ldp"], 10, seed=1))


def test_cells_of_two_symbols_are_enumerated_and_demands_hold(every: dict[str, Any]) -> None:
    designs = [every[name] for name in ("families/warner", "hamming")]
    cells = [
        cell
        for example in designs
        for make_cells in (grid.cells, sums.ratios)
        for cell in make_cells(example, 40, seed=1)
    ]
    assert {cell.exactly for cell in cells} == {True, False}
    assert {cell.kind for cell in cells} == {"shares", "differences", "ratios"}
    for figure in demands.figures(cells):
        if figure.design == "families/warner":
            limits = demands.USUAL | demands.LIMITS
            assert figure.figure <= limits.get(figure.demand, inf), figure


def test_a_cell_with_low_coverage_exceeds_the_limit(every: dict[str, Any]) -> None:
    cell = next(iter(grid.cells(every["families/warner"], RUNS, seed=1)))
    worse = replace(cell, coverage={m: rate - 0.2 for m, rate in cell.coverage.items()})
    figures = [f.figure for f in demands.figures([worse]) if f.demand == "score_errors_below"]
    assert figures
    assert min(figures) > demands.LIMITS["score_errors_below"]


def test_exceptions_are_counted_as_a_share_of_all_cells(every: dict[str, Any]) -> None:
    cell = next(iter(grid.cells(every["families/warner"], RUNS, seed=1)))
    below, good = (
        {m: rate * 0 + level for m, rate in cell.coverage.items()} for level in (0.9, 0.95)
    )
    width = {**cell.width, "score": cell.width["clt"] * 1.3}
    low, wide = replace(cell, coverage=below), replace(cell, coverage=good, width=width)
    found = list(demands.figures([cell, low, wide]))
    assert [figure.demand for figure in demands.exceptions(found)] == [*demands.USUAL]
    assert demands.shares_of_exceptions(found, 4) == {
        "score_errors_below_93_exceptions": 0.25,
        "score_width_exceptions": 0.25,
    }
    limits = {figure.demand: figure.figure for figure in demands.figures([low])}
    assert limits["score_errors_below"] <= demands.LIMITS["score_errors_below"]


def test_everything_that_is_shipped_is_in_the_grid() -> None:
    folder = shipped.ROOT / "server/frankly_server/surveys/templates"
    assert {path.stem for path in folder.glob("*.yaml")} <= {path.stem for path in shipped.SURVEYS}
    assert {path.parent.name for path in shipped.SURVEYS} >= {
        "affairs",
        "workplace",
        "multi",
        "templates",
    }
