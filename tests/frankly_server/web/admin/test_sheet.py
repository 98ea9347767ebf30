# SPDX-License-Identifier: Apache-2.0
"""Sheets to print: every version and language, from the signed document alone, and refusals."""

import html
import re
from dataclasses import replace

import pytest
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.tokens import TokenRule
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.sheet import AskedQuestion, sheet_of
from frankly_server.surveys.summary import read_texts

from tests.frankly_protocol.asked import asked
from tests.frankly_protocol.samples import question, survey, with_item
from tests.frankly_server.web.admin.office import Office, begin

FILE = b"""
name: sheets
title: {en: Our members, de: Unsere Mitglieder}
consent: {en: The board asks., de: Der Vorstand fragt.}
languages: [en, de]
budget: "2"
min_reports: 40
strata:
  - id: age
    text: {en: How old?, de: Wie alt?}
    choices: [{id: young, label: {en: Under 40, de: Unter 40}}, {id: old, label: {en: Older, de: Mehr}}]
form:
  questions:
    - {id: smokes, type: yes-no, text: {en: "Do you smoke?", de: "Rauchen Sie?"}}
    - {id: drinks, type: yes-no, text: {en: "Do you drink?", de: "Trinken Sie?"}}
"""


@pytest.fixture(scope="module")
def sheets(office: Office) -> str:
    """Return the path of the sheets of a survey with two versions."""
    surveys = office.services.surveys
    for title in (b"Our members", b"Our people"):
        surveys.apply(parse_definition(FILE.replace(b"Our members", title)))
        surveys.publish("sheets")
    return f"/admin/surveys/{surveys.summary('sheets').survey_id}/sheet"


def text_of(office: Office, path: str) -> str:
    answer = office.client("viewer").get(path)
    assert answer.status_code == 200, path
    return re.sub(r"\s+", " ", html.unescape(answer.text))


@pytest.mark.parametrize(
    ("query", "version", "language"),
    [
        ("", 2, "en"),
        ("?version=1", 1, "en"),
        ("?version=2&language=de", 2, "de"),
        ("?language=de", 2, "de"),
    ],
)
def test_a_sheet_is_filled_from_one_version(
    office: Office, sheets: str, query: str, version: int, language: str
) -> None:
    text = text_of(office, sheets + query)
    document = office.services.surveys.versions("sheets")[version - 1]
    read = read_texts(document, language)
    # Twice: on the information sheet and on the form for consent.
    assert text.count(f'<h2 lang="{language}" dir="auto">{document.title[language]}</h2>') == 2
    assert text.count(document.digest) == 2
    for words in (
        *read.sentences,
        *read.sent.lines[1:],  # the first line announces the report itself
        *read.unprotected.lines,
        read.own_words,
        *(one.text[language] for one in document.open_questions.values()),
    ):
        assert words in text, words
    envelope = office.services.surveys.envelope(document.survey, document.digest)
    keys = [one.key_id for one in Envelope.from_bytes(envelope, SURVEY_TYPE).signatures]
    assert keys
    assert all(f"Key <code>{key}</code>" in text for key in keys)
    assert f"until {document.closes:%Y-%m-%d %H:%M} UTC. A question has a result once 40" in text
    for line in ("Responsible, with address", "Name", "Date", "Signature"):
        assert f'<p class="line"><span>{line}</span></p>' in text
    assert not re.search(r"\bnats?\b", text)


@pytest.mark.parametrize(
    ("query", "status"),
    [("?version=3", 404), ("?version=x", 422), ("?language=fr", 404), ("?other=1", 422)],
)
def test_what_is_not_there_is_refused(office: Office, sheets: str, query: str, status: int) -> None:
    assert office.client("viewer").get(sheets + query).status_code == status


def test_a_draft_has_no_sheet(office: Office) -> None:
    path = begin(office.client("admin")).headers["Location"].removesuffix("/questions")
    assert office.client("viewer").get(f"{path}/sheet").status_code == 404


def test_each_version_links_to_its_sheet(office: Office, sheets: str) -> None:
    text = text_of(office, sheets.replace("/sheet", "/publish"))
    assert [f'href="{sheets}?version={n}"' in text for n in (1, 2, 3)] == [True, True, False]


def test_a_sheet_tells_boxes_items_and_invitations() -> None:
    found = sheet_of(asked().payload(), "en").randomised
    # Boxes of one question are one question, as on the page.
    assert len(found) < len(asked().questions)
    assert AskedQuestion("Which drugs?", ("beer", "weed")) in found
    assert AskedQuestion("work?", ("no", "yes")) in found
    public = replace(survey(), strata=(question("region", "north", "south"),))
    assert sheet_of(public.payload(), "en").public == (
        AskedQuestion("region?", ("north", "south")),
    )
    tokens = {None: False, TokenRule("invite"): True, TokenRule("rsa-pss", "A" * 64): False}
    for rule, is_invited in tokens.items():
        assert sheet_of(replace(survey(), token=rule).payload(), "en").is_invited is is_invited
    item = with_item(asked())
    assert item.instructed is not None
    assert sheet_of(item.payload(), "en").item == item.instructed.question.text["en"]
