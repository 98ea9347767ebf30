# SPDX-License-Identifier: Apache-2.0
"""Counts by day equal brute force over days that only the test knows, add up to the totals, and lie apart."""

from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest
from frankly_protocol.clock import Clock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import Mechanism
from frankly_protocol.report import Report
from frankly_server.intake import Intake
from frankly_server.store import AllDaysKey, Database, ReportRow
from frankly_server.store.schema import counts_by_day, reports
from sqlalchemy import delete, update

from tests.frankly_protocol.samples import NOW, question, survey
from tests.frankly_server.samples import SURVEY, put
from tests.frankly_server.store.counted import block, by_day, mechanisms, symbols

REGIONS = ("north", "south")
DAYS = 4


class Moving(Clock):
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> datetime:
        return self.at


def _collected(database: Database, rng: Random, n: int = 40) -> tuple[SurveyDocument, list[Mechanism], dict[str, str]]:
    """Collect reports over DAYS days, alone and in batches; return the day of each id."""
    drawn = mechanisms(rng)
    blocks = [block(f"b{i}", mechanism) for i, mechanism in enumerate(drawn)]
    document = put(database, replace(survey(*blocks), strata=(question("region", *REGIONS),)))
    clock, days = Moving(), {}
    intake = Intake(database, clock)
    for number in range(DAYS):
        # A second before and after midnight too: only the UTC day counts.
        clock.at = NOW.replace(hour=23 * (number % 2), minute=59, second=59) + timedelta(days=number)
        sent = [
            Report(
                document.digest, f"{rng.getrandbits(128):032x}", symbols(drawn, rng), {"region": rng.choice(REGIONS)}
            )
            for _ in range(n // DAYS)
        ]
        intake.accept(SURVEY, sent[0].to_bytes(document.report_length))
        intake.accept_batch(SURVEY, [report.to_bytes(0) for report in sent])  # the first one again: counted once
        days |= dict.fromkeys((report.id for report in sent), clock.at.date().isoformat())
    return document, drawn, days


def _rows(database: Database) -> list[ReportRow]:
    with database.reading("look") as tx:
        return list(tx.reports.scan(SURVEY))


@pytest.mark.parametrize("seed", range(2))
def test_days_equal_brute_force_and_add_up(database: Database, seed: int) -> None:
    document, drawn, days = _collected(database, Random(seed))
    rows = _rows(database)
    told = by_day(drawn, rows, days)
    assert len({key.day for key in told}) == DAYS
    with database.reading("look") as tx:
        assert tx.counts.by_day(document.digest) == told
        assert tx.counts.recount(SURVEY) == []
        first, last = sorted(set(days.values()))[1:3]
        between = {key: n for key, n in told.items() if first <= key.day <= last}
        assert tx.counts.by_day(document.digest, first, last) == between
        assert tx.counts.by_day(document.digest, until=first) == {k: n for k, n in told.items() if k.day <= first}


def test_reports_know_no_day() -> None:
    assert {column.name for column in reports.columns} == {"survey", "id", "document", "symbols", "strata"}


def test_days_that_do_not_add_up_are_found_and_given_up(database: Database) -> None:
    document, drawn, days = _collected(database, Random(3))
    with database.engine.begin() as connection:
        connection.execute(
            update(counts_by_day)
            .where(counts_by_day.c.block == 0, counts_by_day.c.stratum.contains("north"))
            .values(n=counts_by_day.c.n + 1)
        )
    with database.reading("check") as tx:
        wrong = tx.counts.recount(SURVEY)
    assert wrong
    assert {type(each.key) for each in wrong} == {AllDaysKey}
    assert {each.key.block for each in wrong} == {0}
    assert all(each.counted > each.reports for each in wrong)
    with database.transaction("rebuild") as tx:
        tx.counts.rebuild(SURVEY)
    undated = dict.fromkeys(days, "")
    with database.reading("look") as tx:
        assert tx.counts.recount(SURVEY) == []
        assert tx.counts.by_day(document.digest) == by_day(drawn, _rows(database), undated)


def test_days_stay_where_only_whole_reports_are_missing(database: Database) -> None:
    """Reports put in by another road, without their counts: they are undated, the others keep their days."""
    document, drawn, days = _collected(database, Random(4))
    rng = Random(5)
    late = [
        ReportRow(SURVEY, f"{i:032x}", document.digest, symbols(drawn, rng), '{"region":"north"}') for i in range(6)
    ]
    with database.transaction("fill") as tx:
        tx.reports.add_many(late)
    with database.transaction("rebuild") as tx:
        tx.counts.rebuild(SURVEY)
    with database.reading("look") as tx:
        assert tx.counts.recount(SURVEY) == []
        told = by_day(drawn, _rows(database), days | dict.fromkeys((row.id for row in late), ""))
        assert tx.counts.by_day(document.digest) == told


def test_a_symbol_missing_from_a_day_gives_up_the_days(database: Database) -> None:
    """Fewer symbols of one block than of another: no reports are missing, so what is left is no day's count either."""
    document, _, days = _collected(database, Random(6))
    with database.engine.begin() as connection:
        connection.execute(
            delete(counts_by_day).where(counts_by_day.c.block == 1, counts_by_day.c.day == min(days.values()))
        )
    with database.transaction("rebuild") as tx:
        tx.counts.rebuild(SURVEY)
    with database.reading("look") as tx:
        found = tx.counts.by_day(document.digest)
        assert {key.day for key in found} == {""}
        assert tx.counts.recount(SURVEY) == []


def test_the_view_shows_days(database: Database) -> None:
    document, drawn, days = _collected(database, Random(7))
    told = {
        (key.block, key.stratum, key.day, key.symbol): n
        for key, n in by_day(drawn, _rows(database), days).items()
        if key.other_symbol == -1
    }
    with database.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT * FROM noisy_counts_by_day").mappings().all()
    assert {(row["survey"], row["document"], row["version"]) for row in found} == {(SURVEY, document.digest, 1)}
    assert {(r["block"], r["stratum"], r["day"], r["symbol"]): int(r["n"]) for r in found} == told


def test_erased_days_are_gone(sqlite: Database) -> None:
    document, *_ = _collected(sqlite, Random(8))
    with sqlite.transaction("erase") as tx:
        tx.counts.erase(document.digest)
        assert tx.counts.by_day(document.digest) == {}
