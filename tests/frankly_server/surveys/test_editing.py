# SPDX-License-Identifier: Apache-2.0
"""Editing of surveys: steps of the wizard, templates, planned margins and live figures."""

import math
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys import editing, survey_templates
from frankly_server.surveys.csv_prior import read_counts
from frankly_server.surveys.definition import parse_definition, parse_value
from frankly_server.surveys.drafting import draft_blocks, draft_document
from frankly_server.surveys.live import (
    band,
    expected_pending,
    live,
    margins_of_one_report,
    received_band,
    required_reports,
)
from frankly_server.surveys.preview import REPORTS, alternatives, by_level, frontier, margin_points
from frankly_server.surveys.protection import Protection, protect

from tests.frankly_server.surveys.drafts import add_question
from tests.frankly_server.surveys.samples import PLACE


def draft() -> editing.Draft:
    return editing.new_draft("Study habits", "study", "en", "Did you ever cheat?", ["No", "Yes"])


def test_a_survey_of_one_question_is_complete_immediately() -> None:
    definition = parse_value(draft())
    assert (definition.blocks[0].id, definition.blocks[0].notion, definition.blocks[0].epsilon) == (
        "did-you-ever-cheat",
        "ldp",
        "1",
    )
    assert draft_document(definition, draft_blocks(definition), PLACE).version == 1


def test_adding_and_removing_questions_changes_the_budget() -> None:
    with_two_questions = add_question(draft(), "Did you ever cheat?", ["Never", "Once", "Often"])
    with_public_question = add_question(
        with_two_questions, "Where?", ["North", "South"], public=True
    )
    definition = parse_value(with_public_question)
    assert [q.id for q in definition.questions] == [
        "did-you-ever-cheat",
        "did-you-ever-cheat-2",
        "where",
    ]
    assert Fraction(definition.budget) == 2
    less = parse_value(
        editing.remove_question(
            editing.remove_question(with_public_question, "where"), "did-you-ever-cheat"
        )
    )
    assert ([q.id for q in less.questions], Fraction(less.budget)) == (["did-you-ever-cheat-2"], 1)
    for question in ("where", "did-you-ever-cheat"):
        with pytest.raises(InvalidInput):
            editing.remove_question(draft(), question)


def test_a_secret_other_than_the_answer_comes_with_a_backstop() -> None:
    counts = read_counts(b",no,yes\nlow,100,30\nhigh,30,100\n")
    protection = Protection({"epsilon": "0.3"}, secret="Income", counts=counts, source="a pilot")
    definition = parse_value(protect(draft(), "did-you-ever-cheat", protection))
    block = definition.blocks[0]
    assert (block.notion, block.ceiling_cap, block.prior and block.prior.secrets) == (
        "lip",
        "2.9957",
        ("low", "high"),
    )
    assert Fraction("2.9957") < Fraction(math.log(20)) < Fraction("2.9958")
    document = draft_document(definition, draft_blocks(definition), PLACE)
    assert document.blocks[0].ceiling is not None
    assert document.blocks[0].ceiling <= 20
    back = parse_value(protect(protect(draft(), "did-you-ever-cheat", protection), "did-you-ever-cheat",
                                       Protection({"epsilon": "1"})))  # fmt: skip
    assert back == parse_value(protect(draft(), "did-you-ever-cheat", Protection({"epsilon": "1"})))


def test_ids_are_made_of_ascii_letters() -> None:
    assert editing.slug("Événements à Zürich?") == "evenements-a-zurich"
    assert editing.slug("العربية") == "q"
    assert editing.slug("Yes", ["yes", "yes-2"]) == "yes-3"


def test_there_are_eleven_templates_the_simplest_first() -> None:
    assert [*survey_templates.templates()] == [
        "questionnaire",
        "members",
        "workplace",
        "health",
        "customer",
        "opinion",
        "rare",
        "student",
        "validation",
        "attributes",
        "census",
    ]
    with pytest.raises(InvalidInput, match="health"):
        survey_templates.template("../../settings")


@pytest.mark.parametrize("name", survey_templates.ORDER)
def test_a_template_publishes_and_survives_being_written_out(name: str) -> None:
    template_definition = parse_definition(survey_templates.template(name))
    assert parse_definition(template_definition.to_yaml()) == template_definition
    document = draft_document(template_definition, draft_blocks(template_definition), PLACE)
    assert all(drafted.certificate is not None for drafted in document.blocks)
    number = required_reports(document, margins_of_one_report(document), 0.05)
    assert number is not None
    assert number > 100


def test_planned_margins_equal_those_of_the_formula() -> None:
    """For two answers at ε = 1, p = e/(1 + e), and the worst standard error is 1/(2(2p − 1)√n), at
    a share of ½."""
    options = alternatives(parse_value(draft()).blocks[0])
    assert [option.mechanism for option in options] == ["optimal", "grr", "oue", "subset-selection"]
    p = math.e / (1 + math.e)
    for option in options[:2]:
        assert option.margins == pytest.approx(
            [1.959964 / (2 * (2 * p - 1) * math.sqrt(n)) for n in REPORTS], rel=1e-5
        )
    assert options[0].certified


@pytest.mark.parametrize("people", [2, 300, 1200, 20_000, 10**9])
def test_margins_of_few_people_equal_those_of_the_formula(people: int) -> None:
    """For Warner, the variance is p(1 − p)/((2p − 1)²n) for privacy, and ¼/n·(N − n)/(N − 1) for
    drawing n of N."""
    block = parse_value(draft()).blocks[0]
    p = math.e / (1 + math.e)
    margin_by_n = {n: 1.959964 * math.sqrt((p * (1 - p) / (2 * p - 1) ** 2 + 0.25 * (people - n) / (people - 1)) / n)
            for n in sorted({min(n, people) for n in (500, 5000, 50_000)})}  # fmt: skip
    first_option = alternatives(block, people=people)[0]
    assert margin_points(people) == tuple(margin_by_n)
    assert first_option.margins == pytest.approx(list(margin_by_n.values()), rel=1e-5)
    [row] = frontier(block, people=people)
    current_levels = [row for row in by_level(block, people=people) if row.is_current]
    assert [row.margin, current_levels[0].margin] == pytest.approx(
        [margin_by_n[min(people, 5000)]] * 2, rel=1e-5
    )


def test_other_levels_give_the_margins_of_the_formula() -> None:
    rows = by_level(parse_value(draft()).blocks[0])
    assert [row.epsilon for row in rows if row.is_current] == ["1"]
    assert len(rows) >= 2
    for row in rows:
        p = math.exp(float(row.epsilon)) / (1 + math.exp(float(row.epsilon)))
        assert row.margin == pytest.approx(
            1.959964 / (2 * (2 * p - 1) * math.sqrt(REPORTS[1])), rel=1e-5
        )
    assert [row.margin for row in rows] == sorted((row.margin for row in rows), reverse=True)
    clock_readings = iter([0.0] + [9.0] * 1000)  # the time limit is reached immediately
    assert by_level(parse_value(draft()).blocks[0], lambda: next(clock_readings)) == []
    several = parse_value(draft() | {"blocks": [
        {key: value for key, value in draft()["blocks"][0].items() if key in ("id", "questions")}
        | {"notions": [{"notion": "ldp", "epsilon": "1"}]}]})  # fmt: skip
    assert by_level(several.blocks[0]) == []


def test_an_impossible_mechanism_has_a_refusal_instead_of_margins() -> None:
    protection = Protection({"epsilon": "1"}, mechanism="mangat")
    options = alternatives(
        parse_value(protect(draft(), "did-you-ever-cheat", protection)).blocks[0]
    )
    assert options[0].refusal
    assert options[1].margins


def test_the_frontier_goes_from_narrow_margins_to_more_information() -> None:
    definition = parse_value(editing.new_draft("x", "x", "en", "x", [str(i) for i in range(8)]))
    definition = parse_value(protect(definition.model_dump(mode="json", exclude_defaults=True), "x",
                                         Protection({"epsilon": "2"})))  # fmt: skip
    information = [row.information for row in frontier(definition.blocks[0], 4)]
    assert len(information) == 4
    assert information == sorted(information)


def test_live_numbers_are_shown_in_bands() -> None:
    band_by_count = {0: "none", 1: "fewer than 10", 9: "fewer than 10", 10: "10 to 19", 19: "10 to 19", 20: "20 to 49",
            99: "50 to 99", 100: "100 to 199", 4999: "2,000 to 4,999", 10_000: "10,000 to 19,999"}  # fmt: skip
    assert {n: band(n) for n in band_by_count} == band_by_count


def test_reports_expected_to_wait_are_half_a_step_in_each_cell() -> None:
    assert [
        expected_pending([], 10),
        expected_pending([2], 10),
        expected_pending([5, 7], 10),
        expected_pending([3], 5),
    ] == [5, 10, 175, 7]


def test_released_reports_are_counted_exactly_and_accepted_ones_in_bands() -> None:
    definition = parse_value(draft())
    document = draft_document(definition, draft_blocks(definition), PLACE)
    now = datetime(2026, 6, 3, 7, 30, tzinfo=UTC)
    refused = {
        ("2026-06-01", "closed"): 6,
        ("2026-06-02", "closed"): 6,
        ("2026-06-02", "y_type"): 3,
    }
    margins = margins_of_one_report(document)
    summary = live([(document, 0)], received_band(9, was_erased=False), refused, 0.03, now, margins)
    assert (summary.n, summary.accepted, summary.versions[0].n) == (0, "fewer than 10", 0)
    assert summary.refusals == {"closed": "10 to 19", "y_type": "fewer than 10"}
    assert summary.versions[0].next_release == datetime(2026, 6, 4, tzinfo=UTC)
    assert summary.outlook is not None
    assert summary.outlook[0].margin is None
    p = math.e / (1 + math.e)
    required = (1.959964 / (2 * (2 * p - 1) * 0.03)) ** 2
    assert required_reports(document, margins, 0.03) == math.ceil(required)
    for n, more in ((1000, math.ceil(required) - 1000), (5000, 0)):
        outlook = live([(document, n)], "", {}, 0.03, now, margins).outlook
        assert outlook is not None
        assert outlook[0].more == more
        assert outlook[0].text == document.blocks[0].questions[0].text["en"]
        assert outlook[0].margin == pytest.approx(0.03 * math.sqrt(required / n), rel=1e-6)
    assert live([(document, 1000)], "", {}, 0.03, now, None).outlook is None


def test_after_an_erasure_the_first_report_is_not_seen() -> None:
    numbers = (0, 1, 9, 10, 100)
    before = [received_band(n, was_erased=False) for n in numbers]
    after = [received_band(n, was_erased=True) for n in numbers]
    assert before == ["none", "fewer than 10", "fewer than 10", "10 to 19", "100 to 199"]
    assert after == ["fewer than 10", *before[1:]]


def test_an_item_is_added_with_ids_of_its_own_and_removed() -> None:
    own = editing.ItemWords("Please choose the first.", ("A", "B"), 0)
    asked = add_question(draft(), "Check", ["No", "Yes"])
    item = parse_value(editing.add_item(asked, own)).instructed
    assert item is not None
    assert (item.id, item.answer, item.text["en"]) == ("check-2", "a", own.text)
    # One survey has one item, and the id of a removed one is free again.
    other = editing.ItemWords("Please choose the second.", ("A", "B"), 1)
    edited = editing.add_item(editing.add_item(asked, own), other)
    assert edited["instructed"] | {"answer": "a"} == editing.add_item(asked, own)["instructed"] | {
        "text": {"en": other.text}
    }
    assert editing.remove_question(edited, "check-2") == asked
    # A question that is added later does not take its id.
    later = parse_value(add_question(edited, "Check 2", ["No", "Yes"]))
    assert [q.id for q in later.questions][1:] == ["check", "check-2-2", "check-2"]


@pytest.mark.parametrize("language", ["de", "en", "es", "fr", "it", "nl"])
def test_an_item_to_begin_with_names_the_choice_that_it_asks_for(language: str) -> None:
    words = editing.item_words(language)
    assert [choice for choice in words.choices if choice in words.text] == [
        words.choices[words.answer]
    ]
    assert len(set(words.choices)) == 4
    assert editing.item_words(f"{language}-XX") == words
    assert (words == editing.item_words("uk")) == (language == "en")


def test_an_item_to_begin_with_is_translated_where_there_are_words() -> None:
    three = draft() | {
        "languages": ["de", "en", "uk"],
        "title": dict.fromkeys(["de", "en", "uk"], "T"),
    }
    three["blocks"] = []
    three = add_question(three, "Krank?", ["Nein", "Ja"])
    item = parse_value(editing.add_item(three, editing.item_words("de"))).instructed
    assert item is not None
    for language in ("de", "en", "uk"):
        words = editing.item_words(language)
        assert (item.text[language], [choice.label[language] for choice in item.choices]) == (
            words.text,
            list(words.choices),
        )
    assert item.answer == "manchmal"
    # Words of one's own are not those of `item_words` in another language.
    own = editing.ItemWords("Wählen Sie A.", ("A", "B"), 0)
    other = parse_value(editing.add_item(three, own)).instructed
    assert other is not None
    assert set(other.text.values()) == {own.text}


def test_a_first_question_without_choices_is_answered_with_no_or_yes() -> None:
    question = parse_value(editing.new_draft("T", "t", "fr", "Fatigué ?", [])).questions[0]
    assert [(one.id, dict(one.label)) for one in question.choices] == [
        ("no", {"fr": "Non"}),
        ("yes", {"fr": "Oui"}),
    ]
