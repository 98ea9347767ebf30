# SPDX-License-Identifier: Apache-2.0
"""Commands `frankly scale export` and `count`, as an operator uses them."""

from pathlib import Path

import pytest
from frankly_server.store.counts import pair_counts

from tests.frankly_server.cli.conftest import Frankly, filled


def test_reports_are_exported_counted_and_compared(
    ready: Frankly, survey_file: Path, home: Path, tmp_path: Path
) -> None:
    survey, document, database = filled(
        ready, survey_file, home, [(i % 2, i % 3) for i in range(60)]
    )
    with database.transaction("release") as tx:
        tx.releases.release(survey, document, 1, "2026-06-02T00:00:00Z", is_over=lambda: False)
    folder = str(tmp_path / "out")
    exported = ready("scale", "export", "habits", folder, "--rows", "50", "--json")
    assert (exported.code, exported.json) == (0, {"survey": survey, "reports": 60, "segments": 2})
    assert "60 reports are in 2 segments." in ready("scale", "export", "habits", folder).err
    counted = ready("scale", "count", folder, folder, "--against-database", "--json")
    assert (counted.code, counted.json["reports"], counted.json["duplicates"]) == (0, 60, 60)
    [document_counts] = counted.json["documents"]
    assert document_counts["counts"] == [
        [0, "", 0, 30],
        [0, "", 1, 30],
        [1, "", 0, 20],
        [1, "", 1, 20],
        [1, "", 2, 20],
    ]
    assert document_counts["pairs"] == [[0, 1, "", i, j, 10] for i in range(2) for j in range(3)]
    estimates = ready("scale", "count", folder, "--estimates").out
    named, unnamed = '"release": 1', '"release": 0'  # exports have no release number
    assert estimates == ready("estimates", "habits", "--result").out.replace(named, unnamed)
    crosstab = ("--crosstab", "smokes", "--crosstab", "drinks")
    joint = ready("scale", "count", folder, "--estimates", *crosstab).out
    assert joint == ready("estimates", "habits", *crosstab, "--result").out.replace(named, unnamed)
    assert "the database has the same" in ready("scale", "count", folder, "--against-database").out
    refused = ready("scale", "partition", "habits", "--json")
    assert (refused.code, refused.problem["code"], refused.problem["field"]) == (
        3,
        "unsupported",
        "database_url",
    )
    with database.engine.begin() as connection:
        connection.execute(pair_counts.update().values(n=99))
    differs = ready("scale", "count", folder, "--against-database", "--json")
    assert (differs.code, differs.json["different"]) == (6, [document])
    database.close()


def test_bad_requests_are_refused(ready: Frankly, tmp_path: Path) -> None:
    unknown = ready("scale", "export", "nobody", str(tmp_path / "x"), "--json")
    assert (unknown.code, unknown.problem["code"], unknown.problem["field"]) == (
        3,
        "survey_unknown",
        "NAME",
    )
    assert ready("scale", "export", "nobody", str(tmp_path / "x"), "--rows", "0").code == 2
    assert ready("scale", "count").code == 2
    assert ready("scale", "partition", "nobody", "--json").problem["code"] == "survey_unknown"
    nothing = ready("scale", "count", str(tmp_path), "--json")
    assert (nothing.code, nothing.problem["code"]) == (6, "integrity")
    usage = ready("scale", "count", str(tmp_path), "--crosstab", "smokes", "--json")
    assert (usage.code, usage.problem["field"]) == (2, "crosstab")


def test_a_survey_gets_a_separate_table(
    ready: Frankly, survey_file: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRANKLY_DATABASE_URL", postgres_url)
    assert ready("migrate").code == 0
    assert ready("survey", "apply", str(survey_file)).code == 0
    first, second = (ready("scale", "partition", "habits", "--json") for _ in range(2))
    assert (first.code, first.json["made"], second.code, second.json["made"]) == (0, True, 0, False)
    assert "already had its own table" in ready("scale", "partition", "habits").err
