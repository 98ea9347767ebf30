# SPDX-License-Identifier: Apache-2.0
"""Erasure while reports arrive: a report and its counts are erased together or not at all, and no
request hangs."""

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.clock import FixedClock
from frankly_server.intake import Intake
from frankly_server.keys import Keyring
from frankly_server.settings import Settings
from frankly_server.store import Database
from frankly_server.store.counts import CountsTables
from frankly_server.store.releases import Releases
from frankly_server.store.reports import ReportsTable
from frankly_server.store.survey_states import SurveyStateRow
from frankly_server.surveys import Surveys

from tests.frankly_protocol.samples import NOW, ldp_block, lip_block, survey
from tests.frankly_server.samples import SURVEY, body, published, put, release, stored

PATIENCE_S = 0.3


def surveys_of(database: Database, home: Path) -> Surveys:
    clock = FixedClock(NOW)
    return Surveys(Settings(home=home), database, Keyring(home / "keys", clock), clock)


def stored_state(database: Database) -> tuple[int, int, list[Any]]:
    """Return the number of reports, the number of counted reports after a release, and wrong counts."""
    with database.reading("check") as tx:
        digests = [row.digest for row in tx.documents.versions(SURVEY)]
    with database.transaction("release") as tx:
        for digest in digests:
            tx.releases.release(SURVEY, digest, 1, "2026-06-02T00:00:00Z", is_over=lambda: False)
    with database.reading("check") as tx:
        counted = sum(n for row in tx.documents.versions(SURVEY) for key, n in tx.counts.of_document(row.digest).items()
                      if key.block == 0)  # fmt: skip
        return tx.reports.accepted(SURVEY), counted, tx.counts.recount(SURVEY)


@pytest.mark.parametrize("partition", [False, True], ids=["default", "partition"])
def test_reports_between_the_steps_of_erasing_stay_consistent(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partition: bool
) -> None:
    """The test sends a report before each deletion; whether or not it is erased, counts agree with
    a recount."""
    document = published(database)
    intake, sent = Intake(database, FixedClock(NOW)), []
    if partition:
        with database.transaction("make") as tx:
            if tx.partitions.supported:
                tx.partitions.make(SURVEY)
    intake.accept(SURVEY, body(document, 0, 0))

    def beside(step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            sender = threading.Thread(target=intake.accept, args=(SURVEY, body(document, 1, 0)))
            sender.start()
            sender.join(PATIENCE_S)
            sent.append(sender)
            return step(*arguments)

        return run

    monkeypatch.setattr(ReportsTable, "erase", beside(ReportsTable.erase))
    monkeypatch.setattr(CountsTables, "erase", beside(CountsTables.erase))
    erased = surveys_of(database, tmp_path).erase(SURVEY)
    for sender in sent:
        sender.join(30)
    assert len(sent) == 2
    assert not any(sender.is_alive() for sender in sent)
    assert erased.reports >= 1
    number, counted, wrong = stored_state(database)
    assert wrong == []
    assert number == counted == 1 + len(sent) - erased.reports


def test_erasing_waits_for_an_uncommitted_report(database: Database, tmp_path: Path) -> None:
    """A report that is stored but not committed when the erasure begins is erased too."""
    document = published(database)
    surveys = surveys_of(database, tmp_path)
    done: list[int] = []
    eraser = threading.Thread(target=lambda: done.append(surveys.erase(SURVEY).reports))
    with database.reading("look") as tx:
        names = tx.partitions.surveys()
    assert names == set()
    intake = Intake(database, FixedClock(NOW))
    intake.accept(SURVEY, body(document, 0, 0))
    with database.reading("look") as tx:
        [example] = stored(tx, SURVEY)
    with database.transaction("on its way") as tx:
        row = type(example)(SURVEY, "f" * 32, example.document, example.symbols, example.strata)
        assert tx.reports.add([row])
        eraser.start()
        eraser.join(PATIENCE_S)
        assert eraser.is_alive()
    eraser.join(30)
    assert (done, stored_state(database)) == ([2], (0, 0, []))


@pytest.mark.parametrize("state", ["open", "paused", "closed"])
def test_erasing_waits_for_a_running_release(
    database: Database, tmp_path: Path, state: str
) -> None:
    """A release writes rows again; those of one that has not ended would stay."""
    document, surveys = published(database), surveys_of(database, tmp_path)
    intake = Intake(database, FixedClock(NOW))
    for i in range(3):
        intake.accept(SURVEY, body(document, i % 2, 0))
    set_state(database, state)
    done: list[int] = []
    eraser = threading.Thread(target=lambda: done.append(surveys.erase(SURVEY).reports))
    with database.transaction("release") as tx:
        moment = "2026-06-02T00:00:00Z"
        assert tx.releases.release(SURVEY, document.digest, 1, moment, is_over=bool) == 3
        eraser.start()
        eraser.join(PATIENCE_S)
        assert eraser.is_alive()
    eraser.join(30)
    assert (done, stored_state(database)) == ([3], (0, 0, []))


def test_a_release_that_begins_during_an_erasure_leaves_nothing(
    postgresql: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins between the two transactions of the erasure of a paused survey, and ends late."""
    database, document = postgresql, published(postgresql)
    for i in range(3):
        Intake(database, FixedClock(NOW)).accept(SURVEY, body(document, i % 2, 0))
    set_state(database, "paused")
    moved, threads, hold = threading.Event(), [], Releases.hold

    def run() -> None:
        with database.transaction("release") as tx:
            tx.releases.release(SURVEY, document.digest, 1, "2026-06-02T00:00:00Z", is_over=bool)
            moved.set()
            time.sleep(PATIENCE_S)  # the erasure goes on as far as it can

    def beside(releases: Releases, digests: Iterable[str]) -> None:
        threads.append(threading.Thread(target=run))
        threads[0].start()
        assert moved.wait(30)
        hold(releases, digests)

    monkeypatch.setattr(Releases, "hold", beside)
    assert surveys_of(database, tmp_path).erase(SURVEY).reports == 3
    threads[0].join(30)
    assert stored_state(database) == (0, 0, [])


@pytest.mark.parametrize("state", ["paused", "closed"])
def test_reports_of_other_surveys_do_not_wait_for_the_erasure_of_a_paused_one(
    postgresql: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    database, other_id = postgresql, "5e" * 16
    document = published(database)
    other = published(database, survey_id=other_id)
    Intake(database, FixedClock(NOW)).accept(SURVEY, body(document, 0, 0))
    set_state(database, state)
    arrived: list[str] = []
    erase = ReportsTable.erase

    def beside(table: ReportsTable, survey_id: str) -> int:
        # In this thread, whose transaction would never end if the report waited for it.
        intake = Intake(database, FixedClock(NOW))
        arrived.append(intake.accept(other_id, body(other, 0, 0)).status)
        return erase(table, survey_id)

    monkeypatch.setattr(ReportsTable, "erase", beside)
    assert surveys_of(database, tmp_path).erase(SURVEY).reports == 1
    assert arrived == ["accepted"]


def set_state(database: Database, state: str) -> None:
    with database.transaction("state") as tx:
        tx.survey_states.put(SURVEY, SurveyStateRow(state=state))


def test_erasing_with_many_concurrent_reporters(
    database: Database, tmp_path: Path, full: bool
) -> None:
    document, surveys = published(database), surveys_of(database, tmp_path)
    intake, failed = Intake(database, FixedClock(NOW)), []
    reports_per_thread, rounds = (200, 20) if full else (15, 3)

    def report() -> None:
        try:
            for i in range(reports_per_thread):
                intake.accept(SURVEY, body(document, i % 2, 0))
        except BaseException as error:  # noqa: BLE001 - reported by the main thread
            failed.append(error)

    threads = [threading.Thread(target=report) for _ in range(6)]
    for reporter in threads:
        reporter.start()
    gone = 0
    for _ in range(rounds):
        gone += surveys.erase(SURVEY).reports
        release(database, document)
    for reporter in threads:
        reporter.join()
    assert not failed
    number, counted, wrong = stored_state(database)
    assert wrong == []
    assert number == counted == reports_per_thread * len(threads) - gone


def test_everything_of_the_survey_is_erased_and_nothing_of_another(
    database: Database, tmp_path: Path
) -> None:
    """The erasure deletes reports, counts, batches and refusals of all versions; the documents stay."""
    other_id = "5e" * 16
    documents = [
        published(database),
        put(database, survey(ldp_block(), lip_block(), version=2, prev="sha256:" + "0" * 64)),
        published(database, survey_id=other_id),
    ]
    for document in documents:
        Intake(database, FixedClock(NOW)).accept(document.survey, body(document, 0, 0))
        assert release(database, document) == 1
        with database.transaction("refuse") as tx:
            tx.days.add(document.survey, "2026-06-02", {"closed": 1})
    assert surveys_of(database, tmp_path).erase(SURVEY).reports == 2
    with database.reading("look") as tx:
        for document in documents:
            is_other = document.survey == other_id
            assert bool(tx.counts.of_document(document.digest)) is is_other
            assert bool(tx.counts.by_day(document.digest)) is is_other
            assert bool(tx.batches.of_document(document.digest)) is is_other
            assert bool(tx.days.of_survey(document.survey)) is is_other
            assert tx.reports.accepted(document.survey) == is_other
            assert tx.documents.get(document.digest) is not None
        assert tx.counts.recount(other_id) == []
