# SPDX-License-Identifier: Apache-2.0
"""Counts by day of release: equal to brute force, rebuilt from the reports, and shown by day in the view."""

from datetime import timedelta
from random import Random
from typing import Any

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import Mechanism
from frankly_server.intake import Intake
from frankly_server.store import Database, DayKey, ReportRow
from frankly_server.store.counts import counts_by_day
from sqlalchemy import delete, update

from tests.frankly_protocol.samples import NOW
from tests.frankly_server.accounts.people import Hands
from tests.frankly_server.samples import SURVEY, release, stored
from tests.frankly_server.store.counted import by_day, drawn_survey, reports

DAYS = 4


def _collected(
    database: Database, rng: Random, n: int = 40
) -> tuple[SurveyDocument, list[Mechanism], dict[str, str]]:
    """Collect reports over DAYS days, individually and in batches; return the day of release of each id."""
    document, drawn = drawn_survey(database, rng)
    days: dict[Any, Any] = {}
    clock = Hands()
    intake = Intake(database, clock)
    for number in range(DAYS):
        # Some reports come one second before and after midnight, because only the UTC day counts.
        clock.at = NOW.replace(hour=23 * (number % 2), minute=59, second=59) + timedelta(
            days=number
        )
        sent = reports(document, drawn, rng, n // DAYS)
        intake.accept(SURVEY, sent[0].to_bytes(document.report_length))
        intake.accept_batch(
            SURVEY, [report.to_bytes(0) for report in sent]
        )  # the first report again, which is counted once
        # Reports count on the day of their release, here the next day.
        day = (clock.at.date() + timedelta(days=1)).isoformat()
        release(database, document, at=f"{day}T00:00:00Z")
        days |= dict.fromkeys((report.id for report in sent), day)
    return document, drawn, days


def _rows(database: Database) -> list[ReportRow]:
    with database.reading("look") as tx:
        return stored(tx, SURVEY)


@pytest.mark.parametrize("seed", range(2))
def test_days_equal_brute_force_and_add_up(database: Database, seed: int) -> None:
    document, drawn, days = _collected(database, Random(seed))
    rows = _rows(database)
    expected_by_day = by_day(drawn, rows, days)
    assert len({key.day for key in expected_by_day}) == DAYS
    with database.reading("look") as tx:
        assert tx.counts.by_day(document.digest) == expected_by_day
        assert tx.counts.recount(SURVEY) == []
        first, last = sorted(set(days.values()))[1:3]
        between = {key: n for key, n in expected_by_day.items() if first <= key.day <= last}
        assert tx.counts.by_day(document.digest, first, last) == between
        assert tx.counts.by_day(document.digest, until=first) == {
            k: n for k, n in expected_by_day.items() if k.day <= first
        }


def test_wrong_counts_by_day_are_found_and_rebuilt(database: Database) -> None:
    document, drawn, days = _collected(database, Random(3))
    with database.engine.begin() as connection:
        connection.execute(
            update(counts_by_day)
            .where(counts_by_day.c.block == 0, counts_by_day.c.stratum.contains("north"))
            .values(n=counts_by_day.c.n + 1)
        )
        connection.execute(delete(counts_by_day).where(counts_by_day.c.block == 1))
    with database.reading("check") as tx:
        wrong = tx.counts.recount(SURVEY)
    assert {type(difference.key) for difference in wrong} == {DayKey}
    assert {difference.key.block for difference in wrong} == {0, 1}
    with database.transaction("rebuild") as tx:
        tx.counts.rebuild(SURVEY)
    with database.reading("look") as tx:
        assert tx.counts.recount(SURVEY) == []
        assert tx.counts.by_day(document.digest) == by_day(drawn, _rows(database), days)


def test_the_view_shows_days(database: Database) -> None:
    document, drawn, days = _collected(database, Random(7))
    expected_by_day = {
        (key.block, key.stratum, key.day, key.symbol): n
        for key, n in by_day(drawn, _rows(database), days).items()
        if key.other_symbol == -1
    }
    with database.engine.connect() as connection:
        view_rows = connection.exec_driver_sql("SELECT * FROM noisy_counts_by_day").mappings().all()
    assert {(row["survey"], row["document"], row["version"]) for row in view_rows} == {
        (SURVEY, document.digest, 1)
    }
    assert {
        (r["block"], r["stratum"], r["day"], r["symbol"]): int(r["n"]) for r in view_rows
    } == expected_by_day


def test_erased_days_are_gone(sqlite: Database) -> None:
    document, *_ = _collected(sqlite, Random(8))
    with sqlite.transaction("erase") as tx:
        tx.counts.erase(document.digest)
        assert tx.counts.by_day(document.digest) == {}
