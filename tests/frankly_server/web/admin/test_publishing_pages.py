# SPDX-License-Identifier: Apache-2.0
"""Publishing pages: closed surveys are refused, paused surveys have a note, and only running jobs
can be stopped."""

import html
import re

import pytest
from flask.testing import FlaskClient
from frankly_protocol.clock import format_time
from frankly_server.store.jobs import JobRow

from tests.frankly_server.web.admin.office import Office, finish_job, send
from tests.frankly_server.web.site import NOW


@pytest.fixture
def office(own_office: Office) -> Office:
    """A separate office for one test, whose survey is closed, paused and changed."""
    return own_office


def _trail(office: Office) -> list[str]:
    """Return the survey's events in the audit trail, oldest first, without sign-ins."""
    events = [
        event for event in office.services.accounts.trail("main") if event.subject == "habits"
    ]
    return [event.action for event in events][::-1]


def page(office: Office, tab: str = "") -> str:
    answer = office.client("admin").get(f"/admin/surveys/{office.survey}{tab}")
    assert answer.status_code == 200
    return html.unescape(answer.text)


def test_a_paused_survey_has_a_note_at_its_link(office: Office) -> None:
    pages = ("", "/embed", f"/jobs/{office.job}")
    assert not any("survey is paused:" in page(office, tab) for tab in pages)
    office.services.lifecycle.move(office.survey, "pause")
    for tab in pages:
        assert (tab, page(office, tab).count("survey is paused:")) == (tab, 1)


@pytest.mark.parametrize("moves", [("close",), ("close", "archive")], ids="-".join)
def test_a_closed_survey_offers_no_publishing_and_refuses_it(
    office: Office, moves: tuple[str, ...]
) -> None:
    path = f"/admin/surveys/{office.survey}/publish"
    assert f'action="{path}"' in page(office)
    for move in moves:
        office.services.lifecycle.move(office.survey, move)
    assert f'action="{path}"' not in page(office)
    answer = send(office.client("admin"), path)
    assert answer.status_code == 410
    assert "closed and archived surveys accept no reports: create a new survey" in answer.text


def test_a_job_distinguishes_a_new_version_from_a_published_one(office: Office) -> None:
    surveys = office.services.surveys
    assert "Unchanged" in page(office, f"/jobs/{office.job}")  # the office's job published nothing
    surveys.apply(surveys.draft("habits").model_copy(update={"min_reports": 60}))
    text = page(office, f"/jobs/{finish_job(office.services, office.survey)}")
    digests = [document.digest for document in surveys.versions("habits")]
    assert (len(digests), "Unchanged" in text) == (2, False)
    assert f"Published: <code>{digests[1]}</code>" in text
    again = page(office, f"/jobs/{finish_job(office.services, office.survey)}")
    assert "Published:" not in again
    assert f"Its digest is: <code>{digests[1]}</code>" in again


def test_stopping_a_job_that_has_ended_leaves_no_trace(office: Office) -> None:
    client, path = office.client("admin"), f"/admin/surveys/{office.survey}/jobs/{office.job}"
    before, trail = office.services.jobs.get(office.survey, office.job), _trail(office)
    assert send(client, f"{path}/cancel").status_code == 303
    assert (office.services.jobs.get(office.survey, office.job), _trail(office)) == (before, trail)
    running = JobRow("ef" * 16, office.survey, "running", 0, 1, "", format_time(NOW))
    with office.services.database.transaction("a job of another process") as tx:
        tx.jobs.add(running)
    for _ in range(2):
        assert (
            send(client, f"/admin/surveys/{office.survey}/jobs/{running.id}/cancel").status_code
            == 303
        )
    assert office.services.jobs.get(office.survey, running.id).state == "cancelling"
    assert _trail(office) == [*trail, "publishing cancelled"]


def _seen(client: FlaskClient, address: str) -> str:
    (draft_digest,) = set(
        re.findall(r'name="seen" value="(sha256:[0-9a-f]{64})"', client.get(address).text)
    )
    return str(draft_digest)


FORMS = {
    # Page of an older tab -> the form that the tab sends, and the text that a refusal must still
    # show.
    "file": (
        lambda office: {"file": office.services.surveys.draft("habits").to_yaml().decode()},
        "name: habits",
    ),
    "text": (
        lambda office: {
            "title-en": "Of the first tab",
            "languages": "en",
            "min_reports": "70",
            "consent-en": "Typed",
            "closes": "",
        },
        "Typed",
    ),
}


@pytest.mark.parametrize("tab", FORMS)
def test_an_older_tab_does_not_undo_changes_of_another(office: Office, tab: str) -> None:
    make, typed = FORMS[tab]
    client, survey = office.client("admin"), f"/admin/surveys/{office.survey}"
    form_path = f"{survey}/{'file' if tab == 'file' else 'questions'}"
    form = make(office) | {"seen": _seen(client, form_path)}
    newer = {"title-en": "Of the second tab", "languages": "en", "min_reports": "60"}
    assert send(client, f"{survey}/text", **newer, seen=form["seen"]).status_code == 303
    draft_before = office.services.surveys.draft("habits")
    bad = {"file": "name: ["} if tab == "file" else {"min_reports": "many"}
    corrected = send(client, f"{survey}/{tab}", **(form | bad))
    assert corrected.status_code in (400, 422)
    # The form shown for correction has the digest of the draft from which it was filled.
    assert f'name="seen" value="{form["seen"]}"' in corrected.text
    answer = send(client, f"{survey}/{tab}", **form)
    assert answer.status_code == 409
    assert "this draft has changed meanwhile" in answer.text
    assert typed in html.unescape(answer.text)
    assert office.services.surveys.draft("habits") == draft_before
    again = _seen(client, form_path)  # sent again from the page that reported the change
    assert send(client, f"{survey}/{tab}", **(form | {"seen": again})).status_code == 303
    assert office.services.surveys.draft("habits") != draft_before
