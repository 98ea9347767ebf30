# SPDX-License-Identifier: Apache-2.0
"""Summary on the page of publishing: of the draft and of versions, without one, and what changed."""

import html
import re
import threading
from datetime import timedelta
from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.searches import Busy
from frankly_server.surveys.summary import Summary
from frankly_server.web.admin import draft_preview, publish

from tests.frankly_server.web.admin.office import Office, begin, send
from tests.frankly_server.web.site import NOW, SURVEY

BUTTON = re.compile(r"<button>Publish( as version \d+)?</button>")
HEADINGS = ("What respondents read", "What you get", "How much one person risks")


@pytest.fixture
def office(own_office: Office) -> Office:
    """A separate office for one test, whose survey is changed."""
    return own_office


def page(office: Office, query: str = "", caller: str = "admin") -> str:
    answer = office.client(caller).get(f"/admin/surveys/{office.survey}/publish{query}")
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", html.unescape(answer.text))


def change(office: Office, **changes: Any) -> None:
    surveys = office.services.surveys
    surveys.apply(surveys.draft("habits").model_copy(update=changes))


def plain(text: str) -> str:
    """Return a page without what is folded away for experts."""
    folded = re.compile(r"<details><summary>For experts.*?</details>", re.DOTALL)
    assert folded.search(text)
    return folded.sub("", text)


def test_a_new_draft_has_a_summary_and_one_button(office: Office) -> None:
    client = office.client("admin")
    path = begin(client).headers["Location"].removesuffix("/questions")
    text = html.unescape(client.get(f"{path}/publish").text)
    assert [text.count(f"<h2>{heading}</h2>") for heading in HEADINGS] == [1, 1, 1]
    assert "1 question, about 1 min. Results go to" in text
    assert 'lang="en" dir="auto"' in text
    assert re.search(r'<td class="n margin" data-th="Margin">±\d+\.\d points</td>', text)
    assert f'href="{path}/preview?ask=drawn"' in text
    assert len(BUTTON.findall(text)) == 1
    assert not re.search(r"\bnats?\b", plain(text))
    viewer = office.client("viewer").get(f"{path}/publish").text
    assert BUTTON.search(viewer) is None
    assert HEADINGS[0] in viewer


def test_nats_are_for_experts_only(office: Office) -> None:
    """Also in warnings: of a survey above the cap of devices, and of one without a backstop."""
    dear = SURVEY.replace(b'budget: "2"', b'budget: "30"').replace(b'epsilon: "1"', b"epsilon: 8")
    office.services.surveys.apply(parse_definition(dear))
    text = page(office)
    assert "The whole report can change odds by up to ×" in plain(text)
    assert "such devices cannot answer it" in plain(text)
    assert "30 nats of log-odds" in text
    assert not re.search(r"\bnats?\b", plain(text))


def test_the_newest_version_has_its_summary_if_there_is_nothing_to_publish(office: Office) -> None:
    text = page(office)
    assert [text.count(f"<h3>{heading}</h3>") for heading in HEADINGS] == [1, 1, 1]
    assert "The most that a whole report can reveal, version 1" in text
    change(office, min_reports=60)
    text = page(office)
    # Of a version only if it is asked for, because it takes seconds.
    assert [text.count(f"<h3>{heading}</h3>") for heading in HEADINGS] == [0, 0, 0]
    assert [text.count(f"<h2>{heading}</h2>") for heading in HEADINGS] == [1, 1, 1]
    assert "publish?version=1#version-1" in text
    text = page(office, "?version=1")
    assert [text.count(f"<h3>{heading}</h3>") for heading in HEADINGS] == [1, 1, 1]
    for query, status in (("?version=9", 200), ("?version=one", 422), ("?other=1", 422)):
        answer = office.client("viewer").get(f"/admin/surveys/{office.survey}/publish{query}")
        assert answer.status_code == status, query


def test_what_changed_since_the_last_version_is_listed(office: Office) -> None:
    assert "Changed since" not in page(office)
    change(office, min_reports=60)
    assert (
        "<h3>Changed since version 1</h3> <ul><li>changed answers that a result needs</li>"
        in page(office)
    )
    # The draft of the version is found among the earlier ones, as long as these are kept.
    for n in range(61, 111):
        before = office.services.surveys.published_draft("habits")
        assert before is not None
        assert before.min_reports == 10
        change(office, min_reports=n)
    assert office.services.surveys.published_draft("habits") is None
    text = page(office)
    assert "Changed since" not in text
    assert BUTTON.search(text)


@pytest.mark.parametrize(
    ("error", "words", "is_offered"),
    [
        (Busy(), "There is no summary at the moment, because the server is computing for others", True),
        (InvalidInput(Problem.OPTIMISER_LIMIT, "this took longer than 20 s"), "Publishing searches longer", True),
        (InvalidInput(Problem.BUDGET_EXCEEDED, "too much", "budget"),
         'This draft cannot be published: too much <small>(budget)</small>', True),
    ],
    ids=["busy", "slow", "refused"],
)  # fmt: skip
def test_without_a_summary_the_page_says_why(
    office: Office,
    monkeypatch: pytest.MonkeyPatch,
    error: InvalidInput,
    words: str,
    is_offered: bool,
) -> None:
    def refuse(*_: Any, **__: Any) -> Summary:
        raise error

    change(office, min_reports=60)
    for module in (publish, draft_preview):
        monkeypatch.setattr(module, "search_once", refuse)
    text = page(office, "?version=1")
    assert words in text
    assert bool(BUTTON.search(text)) is is_offered
    assert "Version 1" in text
    assert not any(f"<h2>{heading}</h2>" in text for heading in HEADINGS)


def test_a_draft_that_devices_would_refuse_is_not_designed(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file saved before the check existed."""
    change(office, min_reports=60)

    def refuse(*_: Any) -> None:
        raise InvalidInput(Problem.CHOICES_COLLIDE, "two choices look the same", "blocks[0]")

    monkeypatch.setattr(publish, "expected_form", refuse)
    assert "This draft cannot be published: two choices look the same" in page(office)


def test_a_draft_that_would_be_closed_already_is_refused(office: Office) -> None:
    change(office, closes=NOW - timedelta(minutes=1), opens=None, expires=None)
    assert "This draft cannot be published: closes lies in the past" in page(office)


def test_after_publishing_the_next_step_is_the_link(office: Office) -> None:
    change(office, min_reports=60)
    client = office.client("admin")
    answer = send(client, f"/admin/surveys/{office.survey}/publish")
    assert answer.status_code == 303
    for thread in threading.enumerate():
        if thread.name == "frankly-design":
            thread.join()
    text = client.get(answer.headers["Location"]).text
    assert text.count('class="button') == 1
    assert f'<a class="button" href="/admin/surveys/{office.survey}">Get the link</a>' in text
