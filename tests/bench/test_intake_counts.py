# SPDX-License-Identifier: Apache-2.0
"""Bench of counts, run with a few reports: it reports all figures and uses each way of counting."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from frankly_server.store import Database


@pytest.fixture
def bench(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", [str(root / "bench"), *sys.path])
    module = importlib.import_module("intake_counts")
    for name, value in {"BATCH": 4, "ROUNDS": 1, "FEW": 60, "MANY": 80}.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(
        module, "CASES", {name: module.CASES[name] for name in ("two_tables", "unary_16")}
    )
    return module


def test_every_figure_is_measured(bench: Any, sqlite_url: str) -> None:
    figures = bench.on(sqlite_url, "sqlite")
    for case in ("two_tables", "unary_16"):
        for figure in ("single", "batch", "latency", "latency_before", "estimate"):
            assert min(figures[f"ratio_{figure}_{case}_sqlite"]) > 0
    database = Database(sqlite_url)
    with database.reading("look") as tx:
        wrong = {survey.id: len(tx.counts.recount(survey.id)) for survey in tx.surveys.all()}
    database.close()
    # The older counting method counted half of the reports of the first two surveys, without pairs.
    both_ways = {f"{number:032x}" for number in (1, 2)}
    assert all(wrong[survey] > 0 for survey in both_ways)
    assert [n for survey, n in wrong.items() if survey not in both_ways] == [0] * 4
