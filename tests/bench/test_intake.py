# SPDX-License-Identifier: Apache-2.0
"""The benches of intake and of a survey that grows, at a few reports: every figure is there, everything was stored."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def path(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(root / "bench"), *sys.path])


@pytest.mark.usefixtures("path")
def test_intake_on_sqlite() -> None:
    figures = importlib.import_module("intake").measure("sqlite", 1, 16, 1)
    for name in ("ratio_single", "ratio_alone", "ratio_p99", "p99", "cpu", "single"):
        [value] = next(found for figure, found in figures.items() if figure.startswith(f"{name}_sqlite"))
        assert value >= 0
    assert figures["batch_sqlite_per_s"][0] > 0


@pytest.mark.usefixtures("path")
def test_what_falls_short_is_told() -> None:
    bench = importlib.import_module("intake")
    given: dict[str, tuple[float, bool]] = {
        "ratio_single_sqlite": (0.79, False), "ratio_single_postgresql": (0.8, True),
        "ratio_batch_postgresql": (0.49, False), "ratio_p99_sqlite": (3.1, False), "ratio_p99_postgresql": (3.0, True),
        "ratio_cpu_sqlite": (9.0, True), "p99_sqlite_s": (9.0, True),
    }  # fmt: skip
    short = bench.result({name: [value] for name, (value, _) in given.items()}).short
    assert set(short) == {name for name, (_, kept) in given.items() if not kept}


@pytest.mark.usefixtures("path")
def test_rows_are_copied(postgres_url: str) -> None:
    copying: Any = importlib.import_module("_intake.copying").Copying(postgres_url)
    assert copying.per_s(10, 5) > 0
    with copying._connection as connection:
        assert connection.execute("SELECT count(*) FROM reports").fetchone() == (10,)
    copying.close()


@pytest.mark.usefixtures("path")
def test_a_survey_that_grows(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    growing: Any = importlib.import_module("_intake.growing")
    for name, value in {"SIZE": 10, "TOGETHER": 2, "ROUNDS": 1, "CASE": "two_tables"}.items():
        monkeypatch.setattr(growing, name, value)
    figures = growing.grown(sqlite_url, 100, few=60)
    assert (figures["reports_sent"], figures["reports"]) == ([100], [100])
    ratios = {name for name in figures if name.startswith("ratio_")}
    assert ratios == {"ratio_memory", "ratio_rate", "ratio_estimate", "ratio_crosstab"}
    assert all(min(values) > 0 for values in figures.values())
