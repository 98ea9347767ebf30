# SPDX-License-Identifier: Apache-2.0
"""Summary of a survey: its rows, its sentences about results and pairs, and the cost in words."""

from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any

import pytest
from frankly_design.requests.whole_report import cost_share_words
from frankly_protocol.audit import Charge
from frankly_protocol.documents import SurveyDocument
from frankly_server.surveys.definition import parse_value
from frankly_server.surveys.summary import (
    NO_RESULT,
    UNKNOWN,
    Summary,
    SummaryRow,
    document_summary,
    summary_of,
)
from frankly_server.surveys.trial import ExpectedRow, drafted, wanted_pairs
from frankly_server.surveys.verdicts import verdict

from tests.frankly_protocol.samples import survey
from tests.frankly_server.web.site import NOW

HERE = "https://example.org"


def draft_summary(value: dict[str, Any]) -> Summary:
    definition = parse_value(value)
    document = drafted(definition, NOW, HERE)
    return summary_of(document, definition.expected_reports, wanted_pairs(definition))


def question(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "type": "yes-no", "text": {"en": f"{name}?"}} | more


def file(**parts: Any) -> dict[str, Any]:
    return {
        "name": "f",
        "title": {"en": "F"},
        "languages": ["en"],
        "budget": "3",
        "min_reports": 100,
    } | parts


ONE = file(
    blocks=[
        {
            "id": "b",
            "notion": "ldp",
            "epsilon": "1",
            "mechanism": "grr",
            "questions": [question("a")],
        }
    ]
)
FORM = file(form={"questions": [question(name) for name in "abcd"], "cross_tables": [["a", "b"]]})


def test_the_margin_of_one_question_is_that_of_randomised_response() -> None:
    """At 1 nat the truth is sent with probability e/(1+e); the worst share is one half."""
    summary = draft_summary(ONE | {"expected_reports": 400})
    margin = 1.96 / (2 * (2 * 2.718281828 / 3.718281828 - 1) * sqrt(400))
    assert summary.rows == (
        SummaryRow(
            ("a",),
            "a?",
            "share of each answer",
            400,
            f"±{100 * margin:.1f} points",
            verdict(margin),
            round(100 * margin, 1),
        ),
    )
    assert summary.pairs == ""
    assert summary.asked == "A person is asked the one question."


def test_a_question_below_the_minimum_has_no_result() -> None:
    summaries = [draft_summary(ONE | {"expected_reports": n}) for n in (99, 100)]
    assert [one.rows[0].margin == NO_RESULT for one in summaries] == [True, False]
    assert [one.has_no_result for one in summaries] == [True, False]
    assert summaries[0].rows[0].word == ""


def test_a_published_document_has_the_summary_of_its_draft() -> None:
    definition = parse_value(FORM)
    document = drafted(definition, NOW, HERE)
    published = document_summary(document.payload(), 1000, wanted_pairs(definition))
    assert published == draft_summary(FORM)
    assert [row.text for row in published.rows][:4] == ["a?", "b?", "c?", "d?"]
    assert all("a?" in row.text and "b?" in row.text for row in published.rows[4:])
    # Pairs of questions that the document does not have are left out.
    assert document_summary(document.payload(), 1000, [("x", "a")]).rows[:4] == published.rows[:4]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (FORM, "Of two questions, only these can be compared: “a?” with “b?”"),
        (file(form={"questions": [question(name) for name in "abc"]}) | {"budget": "1"},
         "No two questions can be compared."),
        (file(form={"questions": [question("a"), question("b")], "cross_tables": [["a", "b"]]}),
         "Any two questions can be compared"),
        (file(blocks=[{"id": name, "notion": "ldp", "epsilon": "1", "questions": [question(name)]} for name in "ab"]),
         "Any two questions can be compared"),
    ],
)  # fmt: skip
def test_the_pairs_that_can_be_compared_are_named(parts: dict[str, Any], words: str) -> None:
    assert draft_summary(parts).pairs.startswith(words)


def test_results_appear_as_the_document_says() -> None:
    text = {"text": {"en": "Where?"}, "choices": [{"id": c, "label": {"en": c}} for c in "ns"]}
    places = {"strata": [{"id": "where"} | text], "release_every": "hour", "release_step": 20}
    (plain, hourly) = (" ".join(draft_summary(ONE | more).results) for more in ({}, places))
    assert "100 released answers" in plain
    assert "once a day, after midnight (UTC)" in plain
    assert "at least 10 together. About 5 are expected to wait" in plain
    assert "once an hour" in hourly
    assert (
        "at least 20 together that have the same answers to the public questions. About 20 are"
        in hourly
    )


@pytest.mark.parametrize(
    ("row", "margin", "word"),
    [
        (ExpectedRow(("a",), "a", (200,), "shares", (0.0304,), False), "±3.0 points", "precise"),
        (
            ExpectedRow(("a",), "a", (200,), "distribution", (0.2,), False),
            "±20.0 points",
            "very rough",
        ),
        (ExpectedRow(("a",), "a", (200,), "contrast", (0.05,), False), "±5.0 points", ""),
        (ExpectedRow(("a",), "a", (200,), "mean", (0.1234,), True), "±0.12", ""),
        (ExpectedRow(("a",), "a", (200,), "mean", (1234.5,), True), "±1,234", ""),
        (ExpectedRow(("a",), "a", (200,), "shares", (None,), False), UNKNOWN, ""),
        (ExpectedRow(("a",), "a", (99,), "shares", (None,), False), NO_RESULT, ""),
    ],
)
def test_a_row_has_its_unit_and_word(
    row: ExpectedRow, margin: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frankly_server.surveys.summary.expected_rows", lambda *_: [row])
    document: SurveyDocument = replace(survey(), min_reports=100)
    (shown,) = summary_of(document, 1000).rows
    assert (shown.margin, shown.word) == (margin, word)


@pytest.mark.parametrize(
    ("odds", "words"),
    [
        (None, "Answering uses up for good all of what"),
        (Fraction(149), "Answering costs more than what"),
        (Fraction(148), "Answering uses up 100% of what"),
        (Fraction(272, 100), "Answering uses up 21% of what"),
        (Fraction(1), "Answering uses up 0% of what"),
    ],
)
def test_the_cost_is_a_share_of_what_a_device_allows(odds: Fraction | None, words: str) -> None:
    """The cap is 5 nats; ln 2.72 is a little above 1, and costs are rounded up."""
    level = replace(survey().report_level, cost=Charge(odds))
    assert cost_share_words(level).startswith(words)
    assert "nat" not in cost_share_words(level)
