# SPDX-License-Identifier: Apache-2.0
"""The other two demo surveys: their data, their priors, and the output of a run."""

import csv
import json
import random
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frankly_design.requests.design import design_json
from frankly_protocol.canonical import parse_json
from frankly_protocol.mechanisms import DenseMechanism

from examples.demo import __main__ as demo
from examples.demo.people import Person, joint_counts
from examples.demo.results import compare_table
from examples.demo.surveys import SURVEYS
from examples.multi import data as multi
from examples.workplace import data as workplace
from tests.demo import run_demo
from tests.examples.rows import estimate
from tests.refusals import refusal


def _lines(name: str, **options: Any) -> list[dict[str, str]]:
    with files("statsmodels").joinpath("datasets", name, f"{name}.csv").open() as file:
        return list(csv.DictReader(file, **options))


def test_the_workplaces_people_equal_those_of_statsmodels() -> None:
    rows = [row for row in _lines("randhie") if row["physlm"] in ("0", "1")]
    everyone = workplace.people()
    assert len(everyone) == len(rows) == 19138
    assert sum(p["limitation"] == "yes" for p in everyone) == sum(
        row["physlm"] == "1" for row in rows
    )
    for health, column in (("good", "hlthg"), ("fair", "hlthf"), ("poor", "hlthp")):
        assert sum(p["health"] == health for p in everyone) == sum(
            float(row[column]) for row in rows
        )
    for visits, low, high in (
        ("none", 0, 0),
        ("one-two", 1, 2),
        ("three-five", 3, 5),
        ("more", 6, 10**9),
    ):
        assert sum(p["visits"] == visits for p in everyone) == sum(
            low <= int(row["mdvis"]) <= high for row in rows
        )
    pilot, respondents = workplace.split()
    assert [*pilot, *respondents] == everyone[:4000]


def test_the_voters_equal_those_of_statsmodels() -> None:
    rows = _lines("anes96", delimiter="\t", quotechar="'")
    everyone = multi.people()
    assert len(everyone) == len(rows) == 944
    assert (
        sum(p["vote"] == "dole" for p in everyone) == sum(float(row["vote"]) for row in rows) == 393
    )
    assert sum(p["views"] == "moderate" for p in everyone) == sum(
        float(row["selfLR"]) == 4 for row in rows
    )
    assert sum(p["degree"] == "yes" for p in everyone) == sum(
        float(row["educ"]) >= 5 for row in rows
    )
    assert sum(p["news"] == "often" for p in everyone) == sum(
        float(row["TVnews"]) >= 5 for row in rows
    )


@pytest.mark.parametrize("name", ["workplace", "multi"])
def test_priors_are_the_pilots_counts(name: str) -> None:
    survey = SURVEYS[name]
    pilot, _ = survey.split()
    for block in survey.definition.blocks:
        assert block.prior is not None
        assert block.prior.secret is not None
        assert block.prior.secrets is not None
        asked = [q.id for q in block.questions if q.id != block.prior.secret]
        choices = [survey.choices(question) for question in asked]
        expected = [
            joint_counts(pilot, asked, choices, **{block.prior.secret: value})
            for value in block.prior.secrets
        ]
        assert [[int(cell) for cell in row] for row in block.prior.joint] == expected


def test_a_table_is_compared_cell_by_cell_in_row_major_order() -> None:
    persons: list[Person] = [{"a": a, "b": b} for a, b in ("xp", "xq", "xq", "yq")]
    rows = [estimate("a × b") for _ in range(4)]
    question = compare_table(rows, persons, ("a", "b"), (("x", "y"), ("p", "q")))
    assert [cell.truth for cell in question.rows] == [0.25, 0.5, 0.0, 0.25]


def test_visits_are_estimated_from_a_mechanism_that_keeps_its_promise() -> None:
    """The workplace survey's LIP block is designed, checked against its definition, sampled and
    inverted without a server."""
    survey = SURVEYS["workplace"]
    block = next(b for b in survey.definition.blocks if b.id == "visits")
    assert block.prior is not None
    joint = [[int(cell) for cell in row] for row in block.prior.joint]
    asked = {
        "prior": {"joint": joint},
        "notion": block.notion,
        "epsilon": block.epsilon,
        "ceiling_cap": "2",
    }
    found = design_json(parse_json(json.dumps(asked).encode(), decimals=True), lambda: 0.0)
    mechanism = DenseMechanism(found["bits"], tuple(map(tuple, found["weights"])))
    Q = np.array(found["weights"]) / 2.0 ** found["bits"]
    P = np.array(joint) / np.sum(joint)
    lift = (P @ Q / P.sum(axis=1, keepdims=True)) / (P.sum(axis=0) @ Q)
    assert np.abs(np.log(lift)).max() <= 0.5
    assert np.log(Q.max(axis=0) / Q.min(axis=0)).max() <= 2

    _, respondents = survey.split()
    choices = survey.choices("visits")
    bits = random.Random(3).getrandbits
    reports = Counter(mechanism.sample(choices.index(p["visits"]), bits) for p in respondents)
    observed = np.array([reports[y] for y in range(Q.shape[1])]) / len(respondents)
    estimated = np.linalg.lstsq(Q.T, observed, rcond=None)[0]
    truth = [
        sum(p["visits"] == choice for p in respondents) / len(respondents) for choice in choices
    ]
    assert estimated == pytest.approx(truth, abs=5 * (found["variance"] / len(respondents)) ** 0.5)


@pytest.mark.full_only
@pytest.mark.parametrize("name", ["affairs", "workplace", "multi"])
def test_the_whole_demo(tmp_path: Path, name: str) -> None:
    """By default the tests run the nine questions' and the voters' demo, with few respondents."""
    run = run_demo(tmp_path, name, 10**6)
    run.require_complete()
    if name == "workplace":
        assert "rldp+ldp" in run.output
        assert len(re.findall(r"│ +(?:inside|outside) │", run.output)) == 2 + 4 + 4 + 8
        page = run.report.read_text(encoding="utf-8")
        assert page.count("<h2>") == 5
        assert "RAND Health Insurance Experiment" in page


@pytest.mark.parametrize("arguments", [["dance"], ["multi", "--respondents", "99"]])
def test_wrong_choices_are_usage_errors(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(SystemExit, demo.main, arguments).code == 2
    assert "usage: frankly demo" in capsys.readouterr().err
