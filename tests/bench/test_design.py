# SPDX-License-Identifier: Apache-2.0
"""Design bench: it runs, and its table is complete."""

import importlib
import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(root: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Return a function that imports a module of the bench as the bench script does."""
    monkeypatch.syspath_prepend(str(root / "bench"))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    return lambda name: importlib.import_module(f"_design.{name}")


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "bench" / "design.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def check(root: Path, items: set[int]) -> None:
    process = run(root, "--quick", "--json", "--items", ",".join(map(str, sorted(items))))
    assert process.returncode in (0, 1), process.stderr[-4000:]
    body: dict[str, Any] = json.loads(process.stdout)
    assert {row["item"] for row in body["rows"]} == items
    assert [row for row in body["rows"] if row["holds"] is False] == []
    assert body["holds"] is True
    assert process.returncode == 0
    for row in body["rows"]:
        if row["gap"] is not None:
            assert row["gap"] >= 0
            assert not math.isnan(row["value"])


def test_every_demand_holds_at_small_sizes(root: Path, full: bool) -> None:
    check(root, set(range(1, 7)) if full else {3, 5})


def test_the_default_output_is_a_text_table(root: Path) -> None:
    process = run(root, "--quick", "--items", "5")
    head, *lines = process.stdout.splitlines()
    assert (
        head.split()
        == "item case value bound gap s baseline its value its s ratio limit holds".split()
    )
    assert lines
    assert all(line.split()[0] == "5" and line.endswith("yes") for line in lines)


@pytest.mark.parametrize("items", ["0", "7", "1,x"])
def test_unknown_items_are_refused(root: Path, items: str) -> None:
    process = run(root, "--items", items)
    assert process.returncode == 2
    assert "--items" in process.stderr


def test_the_ratio_is_baseline_time_over_engine_time(load: Load) -> None:
    Row = load("row").Row
    row = Row(1, "", 1.0, 1.0, 0.0, 0.5, "", 1.0, 60.0, "", True)
    assert row.ratio == 120
    assert Row(1, "", 1.0, 1.0, 0.0, 0.5, "", None, None, "", None).ratio is None


def test_the_geometric_mechanism_keeps_a_scale(load: Load) -> None:
    """Rows sum to 1, and the probabilities of each report differ by a factor of at most e^0.5
    between neighbours."""
    module = load("levels_of_pairs")
    for answers in (2, 5, 9):
        Q = np.array(module.geometric(answers), dtype=float) / 2**48
        assert Q.sum(axis=1) == pytest.approx(np.ones(answers))
        levels = module.scale(answers)
        for x in range(answers):
            for z in range(answers):
                if x != z:
                    assert np.all(Q[x] <= math.exp(levels[x][z]) * Q[z] * (1 + 1e-12))
    assert module.high_low(3) == [[None, 1, 1], [1, None, 1], [None, None, None]]
