# SPDX-License-Identifier: Apache-2.0
"""Design bench: it runs, its table is complete, and its baselines are correct for small cases."""

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
from frankly_server.design import Prior

ADULT = {2, 6, 7}
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
    check(root, set(range(1, 13)) - ADULT if full else {1, 12})


@pytest.mark.full_only
def test_every_demand_holds_at_small_sizes_of_adult(root: Path) -> None:
    check(root, ADULT)


def test_the_default_output_is_a_text_table(root: Path) -> None:
    process = run(root, "--quick", "--items", "4")
    head, *lines = process.stdout.splitlines()
    assert (
        head.split()
        == "item case value bound gap s baseline its value its s ratio limit holds".split()
    )
    assert lines
    assert all(line.split()[0] == "4" and line.endswith("yes") for line in lines)


@pytest.mark.parametrize("items", ["0", "14", "1,x"])
def test_unknown_items_are_refused(root: Path, items: str) -> None:
    process = run(root, "--items", items)
    assert process.returncode == 2
    assert "--items" in process.stderr


def test_the_ratio_is_baseline_time_over_engine_time(load: Load) -> None:
    Row = load("row").Row
    row = Row(1, "", 1.0, 1.0, 0.0, 0.5, "", 1.0, 60.0, "", True)
    assert row.ratio == 120
    assert Row(1, "", 1.0, 1.0, 0.0, 0.5, "", None, None, "", None).ratio is None


def test_adult_is_counted_by_name(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adult = load("adult")
    table = tmp_path / "adult.csv"
    monkeypatch.setattr(adult, "DATA", table)
    adult._records.cache_clear()
    with pytest.raises(adult.DataMissingError, match=r"adult\.csv"):
        adult.prior("sex", "race")
    table.write_text("race,sex\nB,m\n?,f\nB,f\nA,m\nB,m\n")
    assert adult.prior("sex", "race").joint == ((1, 0, 1), (0, 1, 2))  # f, m by ?, A, B
    adult._records.cache_clear()


def informations(joint: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Return I(X; Y) of many binary mechanisms Q[k] = (Q(0|0), Q(0|1))."""
    p = joint.sum(axis=0)
    total = np.zeros(len(Q))
    for q in (Q, 1 - Q):
        with np.errstate(divide="ignore", invalid="ignore"):
            total += (p * np.where(q > 0, q * np.log(q / (q @ p)[:, None]), 0)).sum(axis=1)
    return total


@pytest.mark.parametrize("notion", ["secret-ldp", "lip"])
@pytest.mark.parametrize("epsilon", [0.1, 0.4])
def test_enumeration_finds_the_best_of_a_grid(load: Load, notion: str, epsilon: float) -> None:
    # With two answers and two reports, a mechanism is a point in the unit square, so a grid covers
    # all mechanisms.
    joint = np.array([[0.35, 0.1], [0.15, 0.4]])
    grid = np.linspace(0, 1, 1001)
    Q = np.array([(a, b) for a in grid for b in grid])
    conditional = joint / joint.sum(axis=1, keepdims=True)
    feasible = np.ones(len(Q), dtype=bool)
    for q in (Q, 1 - Q):
        sent, p = q @ conditional.T, q @ joint.sum(axis=0)
        references = [sent[:, 0], sent[:, 1]] if notion == "secret-ldp" else [p]
        for s in range(2):
            for reference in references:
                feasible &= sent[:, s] <= math.exp(epsilon) * reference + 1e-12
                feasible &= reference <= math.exp(epsilon) * sent[:, s] + 1e-12
    best = float(informations(joint, Q[feasible]).max())
    module = load("enumeration")
    largest = (
        module.secret_ldp(joint, epsilon)
        if notion == "secret-ldp"
        else module.lip(joint, epsilon, epsilon)
    )
    # No grid point is better, and the optimum is within one grid step of a grid point.
    assert best <= largest.information + 1e-12
    assert largest.information - best <= 0.005
    assert largest.information < 0.9 * informations(joint, np.array([[1.0, 0.0]]))[0]


def test_enumeration_stops_at_its_cap(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load("enumeration")
    monkeypatch.setattr(module, "_START_S", 0.5)
    counts = np.random.default_rng(0).integers(1, 100, (2, 5)).tolist()
    outcome = module.capped("secret-ldp", Prior.from_rows(counts), 0.5, cap_s=0.5)
    assert (outcome.capped, outcome.seconds, outcome.optimum) == (True, 0.5, None)


def test_enumeration_is_the_same_in_a_separate_process(load: Load) -> None:
    module = load("enumeration")
    prior = Prior.from_rows([[5, 2, 1], [1, 4, 6]])
    alone = module.capped("secret-ldp", prior, 0.3)
    in_process = module.secret_ldp(module.probabilities(prior), 0.3)
    assert alone.optimum.vertices == in_process.vertices
    assert alone.optimum.information == pytest.approx(in_process.information, abs=1e-12)


@pytest.mark.parametrize(("low", "high"), [(0.3, 0.3), (1.0, 1.0), (0.2, 0.6)])
def test_subset_random_response_keeps_its_levels(load: Load, low: float, high: float) -> None:
    rng = np.random.default_rng(5)
    module = load("subset_rr")
    for _ in range(5):
        joint = rng.dirichlet(np.ones(24)).reshape(3, 8)
        response = module.subset_random_response(joint, low, high)
        p = joint.sum(axis=0)
        Q = response.conditional * response.chance / p[:, None]  # Q(y | x)
        assert Q.sum(axis=1) == pytest.approx(np.ones(8), abs=1e-9)
        for s in range(3):
            lift = (joint[s] / joint[s].sum() @ Q) / (p @ Q)
            assert np.all(np.log(lift) >= -low - 1e-9)
            assert np.all(np.log(lift) <= high + 1e-9)
        ratio = np.where(Q > 0, Q / (p @ Q), 1.0)
        information = float((p[:, None] * Q * np.log(ratio)).sum())
        assert module.information(response, joint) == pytest.approx(information, abs=1e-9)
        assert information <= load("enumeration").lip(joint, low, high).information + 1e-9
        assert module.broken(response, joint, low, high) == 0
        assert (
            module.broken(response, joint, 0.1 * low, 0.1 * high) > 0 or len(response.chance) == 1
        )
        members = sorted(x for group in response.groups for x in group)
        alone = [x for x in range(8) if x not in members]
        assert len(set(members)) == len(members)
        for x in alone:  # sent unchanged, because the answer alone stays within both levels
            single = np.log(joint[:, x] / p[x] / joint.sum(axis=1))
            assert single.min() >= -low
            assert single.max() <= high


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
