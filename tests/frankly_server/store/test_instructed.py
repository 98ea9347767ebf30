# SPDX-License-Identifier: Apache-2.0
"""Releases with an instructed item: which reports are released does not depend on who failed it."""

from collections import Counter
from dataclasses import replace
from itertools import product
from random import Random

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_server.intake.admission import Admitted
from frankly_server.intake.intake import Outcome, record
from frankly_server.store import Database, ReportRow
from frankly_server.store.reports import reports
from sqlalchemy import select, text

from tests.frankly_protocol.samples import ldp_block, question, survey, with_item
from tests.frankly_server.samples import SURVEY, put

STEP = 3
AT = "2026-06-02T00:00:00Z"
PASSED, FAILED = '"check":"passed"', '"check":"failed"'
Numbers = dict[str, tuple[int, int | None]]
"""Reports of each batch, and how many of them failed, by stratum."""


@pytest.fixture
def document(database: Database) -> SurveyDocument:
    return put(
        database, with_item(survey(ldp_block()), regions=question("region", "north", "south"))
    )


def rows_of(document: SurveyDocument, texts: dict[str, int]) -> list[ReportRow]:
    """Return reports with these numbers of strata, in canonical JSON without braces."""
    strata = [f"{{{told}}}" for told, n in texts.items() for _ in range(n)]
    return [
        ReportRow(SURVEY, f"{i:032x}", document.digest, (i % 2,), stratum)
        for i, stratum in enumerate(strata)
    ]


def released(
    database: Database, document: SurveyDocument, rows: list[ReportRow], *, is_over: bool = False
) -> Numbers:
    with database.transaction("receive and release") as tx:
        tx.reports.add(rows)
        tx.releases.release(
            SURVEY, document.digest, STEP, AT, is_over=lambda: is_over, item="check"
        )
        batches = tx.batches.of_document(document.digest)
        assert tx.counts.recount(SURVEY) == []
    return {batch.stratum: (batch.n, batch.failed) for batch in batches}


def strata_of(database: Database) -> Counter[tuple[str, int | None]]:
    with database.engine.connect() as connection:
        return Counter(
            (row.strata, row.release)
            for row in connection.execute(select(reports.c.strata, reports.c.release))
        )


NORTH_PASSED = f'{PASSED},"region":"north"'
NORTH_FAILED = f'{FAILED},"region":"north"'
SOUTH_PASSED = f'{PASSED},"region":"south"'
SOUTH_FAILED = f'{FAILED},"region":"south"'
NORTH, SOUTH = '{"region":"north"}', '{"region":"south"}'
CASES: dict[str, tuple[dict[str, int], Numbers]] = {
    "enough of both: two batches": (
        {NORTH_PASSED: 4, NORTH_FAILED: 3},
        {f"{{{NORTH_PASSED}}}": (4, 0), f"{{{NORTH_FAILED}}}": (3, 3)},
    ),
    "few failed: joined": ({NORTH_PASSED: 4, NORTH_FAILED: 2}, {NORTH: (6, 2)}),
    "few passed: joined": ({NORTH_PASSED: 1, NORTH_FAILED: 5}, {NORTH: (6, 5)}),
    "nobody failed": ({NORTH_PASSED: 3}, {NORTH: (3, 0)}),
    "everybody failed": ({NORTH_FAILED: 3}, {NORTH: (3, 3)}),
    "too few together": ({NORTH_PASSED: 1, NORTH_FAILED: 1}, {}),
    "cells are separate": (
        {NORTH_PASSED: 2, NORTH_FAILED: 1, SOUTH_PASSED: 2, SOUTH_FAILED: 0},
        {NORTH: (3, 1)},
    ),
}


@pytest.mark.parametrize(("texts", "expected"), CASES.values(), ids=CASES)
def test_a_cell_is_released_whole_and_split_only_if_both_results_reach_the_step(
    database: Database, document: SurveyDocument, texts: dict[str, int], expected: Numbers
) -> None:
    rows = rows_of(document, texts)
    assert released(database, document, rows) == expected
    n = sum(n for n, _ in expected.values())
    kept = strata_of(database)
    assert sum(count for (_, release), count in kept.items() if release == 1) == n
    # No released row says a result unless its batch is one of at least a step with that result.
    assert {stratum for stratum, release in kept if release == 1} == set(expected)
    assert {stratum for stratum, release in kept if release is None} <= {row.strata for row in rows}


def test_which_reports_are_released_does_not_depend_on_the_results(database: Database) -> None:
    sizes, chosen = {"north": 4, "south": 2}, set()
    for results in product((PASSED, FAILED), repeat=sum(sizes.values())):
        document = put(
            database, with_item(survey(ldp_block()), regions=question("region", "north", "south"))
        )
        regions = [region for region, n in sizes.items() for _ in range(n)]
        rows = [
            ReportRow(SURVEY, f"{i:032x}", document.digest, (0,), f'{{{told},"region":"{region}"}}')
            for i, (told, region) in enumerate(zip(results, regions, strict=True))
        ]
        with database.transaction("try") as tx:
            tx.reports.add(rows)
            tx.releases.release(
                SURVEY, document.digest, STEP, AT, is_over=lambda: False, item="check"
            )
            stored = tx.reports.get_many(SURVEY, [row.id for row in rows])
            ids = select(reports.c.id).where(reports.c.release == 1)
            chosen.add(frozenset(tx.reports._connection.scalars(ids)))
            failed = sum(batch.failed or 0 for batch in tx.batches.of_document(document.digest))
            # Nothing is lost by joining: the number of those that failed is known.
            assert failed == sum(one == FAILED for one in results[: sizes["north"]])
            assert len(stored) == len(rows)
            tx.reports.erase(SURVEY)
            tx.batches.erase(document.digest)
            tx.counts.erase(document.digest)
    assert chosen == {frozenset(f"{i:032x}" for i in range(sizes["north"]))}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [({NORTH_PASSED: 1, SOUTH_FAILED: 2}, {"": (3, 2)}), ({NORTH_PASSED: 1, SOUTH_FAILED: 1}, {})],
)
def test_the_rest_loses_its_stratum_and_keeps_the_number_that_failed(
    database: Database, document: SurveyDocument, texts: dict[str, int], expected: Numbers
) -> None:
    assert released(database, document, rows_of(document, texts), is_over=True) == expected
    assert strata_of(database) == ({("", 1): 3} if expected else {})


def test_the_rest_is_split_if_both_results_reach_the_step(database: Database) -> None:
    regions = question("region", "north", "south", "west")
    document = put(database, with_item(survey(ldp_block()), regions=regions))
    west_failed = f'{FAILED},"region":"west"'
    texts = {NORTH_PASSED: 2, SOUTH_PASSED: 1, SOUTH_FAILED: 1, west_failed: 2}
    assert released(database, document, rows_of(document, texts), is_over=True) == {
        f"{{{PASSED}}}": (3, 0),
        f"{{{FAILED}}}": (3, 3),
    }


def failures_of(database: Database, document: SurveyDocument, newest: int = 99) -> dict[int, int]:
    """Return the counts by symbol of the batches of failures."""
    with database.reading("look") as tx:
        singles, _ = tx.counts.failures(document.digest, newest)
        return {key.symbol: n for key, n in singles.items()}


def test_failures_of_several_cells_and_releases_are_counted_together(
    database: Database, document: SurveyDocument
) -> None:
    """Never fewer than a step at a time, and only of cells in which a step passed."""

    def receive(first: int, at: str, **texts: int) -> None:
        strata = {"np": NORTH_PASSED, "nf": NORTH_FAILED, "sp": SOUTH_PASSED, "sf": SOUTH_FAILED}
        rows = [
            ReportRow(
                SURVEY,
                f"{first + i:032x}",
                document.digest,
                (int(name[1] == "f"),),
                f"{{{strata[name]}}}",
            )
            for i, name in enumerate(name for name, n in texts.items() for _ in range(n))
        ]
        with database.transaction("receive and release") as tx:
            tx.reports.add(rows)
            tx.releases.release(
                SURVEY, document.digest, STEP, at, is_over=lambda: False, item="check"
            )

    receive(0, AT, np=5, nf=1, sp=3, sf=1)
    assert failures_of(database, document) == {}  # two of three wait
    receive(100, "2026-06-03T00:00:00Z", np=2, nf=2)
    assert failures_of(database, document) == {}  # too few passed, so these are not counted
    receive(200, "2026-06-04T00:00:00Z", np=4, nf=2)
    assert failures_of(database, document) == {1: 4}
    assert failures_of(database, document, newest=2) == {}  # for replays of earlier results
    receive(300, "2026-06-05T00:00:00Z", np=4, nf=1)
    assert failures_of(database, document) == {1: 4}
    receive(400, "2026-06-06T00:00:00Z", np=4, nf=2)
    assert failures_of(database, document) == {1: 7}
    with database.reading("look") as tx:
        batches = tx.batches.of_document(document.digest)
        assert sum(batch.n for batch in batches) == sum((10, 4, 6, 5, 6))
        assert sum(batch.failed or 0 for batch in batches) == 9
        # They are in no other count, and none is lost when those are made again.
        assert (
            sum(n for key, n in tx.counts.of_document(document.digest).items() if key.symbol) == 9
        )
        assert tx.counts.recount(SURVEY) == []
    with database.transaction("rebuild") as tx:
        assert tx.counts.rebuild(SURVEY) == 31
    assert failures_of(database, document) == {1: 7}
    with database.engine.connect() as connection:
        seen = connection.execute(text("SELECT DISTINCT stratum FROM noisy_counts")).scalars().all()
        assert set(seen) == {NORTH, SOUTH}
    with database.transaction("erase") as tx:
        tx.counts.erase(document.digest)
    assert failures_of(database, document) == {}


def test_a_copy_of_a_report_is_known_after_its_result_is_forgotten(
    database: Database, document: SurveyDocument
) -> None:
    rows = rows_of(document, {NORTH_PASSED: 3, NORTH_FAILED: 1})
    assert released(database, document, rows) == {NORTH: (4, 1)}
    (result,) = record(database, SURVEY, [Admitted(rows[-1])])
    assert result == Outcome("duplicate", rows[-1].id)
    other = ReportRow(SURVEY, rows[-1].id, document.digest, (1,), f"{{{SOUTH_FAILED}}}")
    (refused,) = record(database, SURVEY, [Admitted(other)])
    assert not isinstance(refused, Outcome)


def test_neither_place_nor_transaction_of_a_row_shows_its_result(postgresql: Database) -> None:
    """The rows of a joined cell are written in the order of their keys, by one statement."""
    document = put(
        postgresql, with_item(survey(ldp_block()), regions=question("region", "north", "south"))
    )
    rng = Random(5)
    rows = [
        replace(row, id=f"{rng.getrandbits(128):032x}")
        for row in rows_of(document, {NORTH_FAILED: 2, NORTH_PASSED: 9})
    ]
    assert released(postgresql, document, rows) == {NORTH: (11, 2)}
    with postgresql.engine.connect() as connection:
        written = connection.execute(text("SELECT id, xmin, cmin FROM reports ORDER BY ctid")).all()
    assert [bytes(row[0]).hex() for row in written] == sorted(row.id for row in rows)
    assert len({(row[1], row[2]) for row in written}) == 1
