# SPDX-License-Identifier: Apache-2.0
"""Explanations of surveys, which agree with the signed numbers and state what is not promised."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from html import escape, unescape
from itertools import count
from pathlib import Path
from random import Random

import pytest
from frankly_protocol.audit import ceiling
from frankly_protocol.audit.report import SecretLevel
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation import promised
from frankly_protocol.explanation.catalogue import Texts
from frankly_protocol.explanation.explain import Explanation, _table
from frankly_protocol.explanation.explain import explain as explain_level
from frankly_protocol.explanation.figures import percent
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.questions import Anchor, Instructed
from frankly_protocol.report import Report
from frankly_protocol.tokens import TokenRule
from frankly_sdk import Policy
from frankly_sdk.testing import FakeServer as KitServer
from frankly_sdk.testing import make_survey

from tests.frankly_protocol.asked import form
from tests.frankly_protocol.audit.worlds import agreement
from tests.frankly_protocol.every_kind import form_block
from tests.frankly_protocol.samples import (
    PUBLISHER,
    at,
    ldp_block,
    lip_block,
    question,
    survey,
    with_item,
)
from tests.frankly_protocol.sourced import SOURCED
from tests.frankly_sdk.fakes import ANSWERS, FakeServer, payable_survey
from tests.frankly_sdk.labels import MOST_WORDS
from tests.narrowing import dense_of


def explain(document: SurveyDocument) -> Explanation:
    """Return the explanation in an app that allows no δ."""
    return explain_level(document, document.report_level, ())


def test_the_figures_equal_those_of_the_weights(tmp_path: Path) -> None:
    server = FakeServer()
    with server.open(tmp_path / "s.db") as client:
        explanation = client.survey.explain()
    warner, lip = explanation.blocks
    on = dense_of(server.document.blocks[0].numbered_mechanism).weights[0][0]
    assert (warner.guess, warner.blind) == (Fraction(on, 2**48), Fraction(1, 2))
    assert lip.guess == Fraction(3, 4)
    assert lip.ceiling == 3
    for phrase in (
        "73.1%",
        "50.0%",
        "×2.72",
        "×1.65",
        "a made-up table",
        "at most ×3.00",
        "2.0987 nats",
        Texts("en", "explanation").say("limits"),
    ):
        assert phrase in str(explanation)
    assert explanation.signed_by == (PUBLISHER.public.key_id,)


def test_the_report_is_shown_exactly_as_it_is_sent(tmp_path: Path) -> None:
    server = FakeServer()
    with server.open(tmp_path / "s.db") as client:
        preview = client.survey.explain().report_template
        client.answer(ANSWERS)
    (sent,) = server.posted
    head, _, tail = preview.partition("<32 random hex digits>")
    assert sent.decode().startswith(head)
    assert tail == ',"y":[0–1,0–1],"strata":{},"token":null}'
    assert f"{server.document.report_length} bytes" in str(
        FakeServer().open(tmp_path / "t.db").survey.explain()
    )


THREE = DenseMechanism(4, ((9, 4, 3), (3, 4, 9)))
SAME = DenseMechanism(4, ((16, 0), (0, 16)))
SWAPPED = DenseMechanism(4, ((0, 16), (16, 0)))
TURNED = DenseMechanism(4, ((4, 12), (12, 4)))
ALMOST = DenseMechanism(48, ((7 << 44, (9 << 44) - 1, 1), (9 << 44, (7 << 44) - 1, 1)))
WORDS = [
    (
        THREE,
        "if your answer is good: 0 with a chance of 56.2%, 1 with a chance of 25.0%, 2 with a chance of 18.8%.",
    ),
    (
        SAME,
        "Your answer to this is sent unchanged: every symbol that can be sent stands for one answer.",
    ),
    (
        SWAPPED,
        "Your answer to this is sent unchanged: every symbol that can be sent stands for one answer.",
    ),
    (
        ALMOST,
        "if your answer is good: 0 with a chance of 43.8%, 1 with a chance of 56.2%, any other with a chance below",
    ),
    (TURNED, "if your answer is good: 0 with a chance of 25.0%, 1 with a chance of 75.0%."),
]


@pytest.mark.parametrize(
    ("mechanism", "phrase"),
    WORDS,
    ids=["three symbols", "unchanged", "swapped", "all but zero", "turned"],
)
def test_the_chances_shown_equal_those_of_the_mechanism(
    mechanism: DenseMechanism, phrase: str
) -> None:
    block = replace(
        lip_block(),
        mechanism=mechanism,
        ceiling=ceiling(mechanism),
        promises=at(lip_block(), (60, 1)),
    )
    explanation = explain(survey(block))
    assert phrase in str(explanation)
    assert explanation.blocks[0].same == ((1, 1) if mechanism in (SAME, SWAPPED) else None)
    assert explanation.blocks[0].unchanged == (mechanism in (SAME, SWAPPED))


def test_tables_too_long_to_read_are_left_to_the_signed_survey() -> None:
    wide = DenseMechanism(8, tuple((1,) * 40 + (216,) for _ in range(2)))
    block = replace(
        ldp_block(), mechanism=wide, ceiling=ceiling(wide), promises=at(ldp_block(), (1, 1))
    )
    assert "one of 41 symbols" in str(explain(survey(block)))


def test_almost_certain_is_not_called_certain() -> None:
    almost = DenseMechanism(48, ((2**48 - 1, 1), (1, 2**48 - 1)))
    block = replace(
        lip_block(), mechanism=almost, ceiling=ceiling(almost), promises=at(lip_block(), (60, 1))
    )
    explanation = str(explain(survey(block)))
    assert "99.9%" in explanation
    assert "100.0%" not in explanation
    assert "unchanged" not in explanation


def test_the_ledger_says_which_block_counts_how() -> None:
    explanation = str(explain(payable_survey()))
    assert (
        "costs 2.0987 nats of what this app allows you in all (affair by its ceiling, 1.0000, marriage by"
        in explanation
    )
    assert "belief about your “affair” changes by at most ×4.49, and odds" in explanation
    assert (
        "between two of its values by at most ×7.39. This holds as long as the published tables"
        in explanation
    )  # e^(1 + 2 · 0.5)
    assert (
        ". For the odds, “marriage” is counted by its promise and every other block by its limit."
        in explanation
    )
    assert (
        "your answers themselves change by at most ×8.16. This holds whatever else is known."
        in explanation
    )  # 3e
    ldp_explanation = str(explain(survey(ldp_block())))
    assert (
        "odds about your answers themselves change by at most ×2.72. This holds whatever else is known."
        in ldp_explanation
    )


def test_the_budget_of_the_respondent_is_shown_if_given(tmp_path: Path) -> None:
    with FakeServer().open(tmp_path / "s.db") as client:
        explanation = client.survey.explain(budget=client.budget())
        assert (
            "2.0987 nats; 5.0000 of the 5 nats that this app allows you in all are left, 2.9013 after it."
            in str(explanation)
        )
        client.answer(ANSWERS)
        assert "You have answered this already" in str(
            client.survey.explain(budget=client.budget())
        )


def test_the_example_has_the_shape_and_length_of_what_is_sent(tmp_path: Path) -> None:
    server = FakeServer()
    with server.open(tmp_path / "s.db") as client:
        example = client.survey.explain().example
        client.answer(ANSWERS)
    assert len(example) == len(server.posted[0])
    assert Report.from_bytes(example).doc == server.document.digest


@pytest.mark.parametrize(
    ("rule", "phrase"),
    [
        (
            TokenRule("invite"),
            "The person who handed it out can tell from it which random result is yours.",
        ),
        (TokenRule("rsa-pss", "A" * 64), "so it does not show whom it was given to."),
    ],
)
def test_a_token_is_listed_as_sent(rule: TokenRule, phrase: str) -> None:
    explanation = explain(replace(survey(ldp_block()), token=rule))
    assert phrase in str(explanation)
    assert explanation.report_template.endswith(',"strata":{},"token":"your token"}')
    without = explain(survey(ldp_block()))
    assert "with that as it is" not in str(without)


def test_people_of_mixed_sources_are_told_what_holds_for_each() -> None:
    """Some have invites and some blind tokens, and nobody knows beforehand who reads."""
    mixed, only = SOURCED.token, replace(SOURCED, token=TokenRule("invite"))
    assert mixed is not None
    blind = dict.fromkeys(mixed.rules, mixed.rules["panel"])
    invites = dict.fromkeys(mixed.rules, mixed.rules["class"])
    told = {
        name: explain(replace(SOURCED, token=replace(mixed, rules=rules)))
        for name, rules in (("mixed", mixed.rules), ("blind", blind), ("invites", invites))
    }
    said = str(told["mixed"])
    assert "Whoever gave you a survey code can recognise your result." in told["mixed"].summary
    assert "If it was signed without being seen, it does not show whom" in said
    for words in ("Whoever invited you", "Your invitation is sent", "Your token is sent"):
        assert words not in said
    assert told["invites"].summary == explain(only).summary
    assert "Whoever invited you can tell which result is yours." in told["invites"].summary
    assert "Your token is sent with the report" in str(told["blind"])
    assert "code" not in " ".join(told["blind"].summary)


def test_the_longest_label_has_as_many_words_as_one_may_have() -> None:
    forms = (agreement(Random(seed), (2, 2, 2)) for seed in count())
    few = next(form for form in forms if form.questions_drawn[1] < 3)
    drawn = replace(form_block(few), asks_drawn=True)
    document = replace(survey(drawn), strata=SOURCED.strata, token=SOURCED.token)
    summary = explain(with_item(document)).summary
    assert len(summary) == 9  # only plain answers have a sentence more, and fewer words together
    assert sum(len(text.split()) for text in summary) == MOST_WORDS


def test_public_answers_are_listed_as_leaving_in_clear() -> None:
    document = replace(survey(ldp_block()), strata=(question("region", "north", "south"),))
    explanation = explain(document)
    assert "are sent as you give them, not randomised: region?" in str(explanation)
    assert '"region":"your public answer"' in explanation.report_template


def test_an_instructed_item_is_listed_with_the_bit_that_is_sent() -> None:
    item = Instructed(question("check", "a", "second-of-all"), "second-of-all")
    document = replace(survey(ldp_block()), instructed=item)
    explanation = explain(document)
    assert "“check?”, asks for one given choice. Only whether you chose it is sent" in str(
        explanation
    )
    assert "as you give them" not in str(explanation)
    assert '"strata":{"check":"passed or failed"}' in explanation.report_template
    assert json.loads(explanation.example)["strata"] == {"check": "failed"}
    assert len(explanation.example) == document.report_length
    both = explain(replace(document, strata=(question("region", "north", "south"),)))
    told = '"strata":{"check":"passed or failed","region":"your public answer"}'
    assert told in both.report_template
    assert str(both).index("as you give them") < str(both).index("asks for one given choice")


def test_an_anchor_is_listed_with_its_source_and_nothing_else_changes() -> None:
    block = ldp_block()
    known = replace(block.questions[0], anchor=Anchor((11, 1), "Destatis, births 2023"))
    other = ldp_block("other")
    document = survey(replace(block, questions=(known,)), other)
    explanation, without = explain(document), explain(survey(block, other))
    sentence = (
        "How all people together answer “affair?” is known beforehand (Destatis, births 2023). "
        "This shows how many people answer at random; it changes nothing about how your answer is sent."
    )
    assert sentence in explanation.details[0].paragraphs
    assert str(explanation).count("is known beforehand") == 1
    added = str(explanation).replace(f"{sentence}\n\n", "")
    digests = [one.digest for one in (document, survey(block, other))]
    assert added.replace(digests[0], digests[1]) == str(without)
    assert explanation.summary == without.summary
    assert explanation.form_nats == without.form_nats


def test_every_anchor_is_listed_in_the_order_of_the_document() -> None:
    sources = ("Census of 2021", "Register of 2022 {question}", "Table 3")
    asked = [replace(question(f"q{i}", "no", "yes"), anchor=Anchor((1, i), one))
             for i, one in enumerate(sources)]  # fmt: skip
    said = explain(survey(form(*asked[:2]), replace(form(asked[2]), id="last")))
    listed = [line for line in str(said).split("\n") if "is known beforehand" in line]
    assert [f"“q{i}?” is known beforehand ({one})" in line
            for i, (one, line) in enumerate(zip(sources, listed, strict=True))] == [True] * 3  # fmt: skip


def test_a_repeated_question_is_listed_and_nothing_else_changes() -> None:
    first, again = question("tired", "no", "yes"), question("sleepy", "no", "yes")
    plain = survey(form(first), replace(form(again), id="last"))
    repeated = replace(again, anchor=Anchor(repeats="tired"))
    document = survey(form(first), replace(form(repeated), id="last"))
    explanation, without = explain(document), explain(plain)
    sentence = (
        "“sleepy?” is asked a second time. Whether both answers are the same shows how many people "
        "answer at random; it changes nothing about how your answers are sent."
    )
    assert sentence in explanation.details[0].paragraphs
    assert "known beforehand" not in str(explanation)
    added = str(explanation).replace(f"{sentence}\n\n", "")
    assert added.replace(document.digest, plain.digest) == str(without)
    assert explanation.form_nats == without.form_nats


def test_for_a_missing_language_the_documents_first_is_used() -> None:
    document = replace(
        survey(ldp_block()), languages=("de", "en"), title={"de": "Eine Umfrage", "en": "A survey"}
    )
    block = document.blocks[0]
    both = {
        name: {"de": f"{name} auf Deutsch", "en": f"{name} in English"}
        for name in ("affair", "no", "yes")
    }
    asked = replace(
        block.questions[0],
        text=both["affair"],
        choices=tuple(replace(c, label=both[c.id]) for c in block.questions[0].choices),
    )
    document = replace(document, blocks=(replace(block, questions=(asked,)),))
    for language, title in (
        ("en", "A survey"),
        ("de", "Eine Umfrage"),
        ("fr", "Eine Umfrage"),
        (None, "Eine Umfrage"),
    ):
        lines = str(explain_level(document, document.report_level, (), language))
        assert title in lines
        assert ("in English" in lines) == (language == "en")


def test_only_certainty_is_called_certain() -> None:
    shares = {Fraction(0): "0.0%", Fraction(1): "100.0%", Fraction(1, 10**9): "0.1%",
              1 - Fraction(1, 10**9): "99.9%", Fraction(1, 3): "33.3%", Fraction(2, 3): "66.7%"}  # fmt: skip
    assert {share: percent(share) for share in shares} == shares


@pytest.mark.parametrize(
    ("level", "odds"), [(None, Fraction(2)), (Fraction(2), None), (None, None)]
)
def test_a_secret_without_a_bound_in_any_unit_has_no_limit(
    level: Fraction | None, odds: Fraction | None
) -> None:
    document = payable_survey()
    secret = SecretLevel(level, odds, "lift")
    sentence = "no limit is promised on what can be learnt about your “income”"
    assert (
        promised._secret("income", secret, document.report_level, Texts("en", "whole")) == sentence
    )


def test_rare_symbols_are_mentioned_and_impossible_symbols_are_not() -> None:
    remainder = "any other with a chance below 0.001%"
    D = 1 << 48
    for row, is_said in (((D, 0), False), ((D - 1, 1), True), ((D - (1 << 24), 1 << 24), True),
                         ((D - (1 << 24) - 1, (1 << 24) + 1), False)):  # fmt: skip
        mechanism = DenseMechanism(48, (row, (D // 2, D // 2)))
        block = replace(ldp_block(), mechanism=mechanism, ceiling=ceiling(mechanism))
        lines = list(_table(block, "en", Texts("en", "explanation")))
        assert (remainder in lines[0]) is is_said, row
        assert remainder not in lines[1]


def test_a_notebook_shows_text_and_not_the_fields(tmp_path: Path) -> None:
    """Thousands of characters of fractions would be the last thing that a cell shows."""
    names = {f"q{i}": ["no", "yes"] for i in range(6)}
    document = replace(make_survey(names), title={"en": "<b>Habits</b>"})
    server = KitServer(document)
    with server.open(tmp_path / "s.db", policy=Policy(cap="64")) as client:
        survey, explanation = client.survey, client.survey.explain()
        shown = [client, survey, explanation, client.budget(), client.plan()]
        shown += [survey.document, survey.level]
    assert all(len(repr(value)) < 200 for value in shown)
    assert repr(survey) == "<Survey '<b>Habits</b>', version 1: q0, q1, q2, q3, …>"
    page = survey._repr_html_()
    assert page == explanation._repr_html_()
    assert "<h3>&lt;b&gt;Habits&lt;/b&gt;</h3>" in page
    told = unescape(re.sub("<[^>]*>", " ", page))
    for text in (*explanation.summary, *explanation.overall):
        assert text in told
    folded = page.partition("<details>")[2]
    assert all(escape(section.heading) in folded for section in explanation.details)
