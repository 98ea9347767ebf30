# SPDX-License-Identifier: Apache-2.0
"""Default demo, nine questions from 1974 as one form: its data, its survey file and a run."""

import csv
import re
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from frankly_sdk.answer import Answer

from examples.demo.results import compare
from examples.demo.surveys import SURVEYS
from examples.redbook import data
from tests.demo import RESPONDENTS, run_demo
from tests.examples.rows import estimate
from tests.frankly_protocol.samples import survey

REDBOOK = SURVEYS["redbook"]


def test_the_redbook_survey_is_the_default() -> None:
    assert next(iter(SURVEYS)) == "redbook"


def test_the_women_equal_those_of_statsmodels() -> None:
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
    form = REDBOOK.definition.form
    assert form is not None
    questions = {item.id: item.for_devices() for item in form.items}
    for person in data.people()[:300]:
        assert isinstance(Answer(person).settled(questions), Answer)


def test_a_survey_without_a_form_is_not_compared() -> None:
    assert SURVEYS["affairs"].rivals(1000, survey()) is None


def test_each_figure_of_a_distribution_is_compared_with_its_own_truth() -> None:
    """The truths are counted in the data file, whose ages are the middles of the ranges."""
    with files("statsmodels").joinpath("datasets", "fair", "fair.csv").open() as file:
        ages = sorted(float(row["age"]) for row in csv.DictReader(file))
    lows = REDBOOK.asked()["age"].numbers
    up_to = [sum(age < end for age in ages) / len(ages) for end in lows[1:]]
    names = [*(f"up to {end - 1:g}" for end in lows[1:]), "median"]
    rows = [replace(estimate("age"), choice=name) for name in names]
    rows[-1] = replace(rows[-1], unit="number", low=25, high=25)
    (question,) = compare(rows, data.people(), REDBOOK.asked())
    middle = ages[(len(ages) - 1) // 2]
    start = max(low for low in lows if low <= middle)
    assert [line.truth for line in question.rows] == [*up_to, start]
    assert question.rows[-1].inside is (start == 25)


def test_a_run_prints_what_other_methods_would_have_cost(tmp_path: Path) -> None:
    run = run_demo(tmp_path, "redbook")
    run.require_complete()
    printed = " ".join(run.output.split())
    found = re.search(r"the best method known .* needs ([\d,]+) .* needs ([\d,]+)\.", printed)
    assert found is not None
    known, separate = (int(number.replace(",", "")) for number in found.groups())
    # Both numbers are proportional to the number of respondents.
    assert RESPONDENTS <= known < 1.1 * RESPONDENTS
    assert 5 * RESPONDENTS < separate < 50 * RESPONDENTS
    page = run.report.read_text(encoding="utf-8")
    assert found[0] in page
    assert "No prior is used." in page
