# SPDX-License-Identifier: Apache-2.0
"""Publishing pages: closed surveys are refused, paused surveys have a note, earlier links are
described, and only running jobs can be stopped."""

import html
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from flask.testing import FlaskClient
from frankly_protocol.clock import FixedClock, format_time
from frankly_protocol.documents import SurveyDocument
from frankly_server.services import Services
from frankly_server.store.jobs import JobRow
from frankly_server.surveys.definition import parse_definition

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


def page(office: Office, tab: str = "/publish") -> str:
    answer = office.client("admin").get(f"/admin/surveys/{office.survey}{tab}")
    assert answer.status_code == 200
    return html.unescape(answer.text)


def test_a_paused_survey_has_a_note_at_its_link(office: Office) -> None:
    pages = ("", "/publish", "/embed", f"/jobs/{office.job}")
    assert not any("survey is paused:" in page(office, tab) for tab in pages)
    office.services.lifecycle.move(office.survey, "pause")
    for tab in pages:
        assert (tab, page(office, tab).count("survey is paused:")) == (tab, 1)


@pytest.mark.parametrize("moves", [("close",), ("close", "archive")], ids="-".join)
def test_a_closed_survey_offers_no_publishing_and_refuses_it(
    office: Office, moves: tuple[str, ...]
) -> None:
    path = f"/admin/surveys/{office.survey}/publish"
    _change_text(office, "Do you smoke now?")
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


def _change_text(office: Office, text: str) -> None:
    """Edit the text of the first question in the draft."""
    surveys = office.services.surveys
    file = re.sub(r"Do you smoke[^?]*\?", text, surveys.draft("habits").to_yaml().decode())
    surveys.apply(parse_definition(file.encode()))


def test_an_unchanged_draft_has_nothing_to_publish(office: Office) -> None:
    form = f'action="/admin/surveys/{office.survey}/publish"'
    same = "The draft is the same as version 1: there is nothing to publish, and its link stays."
    text = page(office)
    assert (same in text, form in text, "will have a new link" in text) == (True, False, False)
    _change_text(office, "Do you smoke now?")
    text = page(office)
    assert (same in text, form in text, "Publish as version 2" in text) == (False, True, True)


OLDER = "Links of earlier versions show the text of their version; while the survey is open they accept answers"


def test_a_new_version_says_what_the_earlier_link_does(office: Office) -> None:
    times = f"{OLDER} until it closes (version 1: 2026-07-01 00:00 UTC)."
    assert OLDER not in page(office) + page(office, "/embed") + page(office, f"/jobs/{office.job}")
    assert "This is the link of version" not in page(office, "")
    _change_text(office, "Do you smoke now?")
    assert f"Version 2 will have a new link. {times}" in page(office)
    job = f"/jobs/{finish_job(office.services, office.survey)}"
    announced = "has a new link: give it out instead of the one before."
    assert f"Version 2 {announced} {times}" in page(office, job)
    assert "No version can be paused or closed alone." in page(office, job)
    assert times in page(office, "/embed")
    assert f"This is the link of version 2, the newest. {times}" in page(office, "")
    # A job that published nothing, and one whose version is no longer the newest, announce no link.
    assert announced not in page(office, f"/jobs/{finish_job(office.services, office.survey)}")
    _change_text(office, "Do you smoke today?")
    finish_job(office.services, office.survey)
    assert announced not in page(office, job)
    assert "(version 1: 2026-07-01 00:00 UTC; version 2: 2026-07-01 00:00 UTC)" in page(
        office, "/embed"
    )
    office.services.lifecycle.move(office.survey, "close")
    assert OLDER not in page(office, "/embed") + page(office, "")


def _answer(office: Office, version: int, first: int, n: int = 10) -> list[str]:
    """Send n reports on one version; return their outcomes."""
    digest = office.services.surveys.versions("habits")[version - 1].digest
    reports = [
        {"v": 1, "doc": digest, "id": f"{first + i:032x}", "y": [i % 2, i % 3],
         "strata": {"region": "north"}, "token": None}
        for i in range(n)
    ]  # fmt: skip
    outcomes = office.services.intake.accept_batch(office.survey, reports)
    return [getattr(outcome, "status", None) or str(outcome) for outcome in outcomes]


def _counted(office: Office) -> int:
    """Release what is due; return the number of reports of each estimate."""
    office.services.releasing.release()
    estimates = office.services.analysis.estimates(office.survey)
    (n,) = {row["n"] for question in estimates["questions"] for row in question["rows"]}
    return int(n)


def test_answers_by_an_earlier_link_are_accepted_and_counted(office: Office) -> None:
    """What the pages say of earlier links is true."""
    first = office.services.surveys.versions("habits")[0]
    _change_text(office, "Do you smoke now?")
    office.services.surveys.publish("habits")
    served = office.app.test_client().get(
        f"/v1/surveys/{office.survey}/document?digest={first.digest}"
    )
    assert SurveyDocument.from_envelope(served.data) == first
    assert _answer(office, 1, 100, 5) == ["accepted"] * 5
    assert _answer(office, 2, 200) == ["accepted"] * 10
    assert _counted(office) == 10  # five are too few for a batch of version 1
    assert _answer(office, 1, 300, 5) == ["accepted"] * 5
    assert _counted(office) == 20
    # Pausing and closing act on every version.
    office.services.lifecycle.move(office.survey, "pause")
    for version in (1, 2):
        assert all("is paused" in outcome for outcome in _answer(office, version, 1000 * version))
    office.services.lifecycle.move(office.survey, "close")
    for version in (1, 2):
        assert all("been closed" in outcome for outcome in _answer(office, version, 1000 * version))


POOLED, APART = "Estimates include these answers", "estimated apart"


def test_answers_to_other_choices_are_said_to_be_estimated_apart(office: Office) -> None:
    """As they are: a question with other choices is another one for the estimates."""
    surveys = office.services.surveys
    file = surveys.draft("habits").to_yaml().decode()
    _change_text(office, "Do you smoke now?")
    said = page(office)
    assert (POOLED in said, APART in said) == (True, False)
    # The ids of the choices of one question change, as they do with the ranges of a number.
    other = re.sub(r"\bdaily\b", "often", file)
    surveys.apply(parse_definition(other.encode()))
    said = page(office)
    drinks = surveys.draft("habits").blocks[1].questions[0].text["en"]
    sentence = f"{POOLED}, except those to “{drinks}”: version 2 asks this with other choices"
    assert sentence in said
    job = f"/jobs/{finish_job(office.services, office.survey)}"
    assert all(sentence in page(office, tab) for tab in (job, "", "/embed"))
    for version in (1, 2):
        assert _answer(office, version, 100 * version) == ["accepted"] * 10
    office.services.releasing.release()
    estimates = office.services.analysis.estimates(office.survey)
    counts = [(one["id"], one["rows"][0]["n"]) for one in estimates["questions"]]
    assert sorted(counts) == [("drinks", 10), ("drinks", 10), ("smokes", 20)]
    surveys.apply(parse_definition(re.sub(r"\b(yes|no)\b", r"\1-1", other).encode()))
    assert "These answers are estimated apart, because version 3" not in page(
        office
    )  # version 2 asks “drinks” alike
    office.services.surveys.publish("habits")


def test_an_earlier_link_ends_when_its_own_version_closes(office: Office) -> None:
    surveys = office.services.surveys
    longer = surveys.draft("habits").to_yaml().decode().replace("2026-07-01", "2026-07-20")
    surveys.apply(parse_definition(longer.encode()))
    surveys.publish("habits")
    assert OLDER in page(office, "/embed")
    later = Services.open(office.services.settings, FixedClock(datetime(2026, 7, 2, tzinfo=UTC)))
    assert [document.version for document in later.surveys.open_versions("habits")] == [2]
    moved = replace(office, services=later)
    assert all("the survey closed at" in outcome for outcome in _answer(moved, 1, 100))
    assert _answer(moved, 2, 200) == ["accepted"] * 10
    later.close()


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
    "item": (
        lambda _office: {
            "item_text": "Choose B.",
            "item_choices": "Of A\nOf B",
            "item_answer": "Of B",
        },
        "Choose B.",
    ),
}
BAD = {
    "file": {"file": "name: ["},
    "text": {"min_reports": "many"},
    "item": {"item_answer": "Of C"},
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
    corrected = send(client, f"{survey}/{tab}", **(form | BAD[tab]))
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
