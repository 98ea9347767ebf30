# SPDX-License-Identifier: Apache-2.0
"""Releases of cells with at least a step of reports: atomic and final; estimates ignore pending reports."""

import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_server.intake.admission import Admitted
from frankly_server.intake.intake import record
from frankly_server.intake.tokens import Spend
from frankly_server.store import WITHHELD_STRATUM, Database, ReleasedBatch, ReportRow
from frankly_server.store.reports import reports
from frankly_server.store.tokens import tokens
from sqlalchemy import select

from tests.frankly_protocol.samples import question, survey
from tests.frankly_server.samples import SURVEY, put, release, spent
from tests.frankly_server.store.counted import (
    block,
    by_day,
    kept,
    mechanisms,
    pairs,
    singles,
    symbols,
)

REGIONS = ("north", "south", "west")
STEP = 3
AT = "2026-06-02T00:00:00Z"


@pytest.fixture
def rng() -> Random:
    return Random(20)


def drawn_survey(database: Database, rng: Random) -> tuple[SurveyDocument, list[Any]]:
    drawn = mechanisms(rng)
    document = replace(
        survey(*(block(f"b{i}", m) for i, m in enumerate(drawn))),
        strata=(question("region", *REGIONS),),
    )
    return put(database, document), drawn


def rows_of(
    document: SurveyDocument, drawn: Sequence[Any], rng: Random, n: int, region: str
) -> list[ReportRow]:
    stratum = f'{{"region":"{region}"}}'
    return [
        ReportRow(
            SURVEY, f"{rng.getrandbits(128):032x}", document.digest, symbols(drawn, rng), stratum
        )
        for _ in range(n)
    ]


def send(database: Database, rows: Sequence[ReportRow]) -> None:
    with database.transaction("receive") as tx:
        assert tx.reports.add(rows) == {row.id for row in rows}


def by_release(database: Database) -> dict[str, int | None]:
    with database.engine.connect() as connection:
        return {
            row.id: row.release
            for row in connection.execute(select(reports.c.id, reports.c.release))
        }


def test_full_cells_are_released_and_counted_and_the_others_wait(
    database: Database, rng: Random
) -> None:
    document, drawn = drawn_survey(database, rng)
    north = rows_of(document, drawn, rng, 40, "north")
    south, west = (
        rows_of(document, drawn, rng, STEP, "south"),
        rows_of(document, drawn, rng, STEP - 1, "west"),
    )
    send(database, [*north, *south, *west])
    assert release(database, document, at=AT, step=STEP) == 40 + STEP
    assert by_release(database) == {row.id: 1 for row in [*north, *south]} | {
        row.id: None for row in west
    }
    with database.reading("look") as tx:
        batches = [
            ReleasedBatch(1, '{"region":"north"}', AT, 40),
            ReleasedBatch(1, '{"region":"south"}', AT, STEP),
        ]
        assert tx.batches.of_document(document.digest) == batches
        assert tx.batches.number(SURVEY) == 40 + STEP
        told = [*north, *south]
        assert kept(tx, document.digest, len(drawn)) == (singles(drawn, told), pairs(drawn, told))
        days = dict.fromkeys((row.id for row in told), "2026-06-02")
        assert tx.counts.by_day(document.digest) == by_day(drawn, told, days)
        assert tx.counts.recount(SURVEY) == []
        # The server reads pending reports only to compare them with copies.
        assert tx.reports.get_many(SURVEY, [row.id for row in west]) == {
            row.id: row for row in west
        }
        assert sum(
            alike.n for alike in tx.released_reports.of_document(SURVEY, document.digest)
        ) == len(told)
        assert tx.exporting.number(SURVEY, document.digest, "", "f" * 32) == len(told)


def test_batches_never_change_and_later_reports_make_new_ones(
    database: Database, rng: Random
) -> None:
    document, drawn = drawn_survey(database, rng)
    send(
        database,
        rows_of(document, drawn, rng, 5, "north") + rows_of(document, drawn, rng, 2, "south"),
    )
    release(database, document, at=AT, step=STEP)
    with database.reading("look") as tx:
        before = tx.batches.of_document(document.digest)
    assert release(database, document, at="2026-06-03T00:00:00Z", step=STEP) == 0
    send(
        database,
        rows_of(document, drawn, rng, 1, "south") + rows_of(document, drawn, rng, 2, "north"),
    )
    assert release(database, document, at="2026-06-04T00:00:00Z", step=STEP) == 3
    with database.reading("look") as tx:
        after = tx.batches.of_document(document.digest)
        assert after == [*before, ReleasedBatch(2, '{"region":"south"}', "2026-06-04T00:00:00Z", 3)]
        assert tx.counts.recount(SURVEY) == []
        assert tx.counts.by_day(document.digest, since="2026-06-03").keys() <= {
            key for key in tx.counts.by_day(document.digest) if key.day == "2026-06-04"
        }


@pytest.mark.parametrize("left", [STEP - 1, STEP])
def test_the_rest_is_released_without_its_stratum_or_deleted(
    database: Database, rng: Random, left: int
) -> None:
    document, drawn = drawn_survey(database, rng)
    rows = [row for region in REGIONS[:left] for row in rows_of(document, drawn, rng, 1, region)]
    full = rows_of(document, drawn, rng, STEP, "north")
    send(database, rows[1:] + full[:1])
    send(database, rows[:1])
    send(database, full[1:])
    with database.transaction("end") as tx:
        n = tx.releases.release(SURVEY, document.digest, STEP, AT, is_over=lambda: True)
    rest = [row for row in rows if row.strata != full[0].strata]
    told = [*full, *(row for row in rows if row.strata == full[0].strata)]
    if len(rest) >= STEP:
        told += [replace(row, strata=WITHHELD_STRATUM) for row in rest]
    assert (n, set(by_release(database))) == (len(told), {row.id for row in told})
    with database.reading("look") as tx:
        assert kept(tx, document.digest, len(drawn)) == (singles(drawn, told), pairs(drawn, told))
        assert tx.counts.recount(SURVEY) == []


def test_a_failed_release_changes_nothing(database: Database, rng: Random) -> None:
    document, drawn = drawn_survey(database, rng)
    send(database, rows_of(document, drawn, rng, 10, "north"))
    before = by_release(database)
    with pytest.raises(RuntimeError), database.transaction("release") as tx:
        assert tx.releases.release(SURVEY, document.digest, STEP, AT, is_over=lambda: False) == 10
        raise RuntimeError
    assert by_release(database) == before
    assert release(database, document, at=AT, step=STEP) == 10
    with database.reading("look") as tx:
        assert [(batch.release, batch.n) for batch in tx.batches.of_document(document.digest)] == [
            (1, 10)
        ]
        assert tx.counts.recount(SURVEY) == []


def test_concurrent_releases_count_every_report_once(database: Database, rng: Random) -> None:
    document, drawn = drawn_survey(database, rng)
    rows = rows_of(document, drawn, rng, 300, "north")
    send(database, rows[:200])
    start = threading.Barrier(5)

    def run(_: int) -> int:
        start.wait()
        return release(database, document, at=AT, step=STEP)

    with ThreadPoolExecutor(5) as threads:
        running = [threads.submit(run, i) for i in range(4)]
        start.wait()
        for i in range(200, 300, 10):
            send(database, rows[i : i + 10])
        results = sum(future.result() for future in running)
    results += release(database, document, at=AT, step=STEP)
    assert results == 300
    with database.reading("look") as tx:
        assert tx.batches.number(SURVEY) == 300
        assert tx.counts.recount(SURVEY) == []
        assert kept(tx, document.digest, len(drawn)) == (singles(drawn, rows), pairs(drawn, rows))


def test_a_copy_that_races_with_a_release_is_a_duplicate(postgresql: Database, rng: Random) -> None:
    database = postgresql
    document, drawn = drawn_survey(database, Random(21))
    rows = rows_of(document, drawn, rng, 5, "north")
    send(database, rows)
    sent = threading.Event()

    def send_again() -> list[Any]:
        sent.set()
        return list(record(database, SURVEY, [Admitted(row) for row in rows]))

    with ThreadPoolExecutor(1) as threads:
        with database.transaction("release") as tx:
            assert (
                tx.releases.release(SURVEY, document.digest, STEP, AT, is_over=lambda: False) == 5
            )
            running = threads.submit(send_again)
            sent.wait()
            while not _waiting(database):
                assert not running.done()
        assert [judged.status for judged in running.result()] == ["duplicate"] * 5
    with database.reading("look") as tx:
        assert tx.batches.number(SURVEY) == 5
        assert tx.reports.accepted(SURVEY) == 5


def _waiting(database: Database) -> bool:
    """Return True if a transaction waits for a lock, which shows that the copy has reached the rows
    being moved."""
    with database.engine.connect() as connection:
        return bool(
            connection.exec_driver_sql(
                "SELECT count(*) FROM pg_locks WHERE NOT granted"
            ).scalar_one()
        )


@pytest.mark.parametrize("invited", [True, False], ids=["invites", "outside issuer"])
def test_after_a_release_no_row_reveals_its_order_or_its_token(
    postgresql: Database, full: bool, invited: bool
) -> None:
    """Rows are ordered by their random keys, and all have the same transaction number."""
    database, rng = postgresql, Random(22)
    document = put(database, replace(survey(survey_id="cd" * 16)))
    n = 1000 if full else 120
    hashes = [f"{rng.getrandbits(256):064x}" for _ in range(n)]
    if invited:
        with database.transaction("invite") as tx:
            tx.tokens.add(document.survey, hashes)
    ids = [f"{rng.getrandbits(128):032x}" for _ in range(n)]
    rng.shuffle(hashes)
    for report_id, results in zip(ids, hashes, strict=True):
        row = ReportRow(document.survey, report_id, document.digest, (0, 1), "")
        record(database, document.survey, [Admitted(row, Spend(results, invited=invited))])
    # Before a release, rows are linkable, as docs/privacy.md states.
    assert _links(database, document.survey) == set(zip(ids, hashes, strict=True))
    assert _in_order_of_arrival(database, document.survey) == ids
    assert release(database, document) == n
    database.forget_deleted()
    links = _links(database, document.survey)
    assert len(links) == n * n  # every report is linked to every token, which is no information
    for table, names in (("reports", ids), ("tokens", hashes)):
        pages = _pages(database, table, document.survey)
        assert sorted(name for page in pages for name in page) == sorted(names)
        assert all(page == sorted(page) for page in pages)
    assert spent(database, document.survey) == n


def test_within_batches_the_order_of_rows_does_not_reveal_arrival(
    postgresql: Database, rng: Random, full: bool
) -> None:
    """Kendall's τ between arrival and order of rows is 1 while reports are pending and about 0
    after a release."""
    database, cells, rounds = postgresql, *((40, 50) if full else (20, 6))
    names = [f"r{i}" for i in range(cells)]
    document = put(database, replace(survey(), strata=(question("region", *names),)))
    arrived: dict[str, int] = {}
    for at in range(rounds):
        regions = names * 10
        rng.shuffle(regions)
        for region in regions:
            row = ReportRow(
                SURVEY,
                f"{rng.getrandbits(128):032x}",
                document.digest,
                (0, 1),
                f'{{"region":"{region}"}}',
            )
            assert database.add_reports([row]) == {row.id}
            arrived[row.id] = len(arrived)
        if at == 0:
            assert all(
                _kendall(order) == 1.0 for order in _orders(database, arrived, "xmin::text::bigint")
            )
        assert release(database, document, step=10) == 10 * cells
        database.forget_deleted()
    orders = _orders(database, arrived, "ctid")
    assert [len(order) for order in orders] == [10] * (cells * rounds)
    # One τ of ten reports has a standard deviation of 0.248, so the mean has 0.006 over 2,000
    # batches and 0.023 over 120.
    assert abs(sum(map(_kendall, orders)) / len(orders)) <= (0.02 if full else 0.08)


def _orders(database: Database, arrived: dict[str, int], column: str) -> list[list[int]]:
    """Return the arrival numbers in each cell of each release, in the order of a system column."""
    results: dict[tuple[object, str], list[int]] = {}
    statement = f"SELECT release, strata, encode(id, 'hex') FROM reports WHERE strata <> '' ORDER BY {column}"
    with database.engine.connect() as connection:
        for number, stratum, report_id in connection.exec_driver_sql(statement):
            results.setdefault((number, stratum), []).append(arrived[report_id])
    return list(results.values())


def _kendall(order: Sequence[int]) -> float:
    pairs_of = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :]]
    return sum(1 if a < b else -1 for a, b in pairs_of) / len(pairs_of)


def _links(database: Database, survey_id: str) -> set[tuple[str, str]]:
    statement = (
        "SELECT encode(r.id, 'hex'), encode(t.hash, 'hex') FROM reports r JOIN tokens t ON t.xmin = r.xmin "
        f"WHERE r.survey = '\\x{survey_id}'"
    )
    with database.engine.connect() as connection:
        return {(report, token) for report, token in connection.exec_driver_sql(statement)}


def _in_order_of_arrival(database: Database, survey_id: str) -> list[str]:
    statement = f"SELECT encode(id, 'hex') FROM reports WHERE survey = '\\x{survey_id}' ORDER BY xmin::text::bigint"
    with database.engine.connect() as connection:
        return [results for (results,) in connection.exec_driver_sql(statement)]


def _pages(database: Database, table: str, survey_id: str) -> list[list[str]]:
    """Return the keys on each page of a table, in the order of rows."""
    name = "id" if table == "reports" else "hash"
    statement = (
        f"SELECT (ctid::text::point)[0] AS page, encode({name}, 'hex') FROM {table} "
        f"WHERE survey = '\\x{survey_id}' ORDER BY ctid"
    )
    pages: dict[float, list[str]] = {}
    with database.engine.connect() as connection:
        for page, results in connection.exec_driver_sql(statement):
            pages.setdefault(page, []).append(results)
    return list(pages.values())


def test_sqlite_forgets_the_order_with_its_log(sqlite: Database, rng: Random) -> None:
    document, drawn = drawn_survey(sqlite, rng)
    for row in rows_of(document, drawn, rng, 20, "north"):
        send(sqlite, [row])
    release(sqlite, document)
    sqlite.forget_deleted()
    with sqlite.engine.connect() as connection:
        file = connection.exec_driver_sql("PRAGMA database_list").first()
        assert file is not None
        assert Path(f"{file[2]}-wal").read_bytes() == b""
        settled = connection.execute(select(tokens.c.settled)).scalars().all()
    assert Counter(settled) == Counter()
