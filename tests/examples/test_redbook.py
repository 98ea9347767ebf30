# SPDX-License-Identifier: Apache-2.0
"""The default demo: nine questions of 1974 as one form; its data, its survey file, and the run itself."""

import csv
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

from frankly_sdk.answer import Answer
from frankly_server.surveys.drafting import draft_blocks

from examples.demo.surveys import SURVEYS
from examples.redbook import data
from tests.demo import run_demo

REDBOOK = SURVEYS["redbook"]


def test_it_is_the_default() -> None:
    assert next(iter(SURVEYS)) == "redbook"


def test_the_women_are_those_of_statsmodels() -> None:
    with files("statsmodels").joinpath("datasets", "fair", "fair.csv").open() as file:
        rows = list(csv.DictReader(file))
    everyone = data.people()
    assert len(everyone) == len(rows) == 6366
    assert sum(p["affair"] == "yes" for p in everyone) == sum(float(r["affairs"]) > 0 for r in rows)
    for question, codes in data.CODES_OF.items():
        expected = Counter(codes[float(row[question])] for row in rows)
        assert Counter(person[question] for person in everyone) == expected
    assert data.split() == ([], everyone)


def test_every_woman_can_answer_the_survey() -> None:
    (drafted,) = draft_blocks(REDBOOK.definition)
    questions = {question.id: question for question in drafted.block.questions}
    for person in data.people()[:300]:
        assert isinstance(Answer(person).settled(questions), Answer)


def test_separate_blocks_would_need_many_more_people() -> None:
    separate = REDBOOK.separate_respondents(1000)
    assert separate is not None
    assert 5000 < separate < 50_000
    assert SURVEYS["affairs"].separate_respondents(1000) is None


def test_a_run_prints_what_separate_blocks_would_have_cost(tmp_path: Path) -> None:
    run = run_demo(tmp_path, "redbook", 300)
    assert run.status == 0, run.output
    assert re.search(r"[\d,]+ respondents would be needed", " ".join(run.output.split()))
    page = run.report.read_text(encoding="utf-8")
    assert "respondents would be needed for the same precision" in page
    assert "No prior is used." in page
