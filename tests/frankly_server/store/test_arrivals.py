# SPDX-License-Identifier: Apache-2.0
"""What is plainly new is kept by itself, exactly as a transaction would keep it; what is not is left alone."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from unittest.mock import patch

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import Mechanism, UnaryMechanism
from frankly_server.store import Database, ReportRow, StoreUnavailable, arrivals, arrivals_sql, engines
from frankly_server.store.standings import StandingRow
from sqlalchemy.exc import IntegrityError

from tests.frankly_protocol.samples import survey
from tests.frankly_server.samples import SURVEY, published, put
from tests.frankly_server.store.counted import block, by_day, kept, mechanisms, pairs, singles, symbols
from tests.frankly_server.store.test_upsert import TEXTS
from tests.postgres import PostgresServer

DAY = "2026-06-01"


def drawn_survey(database: Database, rng: Random) -> tuple[SurveyDocument, list[Mechanism]]:
    """A survey of every kind of mechanism, of which something was counted already, then erased."""
    drawn = mechanisms(rng)
    document = put(database, survey(*(block(f"b{i}", mechanism) for i, mechanism in enumerate(drawn))))
    learn(database, ReportRow(SURVEY, "0" * 32, document.digest, symbols(drawn, rng), ""))
    return document, drawn


def learn(database: Database, row: ReportRow) -> None:
    with database.transaction("learn") as tx:
        tx.counts.add([row])
        tx.counts.erase(row.document)


def keep(database: Database, rows: Sequence[ReportRow], day: str = DAY) -> set[str]:
    kinds = [database.kind(row) for row in rows]
    assert None not in kinds
    return database.keep_new(SURVEY, [row.id for row in rows], [kind for kind in kinds if kind is not None], day)


def stored(database: Database) -> list[ReportRow]:
    with database.reading("look") as tx:
        assert tx.counts.recount(SURVEY) == []
        return sorted(tx.reports.scan(SURVEY), key=lambda row: row.id)


@pytest.fixture(params=["few", "many"])
def few_or_many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports taken one by one, or all at once if all are new."""
    monkeypatch.setattr(arrivals, "_MANY", {"few": 1000, "many": 1}[request.param])


@pytest.mark.usefixtures("few_or_many")
@pytest.mark.parametrize("seed", range(2))
def test_reports_of_every_kind_are_counted_by_the_definitions(database: Database, seed: int) -> None:
    rng = Random(seed)
    document, drawn = drawn_survey(database, rng)
    strata = ("", '{"region":"north"}', '{"region":"süd"}')
    rows = [
        ReportRow(SURVEY, f"{rng.getrandbits(128):032x}", document.digest, symbols(drawn, rng), rng.choice(strata))
        for _ in range(24)
    ]
    days = {row.id: DAY if i < 9 else "2026-06-02" for i, row in enumerate(rows)}
    # Alone, a few, and many; some come again among new ones.
    for some in (rows[:1], rows[1:4], rows[:9], rows[6:16], rows):
        before = {row.id for row in stored(database)}
        new = [row for row in some if row.id not in before]
        for day in sorted(set(days.values())):
            mine = [row for row in some if days[row.id] == day]
            assert not mine or keep(database, mine, day) == {row.id for row in new if days[row.id] == day}
    assert stored(database) == sorted(rows, key=lambda row: row.id)
    with database.reading("look") as tx:
        assert kept(tx, document.digest, len(drawn)) == (singles(drawn, rows), pairs(drawn, rows))
        assert tx.counts.by_day(document.digest) == by_day(drawn, rows, days)


def test_kinds_that_say_the_same_count_once(database: Database) -> None:
    """A kind may be forgotten and learnt again while a batch is read."""
    document = published(database)
    row = ReportRow(SURVEY, "5a" * 16, document.digest, (0, 1), "")
    learn(database, row)
    kind = database.kind(row)
    assert kind is not None
    ids = [f"{i:032x}" for i in range(4)]
    assert database.keep_new(SURVEY, ids, [kind, replace(kind), kind, replace(kind)], DAY) == set(ids)
    assert [each.id for each in stored(database)] == ids


@pytest.mark.parametrize("taken", [0, 30, 59])
def test_a_batch_in_which_one_is_taken_is_kept_and_names_no_id(
    postgres: PostgresServer, postgres_database: Database, database: Database, taken: int
) -> None:
    """The insert that stops at a taken id is no error to PostgreSQL, whose log would name it."""
    document = published(database)
    rows = [
        ReportRow(SURVEY, f"{0xABCD0000 + (taken << 8) + i:032x}", document.digest, (i % 2, 1), "") for i in range(60)
    ]
    learn(database, rows[0])
    assert keep(database, [rows[taken]]) == {rows[taken].id}
    assert keep(database, rows) == {row.id for row in rows} - {rows[taken].id}
    assert keep(database, rows) == set()
    assert stored(database) == rows
    if database is postgres_database:
        log = postgres._home / "log"
        assert f"abcd{taken:02x}" not in log.read_text()
        with pytest.raises(IntegrityError), database.engine.begin() as connection:
            connection.exec_driver_sql(f"INSERT INTO reports SELECT * FROM reports WHERE id = '\\x{rows[0].id}'")
        assert f"abcd{taken:02x}" in log.read_text()


def test_a_role_without_temporary_functions_keeps_reports_too(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = published(database)
    rows = [ReportRow(SURVEY, f"{i:032x}", document.digest, (i % 2, 1), "") for i in range(120)]
    learn(database, rows[0])
    database.engine.dispose()  # connections that have the function
    monkeypatch.setattr(database, "_arrivals", arrivals.Arrivals(database.engine))
    # As PostgreSQL answers a role that may not: the tests' own role may everything.
    monkeypatch.setattr(arrivals, "MAKE_ALL_NEW", b"DO $$ BEGIN RAISE insufficient_privilege; END $$")
    assert keep(database, rows[:60]) == {row.id for row in rows[:60]}
    assert keep(database, rows) == {row.id for row in rows[60:]}
    assert database._arrivals._may_make == (database.engine.dialect.name == "sqlite")
    assert stored(database) == rows


def test_texts_arrive_as_they_are(database: Database) -> None:
    document = published(database)
    learn(database, ReportRow(SURVEY, "0" * 32, document.digest, (0, 0), ""))
    rows = [ReportRow(SURVEY, f"{i:032x}", document.digest, (i % 2, 1), text) for i, text in enumerate(TEXTS)]
    assert keep(database, rows) == {row.id for row in rows}
    assert stored(database) == rows


@pytest.mark.usefixtures("few_or_many")
def test_the_first_of_an_id_is_left_as_it_is(database: Database) -> None:
    document = published(database)
    first = ReportRow(SURVEY, "5a" * 16, document.digest, (0, 1), "")
    learn(database, first)
    assert keep(database, [first]) == {first.id}
    assert keep(database, [replace(first, symbols=(1, 1)), replace(first, id="5b" * 16)]) == {"5b" * 16}
    assert stored(database) == [first, replace(first, id="5b" * 16)]


@pytest.mark.parametrize(
    ("standing", "taken"),
    [
        (StandingRow(), True),
        (StandingRow(state="paused"), False),
        (StandingRow(state="closed"), False),
        (StandingRow(state="archived"), False),
        (StandingRow(stop_reports=1_000_000), False),  # whoever counts how many there are must look
    ],
)
def test_only_a_plainly_open_survey_takes_any(database: Database, standing: StandingRow, taken: bool) -> None:
    document = published(database)
    row = ReportRow(SURVEY, "5a" * 16, document.digest, (0, 1), "")
    learn(database, row)
    published(database, survey_id="cd" * 16)
    with database.transaction("stand") as tx:
        tx.standings.put(SURVEY, standing)
        tx.standings.put("cd" * 16, StandingRow(state="closed"))  # another survey's standing says nothing
    assert keep(database, [row]) == ({row.id} if taken else set())
    assert stored(database) == ([row] if taken else [])


def test_what_is_not_known_or_too_much_is_left_alone(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    document = published(database)
    row = ReportRow(SURVEY, "5a" * 16, document.digest, (0, 1), "")
    assert database.kind(replace(row, document="sha256:" + "ef" * 32)) is None
    learn(database, row)
    assert database.keep_new(SURVEY, [], [], DAY) == set()
    monkeypatch.setattr(arrivals, "_MOST_CELLS", 3)  # two singles and two days
    assert keep(database, [row]) == set()
    assert stored(database) == []


def test_few_kinds_are_remembered(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    document = published(sqlite)
    learn(sqlite, ReportRow(SURVEY, "0" * 32, document.digest, (0, 0), ""))
    monkeypatch.setattr(arrivals, "_REMEMBERED", 9)  # a report of two tables has four
    for i in range(6):
        assert sqlite.kind(ReportRow(SURVEY, "0" * 32, document.digest, (i % 2, 1), str(i))) is not None
        assert len(sqlite._arrivals._kinds) <= 2


def test_reports_of_very_many_counts_are_not_plain_and_leave_nothing_behind(sqlite: Database) -> None:
    """Sets of 64 answers have some 700 pairs: anybody could fill the memory with a few thousand of them."""
    document = put(sqlite, survey(block("b0", UnaryMechanism(48, 64, 1 << 47, 1 << 46))))
    rows = [ReportRow(SURVEY, f"{i:032x}", document.digest, (f"{(1 << 40) - 1 << i:016x}",), "") for i in range(24)]
    learn(sqlite, rows[0])
    assert [sqlite.kind(row) for row in rows] == [None] * 24
    assert sqlite._arrivals._kinds == {}
    with patch.object(arrivals, "cells", side_effect=AssertionError("counted up only to be left alone")):
        assert sqlite.kind(rows[0]) is None


def test_what_groups_of_many_counts_need_is_not_kept(monkeypatch: pytest.MonkeyPatch, database: Database) -> None:
    document, drawn = drawn_survey(database, Random(3))
    rows = [ReportRow(SURVEY, f"{i:032x}", document.digest, symbols(drawn, Random(i)), "") for i in range(4)]
    arrivals_sql._kept_columns.cache_clear()
    monkeypatch.setattr(arrivals_sql, "_WORTH_KEEPING", 3)
    assert keep(database, rows) == {row.id for row in rows}
    assert arrivals_sql._kept_columns.cache_info().currsize == 0


@pytest.mark.usefixtures("few_or_many")
def test_writers_that_overlap_keep_each_report_once(database: Database) -> None:
    """Some by themselves and some in transactions, in any order: nobody waits for ever, nothing is counted twice."""
    rng = Random(4)
    document, drawn = drawn_survey(database, rng)
    # One slot for all of them on PostgreSQL: they meet in every count.
    rows = [ReportRow(SURVEY, f"{i:032x}", document.digest, symbols(drawn, rng), "") for i in range(24)]
    found: list[set[str]] = []

    def write(number: int) -> None:
        mine = Random(number).sample(rows, 12)
        for start in range(0, 12, 4):
            some = mine[start : start + 4]
            if number % 2:
                found.append(keep(database, some))
                continue
            with database.transaction("add") as tx:
                new = tx.reports.add_many(some)
                tx.counts.add([row for row in some if row.id in new], DAY)
            found.append(new)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(write, range(8)))
    told = [report_id for new in found for report_id in new]
    assert len(told) == len(set(told))
    assert stored(database) == sorted((row for row in rows if row.id in set(told)), key=lambda row: row.id)


@pytest.mark.usefixtures("few_or_many")
def test_a_statement_that_was_put_away_is_prepared_again(postgres_database: Database, database: Database) -> None:
    document = published(database)
    row = ReportRow(SURVEY, "5a" * 16, document.digest, (0, 1), "")
    learn(database, row)
    assert keep(database, [row]) == {row.id}
    if database is postgres_database:
        with database.engine.begin() as connection:
            connection.exec_driver_sql("DEALLOCATE ALL")
    assert keep(database, [replace(row, id="5b" * 16)]) == {"5b" * 16}


@pytest.mark.usefixtures("few_or_many")
def test_a_failure_keeps_nothing_and_spoils_no_connection(fresh_database: Database) -> None:
    document = published(fresh_database)
    row = ReportRow(SURVEY, "5a" * 16, document.digest, (0, 1), "")
    learn(fresh_database, row)
    with fresh_database.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE counts_by_day RENAME TO away")
    for _ in range(20):  # more often than the pool has connections
        with pytest.raises(StoreUnavailable):
            keep(fresh_database, [row])
    with fresh_database.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE away RENAME TO counts_by_day")
    assert stored(fresh_database) == []
    assert keep(fresh_database, [row]) == {row.id}


def test_a_connection_that_was_lost_is_noticed(
    postgres: PostgresServer, postgres_database: Database, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = published(database)
    row = ReportRow(SURVEY, "5a" * 16, document.digest, (0, 1), "")
    learn(database, row)
    assert keep(database, [row]) == {row.id}
    more = [replace(row, id=f"{i:032x}") for i in range(2)]
    if database is postgres_database:
        with database.reading("a"), database.reading("another"), database.reading("a third"):
            pass
        assert database.engine.pool.checkedin() >= 3
        name = database.engine.url.database
        end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        postgres.execute(end)
        monkeypatch.setattr(engines, "_FRESH_S", 1e9)  # the pool does not ask before it gives a connection
        with pytest.raises(StoreUnavailable):
            keep(database, more)
        assert stored(database) == [row]
    assert keep(database, more) == {each.id for each in more}
    assert stored(database) == [*more, row]
