# SPDX-License-Identifier: Apache-2.0
"""States of surveys: their effect on intake, stop rules, and jobs that are watched, cancelled or lost."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from frankly_protocol.clock import FixedClock, format_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_server.intake import Intake, Releasing
from frankly_server.intake.admission import PAUSE_S, Paused, refusal_of
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store import Database, SurveyRow, unrecorded
from frankly_server.store.jobs import JobRow
from frankly_server.store.survey_states import MAIN, SurveyStateRow
from frankly_server.surveys import jobs as jobs_module
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.jobs import (
    DESIGNS,
    FOR_OPERATOR_ONLY,
    MOST_JOBS,
    MOST_OF_ONE,
    Jobs,
    problem_of,
    reason_of,
)
from frankly_server.surveys.searches import Busy
from frankly_server.surveys.survey_state import Lifecycle, shown_state
from frankly_server.surveys.surveys import Summary

from tests.frankly_protocol.samples import NOW
from tests.frankly_server.accounts.people import refused
from tests.frankly_server.samples import SURVEY, body, published
from tests.migrated import migrated


@pytest.fixture
def document(database: Database) -> SurveyDocument:
    return published(database)


def test_a_paused_survey_tells_devices_to_retry_later(
    database: Database, document: SurveyDocument
) -> None:
    intake, states = Intake(database, FixedClock(NOW)), Lifecycle(database)
    accepted_report, waiting = body(document), body(document)
    assert intake.accept(SURVEY, accepted_report).status == "accepted"
    assert states.move(SURVEY, "pause") == "paused"
    with pytest.raises(Paused) as refused:
        intake.accept(SURVEY, waiting)
    assert (refused.value.code, refused.value.retry_after_s) == ("too_early", PAUSE_S)
    assert (
        intake.accept(SURVEY, accepted_report).status == "duplicate"
    )  # the device had missed the response
    states.move(SURVEY, "resume")
    assert intake.accept(SURVEY, waiting).status == "accepted"
    with database.reading("check") as tx:
        assert tx.counts.recount(SURVEY) == []


def test_a_closed_survey_stays_closed(database: Database, document: SurveyDocument) -> None:
    intake, states = Intake(database, FixedClock(NOW)), Lifecycle(database)
    states.move(SURVEY, "close")
    assert refused(intake.accept, SURVEY, body(document)).code == "closed"
    batch = intake.accept_batch(SURVEY, [body(document), body(document)])
    assert [getattr(outcome, "code", None) for outcome in batch] == ["closed", "closed"]
    for move in ("pause", "resume", "close"):
        assert refused(states.move, SURVEY, move).code == "immutable"
    assert states.move(SURVEY, "archive") == "archived"
    assert refused(states.move, SURVEY, "archive").code == "immutable"
    assert refused(states.move, SURVEY, "delete").code == "not_found"


def test_a_survey_closes_itself_at_the_release_that_reaches_its_number(
    database: Database, document: SurveyDocument
) -> None:
    intake, states = Intake(database, FixedClock(NOW)), Lifecycle(database)
    states.stop_at(SURVEY, 12)
    releasing = Releasing(database, FixedClock(NOW))
    for _ in range(document.release_step):
        assert intake.accept(SURVEY, body(document)).status == "accepted"
    assert releasing.release() == document.release_step
    assert states.get(SURVEY).state == "open"
    for _ in range(document.release_step):
        assert intake.accept(SURVEY, body(document)).status == "accepted"
    assert states.get(SURVEY).state == "open"  # only a release closes the survey
    releasing.release()
    assert refused(intake.accept, SURVEY, body(document)).code == "closed"
    assert states.get(SURVEY).state == "closed"
    assert refused(states.stop_at, SURVEY, 0).code == "field_type"


@pytest.mark.parametrize(("more", "state"), [(0, "closed"), (1, "open")])
def test_the_number_itself_is_enough_to_close(
    database: Database, document: SurveyDocument, more: int, state: str
) -> None:
    intake, states = Intake(database, FixedClock(NOW)), Lifecycle(database)
    states.stop_at(SURVEY, document.release_step + more)
    for _ in range(document.release_step):
        intake.accept(SURVEY, body(document))
    assert Releasing(database, FixedClock(NOW)).release() == document.release_step
    assert states.get(SURVEY).state == state


def test_a_survey_belongs_to_one_organisation(database: Database, document: SurveyDocument) -> None:
    states = Lifecycle(database)
    assert states.require(SURVEY, "main").state == "open"
    with database.transaction("give away") as tx:
        tx.survey_states.put(SURVEY, SurveyStateRow("other"))
    assert states.require(SURVEY, "other").organisation == "other"
    assert (
        refused(states.require, SURVEY, "main").code
        == refused(states.require, "0" * 32, "main").code
        == "survey_unknown"
    )


STATES = {
    # (version, state by the document, state by the admin) -> displayed state
    (0, "draft", "open"): "draft",
    (0, "draft", "archived"): "archived",
    (1, "scheduled", "open"): "scheduled",
    (1, "scheduled", "paused"): "paused",
    (1, "open", "open"): "live",
    (1, "open", "paused"): "paused",
    (1, "open", "closed"): "closed",
    (1, "closed", "open"): "closed",
    (1, "closed", "paused"): "closed",
    (2, "open", "archived"): "archived",
}


@pytest.mark.parametrize(("version", "stored_state", "admin_state"), STATES)
def test_the_displayed_state(
    sqlite: Database, version: int, stored_state: str, admin_state: str
) -> None:
    from frankly_server.store.survey_states import SurveyStateRow

    summary = Summary("ab" * 16, "x", stored_state, version, None)
    assert (
        shown_state(summary, SurveyStateRow(state=admin_state))
        == STATES[version, stored_state, admin_state]
    )


class _Slow:
    """A publisher that polls its timer until it is stopped."""

    def __init__(self) -> None:
        self.begun = threading.Event()

    def draft(self, survey: str) -> object:
        return type("Draft", (), {"parts": ["first", "second"]})

    def publish(
        self, survey: str, progress: object, timer: object, recorder: object, draft: object
    ) -> object:
        progress(0, 2, "first")  # type: ignore[operator]
        self.begun.set()
        while True:
            timer()  # type: ignore[operator]
            time.sleep(0.01)


def test_a_job_is_watched_and_cancelled(sqlite: Database) -> None:
    published(sqlite)
    slow = _Slow()
    jobs = Jobs(sqlite, slow, FixedClock(NOW))  # type: ignore[arg-type]
    job = jobs.start(SURVEY)
    assert slow.begun.wait(60)
    row = jobs.get(SURVEY, job)
    assert (row.state, row.done, row.total, row.detail) == ("running", 0, 2, "first")
    assert refused(jobs.start, SURVEY).code == "immutable"
    assert refused(jobs.get, "0" * 32, job).code == "not_found"
    assert [jobs.cancel(SURVEY, job), jobs.cancel(SURVEY, job)] == [True, False]
    for _ in range(500):
        if jobs.get(SURVEY, job).state == "cancelled":
            break
        time.sleep(0.02)
    row = jobs.get(SURVEY, job)
    assert row.state == "cancelled"
    assert not jobs.cancel(SURVEY, job)
    assert jobs.get(SURVEY, job) == row


def until(is_true: Callable[[], bool]) -> None:
    while not is_true():
        time.sleep(0.001)


class _Held:
    """A publisher that publishes nothing until `go_on`; begun : the surveys that it was asked for."""

    def __init__(self) -> None:
        self.begun, self.go_on = list[str](), threading.Event()

    def draft(self, survey: str) -> object:
        return type("Draft", (), {"parts": ["first"]})

    def publish(self, survey: str, *_more: object) -> object:
        self.begun.append(survey)
        assert self.go_on.wait(60)
        return type("Published", (), {"status": "published", "digest": "sha256:1"})


def surveys_of(database: Database, organisation: str, number: int) -> list[str]:
    """Store surveys of an organisation and return their ids."""
    ids = [f"{i:08x}" * 4 for i in range(number)]
    ids = [f"{organisation.encode().hex():0<8.8}{one[8:]}" for one in ids]
    with database.transaction("test") as tx:
        for one in ids:
            tx.surveys.add(SurveyRow(one, f"s{one}@{organisation}", "{}"))
            tx.survey_states.put(one, SurveyStateRow(organisation))
    return ids


def joined() -> None:
    for thread in threading.enumerate():
        if thread.name == "frankly-design":
            thread.join(60)


def test_few_surveys_are_published_at_once(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole publication takes turns: it reads, checks and signs a survey beside reports."""
    monkeypatch.setattr(jobs_module, "_CHECK_S", 0.001)
    monkeypatch.setattr(jobs_module, "_TOUCH_S", 0.0)
    held = _Held()
    jobs = Jobs(sqlite, held, FixedClock(NOW))  # type: ignore[arg-type]
    surveys = surveys_of(sqlite, "first", DESIGNS + 2)
    ids = [jobs.start(survey) for survey in surveys[:DESIGNS]]
    until(lambda: len(held.begun) == DESIGNS)
    ids += [jobs.start(survey) for survey in surveys[DESIGNS:]]
    # Their rows change while they wait, so that they do not count as lost.
    with sqlite.transaction("test") as tx:
        for job in ids[DESIGNS:]:
            tx.jobs.change(job, updated="2026-01-01T00:00:00Z")
    until(lambda: jobs.get(surveys[-1], ids[-1]).updated == format_time(NOW))
    until(lambda: jobs.get(surveys[-2], ids[-2]).updated == format_time(NOW))
    assert jobs.cancel(surveys[-1], ids[-1])
    until(lambda: jobs.get(surveys[-1], ids[-1]).state == "cancelled")
    assert len(held.begun) == DESIGNS
    held.go_on.set()
    joined()
    states = [jobs.get(*one).state for one in zip(surveys, ids, strict=True)]
    assert states == ["done"] * (DESIGNS + 1) + ["cancelled"]
    assert sorted(held.begun) == sorted(surveys[:-1])


def test_an_organisation_leaves_others_room_to_publish(sqlite: Database) -> None:
    held = _Held()
    jobs = Jobs(sqlite, held, FixedClock(NOW))  # type: ignore[arg-type]
    first, second = (surveys_of(sqlite, one, MOST_OF_ONE + 1) for one in ("first", "second"))
    third = surveys_of(sqlite, "third", 1)
    for survey in first[:-1]:
        jobs.start(survey)
    full = refused(jobs.start, first[-1])
    assert (full.code, full.retry_after_s) == ("too_many", 60)  # type: ignore[attr-defined]
    assert "60 s" in full.detail
    for survey in second[: MOST_JOBS - MOST_OF_ONE]:
        jobs.start(survey)
        # A refused start takes no place.
        if survey != second[MOST_JOBS - MOST_OF_ONE - 1]:
            assert refused(jobs.start, survey).code == "immutable"
    assert refused(jobs.start, third[0]).code == "too_many"
    held.go_on.set()
    joined()
    for survey in (first[-1], third[0]):
        jobs.start(survey)
    joined()
    assert jobs._number.total() == 0


def test_places_for_jobs_are_counted_one_at_a_time(sqlite: Database) -> None:
    """Many threads that start jobs at once get no more places than there are."""
    jobs = Jobs(sqlite, _Held(), FixedClock(NOW))  # type: ignore[arg-type]
    entered, lock, inside = list[str](), jobs._lock, list[bool]()

    class Counted(Counter[str]):
        def __getitem__(self, key: str) -> int:
            inside.append(lock.locked())
            return super().__getitem__(key)

    jobs._number = Counted()

    def enter(organisation: str) -> None:
        with suppress(Busy):
            jobs._enter(organisation)
            entered.append(organisation)

    threads = [threading.Thread(target=enter, args=(f"{i % 3}",)) for i in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(entered) == MOST_JOBS
    assert max(Counter(entered).values()) <= MOST_OF_ONE
    assert inside
    assert all(inside)


@pytest.mark.parametrize("problem", [one for one in Problem if one in FOR_OPERATOR_ONLY])
def test_what_only_the_operator_may_see_is_in_no_job(sqlite: Database, problem: Problem) -> None:
    published(sqlite)

    class Unset(_Held):
        def publish(self, survey: str, *_more: object) -> object:
            raise InvalidInput(problem, "/srv/frankly/keys/0.key is missing", "FRANKLY_HOME")

    jobs = Jobs(sqlite, Unset(), FixedClock(NOW))  # type: ignore[arg-type]
    job = jobs.start(SURVEY)
    joined()
    row = jobs.get(SURVEY, job)
    said = problem_of(row)
    assert said is not None
    assert (row.state, said["code"], said["field"]) == ("failed", "unavailable", None)
    assert reason_of(row) == said["detail"]
    assert "its operator can run `frankly doctor`" in said["detail"]
    assert "/srv" not in row.detail
    assert "FRANKLY" not in row.detail


def test_jobs_and_answers_hide_the_same_problems() -> None:
    from frankly_server.web import problems

    assert problems._FOR_OPERATOR_ONLY == FOR_OPERATOR_ONLY


def test_a_job_whose_process_died_is_reported_as_failed(sqlite: Database) -> None:
    published(sqlite)
    with sqlite.transaction("test") as tx:
        tx.jobs.add(JobRow("cd" * 16, SURVEY, "running", 0, 1, "", "2026-06-01T12:00:00Z"))
    assert Jobs(sqlite, _Slow(), FixedClock(NOW)).get(SURVEY, "cd" * 16).state == "running"  # type: ignore[arg-type]
    later = Jobs(sqlite, _Slow(), FixedClock(NOW + timedelta(hours=1)))  # type: ignore[arg-type]
    assert later.get(SURVEY, "cd" * 16).state == "failed"
    assert not later.cancel(SURVEY, "cd" * 16)


def test_a_job_that_ends_during_its_cancellation_has_ended(
    postgres_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL, another process may end the job between read and update; SQLite's writers
    cannot overlap."""
    from frankly_server.store import jobs as stored

    published(postgres_database)
    job, looks, get = "cd" * 16, [0], stored.JobsTable.get
    with postgres_database.transaction("test") as tx:
        tx.jobs.add(stored.JobRow(job, SURVEY, "running", 0, 1, "", "2026-06-01T12:00:00Z"))

    def get_and_let_it_end(self: stored.JobsTable, job_id: str) -> stored.JobRow | None:
        job_row, looks[0] = get(self, job_id), looks[0] + 1
        if looks[0] == 2:
            with postgres_database.transaction("elsewhere") as tx:
                tx.jobs.change(job_id, state="done", detail="sha256:1")
        return job_row

    monkeypatch.setattr(stored.JobsTable, "get", get_and_let_it_end)
    jobs = Jobs(postgres_database, _Slow(), FixedClock(NOW))  # type: ignore[arg-type]
    assert not jobs.cancel(SURVEY, job)
    assert looks == [2]
    assert jobs.get(SURVEY, job).state == "done"


def test_a_failed_publication_names_its_reason(tmp_path: object, sqlite_url: str) -> None:
    from pydantic import SecretStr

    from tests.frankly_server.web.site import SURVEY as FILE

    database = migrated(sqlite_url)
    settings = Settings(home=tmp_path, database_url=SecretStr(sqlite_url))  # type: ignore[arg-type]
    services = Services(settings, database, FixedClock(NOW))
    services.keys.init()
    survey_id = services.surveys.create(
        parse_definition(FILE.replace(b'budget: "2"', b'budget: "1"')), MAIN, lambda _: unrecorded
    )
    job = services.jobs.start(survey_id)
    for thread in threading.enumerate():
        if thread.name == "frankly-design":
            thread.join()
    row = services.jobs.get(survey_id, job)
    assert row.state == "failed"
    assert reason_of(row).startswith(
        "budget: the whole report reveals more than the budget of 1 nats"
    )
    problem = problem_of(row)
    assert problem is not None
    assert (problem["code"], problem["field"]) == ("budget_exceeded", "budget")
    assert services.surveys.versions(survey_id) == []
    services.close()


@pytest.mark.parametrize(
    ("state", "code"), [("open", "too_early"), ("paused", "too_early"), ("closed", "closed")]
)
def test_only_a_closed_survey_tells_devices_to_give_up(
    database: Database, document: SurveyDocument, state: str, code: str
) -> None:
    """A device keeps a report that the server has not stored, for example after an erasure."""
    if state != "open":
        Lifecycle(database).move(SURVEY, {"paused": "pause", "closed": "close"}[state])
    with database.reading("look") as tx:
        assert refusal_of(tx, SURVEY).code == code
