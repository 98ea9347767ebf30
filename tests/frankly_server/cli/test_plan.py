# SPDX-License-Identifier: Apache-2.0
"""`frankly plan --survey`: the plan of a file, its options, and refusals."""

import json
from pathlib import Path
from typing import Any

import pytest
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.plan_request import SurveyPlanFields
from frankly_server.surveys.survey_plan import survey_plan

from tests.contract.test_arms import FILE as WITH_ARMS
from tests.frankly_server.cli.conftest import Frankly
from tests.survey_files import DRINKS, REGION, SMOKES, habits

FORM = habits(SMOKES, DRINKS, budget="2", strata=REGION)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "survey.yaml"
    path.write_bytes(FORM)
    return path


def planned(data: bytes = FORM, **asked: Any) -> Any:
    found = survey_plan(parse_definition(data), SurveyPlanFields.from_json(asked))
    return json.loads(json.dumps(found))


@pytest.mark.parametrize(("options", "asked"), [
    (["--margin", "0.05"], {"margin": 0.05}),
    (["--reports", "2000", "--level", "0.9"], {"n": 2000, "level": 0.9}),
    (["--margin", "0.05", "--population", "90000", "--response-rate", "0.4", "--group-share", "0.2"],
     {"margin": 0.05, "population": 90000, "response_rate": 0.4, "group_share": 0.2}),
    (["--margin", "0.05", "--groups", "where-do-you-live=0.4,0.6", "--any-shares", "--strengths"],
     {"margin": 0.05, "group_share": 0.4, "shares": "any", "strengths": True}),
])  # fmt: skip
def test_the_options_are_the_fields_of_the_plan(
    frankly: Frankly, file: Path, options: list[str], asked: dict[str, Any]
) -> None:
    name = parse_definition(FORM).strata[0].id
    options = [option.replace("where-do-you-live", name) for option in options]
    done = frankly("plan", "--survey", file, *options, "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json == planned(**asked)


def test_the_plan_is_shown_as_tables(frankly: Frankly, file: Path) -> None:
    done = frankly("plan", "--survey", file, "--margin", "0.05", "--strengths")
    found = planned(margin=0.05, strengths=True)
    assert (done.code, done.err) == (0, "")
    assert "±5 points at 0.95: what each step costs in respondents" in done.out
    for row in (*found["ladder"], *found["questions"]):
        assert row["text"] in done.out
    assert f"{found['n']:,}" in done.out
    assert f"× {found['ladder'][1]['factor']:.2f}" in done.out
    assert "Strong (the file's)" in done.out
    for note in found["notes"]:
        assert note in done.out


def test_a_difference_between_arms(frankly: Frankly, tmp_path: Path) -> None:
    path = tmp_path / "arms.yaml"
    path.write_bytes(WITH_ARMS)
    options = ["--margin", "0.2", "--difference", "0.1", "--power", "0.9"]
    found = frankly("plan", "--survey", path, *options, "--json").json
    assert found == planned(WITH_ARMS, margin=0.2, difference=0.1, power=0.9)
    assert found["ladder"][-1]["step"] == "difference"


@pytest.mark.parametrize(("options", "code", "said"), [
    (["--margin", "x"], 2, "--margin takes a number"),
    (["--groups", "region=a"], 2, "--groups takes a number"),
    (["--margin", "0.05", "--split"], 2, "leave one of them out"),
    ([], 3, "margin to reach"),
    (["--margin", "0.05", "--random", "0.1"], 3, "random"),
])  # fmt: skip
def test_refusals(frankly: Frankly, file: Path, options: list[str], code: int, said: str) -> None:
    done = frankly("plan", "--survey", file, *options)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_options_of_surveys_need_one(frankly: Frankly) -> None:
    done = frankly("plan", "--response-rate", "0.5", stdin="{}")
    assert done.code == 2
    assert "--response-rate belongs to --survey FILE" in done.err
