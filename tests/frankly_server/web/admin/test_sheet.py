# SPDX-License-Identifier: Apache-2.0
"""Sheets to print: every version and language, from the signed document alone, and refusals."""

import html
import re
from dataclasses import replace

import pytest
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.tokens import TokenRule
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.sheet import AskedQuestion, Sheet, sheets_of
from frankly_server.surveys.summary import read_texts

from tests.contract.test_arms import FILE as ARMS
from tests.frankly_protocol.asked import asked
from tests.frankly_protocol.samples import question, survey, with_item
from tests.frankly_protocol.sourced import SOURCED
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


def sheet_of(payload: bytes) -> Sheet:
    """Return the only sheet of a document without arms."""
    (sheet,) = sheets_of(payload, "en")
    assert sheet.arm == ""
    return sheet


def test_a_sheet_tells_boxes_items_and_invitations() -> None:
    found = sheet_of(asked().payload()).randomised
    # Boxes of one question are one question, as on the page.
    assert len(found) < len(asked().questions)
    assert AskedQuestion("Which drugs?", ("beer", "weed")) in found
    assert AskedQuestion("work?", ("no", "yes")) in found
    public = replace(survey(), strata=(question("region", "north", "south"),))
    assert sheet_of(public.payload()).public == (AskedQuestion("region?", ("north", "south")),)
    assert sheet_of(SOURCED.payload()).is_invited
    tokens = {None: False, TokenRule("invite"): True, TokenRule("rsa-pss", "A" * 64): False}
    for rule, is_invited in tokens.items():
        assert sheet_of(replace(survey(), token=rule).payload()).is_invited is is_invited
    item = with_item(asked())
    assert item.instructed is not None
    assert sheet_of(item.payload()).item == item.instructed.question.text["en"]


def test_each_arm_has_its_own_sheets(office: Office) -> None:
    """What one arm asks in the clear another protects, and people with one are not told of the other."""
    surveys = office.services.surveys
    surveys.apply(parse_definition(ARMS.replace(b"name: split", b"name: arms-on-paper")))
    path = f"/admin/surveys/{surveys.publish('arms-on-paper').survey_id}/sheet"
    (document,) = surveys.versions("arms-on-paper")
    text = text_of(office, path)
    # The page's own words end where the first sheet begins.
    lead, *parts = text.split('<section class="card sheet">')
    assert "Two sheets for each arm" in lead
    assert "Hand out those of all arms" in lead
    assert len(parts) == 6
    arms = (
        ("clear", "25.0%", ["Where?", "Paid cash?"], ["Do you have a car?"]),
        ("weak", "25.0%", ["Where?"], ["Do you have a car?", "Did you pay anybody in cash?"]),
        ("strong", "50.0%", ["Where?"], ["Do you have a car?", "Did you pay in cash?"]),
    )
    sheets = sheets_of(document.payload(), "en")
    every = {one.text for sheet in sheets for one in (*sheet.public, *sheet.randomised)}
    for i, (sheet, (arm, share, public, randomised)) in enumerate(zip(sheets, arms, strict=True)):
        information, consent = parts[2 * i : 2 * i + 2]
        heading = f"Arm {arm}, which {share} of the devices draw"
        assert sheet.arm == heading
        assert [one.text for one in sheet.public] == public
        assert [one.text for one in sheet.randomised] == randomised
        assert sheet.digest == document.digest
        for part in (information, consent):
            assert part.count(f"<h2>{heading}</h2>") == part.count("<h2>") == 1
            assert part.count(document.digest) == 1
        assert f"All that is said here is about the version “{arm}”." in information
        assert "before the first question, if it draws this arm:" in consent
        asked_here = {*public, *randomised}
        assert {words for words in every if words in information} == asked_here
        read = read_texts(document.views[arm], "en")
        for words in (*read.sentences, *read.sent.lines[1:], *read.unprotected.lines):
            assert words in information, words
        assert (
            "at least 2 together of one arm that have the same answers to its public questions"
            in information
        )


def test_an_arm_that_protects_nothing_has_no_empty_lists(office: Office) -> None:
    surveys = office.services.surveys
    text = ARMS.replace(b"name: split", b"name: all-clear")
    for arm in (b"weak", b"strong"):
        text = text.replace(b"blocks: [%s]" % arm, b"blocks: [cars, %s]" % arm)
    surveys.apply(parse_definition(text))
    path = f"/admin/surveys/{surveys.publish('all-clear').survey_id}/sheet"
    clear, weak = text_of(office, path).split('<section class="card sheet">')[1:4:2]
    assert "Paid cash?" in clear
    assert "All others:" in weak
    for empty in ("All others:", "<ul></ul>", "></h3>"):
        assert empty not in clear, empty
