# SPDX-License-Identifier: Apache-2.0
"""Results of surveys whose versions ask other things under one id: each is shown with its own words and figures."""

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

from frankly_server.surveys.definition import parse_definition

from tests.frankly_server.web.admin.office import Office, make_office
from tests.frankly_server.web.site import SURVEY

SVG = "{http://www.w3.org/2000/svg}"


def two_versions(folder: Path, change: Callable[[bytes], bytes], symbols: int) -> Office:
    """Return an office with a survey of two versions, each answered 300 times.

    In the first everybody in the north sent symbol 0 of the second question and everybody in the south symbol 1. In
    the second, whose second question has so many symbols, regions do not differ.
    """
    office = make_office(folder)
    changed = change(SURVEY)
    assert changed != SURVEY
    office.services.surveys.apply(parse_definition(changed))
    office.services.surveys.publish("habits")
    for number, document in enumerate(office.services.surveys.versions(office.survey)):
        regions = [choice.id for choice in document.strata[0].choices]
        reports = [
            {"v": 1, "doc": document.digest, "id": f"{number * 1000 + i:032x}",
             "y": [i % 2, i % 2 if not number else i // 2 % symbols],
             "strata": {"region": regions[i % 2]}, "token": None}
            for i in range(300)
        ]  # fmt: skip
        for outcome in office.services.intake.accept_batch(office.survey, reports):
            assert getattr(outcome, "status", None) == "accepted", outcome
    office.services.releasing.release()
    return office


def cards(office: Office, view: str) -> dict[str, str]:
    """Return the text of each card, with what its picture says, by its heading."""
    page = office.client("viewer").get(
        f"/admin/surveys/{office.survey}/results", query_string={"show": view}
    )
    assert page.status_code == 200
    found = re.findall(
        r'<section class="card result"><h2[^>]*>(.*?)</h2>(.*?)</section>', page.text, re.DOTALL
    )
    return {
        unescape(heading): unescape(re.sub(r"<(?!/?desc)[^>]*>", " ", body))
        for heading, body in found
    }


def test_a_question_with_another_choice_is_shown_apart(tmp_path: Path) -> None:
    office = two_versions(
        tmp_path,
        lambda file: file.replace(
            b"- {id: daily,", b"- {id: monthly, label: {en: Monthly}}\n          - {id: daily,"
        ),
        4,
    )
    text = "How often do you drink?"
    for view in ("", "by:region", "per:day", "by:version"):
        found = cards(office, view)
        assert {heading for heading in found if text in heading} == {
            f"{text} (version 1)",
            f"{text} (version 2)",
        }
        assert (
            "Monthly" in found[f"{text} (version 1)"],
            "Monthly" in found[f"{text} (version 2)"],
        ) == (False, True)
    found = cards(office, "by:region")
    assert "is more common in “North” than in “South”" in found[f"{text} (version 1)"]
    assert "differences tested is distinguishable from chance" in found[f"{text} (version 2)"]
    office.services.close()


def test_another_question_under_the_same_id_has_its_own_differences(tmp_path: Path) -> None:
    office = two_versions(
        tmp_path,
        lambda file: file.replace(b"How often do you drink?", b"How often do you pray?").replace(
            b"- {id: daily,", b"- {id: monthly, label: {en: Monthly}}\n          - {id: daily,"
        ),
        4,
    )
    found = cards(office, "by:region")
    assert "is more common in “North” than in “South”" in found["How often do you drink?"]
    assert "is more common" not in found["How often do you pray?"]
    office.services.close()


def test_other_words_of_an_earlier_version_are_said(tmp_path: Path) -> None:
    office = two_versions(
        tmp_path,
        lambda file: file.replace(
            b"How often do you drink?", b"How often do you have a drink?"
        ).replace(b"{en: Weekly}", b"{en: Every week}"),
        3,
    )
    found = cards(office, "")
    card = found["How often do you have a drink?"]
    assert "Version 1 asked: “How often do you drink?”" in card
    assert "In version 1 the answers were “Never”, “Weekly”, “Daily”." in card
    assert "Version 1" not in found["Do you smoke?"]
    office.services.close()


def test_a_public_choice_that_was_removed_keeps_its_name(tmp_path: Path) -> None:
    office = two_versions(
        tmp_path,
        lambda file: file.replace(
            b"{id: south, label: {en: South}}", b"{id: west, label: {en: West}}"
        ).replace(
            b"- {id: daily,", b"- {id: monthly, label: {en: Monthly}}\n          - {id: daily,"
        ),
        4,
    )
    found = cards(office, "by:region")
    assert "South (n=150)" in found["How often do you drink? (version 1)"]
    assert "West (n=150)" in found["How often do you drink? (version 2)"]
    office.services.close()


def test_results_are_those_of_the_newest_release(tmp_path: Path) -> None:
    """What a view shows is kept for many readers, but not beyond a release."""
    office = two_versions(tmp_path, lambda file: file.replace(b"Habits", b"Habits 2"), 3)
    viewer = office.client("viewer")
    path = f"/admin/surveys/{office.survey}/results"
    before = viewer.get(path).text
    assert "600 answers" in before
    assert viewer.get(path).text == before
    document = office.services.surveys.versions(office.survey)[-1]
    reports = [
        {"v": 1, "doc": document.digest, "id": f"{9000 + i:032x}", "y": [1, 2], "strata": {"region": "north"},
         "token": None}
        for i in range(100)
    ]  # fmt: skip
    office.services.intake.accept_batch(office.survey, reports)
    assert viewer.get(path).text == before
    office.services.releasing.release()
    after = viewer.get(path).text
    assert "700 answers" in after
    pictures = [
        [
            ElementTree.fromstring(svg).findtext(f"{SVG}desc")
            for svg in re.findall(r"<svg .*?</svg>", page, re.DOTALL)
        ]
        for page in (before, after)
    ]
    assert pictures[0] != pictures[1]
    # As many answers as before an erasure are not those of before.
    office.services.lifecycle.move(office.survey, "close")
    office.services.surveys.erase(office.survey)
    assert "0 answers" in viewer.get(path).text
    assert "No result yet" in viewer.get(path).text
    office.services.close()
