# SPDX-License-Identifier: Apache-2.0
"""Benches of intake and of a growing survey, run with a few reports: figures and counts are complete."""

import importlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def path(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(root / "bench"), *sys.path])


@pytest.mark.full_only
@pytest.mark.usefixtures("path")
def test_intake_on_sqlite(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = importlib.import_module("intake")
    monkeypatch.setattr(bench, "CONNECTIONS", (1, 2))
    monkeypatch.setattr(bench, "OWN", (2,))
    figures = bench.measure("sqlite", 4, 1, 1, 1)
    for name in (
        "ratio_sqlite_4_1_plain",
        "p50_sqlite_4_2_bare",
        "ratio_own_sqlite_4_2_plain",
        "sqlite_4_batch_per_s",
        "ratio_sqlite_4_batch_plain",
    ):
        [value] = figures[name]
        assert value > 0
    assert {f"cpu_sqlite_4_2_{name}_s" for name in ("ours", "plain", "bare")} <= set(figures)


@pytest.mark.usefixtures("path")
def test_figures_beyond_their_bounds_are_listed() -> None:
    bench = importlib.import_module("intake")
    ratios: dict[str, tuple[float, bool]] = {
        "ratio_sqlite_4_64_plain": (0.89, False), "ratio_sqlite_4_1_plain": (0.9, True),
        "ratio_own_postgresql_4_8_plain": (0.89, False), "ratio_sqlite_12_64_plain": (0.5, True),
        "ratio_sqlite_4_64_bare": (0.79, False), "ratio_postgresql_4_1_bare": (0.8, True),
        "ratio_postgresql_4_batch_plain": (0.39, False), "ratio_sqlite_4_batch_plain": (0.4, True),
        "ratio_postgresql_4_batch_copy": (0.1, True), "p50_sqlite_4_1_plain": (1.21, False),
        "p50_postgresql_4_1_plain": (1.2, True), "p50_sqlite_4_8_plain": (9.0, True), "sqlite_4_1_p99_s": (9.0, True),
        "beside_sqlite_4_refused": (1, False), "beside_postgresql_4_refused": (0, True),
        "beside_sqlite_4_not_ready": (1, False), "beside_sqlite_4_p99_s": (0.26, False),
        "beside_postgresql_4_p99_s": (0.25, True), "alone_sqlite_4_p99_s": (9.0, True),
        "beside_sqlite_4_plans_other": (9, True),
    }  # fmt: skip
    short = bench.result({name: [value] for name, (value, _) in ratios.items()}).short
    assert set(short) == {name for name, (_, holds) in ratios.items() if not holds}


@pytest.mark.usefixtures("path")
def test_the_plain_route_refuses_invalid_reports() -> None:
    bare: Any = importlib.import_module("_intake.bare")
    surveys: Any = importlib.import_module("_intake.surveys")
    load: Any = importlib.import_module("_intake.load")
    document = surveys.made("four_by_group", "ab" * 16, datetime(2026, 6, 1, tzinfo=UTC))
    [report] = [json.loads(body) for body in load.bodies(document, 1)]
    read = bare.validating(document)(document.survey)
    assert read(report)[1] == bytes.fromhex(report["id"])
    bad_reports = {
        "v": 2, "doc": "sha256:" + "0" * 64, "id": "A" * 32, "token": "x", "strata": {"z0": "c0"},
        "y": [9, *report["y"][1:]],
    }  # fmt: skip
    for key, value in bad_reports.items():
        with pytest.raises((KeyError, TypeError, ValueError)):
            read(report | {key: value})
    with pytest.raises(ValueError, match="of another survey"):
        bare.validating(document)("cd" * 16)


@pytest.mark.slow
@pytest.mark.usefixtures("path")
def test_no_report_is_refused_beside_planning_or_managing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = importlib.import_module("intake")
    beside: Any = importlib.import_module("_intake.beside")
    small = {"prior": {"joint": [[3, 1], [1, 3]]}, "frontier": 2}
    plan = json.dumps(beside.PLAN | small).encode()
    monkeypatch.setattr(beside, "_PLAN", ("POST", "/v1/plan", plan, {}))
    figures = {
        name.removeprefix("beside_sqlite_4_"): value
        for name, [value] in bench.beside_planning("sqlite", 1.0).items()
    }
    refused = ("refused", "alone_sqlite_4_refused", "not_ready", "plans_422", "plans_other")
    assert [figures.pop(name) for name in refused] == [0] * 5
    managed = {
        name.removeprefix("managed_sqlite_4_"): figures.pop(name)
        for name in list(figures)
        if name.startswith("managed_")
    }
    assert [managed.pop(name) for name in ("refused", "not_ready", "requests_other")] == [0] * 3
    assert managed.pop("reports") == 40
    assert managed.pop("requests_200") + managed.pop("requests_201") > 0
    assert figures["reports"] == figures["alone_sqlite_4_reports"] == 40
    assert all(figures.pop(name) > 0 for name in ("plans_200", "plans_429"))
    assert set(figures) == {
        *("reports", "p50_s", "p99_s", "most_s"),
        *(f"alone_sqlite_4_{name}" for name in ("reports", "p50_s", "p99_s", "most_s")),
    }


@pytest.mark.usefixtures("path")
def test_rows_are_copied(postgres_url: str) -> None:
    surveys: Any = importlib.import_module("_intake.surveys")
    document = surveys.made("four_by_group", "ab" * 16, datetime(2026, 6, 1, tzinfo=UTC))
    copying: Any = importlib.import_module("_intake.copying").Copying(postgres_url, document)
    assert copying.per_s(10, 5) > 0
    with copying._connection as connection:
        assert connection.execute("SELECT count(*) FROM bare").fetchone() == (10,)
    copying.close()


@pytest.mark.usefixtures("path")
def test_the_plain_route_stores_batches(sqlite_url: str) -> None:
    surveys: Any = importlib.import_module("_intake.surveys")
    bare: Any = importlib.import_module("_intake.bare")
    load: Any = importlib.import_module("_intake.load")
    document = surveys.made("four_by_group", "ab" * 16, datetime(2026, 6, 1, tzinfo=UTC))
    path = f"/v1/surveys/{document.survey}/reports"
    reports = [json.loads(body) for body in load.bodies(document, 3)]
    app = bare.application(bare.inserting(sqlite_url), bare.validating(document))
    answer = app.test_client().post(path, json={"reports": reports[:2]})
    assert answer.json == {"results": [{"status": "accepted", "id": r["id"]} for r in reports[:2]]}
    assert app.test_client().post(path, json=reports[2]).status_code == 201
    refused = {"reports": [reports[2], reports[2] | {"v": 2}]}
    assert app.test_client().post(path, json=refused).status_code == 422


@pytest.mark.full_only
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
