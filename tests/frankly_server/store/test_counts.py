# SPDX-License-Identifier: Apache-2.0
"""Stored counts compared with brute force, with concurrent writers, and after a recount."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism, ProductMechanism, SubsetMechanism, UnaryMechanism
from frankly_protocol.report import Report
from frankly_server.intake import Intake
from frankly_server.store import Database, DayKey, Layout, ReportRow
from frankly_server.store.counts import counts, pair_counts
from sqlalchemy import delete, update

from tests.frankly_protocol.samples import NOW, survey
from tests.frankly_server.samples import SURVEY, published, release, stored
from tests.frankly_server.store.counted import (
    REGIONS,
    D,
    block,
    dense,
    drawn_survey,
    kept,
    pairs,
    reports,
    singles,
    symbols,
)


def _rows(database: Database, document: SurveyDocument) -> list[ReportRow]:
    """Return all reports, after releasing them."""
    release(database, document)
    with database.reading("look") as tx:
        return stored(tx, SURVEY)


@pytest.mark.parametrize("seed", range(3))
def test_counts_equal_brute_force_in_surveys_of_every_kind(database: Database, seed: int) -> None:
    rng = Random(seed)
    document, drawn = drawn_survey(database, rng)
    intake, sent = Intake(database, FixedClock(NOW)), reports(document, drawn, rng, 60)
    for report in sent[:5]:
        intake.accept(SURVEY, report.to_bytes(document.report_length))
    intake.accept_batch(SURVEY, [report.to_bytes(0) for report in sent[5:]])
    rows = _rows(database, document)
    assert len(rows) == len(sent)
    assert len({row.strata for row in rows}) == len(REGIONS)
    with database.reading("look") as tx:
        assert kept(tx, document.digest, len(drawn)) == (singles(drawn, rows), pairs(drawn, rows))
        assert tx.counts.recount(SURVEY) == []


def test_concurrent_writers_repetitions_and_conflicts_count_once(database: Database) -> None:
    rng = Random(9)
    document, drawn = drawn_survey(database, rng)
    sent = reports(document, drawn, rng, 80)
    # Of reports with the same id and different symbols, the first is stored and the others are
    # refused.
    conflicting_reports = [replace(report, symbols=symbols(drawn, rng)) for report in sent[:40]]

    def write(number: int) -> None:
        intake, mine = Intake(database, FixedClock(NOW)), [*sent, *conflicting_reports]
        Random(number).shuffle(mine)
        for report in mine[:10]:
            try:
                intake.accept(SURVEY, report.to_bytes(document.report_length))
            except InvalidInput as refused:
                assert refused.code == "id_conflict"
        for start in range(10, len(mine), 30):
            intake.accept_batch(SURVEY, [report.to_bytes(0) for report in mine[start : start + 30]])

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(write, range(6)))
    rows = _rows(database, document)
    assert {row.id for row in rows} == {report.id for report in sent}
    with database.reading("look") as tx:
        assert kept(tx, document.digest, len(drawn)) == (singles(drawn, rows), pairs(drawn, rows))


def test_wrong_counts_are_found_and_rebuilt(database: Database) -> None:
    rng = Random(2)
    document, drawn = drawn_survey(database, rng)
    Intake(database, FixedClock(NOW)).accept_batch(
        SURVEY, [report.to_bytes(0) for report in reports(document, drawn, rng, 40)]
    )
    rows = _rows(database, document)
    with database.engine.begin() as connection:
        connection.execute(update(counts).where(counts.c.block == 0).values(n=counts.c.n + 1))
        connection.execute(delete(pair_counts).where(pair_counts.c.symbol == 0))
    with database.reading("check") as tx:
        wrong = tx.counts.recount(SURVEY)
    lost = {key: n for key, n in pairs(drawn, rows).items() if key.symbol == 0}
    wrong_by_key = {
        difference.key: (difference.counted, difference.reports) for difference in wrong
    }
    assert not any(isinstance(key, DayKey) for key in wrong_by_key)
    assert lost
    assert {key: (0, n) for key, n in lost.items()} == {
        k: v for k, v in wrong_by_key.items() if k in lost
    }
    added = {key: n for key, n in singles(drawn, rows).items() if key.block == 0}
    assert {key: n for key, (_, n) in wrong_by_key.items() if key not in lost} == added
    with database.transaction("rebuild") as tx:
        assert tx.counts.rebuild(SURVEY) == len(rows)
    with database.reading("look") as tx:
        assert tx.counts.recount(SURVEY) == []
        assert kept(tx, document.digest, len(drawn)) == (singles(drawn, rows), pairs(drawn, rows))


def test_rebuilding_during_writes_loses_nothing(database: Database) -> None:
    rng = Random(5)
    document, drawn = drawn_survey(database, rng)
    sent = [report.to_bytes(0) for report in reports(document, drawn, rng, 90)]

    def write(number: int) -> None:
        intake = Intake(database, FixedClock(NOW))
        for report in sent[number::3]:
            intake.accept(SURVEY, report)

    def count(_: int) -> None:
        for _ in range(6):
            with database.transaction("rebuild") as tx:
                tx.counts.rebuild(SURVEY)

    def release_often(_: int) -> None:
        for _ in range(6):
            release(database, document)

    with ThreadPoolExecutor(5) as threads:
        futures = [threads.submit(write, number) for number in range(3)]
        futures += [threads.submit(count, 0), threads.submit(release_often, 0)]
        for future in futures:
            future.result()
    assert len(_rows(database, document)) == len(sent)
    with database.reading("look") as tx:
        assert tx.counts.recount(SURVEY) == []


def test_erased_counts_are_gone(database: Database) -> None:
    rng = Random(6)
    document, drawn = drawn_survey(database, rng)
    Intake(database, FixedClock(NOW)).accept_batch(
        SURVEY, [report.to_bytes(0) for report in reports(document, drawn, rng, 5)]
    )
    release(database, document)
    with database.transaction("erase") as tx:
        assert all(kept(tx, document.digest, len(drawn)))
        tx.counts.erase(document.digest)
        assert kept(tx, document.digest, len(drawn)) == ({}, {})


def _of(*given: Mechanism) -> Layout:
    return Layout.of(survey(*(block(f"b{i}", mechanism) for i, mechanism in enumerate(given))))


def test_the_number_of_counts_is_bounded_by_the_document() -> None:
    rng = Random(0)
    table, large_table = dense(2, 2, rng), dense(64, 64, rng)
    large = UnaryMechanism(48, 64, D // 2, D // 8)
    assert _of(large).covers((0,))
    assert not _of(UnaryMechanism(48, 66, D // 2, D // 8)).covers((0,))
    assert _of(SubsetMechanism(48, 200, 64, D // 2)).covers((0,))
    assert not _of(SubsetMechanism(48, 200, 65, D // 2)).covers((0,))
    assert [_of(large, large).covers((i,)) for i in range(2)] == [True, False]
    assert [_of(UnaryMechanism(48, 10, D, 1), large).covers((i,)) for i in range(2)] == [True, True]
    assert _of(large_table, large_table).covers((0, 1))
    assert not _of(large_table, dense(2, 65, rng)).covers((0, 1))
    many = _of(*[table] * 18)
    assert len(many.pairs) == 120
    assert many.covers((14, 15))
    assert not many.covers((0, 16))
    assert not many.covers((0, 1, 2))
    assert not _of(table, UnaryMechanism(48, 4, D, 1)).covers((0, 1))
    wide = ProductMechanism(tuple(dense(2, 4, rng) for _ in range(8)))
    assert _of(wide).numbers([[3] * 8]) == [4**8 - 1]
    assert _of(wide).parts(0, 4**8 - 2) == (3,) * 7 + (2,)


def test_a_report_never_writes_more_rows_than_the_bound(sqlite: Database) -> None:
    full = UnaryMechanism(48, 64, D // 2, D // 8)
    drawn: list[Mechanism] = [full, *[dense(2, 2, Random(i)) for i in range(18)]]
    document = published(sqlite, *(block(f"b{i}", mechanism) for i, mechanism in enumerate(drawn)))
    worst = Report(document.digest, "ab" * 16, ("f" * 16, *[1] * 18))
    Intake(sqlite, FixedClock(NOW)).accept(SURVEY, worst.to_bytes(document.report_length))
    release(sqlite, document)
    with sqlite.reading("look") as tx:
        found, by_day = kept(tx, document.digest, len(drawn)), tx.counts.by_day(document.digest)
    assert (len(found[0]), len(found[1])) == (19, 64 * 65 // 2 + 120)
    assert len(by_day) == 19 + 64 * 65 // 2
