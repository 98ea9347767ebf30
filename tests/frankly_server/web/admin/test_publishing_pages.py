# SPDX-License-Identifier: Apache-2.0
"""Publishing on the pages: refused for closed surveys, said of paused ones, and stopped only what runs."""

import html
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frankly_server.web.admin.office import Office, make_office, send


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    """An office of this test's own: its survey is closed, paused and changed."""
    made = make_office(tmp_path)
    yield made
    made.services.close()


def page(office: Office, tab: str = "") -> str:
    answer = office.client("admin").get(f"/admin/surveys/{office.survey}{tab}")
    assert answer.status_code == 200
    return html.unescape(answer.text)


def test_a_paused_survey_says_so_beside_its_link(office: Office) -> None:
    pages = ("", "/embed", f"/jobs/{office.job}")
    assert not any("survey is paused:" in page(office, tab) for tab in pages)
    office.services.lifecycle.move(office.survey, "pause")
    for tab in pages:
        assert (tab, page(office, tab).count("survey is paused:")) == (tab, 1)


@pytest.mark.parametrize("moves", [("close",), ("close", "archive")], ids="-".join)
def test_a_closed_survey_offers_no_publishing_and_refuses_it(office: Office, moves: tuple[str, ...]) -> None:
    path = f"/admin/surveys/{office.survey}/publish"
    assert f'action="{path}"' in page(office)
    for move in moves:
        office.services.lifecycle.move(office.survey, move)
    assert f'action="{path}"' not in page(office)
    answer = send(office.client("admin"), path)
    assert answer.status_code == 410
    assert "closed and archived surveys take no reports: make a new survey" in answer.text
