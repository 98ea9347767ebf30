# SPDX-License-Identifier: Apache-2.0
"""The form bench: demands that are met and missed, and figures of plans by enumeration."""

import importlib
import json
import sys
from dataclasses import replace
from itertools import combinations, product
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def bench(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", [str(root / "bench"), *sys.path])
    return importlib.import_module("form")


def test_a_missed_demand_fails_the_bench(
    bench: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    met = bench._reached("2+2", [2, 2], "2", 1e6)
    undemanded = bench._row(3, "median", 7.0, "no demand", 1, None, 0.1)
    of_numpy = bench._row(4, "missed", np.float64(2), "bound", np.float64(1), 1.05, 0.1)
    monkeypatch.setattr(bench, "FORMS", bench.FORMS[3:4])
    for rows, holds in (([met, undemanded], True), ([met, undemanded, of_numpy], False)):
        monkeypatch.setattr(bench, "measured", lambda *, quick, rows=rows: rows)
        for options in (["--json"], []):
            with pytest.raises(SystemExit) as left:
                bench.main(options)
            assert left.value.code == int(not holds)
        body, _, table = capsys.readouterr().out.partition("\n}\n")
        body = json.loads(body + "}")
        assert (body["bench"], body["holds"]) == ("form", holds)
        assert [row["holds"] for row in body["rows"]] == [True, None, False][: len(rows)]
        assert body["rows"][0]["case"] == "2+2, ε = 2"
        assert ("≤ 1.05 × its" in table and " NO" in table) is not holds


def test_figures_of_plans_are_those_of_all_plans(bench: Any) -> None:
    """Forms with one and with several components."""
    asked: Any = importlib.import_module("_form.asked")
    designing: Any = importlib.import_module("_form.designing")
    for sizes, epsilon in (([2] * 5, "2"), ([2] * 3 + [5] * 3, "3"), ([2, 3, 4], "1.5")):
        mechanism = designing.designed(designing.even(sizes), epsilon)[0].mechanism
        chances = []
        for component in mechanism.components:
            of_pools = [[*combinations(pool.parts, pool.pick)] for pool in component.pools]
            plans = [sum(plan, ()) for plan in product(*of_pools)]
            chance = component.chance / (1 << mechanism.bits) / len(plans)
            chances += [(chance, len(plan)) for plan in plans]
        mean, most, entropy = asked.plans(mechanism)
        assert sum(chance for chance, _ in chances) == pytest.approx(1)
        assert mean == pytest.approx(sum(chance * number for chance, number in chances))
        assert most == max(number for _, number in chances)
        assert entropy == pytest.approx(-sum(chance * log2(chance) for chance, _ in chances))


def test_each_figure_of_a_form_is_compared(bench: Any) -> None:
    name, sizes, epsilon, expected = bench.FORMS[3]
    found = bench.asked(name, sizes, epsilon, expected)
    assert (found.missed, found.holds) == ((), True)
    assert found.figures.bound <= found.figures.value
    others = {
        "value": 51.5,
        "few_questions": 52.1,
        "one_question": 52.1,
        "separate_blocks": 297,
        "mean": 1.01,
        "most": 2,
        "entropy": 2.5,
    }
    for figure, value in others.items():
        other = bench.asked(name, sizes, epsilon, replace(expected, **{figure: value}))
        assert (other.missed, other.holds) == ((figure,), False)
