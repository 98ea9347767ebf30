# SPDX-License-Identifier: Apache-2.0
"""What `frankly survey apply` says of each question, before anything is published."""

import re
from collections import Counter
from fractions import Fraction
from math import tanh
from pathlib import Path

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.problems import Problem
from frankly_server.cli import survey_expected
from frankly_server.cli.services import open_services
from frankly_server.surveys import expected
from frankly_server.surveys.definition import parse_definition

from tests.frankly_server.cli.conftest import Frankly
from tests.survey_files import SMOKES, habits

FORM = """\
name: form
title: {en: A form}
languages: [en]
min_reports: 50
expected_reports: 70
budget: "2"
form:
  questions:
    - {id: smokes, type: yes-no, text: {en: "Do you smoke?"}}
    - {id: drinks, type: yes-no, text: {en: "Do you drink?"}}
    - id: mood
      text: {en: "What is your mood?"}
      choices:
        - {id: low, label: {en: Low}}
        - {id: mid, label: {en: Middling}}
        - {id: high, label: {en: High}}
"""


def test_apply_says_which_questions_of_a_form_will_have_no_result(
    ready: Frankly, tmp_path: Path
) -> None:
    file = tmp_path / "form.yaml"
    file.write_text(FORM)
    said = ready("survey", "apply", file)
    expected = ready("survey", "apply", file, "--json").json["expected"]
    assert (expected["people"], expected["min_reports"]) == (70, 50)
    assert ready("survey", "publish", "form").code == 0
    with open_services() as services:
        (document,) = services.surveys.versions("form")
    form = document.blocks[0].mechanism
    assert isinstance(form, AgreementMechanism)
    # By the law of the reports, instead of by the design's own chances.
    about: Counter[int] = Counter()
    mean, most = Fraction(0), 0
    for symbol in form.symbols():
        drawn, chance = list(form.drawn(symbol)), form.probability(symbol, (0, 0, 0))
        for _, part, _ in drawn:
            about[part] += chance  # type: ignore[assignment]
        questions = {question for _, part, _ in drawn for question in form.parts[part]}
        mean, most = mean + chance * len(questions), max(most, len(questions))
    assert expected["asked"] == {"of": 3, "most": most, "mean": float(mean)}
    asked = f"A person is asked at most {most} of the 3 questions ({float(mean):.1f} on average):"
    assert asked in " ".join(said.err.split())
    for part, question in enumerate(expected["questions"]):
        reports = int(70 * about[part])
        assert (question["reports"], question["has_result"]) == (reports, reports >= 50)
        assert (question["margin"] is None) == (reports < 50)
        (line,) = re.findall(
            rf"{re.escape(question['text'])} *│ (\d+) *│ (\w+) *│ (.*?) *\n", said.err
        )
        margin = "no result" if reports < 50 else f"±{100 * question['margin']:.1f} points"
        assert line == (str(reports), "shares", margin)
    assert not all(question["has_result"] for question in expected["questions"])


def test_apply_says_the_margin_of_a_question_by_itself(ready: Frankly, tmp_path: Path) -> None:
    file = tmp_path / "habits.yaml"
    file.write_bytes(habits(SMOKES, budget="2", window="") + b"expected_reports: 400\n")
    (question,) = ready("survey", "apply", file, "--json").json["expected"]["questions"]
    assert question["reports"] == 400
    # Warner at ε = 1 and a share of 1/2: 1.96 · (1/2) / tanh(1/2) / √400.
    assert question["margin"] == pytest.approx(1.96 * 0.5 / tanh(0.5) / 20, rel=1e-3)
    assert "±10.6" in ready("survey", "apply", file).err


def test_a_draft_whose_margins_cannot_be_found_is_applied_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise InvalidInput(Problem.OPTIMISER_LIMIT, "the search took too long", "blocks")

    monkeypatch.setattr("frankly_server.surveys.expected.trial.expectations", refuse)
    definition = parse_definition(FORM.encode())
    found = expected.expected_of(definition)
    assert list(survey_expected.shown(definition, found)) == [
        "What to expect of each question is not known: the search took too long."
    ]
    unknown = expected.expected_json(definition, found)
    assert (unknown["questions"], unknown["asked"]) == (None, None)
