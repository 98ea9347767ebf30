# SPDX-License-Identifier: Apache-2.0
"""Mechanism kinds and notions on a device: each is explained, answered, and sent as a symbol of its kind."""

import json
import re
from collections import defaultdict
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from frankly_protocol.audit import NOTIONS
from frankly_protocol.explanation.explain import explain
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.report import Report
from frankly_sdk import Policy

from tests.frankly_protocol.audit.definitions import agreement_table
from tests.frankly_protocol.every_kind import FORM, KINDS, block, form_block
from tests.frankly_protocol.mechanisms.test_agreement import FORMS
from tests.frankly_protocol.samples import survey
from tests.frankly_sdk.fakes import FakeServer

NOTION_PHRASES = {
    "ldp": "odds between two answers to it change by at most ×",
    "dp": "as likely with one answer to it as with another. A chance of at most ",
    "secret-ldp": "odds about your “secret” change by at most ×",
    "lip": "belief about your “secret” changes by at most ×",
    "alip": "belief about your “secret” grows by at most ×",
    "srlip": "even for those who know some of your answers to it",
    "rldp": "as long as this published table is true: counts of 100 people.",
    "metric-ldp": "odds of one answer to it against another grow by at most ×",
    "dpv": "% that your “secret” is “mid”. This holds as long as this published table is true: a made-up table.",
}
KIND_PHRASES = {
    "dense": "The random result is one of these symbols:",
    "unary": "The true one gets a yes with a chance of 50.0%, any other one with a chance of 18.8%.",
    "subset": "The random result is a set of 2 of the 4 answers; the true one is among them with a chance of 68.8%.",
    "product": "  if your answer is no / yes: 0 and 0 with a chance of ",
}
SHAPES = {
    "dense": "0–2",
    "unary": "<1 hex digit>",
    "subset": "<1 hex digit>",
    "product": "[0–1,0–1]",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_promise_of_every_kind_is_explained(kind: str) -> None:
    document = survey(block(kind, *NOTIONS))
    explanation = explain(document, document.report_level, ("00" * 32,))
    for notion in NOTIONS:
        assert NOTION_PHRASES[notion] in str(explanation)
    assert KIND_PHRASES[kind] in str(explanation)
    assert f'"y":[{SHAPES[kind]}]' in explanation.report_template
    assert len(explanation.example) == document.report_length
    assert Report.from_bytes(explanation.example).doc == document.digest
    assert explanation.blocks[0].blind <= explanation.blocks[0].guess <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_leaves_as_a_symbol_of_its_kind(tmp_path: Path, kind: str) -> None:
    document = survey(block(kind, "lip", "ldp", name="q"))
    server = FakeServer(document=document)
    with server.open(tmp_path / "s.db", policy=Policy(cap="20")) as client:
        client.answer({"q-a": "yes", "q-b": "no"})
    (posted,) = server.posted
    assert len(posted) == document.report_length
    (symbol,) = json.loads(posted)["y"]
    mechanism = document.blocks[0].mechanism
    assert mechanism.probability(mechanism.check_symbol(symbol), 2) > 0  # type: ignore[arg-type]


def test_a_form_is_explained_answered_and_sent_as_one_symbol(tmp_path: Path) -> None:
    document = survey(form_block(name="q"))
    explanation = explain(document, document.report_level, ("00" * 32,))
    assert "Your device picks 2 to 3 of these 3 questions at random" in str(explanation)
    assert "has 3.50 times the chance that it would have with other answers" in str(explanation)
    assert "odds between any two ways of answering all of these questions" in str(explanation)
    shape = "[<5 numbers: which questions were drawn, and a set of answers for each>]"
    assert f'"y":[{shape}]' in explanation.report_template
    assert len(explanation.example) == document.report_length
    assert explanation.blocks[0].blind <= explanation.blocks[0].guess <= 1
    server = FakeServer(document=document)
    with server.open(tmp_path / "s.db", policy=Policy(cap="20")) as client:
        client.answer({"q-0": "1", "q-1": "2", "q-2": "0"})
    (posted,) = server.posted
    assert len(posted) == document.report_length
    (symbol,) = json.loads(posted)["y"]
    assert FORM.probability(FORM.check_symbol(symbol), (1, 2, 0)) > 0


def chances_right(form: AgreementMechanism) -> list[Fraction]:
    """Return the probability that the best guess at each question is right, from the full law of
    the symbol."""
    truths = list(product(*map(range, form.choices)))
    chances = [Fraction(0)] * len(form.choices)
    for column in agreement_table(form).values():
        for question in range(len(chances)):
            by_choice: defaultdict[int, Fraction] = defaultdict(Fraction)
            for truth, chance in zip(truths, column, strict=True):
                by_choice[truth[question]] += chance / len(truths)
            chances[question] += max(by_choice.values())
    return chances


@pytest.mark.parametrize("number", range(len(FORMS)))
def test_no_question_of_a_form_is_guessed_more_often_than_stated(number: int) -> None:
    form = FORMS[number]
    document = survey(form_block(form))
    (told,) = explain(document, document.report_level, ("00" * 32,)).blocks
    chances = chances_right(form)
    assert told.guess == max(chances)
    assert told.blind in {
        Fraction(1, choices)
        for choices, chance in zip(form.choices, chances, strict=True)
        if chance == told.guess
    }
    if len(chances) > 1:
        named = re.search(r"“([^”]*)” is the question that is easiest to guess", told.words)
        assert named
        texts = [question.text["en"] for question in document.blocks[0].questions]
        assert chances[texts.index(named[1])] == max(chances)


def test_the_question_guessed_most_often_is_not_always_the_one_that_gains_most() -> None:
    """If the two were always the same question, the largest ratio to blind guessing would pass the
    test above."""
    form = FORMS[0]
    chances = chances_right(form)
    gains = [chance * choices for chance, choices in zip(chances, form.choices, strict=True)]
    assert chances.index(max(chances)) != gains.index(max(gains))
