# SPDX-License-Identifier: Apache-2.0
"""Commands `frankly counts show` and `frankly counts table` on the server's own machine."""

import csv
import io
from pathlib import Path

import pytest
from frankly_server.cli.services import open_database

from tests.frankly_server.cli.conftest import Frankly, counted

__all__ = ["counted"]


def test_counts_of_a_survey(counted: Frankly) -> None:
    shown = counted("counts", "show", "habits", "--by", "region")
    assert shown.code == 0
    assert shown.out.splitlines()[0] == "Habits: noisy counts of 60 reports by region"
    assert "smokes (version 1)  region=north  n        60" in shown.out
    body = counted("counts", "show", "habits", "--json").json
    assert [part["strata"][0]["counts"] for part in body["parts"]] == [[30, 30], [20, 20, 20]]
    assert body == counted("counts", "show", body["survey"], "--json").json
    lines = list(csv.DictReader(io.StringIO(counted("counts", "show", "habits", "--csv").out)))
    assert [line["count"] for line in lines] == ["30", "30", "20", "20", "20"]
    pairs = counted("counts", "show", "habits", "--questions", "smokes,drinks", "--json").json
    assert pairs["parts"][0]["strata"][0]["counts"] == [10] * 6


@pytest.mark.parametrize(
    ("arguments", "code", "problem", "field"),
    [
        (["nothing"], 3, "survey_unknown", None),
        (["habits", "--by", "age"], 3, "strata_invalid", "by"),
        (["habits", "--questions", "age"], 3, "targets_invalid", "questions"),
        (["habits", "--since", "today"], 3, "field_type", "since"),
        (["habits", "--csv"], 2, "usage", "csv"),
        (["0" * 32, "--url", "https://surveys.example.org"], 2, "usage", "key"),
    ],
)
def test_refusals(
    counted: Frankly, arguments: list[str], code: int, problem: str, field: str | None
) -> None:
    result = counted("counts", "show", *arguments, "--json")
    assert (result.code, result.out) == (code, "")
    assert (result.problem["code"], result.problem["field"]) == (problem, field)


def test_a_score_table_is_listed_printed_and_written(counted: Frankly, tmp_path: Path) -> None:
    words = ["counts", "table", "habits", "--questions", "smokes", "--by", "region"]
    listed = counted(*words)
    assert listed.out.splitlines()[0] == "Habits: 2 rows of 60 reports"
    assert "smokes_yes  smokes: Yes (mean 0.500000, se 0.140" in listed.out
    printed = counted(*words, "--csv").out
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert [(row["region"], row["count"]) for row in rows] == [("north", "30")] * 2
    file = tmp_path / "smokes.csv"
    written = counted(*words, "--out", str(file))
    assert written.code == 0
    assert written.out.splitlines()[-2:] == [
        f"Written: {file}",
        f"Written: {tmp_path / 'smokes.codebook.csv'}",
    ]
    assert file.read_text() == printed
    expanded = counted(*words, "--expand", "--complete", "--csv").out
    assert len(expanded.splitlines()) == 1 + 60


@pytest.mark.parametrize(
    ("arguments", "code", "problem", "field"),
    [
        ([], 3, "targets_invalid", "questions"),
        (["--questions", "age"], 3, "targets_invalid", "questions"),
        (["--questions", "smokes", "--out", "x.xlsx"], 3, "unsupported", "out"),
        (["--questions", "smokes", "--out", "missing/x.csv"], 3, "unsupported", "out"),
        (["--questions", "smokes", "--documents", "sha256:0"], 3, "targets_invalid", "documents"),
        (["--questions", "smokes", "--since", "2030-01-01"], 3, "targets_invalid", "since"),
        (["--questions", "smokes", "--out", "x.csv", "--csv"], 2, "usage", "csv"),
    ],
)
def test_refused_tables(
    counted: Frankly, arguments: list[str], code: int, problem: str, field: str
) -> None:
    result = counted("counts", "table", "habits", *arguments)
    assert (result.code, result.out) == (code, "")
    assert f"[{problem}]\n  {field}: " in result.err


def test_the_view_of_estimates_follows_releases_and_rebuilds(
    counted: Frankly, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows() -> int:
        with open_database() as database, database.engine.connect() as connection:
            query = "SELECT count(*) FROM v_estimates WHERE survey_name = 'habits'"
            return int(connection.exec_driver_sql(query).scalar() or 0)

    counted("release", "--now")
    assert rows() == 0  # the setting is off
    monkeypatch.setenv("FRANKLY_ESTIMATES_VIEW", "true")
    assert counted("release", "--now").code == 0
    assert rows() == 5 + 5  # five choices, for all reports and for the region north
    assert counted("counts", "rebuild").code == 0
    assert rows() == 0
    counted("release", "--now")
    assert rows() == 10
