# SPDX-License-Identifier: Apache-2.0
"""List of surveys and overview: link, answers, results, next step, and changes that must be meant."""

import html
import re
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
import segno
from frankly_protocol.clock import FixedClock
from frankly_server.intake import Intake, Releasing
from frankly_server.store.survey_states import SurveyStateRow
from frankly_server.surveys import Summary
from frankly_server.surveys.definition import parse_definition
from frankly_server.web.admin.overview import next_step
from frankly_server.web.admin.survey_page import OpenedSurvey

from tests.frankly_server.accounts.people import Hands
from tests.frankly_server.web.admin.office import Office, begin, make_office, send
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
    """Return the text of a survey's page, with single spaces."""
    answer = office.client(caller).get(f"/admin/surveys/{survey or office.survey}{path}")
    assert answer.status_code == 200, answer.text
    return " ".join(html.unescape(answer.text).split())


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
    for where, scale in (("", 2), ("/notice", 6)):
        drawn = segno.make(link, error="m").svg_inline(scale=scale, dark="#000", light="#fff")
        squares_drawn = re.findall(r' d="([^"]*)"', drawn)[-1]
        assert f'transform="scale({scale})"' in shown(answered, "viewer", where)
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
    rows = re.findall(r'<th scope="row">(2026-06-0\d)</th> <td class="n">(\d+)</td>', page)
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
    assert "None yet: results use released answers only." in shown(own_office)
    digest = own_office.services.surveys.versions(own_office.survey)[-1].digest
    least = own_office.services.surveys.versions(own_office.survey)[-1].min_reports
    reports = [
        {"v": 1, "doc": digest, "id": f"{i:032x}", "y": [0, 0], "strata": {"region": "north"}, "token": None}
        for i in range(least - 1)
    ]  # fmt: skip
    own_office.services.intake.accept_batch(own_office.survey, reports)
    own_office.services.releasing.release()
    n = own_office.services.intake.released().get(own_office.survey, 0)
    expected = f"No result yet: {n} of the {least} answers that it needs are released."
    assert shown(own_office).count(expected) == (2 if n else 0)


INVITED = SURVEY.replace(b"languages:", b"tokens: {kind: invite}\nlanguages:")
# Stored state, that of the newest version, released answers (10 are needed), by invitation -> next step
STEPS = [
    ("open", "draft", 0, False, ("Publish it", "publish")),
    ("archived", "draft", 0, False, ("Nothing", "")),
    ("open", "scheduled", 0, False, ("Share its link", "")),
    ("open", "open", 9, False, ("Share its link", "")),
    ("open", "open", 0, True, ("Invite people", "invitations")),
    ("open", "open", 10, True, ("Read the results", "estimates")),
    ("paused", "open", 90, False, ("Resume or close it", "")),
    ("closed", "open", 0, False, ("Archive it", "")),
    ("open", "closed", 10, False, ("Read the results", "estimates")),
    ("archived", "closed", 90, False, ("Read the results", "estimates")),
    ("archived", "closed", 0, False, ("Nothing", "")),
]


@pytest.mark.parametrize(("stored", "newest", "n", "invited", "step"), STEPS)
def test_every_state_has_its_next_step(
    stored: str, newest: str, n: int, invited: bool, step: tuple[str, str]
) -> None:
    definition = parse_definition(INVITED if invited else SURVEY)
    assert definition.min_reports == 10
    summary = Summary("0" * 32, "habits", newest, 0 if newest == "draft" else 1, None)
    survey = OpenedSurvey(summary, SurveyStateRow(state=stored), definition)
    assert next_step(survey, n) == step


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
    refused = send(answered.client("admin"), erase, name=name)
    assert refused.status_code == 422
    assert 'id="name-error"' in refused.text
    assert answered.services.intake.released()[answered.survey] == sum(PER_DAY)


def test_erasing_deletes_answers_and_results_and_keeps_the_documents(own_office: Office) -> None:
    services, survey = own_office.services, own_office.survey
    document = services.surveys.envelope(survey)
    digest = services.surveys.versions(survey)[-1].digest
    reports = [
        {"v": 1, "doc": digest, "id": f"{i:032x}", "y": [0, 0], "strata": {"region": "north"}, "token": None}
        for i in range(120)
    ]  # fmt: skip
    services.intake.accept_batch(survey, reports)
    services.releasing.release()
    assert "<dd>" in shown(own_office)
    for caller in ("viewer", "analyst"):
        refused = send(own_office.client(caller), f"/admin/surveys/{survey}/erase", name="habits")
        assert refused.status_code == 403
    done = send(own_office.client("admin"), f"/admin/surveys/{survey}/erase", name="Habits")
    assert done.status_code == 303
    page = shown(own_office)
    assert "None yet" in page
    assert "All answers that had arrived before 2026-06-01 12:00 UTC were erased then." in page
    assert "were erased then" in shown(own_office, "viewer", "/answers")
    assert 'data-th="What">answers erased</td>' in page
    assert (services.intake.accepted(survey), services.intake.released()) == (0, {})
    assert services.surveys.envelope(survey) == document


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
    page = " ".join(answered.client("viewer").get("/admin/surveys").text.split())
    row = re.search(r"<tr> <th scope=\"row\"><a href=\"([^\"]*)\">Habits</a>.*?</tr>", page)
    assert row
    assert row.group(1) == f"/admin/surveys/{answered.survey}"
    assert [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<td.*?</td>", row.group())] == [
        "live",
        str(sum(PER_DAY)),
        "2026-07-01",
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
    (None, 7, 7, "No backup is on record since this server began 7 days ago."),
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
        services.accounts.record_backup()
    hands.at = NOW + timedelta(days=now)
    for caller in ("owner", "admin", "viewer", "foreign owner"):
        page = html.unescape(own_office.client(caller).get("/admin/surveys").text)
        is_warned = words is not None and caller == "owner"
        assert ("backup" in page) == is_warned, caller
        assert words is None or not is_warned or words in page
