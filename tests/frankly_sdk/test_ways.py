# SPDX-License-Identifier: Apache-2.0
"""Ways of answering (spec 3.5): each answer is settled as one choice per question before a draw."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.explanation.explain import explain
from frankly_sdk import UnknownChoice
from frankly_sdk.answer import Answer

from tests.frankly_protocol.asked import QUESTIONS, SETTLED, SIGNS, STRESS, UNSETTLED, asked
from tests.frankly_sdk.fakes import FakeServer

ASKED = asked()


@pytest.mark.parametrize(("given", "choices"), SETTLED)
def test_answers_are_settled(given: dict[str, Any], choices: tuple[str, ...]) -> None:
    settled = Answer(given).settled(ASKED.questions)
    assert isinstance(settled, Answer)
    assert tuple(settled.revealed().items()) == tuple(
        zip((question.id for question in QUESTIONS), choices, strict=True)
    )
    again = settled.settled(ASKED.questions)
    assert isinstance(again, Answer)
    assert again.revealed() == settled.revealed()


@pytest.mark.parametrize(("given", "field"), UNSETTLED)
def test_unsettled_answers_are_refused_and_not_repeated(
    given: dict[str, Any], field: str | None
) -> None:
    fault = Answer(given).settled(ASKED.questions)
    assert isinstance(fault, UnknownChoice)
    assert fault.field == field
    assert "canary" not in str(fault)
    assert "44" not in str(fault)


def test_every_path_through_the_rules_settles_every_question() -> None:
    """The result is compared with rules that the test applies itself, for all plain answers."""
    for work, stress, ticked in product(
        ("no", "yes"), ("calm", "mixed", "hard", "none"), ([], ["sleep"], ["untold"])
    ):
        given = {"age": 20, "work": work, "stress": stress, "signs": ticked, "drugs": []}
        settled = Answer(given).settled(ASKED.questions)
        assert isinstance(settled, Answer)
        chosen = settled.revealed()
        real = stress if work == "yes" else "none"
        boxes = ticked if real in ("mixed", "hard") else ["skipped"]
        assert chosen[STRESS.id] == real
        assert [chosen[box.id] == "yes" for box in SIGNS] == [box.box_id in boxes for box in SIGNS]


def test_skipping_changes_neither_length_nor_shape_of_a_report(tmp_path: Path) -> None:
    server = FakeServer(ASKED)
    for i, (given, _) in enumerate(SETTLED):
        with server.open(tmp_path / f"{i}.db") as client:
            assert client.answer(given).code == "accepted"
    assert {len(body) for body in server.posted} == {ASKED.report_length}
    assert {len(json.loads(body)["y"]) for body in server.posted} == {1}


def test_the_explanation_describes_the_fields() -> None:
    words = explain(ASKED, ASKED.report_level, ("ab" * 32,), "en").words
    assert "How old are you? (a number, of which only the range is used: 18–29 / 30–59" in words
    details = explain(ASKED, ASKED.report_level, ("ab" * 32,), "en").details[1]
    assert "".join(details.paragraphs).count("Which signs?") == 1
    assert "Which signs? (any of: sleep / pain / untold / skipped)" in words
    assert "Your device skips questions that an earlier answer rules out." in words
    plain = explain(asked(QUESTIONS[1]), ASKED.report_level, ("ab" * 32,), "en").words
    assert "skips" not in plain
