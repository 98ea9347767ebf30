# SPDX-License-Identifier: Apache-2.0
"""Releases, which happen only at published times, and release the remaining reports once a document
is closed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from frankly_protocol.clock import Clock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import FranklyError
from frankly_server.intake import Intake, Releasing
from frankly_server.intake.times import next_release
from frankly_server.store import Database
from frankly_server.store.documents import documents
from frankly_server.surveys.survey_state import Lifecycle

from tests.frankly_protocol.samples import NOW, question, survey
from tests.frankly_server.accounts.people import Hands
from tests.frankly_server.samples import SURVEY, put, report


def at(day: int, hour: int = 0, minute: int = 0, second: int = 0) -> datetime:
    return datetime(2026, 6, day, hour, minute, second, tzinfo=UTC)


@pytest.mark.parametrize(
    ("every", "now", "expected"),
    [
        ("day", at(1, 12), at(2)),
        ("day", at(2), at(3)),
        ("day", at(1, 23, 59, 59), at(2)),
        ("day", at(30, 1), datetime(2026, 7, 1, tzinfo=UTC)),
        ("hour", at(1, 12, 30), at(1, 13)),
        ("hour", at(1, 13), at(1, 14)),
        ("hour", at(1, 23, 1), at(2)),
    ],
)
def test_published_times(every: str, now: datetime, expected: datetime) -> None:
    assert next_release(every, now) == expected


def filled(database: Database, clock: Clock, every: str, n: int = 25) -> SurveyDocument:
    survey_document = replace(
        survey(), release_every=every, strata=(question("region", "north", "south"),)
    )
    document = put(database, survey_document)
    send(database, clock, document, n, "north")
    return document


def send(database: Database, clock: Clock, document: SurveyDocument, n: int, region: str) -> None:
    intake = Intake(database, clock)
    for _ in range(n):
        sent = report(document, strata={"region": region}).to_bytes(document.report_length)
        assert intake.accept(SURVEY, sent).status == "accepted"


def number(database: Database) -> int:
    with database.reading("look") as tx:
        return tx.batches.number(SURVEY)


@pytest.mark.parametrize(("every", "due"), [("day", at(2)), ("hour", at(1, 13))])
def test_releases_happen_only_at_published_times(
    database: Database, every: str, due: datetime
) -> None:
    clock = Hands()
    document = filled(database, clock, every)
    releasing = Releasing(database, clock)
    for minutes in range(7, 60, 7):  # the thread checks repeatedly, and reports come in
        clock.at = NOW + timedelta(minutes=minutes)
        send(database, clock, document, 3, "north")
        releasing.release_due(clock.at - timedelta(minutes=7), clock.at)
        assert number(database) == 0
    clock.at = due - timedelta(microseconds=1)
    releasing.release_due(NOW, clock.at)
    assert number(database) == 0
    clock.at = due + timedelta(seconds=3)
    releasing.release_due(due - timedelta(seconds=7), clock.at)
    assert number(database) == 25 + 24
    with database.reading("look") as tx:
        assert {batch.released for batch in tx.batches.of_document(document.digest)} == {
            f"{clock.at:%Y-%m-%dT%H:%M:%SZ}"
        }
    send(database, clock, document, 30, "north")
    releasing.release_due(due + timedelta(seconds=3), due + timedelta(minutes=59))
    assert number(database) == 49


@pytest.mark.parametrize("every", ["day", "hour"])
def test_two_servers_release_once(database: Database, every: str) -> None:
    """A second release some seconds later would reveal which reports arrived in those seconds."""
    clock = Hands()
    document = filled(database, clock, every)
    before, clock.at = NOW, at(2) + timedelta(seconds=1)
    servers = [Releasing(database, clock), Releasing(database, clock)]
    for releasing in servers:
        releasing.release_due(before, clock.at)
        send(database, clock, document, 30, "north")
        clock.at += timedelta(seconds=4)
    assert number(database) == 25
    # No further release happens if a clock is set back past the published time, or if a server's
    # clock is slow.
    clock.at = at(2) + timedelta(milliseconds=500)
    servers[1].release_due(at(2) - timedelta(seconds=9), clock.at)
    assert number(database) == 25
    # An operator's release happens immediately and does not replace the next published release.
    assert servers[0].release() == 60
    send(database, clock, document, 10, "north")
    clock.at = next_release(every, clock.at) + timedelta(seconds=1)
    servers[1].release_due(clock.at - timedelta(seconds=9), clock.at)
    assert number(database) == 95


@pytest.mark.parametrize("every", ["day", "hour"])
def test_a_clock_a_day_ahead_and_back(database: Database, every: str) -> None:
    clock = Hands()
    document = filled(database, clock, every)
    releasing = Releasing(database, clock)
    ahead = NOW + timedelta(days=1, hours=2)
    clock.at = ahead
    releasing.release_due(NOW, ahead)
    assert number(database) == 25  # released early, but only once
    send(database, clock, document, 30, "north")
    clock.at = NOW + timedelta(minutes=1)
    releasing.release_due(ahead, clock.at)
    assert number(database) == 25
    due = next_release(every, clock.at)
    clock.at = due + timedelta(seconds=3)
    releasing.release_due(due - timedelta(seconds=7), clock.at)
    assert number(database) == 55
    with database.reading("look") as tx:
        assert tx.counts.recount(SURVEY) == []


@pytest.mark.parametrize("every", ["day", "hour"])
def test_a_clock_a_day_ahead_does_not_end_an_open_survey(database: Database, every: str) -> None:
    """Only the last release would delete a remainder below the step, and strata of small cells."""
    clock = Hands()
    document = filled(database, clock, every, n=6)
    clock.at = document.closes - timedelta(seconds=1)
    send(database, clock, document, 1, "south")
    clock.at += timedelta(days=1)
    Releasing(database, clock).release()
    clock.at -= timedelta(days=1)
    send(database, clock, document, 3, "south")
    for days in (1, 2):
        assert number(database) == 0
        clock.at = document.closes + timedelta(days=days)
        Releasing(database, clock).release()
    assert number(database) == 10
    with database.reading("look") as tx:
        assert tx.counts.recount(SURVEY) == []


def test_the_rest_is_released_two_days_after_closing(database: Database) -> None:
    clock = Hands()
    document = filled(database, clock, "day", n=document_step())
    send(database, clock, document, 6, "south")
    clock.at = document.closes + timedelta(hours=23)
    releasing = Releasing(database, clock)
    assert releasing.release() == 10
    with database.reading("look") as tx:
        assert tx.reports.accepted(SURVEY) == 16
    for days, left in ((1, 16), (2, 10)):
        clock.at = document.closes + timedelta(days=days)
        assert releasing.release() == 0
        with database.reading("look") as tx:
            assert (
                tx.reports.accepted(SURVEY) == left
            )  # six are fewer than a step, so they are deleted


def test_a_survey_that_an_admin_closed_is_over_at_the_next_release(database: Database) -> None:
    clock = Hands()
    document = filled(database, clock, "day", n=7)
    send(database, clock, document, 6, "south")
    releasing = Releasing(database, clock)
    assert releasing.release() == 0
    last = report(document, strata={"region": "south"}).to_bytes(document.report_length)
    assert Intake(database, clock).accept(SURVEY, last).status == "accepted"
    Lifecycle(database).move(SURVEY, "close")
    assert releasing.release() == 14
    # A device without a receipt sends its report again and gets "duplicate".
    assert Intake(database, clock).accept(SURVEY, last).status == "duplicate"
    with database.reading("look") as tx:
        assert [(batch.stratum, batch.n) for batch in tx.batches.of_document(document.digest)] == [
            ("", 14)
        ]
        assert tx.counts.recount(SURVEY) == []


def test_an_unreadable_document_delays_no_other(database: Database) -> None:
    clock = Hands()
    put(database, replace(survey(survey_id="00" * 16)))  # listed before the other
    filled(database, clock, "day")
    with database.engine.begin() as connection:
        broken = connection.execute(
            documents.update().where(documents.c.survey == "00" * 16).values(envelope=b"{}")
        )
        assert broken.rowcount == 1
    with pytest.raises(FranklyError):
        Releasing(database, clock).release()
    assert number(database) == 25


def test_the_thread_starts_once_and_ends(sqlite: Database) -> None:
    releasing = Releasing(sqlite, Hands())
    releasing.wake()
    releasing.wake()
    releasing.stop()


def document_step() -> int:
    return survey().release_step
