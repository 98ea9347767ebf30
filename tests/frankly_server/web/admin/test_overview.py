# SPDX-License-Identifier: Apache-2.0
"""List of surveys and overview: link, answers, results, next step, and changes that must be meant."""

import html
import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import segno
from frankly_protocol.clock import FixedClock
from frankly_protocol.errors import InvalidInput
from frankly_protocol.tokens import TokenRule
from frankly_server.accounts.service import BACKED_UP
from frankly_server.cli.services import record_command
from frankly_server.intake import Intake, Releasing
from frankly_server.store.survey_states import SurveyStateRow
from frankly_server.surveys import Summary
from frankly_server.surveys.definition import parse_definition
from frankly_server.web.admin import overview
from frankly_server.web.admin.overview import next_step
from frankly_server.web.opened_survey import OpenedSurvey

from tests.frankly_server.accounts.people import Hands
from tests.frankly_server.web.admin.office import Office, begin, make_office, send, without_terms
from tests.frankly_server.web.site import NOW, SURVEY
from tests.pixels import dark_pixels

PER_DAY = (40, 24, 60)


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """An office whose survey has answers of three days, and some that wait."""
    office = make_office(tmp_path_factory.mktemp("answered"))
    office.services.surveys.apply(
        parse_definition(SURVEY.replace(b"languages:", b'consent: {en: "The council & friends ask."}\nlanguages:'))
    )  # fmt: skip
    digest, number = office.services.surveys.versions(office.survey)[-1].digest, 0
    for day, count in enumerate((*PER_DAY, 6)):
        clock = FixedClock(NOW + timedelta(days=day))
        reports = [
            {"v": 1, "doc": digest, "id": f"{number + i:032x}", "y": [i % 2, min(i % 4, 2)],
             "strata": {"region": "north" if i % 2 else "south"}, "token": None}
            for i in range(count)
        ]  # fmt: skip
        number += count
        results = Intake(office.services.database, clock).accept_batch(office.survey, reports)
        assert {getattr(result, "status", None) for result in results} == {"accepted"}
        if day < len(PER_DAY):
            Releasing(office.services.database, clock).release()
    yield office
    office.services.close()


def shown(office: Office, caller: str = "admin", path: str = "", survey: str = "") -> str:
    """Return the text of a survey's page, with single spaces and without links of terms."""
    answer = office.client(caller).get(f"/admin/surveys/{survey or office.survey}{path}")
    assert answer.status_code == 200, answer.text
    return " ".join(html.unescape(without_terms(answer.text)).split())


def test_the_link_is_shared_as_text_picture_mail_and_code(answered: Office) -> None:
    link = answered.services.surveys.summary(answered.survey).link
    assert link is not None
    page = shown(answered, "viewer")
    assert f"<pre data-copy>{link}</pre>" in page
    assert f'<frankly-survey link="{link}"></frankly-survey>' in page
    found = re.search(r'href="(mailto:[^"]*)"', page)
    assert found
    mail = parse_qs(urlsplit(found.group(1)).query)
    assert mail == {"subject": ["Habits"], "body": [f"Habits\n\n{link}"]}
    file = answered.client("viewer").get(f"/admin/surveys/{answered.survey}/qr.png")
    assert (file.mimetype, file.status_code) == ("image/png", 200)
    squares = [row[6::12] for row in dark_pixels(file.data)[6::12]]
    # With four white squares around it, as scanners need.
    expected = segno.make(link, error="m").matrix_iter(border=4)
    assert squares == [[bool(value) for value in row] for row in expected]
    for where in ("", "/notice"):
        drawn = segno.make(link, error="m").svg_inline(scale=2, dark="#000", light="#fff")
        squares_drawn = re.findall(r' d="([^"]*)"', drawn)[-1]
        assert shown(answered, "viewer", where).count(squares_drawn) == 1


def test_an_email_has_the_words_that_respondents_read(own_office: Office) -> None:
    text = SURVEY.replace(b"languages:", b'consent: {en: "We & others ask"}\nlanguages:')
    own_office.services.surveys.apply(parse_definition(text))
    published = own_office.services.surveys.publish("habits")
    page = shown(own_office)
    assert f"Habits We & others ask {published.link}" in page
    (mail,) = re.findall(r'href="(mailto:[^"]*)"', page)
    assert parse_qs(urlsplit(mail).query)["body"] == [
        f"Habits\n\nWe & others ask\n\n{published.link}"
    ]


def test_answers_are_shown_by_day_as_released(answered: Office) -> None:
    page = shown(answered)
    assert '<p class="big">100 to 199</p>' in page  # 130 have arrived
    assert "124 of them are released" in page
    assert "The next release is at" in page
    rows = re.findall(
        r'<th scope="row" class="day">(2026-06-0\d)</th> <td class="n"><progress[^>]*></progress> (\d+)</td>',
        page,
    )
    days = [(NOW + timedelta(days=day)).date().isoformat() for day in range(len(PER_DAY))]
    assert rows == [(day, str(n)) for day, n in zip(days, PER_DAY, strict=True)][::-1]
    # Nothing else is said of those that wait.
    viewers = shown(answered, "viewer")
    assert '<p class="big">124</p>' in viewers
    assert "100 to 199" not in viewers
    assert not re.search(r"\b130\b", re.sub("<svg.*?</svg>", "", page + viewers))


def test_each_result_is_a_sentence_of_the_estimates_page(answered: Office) -> None:
    """Of two choices that of the last, of more the first."""
    page, estimates = shown(answered, "viewer"), shown(answered, "viewer", "/estimates")
    results = re.findall(r"<dt>([^<]*\?)</dt> <dd>([^<]*)</dd>", page)
    said = {
        question: re.findall("<li>([^<]*)</li>", sentences)
        for question, sentences in re.findall(
            r'<h2>([^<]*\?)</h2>.*?<ul class="said">(.*?)</ul>', estimates
        )
    }
    smokes, drinks = said
    (yes,) = [sentence for sentence in said[smokes] if sentence.startswith("“Yes”: between")]
    assert results == [(smokes, yes), (drinks, said[drinks][0])]


def test_a_question_without_enough_answers_says_how_many_it_needs(own_office: Office) -> None:
    assert (
        "None yet: results use released answers only, and need a minimum of them for each question."
        in shown(own_office)
    )
    least = own_office.services.surveys.versions(own_office.survey)[-1].min_reports
    fill(own_office, least - 1)
    n = own_office.services.intake.released().get(own_office.survey, 0)
    expected = f"No result yet: {n} of the {least} answers that it needs are released."
    assert shown(own_office).count(expected) == (2 if n else 0)


INVITE, SIGNED = TokenRule("invite", None), TokenRule("rsa-pss", "key")
READ = ("Read the results", "results")
# Stored state, state by time, released answers, rule for tokens -> next step of an admin and of a viewer.
# The newest version needs 10 answers.
STEPS: list[Any] = [
    ("open", "draft", 0, None, ("Publish it", "publish"), None),
    ("archived", "draft", 0, None, None, None),
    ("open", "scheduled", 0, None, ("Share its link", ""), ("Share its link", "")),
    ("open", "open", 9, None, ("Share its link", ""), ("Share its link", "")),
    ("open", "open", 0, INVITE, ("Invite people", "invitations"), None),
    ("open", "open", 0, SIGNED, None, None),
    ("open", "open", 10, INVITE, READ, READ),
    ("paused", "open", 90, None, ("Resume or close it", ""), None),
    ("closed", "open", 0, None, ("Archive it", ""), None),
    ("open", "closed", 9, None, ("Archive it", ""), None),
    ("open", "closed", 10, None, READ, READ),
    ("archived", "closed", 90, None, READ, READ),
    ("archived", "closed", 0, None, None, None),
]


@pytest.mark.parametrize(("stored", "by_time", "n", "token", "of_admin", "of_viewer"), STEPS)
def test_every_state_has_its_next_step(
    stored: str, by_time: str, n: int, token: TokenRule | None, of_admin: Any, of_viewer: Any
) -> None:
    published = by_time != "draft"
    summary = Summary("0" * 32, "habits", by_time, int(published), None, NOW, 10 * published, token)
    survey = OpenedSurvey(summary, SurveyStateRow(state=stored), lambda: parse_definition(SURVEY))
    assert next_step(survey, n, "admin") == of_admin
    assert next_step(survey, n, "viewer") == next_step(survey, n, "analyst") == of_viewer


def test_results_need_the_largest_minimum_of_all_versions(own_office: Office) -> None:
    """The first version needs 10 answers, the second 40, and the draft 2."""
    surveys = own_office.services.surveys
    for least in (40, 2):
        text = SURVEY.replace(b"min_reports: 10", b"min_reports: %d" % least)
        surveys.apply(parse_definition(text))
        if least == 40:
            surveys.publish("habits")
    fill(own_office, 30)
    page = shown(own_office)
    assert page.count("No result yet: 30 of the 40 answers that it needs are released.") == 2
    assert "Read the results" not in page
    listed = own_office.client("viewer").get("/admin/surveys").text
    assert "Read the results" not in listed


def fill(office: Office, n: int, version: int = -1) -> None:
    """Let `n` answers arrive and be released."""
    digest = office.services.surveys.versions(office.survey)[version].digest
    reports = [
        {"v": 1, "doc": digest, "id": f"{i:032x}", "y": [0, 0], "strata": {"region": "north"}, "token": None}
        for i in range(n)
    ]  # fmt: skip
    results = office.services.intake.accept_batch(office.survey, reports)
    assert {getattr(result, "status", None) for result in results} == {"accepted"}
    office.services.releasing.release()


def state(office: Office) -> str:
    return office.services.lifecycle.get(office.survey).state


def test_what_cannot_be_undone_must_be_meant(own_office: Office) -> None:
    client, move = own_office.client("admin"), f"/admin/surveys/{own_office.survey}/move"
    for name, before, after in (("close", "open", "closed"), ("archive", "closed", "archived")):
        for fields in ({}, {"sure": ""}):
            refused = send(client, move, move=name, **fields)
            assert (refused.status_code, state(own_office)) == (422, before)
            assert 'id="sure-error"' in refused.text
            assert f"“{name}” cannot be undone" in html.unescape(refused.text)
        assert send(client, move, move=name, sure="yes").status_code == 303
        assert state(own_office) == after
        assert f'data-th="What">survey {after}</td>' in shown(own_office)


def test_pausing_and_resuming_need_no_confirmation(own_office: Office) -> None:
    client, move = own_office.client("admin"), f"/admin/surveys/{own_office.survey}/move"
    for name, after in (("pause", "paused"), ("resume", "open")):
        assert send(client, move, move=name).status_code == 303
        assert state(own_office) == after
    refused = send(client, move, move="resume")
    assert refused.status_code == 409


@pytest.mark.parametrize("name", ["", "habit", "habits2", "the habits"])
def test_answers_are_erased_by_the_name_alone(answered: Office, name: str) -> None:
    erase = f"/admin/surveys/{answered.survey}/erase"
    answered.services.lifecycle.move(answered.survey, "pause")
    refused = send(answered.client("admin"), erase, name=name)
    assert refused.status_code == 422
    assert 'id="name-error"' in refused.text
    answered.services.lifecycle.move(answered.survey, "resume")
    assert answered.services.intake.released()[answered.survey] == sum(PER_DAY)


def test_erasing_deletes_answers_and_results_and_keeps_the_documents(own_office: Office) -> None:
    services, survey = own_office.services, own_office.survey
    document = services.surveys.envelope(survey)
    fill(own_office, 120)
    assert "<dd>" in shown(own_office)
    erase = f"/admin/surveys/{survey}/erase"
    for caller in ("viewer", "analyst"):
        assert send(own_office.client(caller), erase, name="habits").status_code == 403
    assert 'name="name"' not in shown(own_office)
    refused = send(own_office.client("admin"), erase, name="habits")
    assert refused.status_code == 409
    assert "Nothing was erased: close or pause the survey first." in refused.text
    assert services.intake.accepted(survey) == 120
    services.lifecycle.move(survey, "pause")
    done = send(own_office.client("admin"), erase, name="Habits")
    assert done.status_code == 303
    page = shown(own_office)
    assert "All answers that had arrived before 2026-06-01 12:00 UTC were erased then." in page
    assert "<p>Done: answers erased.</p>" in page
    assert "Done:" not in shown(own_office, "owner")
    assert "were erased then" in shown(own_office, "viewer", "/answers")
    assert 'data-th="What">answers erased</td>' in page
    assert "<dd>" not in page
    assert (services.intake.accepted(survey), services.intake.released()) == (0, {})
    assert services.surveys.envelope(survey) == document
    # The first answer after it is not seen.
    assert '<p class="big">Fewer than 10</p>' in page
    services.lifecycle.move(survey, "resume")
    before = [unsigned(shown(own_office, path=path)) for path in ("", "/answers")]
    digest = services.surveys.versions(survey)[-1].digest
    report = {
        "v": 1,
        "doc": digest,
        "id": "f" * 32,
        "y": [0, 0],
        "strata": {"region": "north"},
        "token": None,
    }
    assert services.intake.accept_batch(survey, [report])[0].status == "accepted"  # type: ignore[union-attr]
    assert [unsigned(shown(own_office, path=path)) for path in ("", "/answers")] == before


@pytest.mark.parametrize("typed", ["habits", "HABITS", "Habits  and health"])
def test_a_closed_survey_is_erased_by_its_name_or_title(own_office: Office, typed: str) -> None:
    text = SURVEY.replace(b"{en: Habits}", b'{en: "Habits and Health"}')
    own_office.services.surveys.apply(parse_definition(text))
    fill(own_office, 40)
    own_office.services.lifecycle.move(own_office.survey, "close")
    assert '<p class="big">40</p>' in shown(own_office)
    client = own_office.client("admin")
    erase = f"/admin/surveys/{own_office.survey}/erase"
    assert send(client, erase, name="habit").status_code == 422
    assert send(client, erase, name=typed).status_code == 303
    for path in ("", "/answers"):
        for caller in ("admin", "viewer"):
            page = shown(own_office, caller, path)
            assert '<p class="big">None</p>' in page
            assert "erased then" in page
            assert "still wait" not in page
    assert "Estimates appear after" not in shown(own_office, path="/estimates")


def unsigned(page: str) -> str:
    """Return a page without its form tokens, which differ between sessions."""
    return re.sub('name="csrf" value="[0-9a-f]{64}"', "", page)


def test_only_owners_see_who_did_it(own_office: Office) -> None:
    send(own_office.client("admin"), f"/admin/surveys/{own_office.survey}/move", move="pause")
    assert "admin@example.org" in shown(own_office, "owner")
    for caller in ("viewer", "analyst", "admin"):
        page = shown(own_office, caller)
        assert "survey paused" in page
        assert "admin@example.org" not in page
        assert ("Change the survey" in page) == (caller == "admin")


def test_a_changed_draft_is_announced_until_it_is_published(own_office: Office) -> None:
    assert "The draft differs" not in shown(own_office)
    text = SURVEY.replace(b"Do you smoke", b"Do you now smoke")
    own_office.services.surveys.apply(parse_definition(text))
    assert "The draft differs from version 1." in shown(own_office)
    own_office.services.surveys.publish("habits")
    assert "The draft differs" not in shown(own_office)


def test_a_draft_has_an_overview_without_a_link(own_office: Office) -> None:
    where = begin(own_office.client("admin")).headers["Location"]
    survey = where.split("/")[3]
    page = shown(own_office, survey=survey)
    assert "Nobody can see this survey before it is published." in page
    assert "Share the survey" not in page
    answer = own_office.client("admin").get(f"/admin/surveys/{survey}/qr.png")
    assert answer.status_code == 404


def test_the_list_has_state_answers_last_day_and_next_step(answered: Office) -> None:
    begin(answered.client("admin"), title="An idea")
    page = " ".join(answered.client("admin").get("/admin/surveys").text.split())
    row = re.search(r"<tr> <th scope=\"row\"><a href=\"([^\"]*)\">Habits</a>.*?</tr>", page)
    assert row
    assert row.group(1) == f"/admin/surveys/{answered.survey}"
    assert [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<td.*?</td>", row.group())] == [
        "live",
        str(sum(PER_DAY)),
        "2026-06-30",  # it closes at midnight
        "Read the results: Habits",
    ]
    idea = re.search(r"<tr> <th scope=\"row\"><a[^>]*/questions\">An idea</a>.*?</tr>", page)
    assert idea
    assert "Publish it" in idea.group()


def test_the_first_page_of_an_owner_leads_to_a_first_survey(own_office: Office) -> None:
    page = own_office.client("foreign owner").get("/admin/surveys").text
    assert "Your first survey" in page
    assert 'href="/admin/surveys/new"' in page
    assert "Habits" not in page
    people = own_office.services.accounts
    people.create("other", "vic@example.org", "viewer", "correct horse battery")
    client = own_office.app.test_client()
    send(client, "/admin/sign-in", email="vic@example.org", password="correct horse battery")
    viewers = client.get("/admin/surveys").text
    assert "admins of other create them" in viewers
    assert "/admin/surveys/new" not in viewers


# Days since the server began, or since a backup; days that the setting allows -> words of the warning
BACKUPS: list[tuple[int | None, int, int, str | None]] = [
    (None, 6, 7, None),
    (None, 7, 7, "No backup is on record in the 7 days since the first entry of the audit trail."),
    (0, 6, 7, None),
    (0, 40, 7, "The newest backup on record is 40 days old."),
    (5, 7, 7, None),
    (5, 12, 7, "The newest backup on record is 7 days old."),
    (None, 400, 0, None),
]


@pytest.mark.parametrize(("backed_up", "now", "allowed", "words"), BACKUPS)
def test_owners_are_warned_without_a_recent_backup(
    own_office: Office, backed_up: int | None, now: int, allowed: int, words: str | None
) -> None:
    services, hands = own_office.services, Hands()
    hands.at = NOW
    services.settings = services.settings.model_copy(update={"backup_days": allowed})
    services.accounts._clock = hands
    if backed_up is not None:
        hands.at = NOW + timedelta(days=backed_up)
        record_command(services.database, BACKED_UP, "everything", hands)
    hands.at = NOW + timedelta(days=now)
    for caller in ("owner", "admin", "viewer", "foreign owner"):
        page = html.unescape(own_office.client(caller).get("/admin/surveys").text)
        is_warned = words is not None and caller == "owner"
        assert ("backup" in page) == is_warned, caller
        assert words is None or not is_warned or words in page


def at(office: Office, moment: datetime) -> None:
    """Let the time of the surveys service be `moment`."""
    office.services.surveys._clock = FixedClock(moment)


def two_versions(office: Office, opens: str, closes: str) -> None:
    text = re.sub(rb"opens: .*", f"opens: {opens}".encode(), SURVEY)
    text = re.sub(rb"closes: .*", f"closes: {closes}".encode(), text)
    office.services.surveys.apply(parse_definition(text))
    assert office.services.surveys.publish("habits").version == 2


def test_a_survey_is_open_while_any_version_accepts_answers(own_office: Office) -> None:
    """The second version ends, or begins, at another time than the first one, which ends in July."""
    two_versions(own_office, "2026-05-01T00:00:00Z", "2026-06-10T00:00:00Z")
    at(own_office, NOW + timedelta(days=12))
    page = shown(own_office)
    assert '<span class="state live">live</span>' in page
    assert "2026-07-01" in page
    assert "Close the survey first, or pause it if it should go on." in page
    at(own_office, NOW + timedelta(days=60))
    assert '<span class="state closed">closed</span>' in shown(own_office)


def test_a_survey_whose_next_version_is_scheduled_is_live(own_office: Office) -> None:
    two_versions(own_office, "2026-06-20T00:00:00Z", "2026-08-01T00:00:00Z")
    assert '<span class="state live">live</span>' in shown(own_office)
    assert "from 2026-06-20 00:00 UTC on" not in shown(own_office)


def test_a_scheduled_survey_says_when_it_begins(own_office: Office) -> None:
    opens = own_office.services.surveys.versions(own_office.survey)[-1].opens
    at(own_office, opens - timedelta(days=1))
    page = shown(own_office)
    assert '<span class="state scheduled">scheduled</span>' in page
    assert f"can answer from {opens:%Y-%m-%d %H:%M} UTC on" in page


def test_a_survey_that_ended_by_its_time_can_be_archived(own_office: Office) -> None:
    at(own_office, NOW + timedelta(days=60))
    page = shown(own_office)
    assert re.findall(r'name="move" value="([a-z]+)"', page) == ["archive"]
    client, move = own_office.client("admin"), f"/admin/surveys/{own_office.survey}/move"
    assert send(client, move, move="archive", sure="yes").status_code == 303
    assert state(own_office) == "archived"
    trail = [event.action for event in own_office.services.accounts.trail("main")]
    assert trail[:2] == ["survey archived", "survey closed"]


def test_an_archived_survey_does_not_change(own_office: Office) -> None:
    services, survey = own_office.services, own_office.survey
    fill(own_office, 40)
    for move in ("close", "archive"):
        services.lifecycle.move(survey, move)
    client, before = own_office.client("admin"), services.surveys.draft(survey)
    about = {"title-en": "Other", "languages": "en", "min_reports": "10"}
    assert send(client, f"/admin/surveys/{survey}/text", **about).status_code == 409
    rule = {"rule": "reports", "reports": "50"}
    assert send(client, f"/admin/surveys/{survey}/stop-rule", **rule).status_code == 409
    with pytest.raises(InvalidInput, match="duplicate it"):
        services.surveys.apply(parse_definition(SURVEY.replace(b"Habits", b"Other")))
    assert services.surveys.draft(survey) == before
    page = shown(own_office)
    assert "This draft is archived" not in page
    assert "The draft differs" not in page
    assert "Read the results" in page
    assert send(client, f"/admin/surveys/{survey}/erase", name="habits").status_code == 303


def test_the_page_opens_while_others_compute(own_office: Office) -> None:
    """Results are left out at once if no place is free, and forms stay."""
    fill(own_office, 40)
    places = own_office.services.analyses
    with ExitStack() as held:
        for number in range(2):
            held.enter_context(places.taken(f"organisation {number}", "somebody"))
        held.enter_context(pytest.MonkeyPatch.context()).setattr(overview, "_WAIT_S", 0.0)
        page = shown(own_office)
        assert "computing for others" in page
        assert "<dd>" not in page
        assert 'value="pause"' in page
        refused = send(
            own_office.client("admin"), f"/admin/surveys/{own_office.survey}/move", move="close"
        )
        assert refused.status_code == 422
    assert "<dd>" in shown(own_office)


def test_a_duplicate_has_no_times_and_no_code_of_a_panel(own_office: Office) -> None:
    page = b'page: {accent: "#112233", return_to: "https://panel.example/?c=A", completion_code: A}\nlanguages:'
    own_office.services.surveys.apply(parse_definition(SURVEY.replace(b"languages:", page)))
    done = send(own_office.client("admin"), f"/admin/surveys/{own_office.survey}/duplicate")
    copy = own_office.services.surveys.draft(done.headers["Location"].split("/")[3])
    assert (copy.opens, copy.closes) == (None, None)
    assert copy.page is not None
    assert copy.page.model_dump(exclude_none=True) == {"accent": "#112233"}


def test_a_stop_rule_that_closes_a_survey_is_on_the_page(own_office: Office) -> None:
    own_office.services.lifecycle.stop_at(own_office.survey, 20)
    fill(own_office, 30)
    assert state(own_office) == "closed"
    page = shown(own_office, "owner")
    assert '<td data-th="What">survey closed</td> <td data-th="Who">the stop rule</td>' in page
