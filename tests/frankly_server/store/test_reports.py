# SPDX-License-Identifier: Apache-2.0
"""Stored reports: each is stored once, and nothing else about it is stored."""

import pytest
from frankly_server.store import CountKey, Database, DayKey, Difference, PairKey
from frankly_server.store.counts import counts
from frankly_server.store.reports import reports
from sqlalchemy import inspect, update

from tests.frankly_server.samples import SURVEY, published, released, row, stored


def test_only_the_columns_of_the_design_are_stored() -> None:
    assert [column.name for column in reports.columns] == [
        "survey",
        "id",
        "document",
        "symbols",
        "strata",
        "release",
    ]


def test_sqlite_stores_no_order_of_arrival(sqlite: Database) -> None:
    with sqlite.engine.connect() as connection:
        made = connection.exec_driver_sql(
            "SELECT sql FROM sqlite_master WHERE name = 'reports'"
        ).scalar_one()
        assert "WITHOUT ROWID" in made
        assert {column["name"] for column in inspect(connection).get_columns("reports")} == set(
            reports.columns.keys()
        )


def test_the_first_report_of_an_id_stays(database: Database) -> None:
    first, second = row(0, 1, report_id="11" * 16), row(1, 1, report_id="11" * 16)
    with database.transaction("add") as tx:
        assert tx.reports.add([first]) == {first.id}
        assert tx.reports.add([second]) == set()
        assert tx.reports.add([second, third := row(1, 0)]) == {third.id}
    with database.reading("look") as tx:
        assert tx.reports.get_many(SURVEY, [first.id, "22" * 16]) == {first.id: first}
        assert {each.id: each for each in stored(tx, SURVEY)} == {first.id: first, third.id: third}


def test_adding_nothing_changes_nothing(database: Database) -> None:
    with database.transaction("add") as tx:
        assert tx.reports.add([]) == set()
        assert tx.reports.get_many(SURVEY, []) == {}
        tx.days.add(SURVEY, "2026-06-01", {})
        assert tx.days.of_survey(SURVEY) == {}


def test_recount_finds_a_wrong_count(database: Database) -> None:
    document = published(database)
    released(
        database,
        document,
        [row(0, 1, document=document.digest), row(1, 1, document=document.digest)],
    )
    with database.reading("check") as tx:
        assert tx.counts.recount(SURVEY) == []
    with database.engine.begin() as connection:
        wrong = (counts.c.block == 0) & (counts.c.symbol == 1)
        connection.execute(update(counts).where(wrong).values(n=7))
    with database.reading("check") as tx:
        assert tx.counts.recount(SURVEY) == [Difference(CountKey(document.digest, 0, "", 1), 7, 1)]


def test_recount_finds_an_uncounted_report(database: Database) -> None:
    document = published(database)
    with database.transaction("add") as tx:
        tx.reports.add([row(0, 1, document=document.digest)])
        assert tx.counts.recount(SURVEY) == []  # the report is pending
    with database.engine.begin() as connection:
        connection.execute(update(reports).values(release=1))
    with database.reading("check") as tx:
        assert tx.counts.recount(SURVEY) == [
            Difference(CountKey(document.digest, 0, "", 0), 0, 1),
            Difference(CountKey(document.digest, 1, "", 1), 0, 1),
            Difference(PairKey(document.digest, 0, 1, "", 0, 1), 0, 1),
            Difference(DayKey(document.digest, 0, "", "", 0, -1), 0, 1),
            Difference(DayKey(document.digest, 1, "", "", 1, -1), 0, 1),
        ]


def test_refusals_add_up_by_day(database: Database) -> None:
    for _ in range(2):
        with database.transaction("count") as tx:
            tx.days.add(SURVEY, "2026-06-01", {"symbol_unknown": 2, "closed": 1})
    with database.reading("look") as tx:
        assert tx.days.of_survey(SURVEY) == {
            ("2026-06-01", "symbol_unknown"): 4,
            ("2026-06-01", "closed"): 2,
        }


def test_symbols_stay_out_of_text_about_a_report() -> None:
    assert "1234" not in repr(row(1234))


@pytest.mark.parametrize("symbols", [(0,), (0, 1), (4095, 0, 17)])
def test_symbols_come_back_as_they_were(sqlite: Database, symbols: tuple[int, ...]) -> None:
    kept = row(*symbols)
    with sqlite.transaction("add") as tx:
        tx.reports.add([kept])
        assert tx.reports.get_many(SURVEY, [kept.id])[kept.id].symbols == symbols
