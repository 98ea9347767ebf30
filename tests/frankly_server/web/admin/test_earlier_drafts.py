# SPDX-License-Identifier: Apache-2.0
"""Way back from every change of a draft: the last one with one button, earlier ones by a list."""

import html
import re
from typing import Any

from flask.testing import FlaskClient
from frankly_server.store.earlier_drafts import MOST_KEPT
from frankly_server.surveys.definition import parse_definition

from tests.frankly_server.web.admin.office import Office, send
from tests.frankly_server.web.admin.test_question_form import FILE, begun, draft_of


def undo(client: FlaskClient, survey: str) -> Any:
    """Press the button of the questions page."""
    page = client.get(f"{survey}/questions").text
    form = re.search(
        r'action="([^"]*/drafts/\d+/restore)">.*?name="seen" value="([^"]+)"', page, re.DOTALL
    )
    assert form
    return send(client, form[1], seen=form[2])


def test_a_removed_question_comes_back(office: Office) -> None:
    client, survey = office.client("admin"), begun(office, "taken-back")
    assert "Undo" not in client.get(f"{survey}/questions").text
    before = draft_of(office, survey)
    send(client, f"{survey}/questions/sports/remove")
    without = draft_of(office, survey)
    assert undo(client, survey).status_code == 303
    assert draft_of(office, survey) == before
    # Taking back is a change too.
    assert undo(client, survey).status_code == 303
    assert draft_of(office, survey) == without
    trail = office.services.accounts.about("main", ("taken-back",), 3)
    assert [event.action for event in trail] == ["draft changed"] * 3


def test_the_list_names_each_change_and_leads_back_to_any(office: Office) -> None:
    client, survey = office.client("admin"), begun(office, "listed")
    before = draft_of(office, survey)
    for name in ("sports", "years"):
        send(client, f"{survey}/questions/{name}/remove")
    page = html.unescape(client.get(f"{survey}/drafts").text)
    assert page.index("removed “How long?”") < page.index("removed “Which sports?”")
    assert send(client, f"{survey}/drafts/1/restore").status_code == 303
    assert draft_of(office, survey) == before
    assert send(client, f"{survey}/drafts/9/restore").status_code == 404
    # A page of an older state brings nothing back.
    assert send(client, f"{survey}/drafts/2/restore", seen="sha256:" + "0" * 64).status_code == 409
    assert draft_of(office, survey) == before


def test_changes_by_a_file_can_be_taken_back_and_the_oldest_are_forgotten(office: Office) -> None:
    client, survey = office.client("admin"), begun(office, "forgotten")
    for i in range(MOST_KEPT + 2):
        file = FILE.replace(b"FILE", b"forgotten").replace(b"Members", f"Title {i}".encode())
        office.services.surveys.apply(parse_definition(file))
    kept = office.services.surveys.earlier_drafts(survey.rsplit("/", 1)[1])
    assert [draft.number for draft in kept] == list(range(MOST_KEPT + 2, 2, -1))
    assert undo(client, survey).status_code == 303
    assert draft_of(office, survey).title["en"] == f"Title {MOST_KEPT}"
    assert office.services.surveys.earlier_drafts("nothing") == []
