# SPDX-License-Identifier: Apache-2.0
"""Command `frankly estimates` against a real server."""

import csv
import io
import json
import re

import pytest
from frankly_server.cli import front

from tests.frankly_analyst.conftest import Served


@pytest.fixture(autouse=True)
def _key(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRANKLY_API_KEY", served.site.analyst_key)


def test_the_default_output_is_a_text_table(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    assert front.run(["estimates", served.site.survey, "--url", served.url]) == 0
    shown = capsys.readouterr().out
    assert "Habits: 60 reports at 0.95" in shown
    assert len(re.findall(r"│ [−\d.]+% +│ [−\d.]+% +│ [−\d.]+% +│", shown)) == 5


def test_periods_are_named_in_the_table(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    day = "2026-06-02"  # the day of the release
    asked = ["--by", "day", "--since", day, "--until", day]
    assert front.run(["estimates", served.site.survey, "--url", served.url, *asked]) == 0
    shown = "".join(capsys.readouterr().out.split())
    assert shown.count(f"day={day}") == 5
    assert (
        front.run(["estimates", served.site.survey, "--url", served.url, "--until", "2020-01-01"])
        == 0
    )
    assert "10 more needed" in capsys.readouterr().out


def test_a_population_narrows_the_margins(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    margins = []
    for asked in ([], ["--population", "80"]):
        assert (
            front.run(["estimates", served.site.survey, "--url", served.url, "--json", *asked]) == 0
        )
        margins.append([row["margin"] for row in json.loads(capsys.readouterr().out)["rows"]])
    assert all(narrow < wide for wide, narrow in zip(*margins, strict=True))


def test_a_link_replaces_url_and_survey(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    link = f"{served.url}/s/{served.site.survey}#{served.site.digest.replace(':', '=')}"
    assert front.run(["estimates", link, "--json", "--census", "--level", "0.9"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["survey"], found["n"], len(found["rows"])) == (served.site.survey, 60, 5)
    assert {row["level"] for row in found["rows"]} == {0.9}


def test_row_percentages_and_weights(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        "--crosstab",
        "smokes",
        "--crosstab",
        "drinks",
        "--percent",
        "row",
        "--weights",
        "respondents",
    ]
    assert (
        front.run(["estimates", served.site.survey, "--url", served.url, *asked, "--result"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert (found["percent"], found["weights"]) == ("row", "respondents")
    assert [question["id"] for question in found["questions"]] == ["drinks | smokes"]
    assert front.run(["estimates", served.site.survey, "--url", served.url, *asked]) == 0
    capsys.readouterr()
    weights = ["--weights", "inverse-variance"]
    assert (
        front.run(["estimates", served.site.survey, "--url", served.url, *weights, "--result"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["weights"] == "inverse-variance"
    assert front.run(["estimates", served.site.survey, "--url", served.url, *asked, *weights]) == 3
    assert (
        "weights: a ratio or percentage needs a single weight per version"
        in capsys.readouterr().err
    )


def test_csv(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert front.run(["estimates", served.site.survey, "--url", served.url, "--csv"]) == 0
    assert len(list(csv.DictReader(io.StringIO(capsys.readouterr().out)))) == 5


def test_a_file_for_spreadsheets(
    served: Served, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    asked = ["estimates", served.site.survey, "--url", served.url]
    assert front.run([*asked, "--spreadsheet"]) == 0
    assert capsysbinary.readouterr().out == served.site.estimates("?format=spreadsheet").data
    for other in ("--csv", "--json", "--result", "--compare=previous"):
        assert front.run([*asked, "--by=version", "--spreadsheet", other]) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["SURVEY", "--level", "95"], 3, "confidence_range"),
        (["0" * 32], 3, "survey_unknown"),
        (["nothing"], 3, "survey_unknown"),
        (["SURVEY", "--key", "frankly_live_wrong"], 3, "unauthenticated"),
        (["SURVEY", "--url", "http://surveys.example.org"], 5, "network"),
        (["SURVEY", "--url", "http://127.0.0.1:1"], 5, "network"),
        (["SURVEY", "--level", "much"], 2, "usage"),
        (["SURVEY", "--by", "day,week"], 3, "field_type"),
        (["SURVEY", "--since", "today"], 3, "field_type"),
        (["SURVEY", "--population", "59"], 3, "counts_invalid"),
        ([], 2, "usage"),
    ],
)
def test_refusals(
    served: Served,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    problem: str,
) -> None:
    filled = [served.site.survey if word == "SURVEY" else word for word in arguments]
    where = [] if "--url" in filled else ["--url", served.url]
    assert front.run(["estimates", *filled, *where, "--json"]) == code
    assert json.loads(capsys.readouterr().err)["code"] == problem
