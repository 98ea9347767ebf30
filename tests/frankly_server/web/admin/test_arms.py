# SPDX-License-Identifier: Apache-2.0
"""Pages of a survey with arms: what each arm reads and what to expect, their sizes, and no edits by id."""

import re
from html import unescape
from itertools import count
from random import Random
from typing import Any

import pytest
from frankly_protocol.arms import BITS
from frankly_server.surveys.definition import parse_definition
from frankly_server.web.results.sentences import arms_words
from frankly_server.web.results.words import Words

from tests.contract.test_arms import FILE
from tests.frankly_server.web.admin.office import Office, send, token

SPLIT = FILE.replace(
    b"expires: 2026-08-01T00:00:00Z", b"expires: 2026-08-01T00:00:00Z\nexpected_reports: 2000"
)
NUMBERS = count()


@pytest.fixture
def split(office: Office) -> str:
    """The id of a new survey with arms, published in the office, which several tests share."""
    name = f"split{next(NUMBERS)}"
    office.services.surveys.apply(parse_definition(SPLIT.replace(b"split", name.encode(), 1)))
    return office.services.surveys.publish(name).survey_id


def answer(office: Office, survey: str, n: int, arms: tuple[str, ...] | None = None) -> None:
    """Store and release reports; of these arms in turn, or as devices draw them."""
    (document,), rng = office.services.surveys.versions(survey), Random(3)
    assert document.arms is not None
    sent = []
    for i in range(n):
        arm = arms[i % len(arms)] if arms else document.arms.draw(rng.getrandbits)
        view: Any = document.views[arm]
        y = [b.mechanism.sample(int(rng.random() < 0.2), rng.getrandbits) for b in view.blocks]
        strata = {"region": "n", "arm": arm} | ({"paid": "no"} if arm == "clear" else {})
        sent.append(
            {
                "v": 1,
                "doc": document.digest,
                "id": f"{i:032x}",
                "y": y,
                "strata": strata,
                "token": None,
            }
        )
    for start in range(0, n, 400):
        office.services.intake.accept_batch(survey, sent[start : start + 400])
    office.services.releasing.release()


def text_of(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_publishing_says_what_each_arm_reads_and_what_to_expect(office: Office, split: str) -> None:
    text = text_of(office.client("admin").get(f"/admin/surveys/{split}/publish").text)
    for arm, share in (("clear", "25.0%"), ("weak", "25.0%"), ("strong", "50.0%")):
        assert f"Arm {arm}, which {share} of the devices draw" in text
    assert "Did you pay anybody in cash? (arm weak)" in text
    # A quarter of 2,000 answers is about it.
    assert re.search(r"Paid cash\? \(arm clear\) share of each answer 500 ", text)
    assert "points between the arms clear and weak is found in about 80 of 100 such surveys" in text


def test_results_say_the_sizes_first_and_compare_the_arms(office: Office, split: str) -> None:
    answer(office, split, 800)
    client = office.client("viewer")
    page = client.get(f"/admin/surveys/{split}/results?show=by:arm").text
    text = text_of(page)
    assert "This is not distinguishable from the signed shares of 25.0%, 25.0% and 50.0%" in text
    assert text.index("Arms of the survey", text.index("Show")) < text.index("arm clear (n=")
    assert "Arm weak asked: “Did you pay anybody in cash?”" in text
    assert "Version 1, arm clear" in text
    figures = text_of(client.get(f"/admin/surveys/{split}/estimates?by=arm&compare=all").text)
    assert "Of 800 answers, devices drew clear in" in figures


def test_arms_that_are_not_drawn_as_signed_are_named_before_they_are_compared(
    office: Office, split: str
) -> None:
    answer(office, split, 600, ("clear", "weak", "strong"))
    text = text_of(office.client("viewer").get(f"/admin/surveys/{split}/results").text)
    assert "Of 600 answers, devices drew clear in 200, weak in 200 and strong in 200." in text
    assert "Arm weak asked: “Did you pay anybody in cash?”" in text
    assert "differs from the signed shares of 25.0%, 25.0% and 50.0% by more than chance" in text


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (
            "questions/paid",
            {"id": "paid", "text-en": "Other words", "kind": "single", "place": "block"},
        ),
        ("questions/paid/move", {"direction": "down"}),
        ("questions/paid/copy", {}),
        ("questions/paid/remove", {}),
    ],
)
def test_questions_are_changed_in_the_file_alone(
    office: Office, split: str, path: str, fields: dict[str, str]
) -> None:
    """Two arms have a question of this id, so a form cannot say which of them it means."""
    client, before = office.client("admin"), office.services.surveys.draft(split)
    seen = {"seen": before.digest} | fields
    refused = client.post(
        f"/admin/surveys/{split}/{path}",
        data={"csrf": token(client), **seen},
        content_type="multipart/form-data",
    )
    assert refused.status_code in (409, 422), refused.status_code
    assert "this survey has arms" in text_of(refused.text)
    assert office.services.surveys.draft(split) == before
    page = client.get(f"/admin/surveys/{split}/questions").text
    assert "This survey has 3 arms (clear, weak, strong)" in text_of(page)
    assert f"/admin/surveys/{split}/questions/paid" not in page


def test_the_page_of_protection_leads_to_the_file(office: Office, split: str) -> None:
    client = office.client("admin")
    for block in ("", "?block=weak", "?block=cars"):
        answered = client.get(f"/admin/surveys/{split}/protection{block}")
        assert (answered.status_code, answered.headers["Location"]) == (
            303,
            f"/admin/surveys/{split}/file",
        )


def test_title_and_translations_can_be_changed(office: Office, split: str) -> None:
    client, before = office.client("admin"), office.services.surveys.draft(split)
    assert before.arms
    changed = before.to_yaml().replace(b"en: Split", b"en: Divided")
    sent = send(client, f"/admin/surveys/{split}/file", file=changed.decode(), seen=before.digest)
    assert sent.status_code == 303
    assert office.services.surveys.draft(split).title == {"en": "Divided"}


WORDS: list[tuple[list[tuple[str, int, int]], float | None, str]] = [
    (
        [("a", 10, 1 << 15), ("b", 12, 1 << 15)],
        None,
        "There are too few answers to test whether devices draw the arms as they should.",
    ),
    (
        [("a", 1010, 1 << 15), ("b", 990, 1 << 15)],
        0.05,
        "Of 2,000 answers, devices drew a in 1,010 and b in 990. This is not distinguishable from the signed "
        "shares of 50.0% and 50.0% (p = 0.050).",
    ),
    (
        [("a", 1100, 1 << 15), ("b", 900, 1 << 15)],
        0.0001,
        "Of 2,000 answers, devices drew a in 1,100 and b in 900. This differs from the signed shares of 50.0% and "
        "50.0% by more than chance usually explains (p < 0.001): people may leave one arm more than another, and "
        "then arms can differ although nobody answers differently. Look for the reason before you compare them.",
    ),
]


@pytest.mark.parametrize(("arms", "p", "words"), WORDS)
def test_the_sentence_on_sizes(
    arms: list[tuple[str, int, int]], p: float | None, words: str
) -> None:
    assert sum(chance for _, _, chance in arms) == 1 << BITS
    sizes = [dict(zip(("arm", "n", "chance"), one, strict=True)) for one in arms]
    assert arms_words([{"version": 2, "arms": sizes, "p": p}], Words("en")) == [words]
    both = [{"version": v, "arms": sizes, "p": p} for v in (1, 2)]
    assert arms_words(both, Words("en")) == [f"Version {v}: {words}" for v in (1, 2)]
