# SPDX-License-Identifier: Apache-2.0
"""Releases of documents with arms: cells of one arm, and what remains at the end, arm by arm."""

from collections import Counter
from dataclasses import replace

import pytest
from frankly_protocol.arms import Arm, Arms
from frankly_protocol.documents import SurveyDocument
from frankly_server.store import Database, ReportRow
from frankly_server.store.statistics import Layouts

from tests.frankly_protocol.samples import ldp_block, question, sealed, survey, with_item
from tests.frankly_server.samples import SURVEY, put
from tests.frankly_server.store.test_instructed import AT, STEP, Numbers, strata_of

A, B = '"arm":"a"', '"arm":"b_"'
ARMS = Arms(
    "arm", (Arm("a", 1 << 15, ("region",), ("x",)), Arm("b_", 1 << 15, ("region",), ("y", "x")))
)
NORTH, SOUTH = '"region":"north"', '"region":"south"'
PASSED, FAILED = '"check":"passed"', '"check":"failed"'


def with_arms(document: SurveyDocument) -> SurveyDocument:
    blocks = (replace(ldp_block("one"), id="x"), replace(ldp_block("two"), id="y"))
    return replace(
        document, blocks=blocks, strata=(question("region", "north", "south"),), arms=ARMS
    )


def rows_of(document: SurveyDocument, texts: dict[str, int]) -> list[ReportRow]:
    """Return reports with these numbers of strata: one symbol in arm a, two in arm b_."""
    strata = [f"{{{told}}}" for told, n in texts.items() for _ in range(n)]
    return [
        ReportRow(
            SURVEY,
            f"{i:032x}",
            document.digest,
            (i % 2,) if A in stratum else (i % 2, (i + 1) % 2),
            stratum,
        )
        for i, stratum in enumerate(strata)
    ]


def released(
    database: Database,
    document: SurveyDocument,
    rows: list[ReportRow],
    *,
    is_over: bool = False,
    item: str | None = None,
    at: str = AT,
) -> Numbers:
    with database.transaction("receive and release") as tx:
        tx.reports.add(rows)
        options = {"item": item, "arms": ("arm", ("a", "b_"))}
        tx.releases.release(SURVEY, document.digest, STEP, at, is_over=lambda: is_over, **options)  # type: ignore[arg-type]
        batches = tx.batches.of_document(document.digest)
        assert tx.counts.recount(SURVEY) == []
    return {batch.stratum: (batch.n, batch.failed) for batch in batches}


ENDS: dict[str, tuple[dict[str, int], Numbers]] = {
    "full cells": (
        {f"{A},{NORTH}": 3, f"{B},{NORTH}": 4},
        {f"{{{A},{NORTH}}}": (3, None), f"{{{B},{NORTH}}}": (4, None)},
    ),
    "the rest keeps its arm": (
        {f"{A},{NORTH}": 2, f"{A},{SOUTH}": 1, f"{B},{NORTH}": 2, f"{B},{SOUTH}": 2},
        {f"{{{A}}}": (3, None), f"{{{B}}}": (4, None)},
    ),
    "a rest of less than a step is deleted in its arm alone": (
        {f"{A},{NORTH}": 2, f"{A},{SOUTH}": 2, f"{B},{NORTH}": 1, f"{B},{SOUTH}": 1},
        {f"{{{A}}}": (4, None)},
    ),
    "cells and rest": (
        {f"{A},{NORTH}": 5, f"{A},{SOUTH}": 2, f"{B},{NORTH}": 2, f"{B},{SOUTH}": 1},
        {f"{{{A},{NORTH}}}": (5, None), f"{{{B}}}": (3, None)},
    ),
}


@pytest.mark.parametrize(("texts", "expected"), ENDS.values(), ids=ENDS)
def test_the_last_release_takes_arm_by_arm(
    database: Database, texts: dict[str, int], expected: Numbers
) -> None:
    document = put(database, with_arms(survey()))
    assert released(database, document, rows_of(document, texts), is_over=True) == expected
    kept = strata_of(database)
    assert sum(kept.values()) == sum(n for n, _ in expected.values())
    assert {stratum for stratum, _ in kept} == set(expected)


def test_before_the_end_small_cells_wait(database: Database) -> None:
    document = put(database, with_arms(survey()))
    texts = {f"{A},{NORTH}": 2, f"{B},{NORTH}": 2, f"{B},{SOUTH}": 3}
    expected = {f"{{{B},{SOUTH}}}": (3, None)}
    assert released(database, document, rows_of(document, texts)) == expected


WITH_ITEM: dict[str, tuple[dict[str, int], Numbers]] = {
    "joined within the arm": (
        {f"{A},{PASSED},{NORTH}": 4, f"{A},{FAILED},{NORTH}": 2, f"{B},{PASSED},{NORTH}": 3},
        {f"{{{A},{NORTH}}}": (6, 2), f"{{{B},{NORTH}}}": (3, 0)},
    ),
    "split within the arm": (
        {f"{B},{PASSED},{NORTH}": 3, f"{B},{FAILED},{NORTH}": 3},
        {f"{{{B},{PASSED},{NORTH}}}": (3, 0), f"{{{B},{FAILED},{NORTH}}}": (3, 3)},
    ),
    "the rest": (
        {f"{A},{PASSED},{NORTH}": 2, f"{A},{FAILED},{SOUTH}": 2, f"{B},{PASSED},{SOUTH}": 2},
        {f"{{{A}}}": (4, 2)},
    ),
}


@pytest.mark.parametrize(("texts", "expected"), WITH_ITEM.values(), ids=WITH_ITEM)
def test_an_item_is_joined_and_split_within_an_arm(
    database: Database, texts: dict[str, int], expected: Numbers
) -> None:
    # Canonical JSON sorts the names: arm, check, region.
    document = put(database, with_arms(with_item(survey(ldp_block()))))
    rows = rows_of(document, texts)
    assert released(database, document, rows, is_over=True, item="check") == expected


def test_failures_wait_for_a_step_of_their_arm(database: Database) -> None:
    document = put(database, with_arms(with_item(survey(ldp_block()))))
    texts = {
        **{f"{arm},{PASSED},{NORTH}": 5 for arm in (A, B)},
        **{f"{arm},{FAILED},{NORTH}": 2 for arm in (A, B)},
    }
    released(database, document, rows_of(document, texts), item="check")

    def known() -> dict[str, int]:
        with database.reading("look") as tx:
            found = {arm: tx.counts.failures(document.digest, 9, arm)[0] for arm in ("a", "b_")}
        return {
            arm: sum(n for key, n in counts.items() if key.block == 0)
            for arm, counts in found.items()
        }

    # Four failed, but two in each arm: they are in no figure yet.
    assert known() == {"a": 0, "b_": 0}
    more = {f"{A},{PASSED},{NORTH}": 5, f"{A},{FAILED},{NORTH}": 1}
    rows = [replace(row, id=f"{1:01x}{row.id[1:]}") for row in rows_of(document, more)]
    released(database, document, rows, item="check", at="2026-06-03T00:00:00Z")
    assert known() == {"a": 3, "b_": 0}


def test_each_arm_is_counted_by_its_own_blocks(database: Database) -> None:
    document = put(database, with_arms(survey()))
    layouts = Layouts.read(sealed(document.payload()))
    assert [len(layouts.of(f"{{{arm}}}").radices) for arm in (A, B)] == [1, 2]
    rows = rows_of(document, {f"{A},{NORTH}": 6, f"{B},{NORTH}": 4})
    released(database, document, rows)
    with database.reading("look") as tx:
        counted = Counter[tuple[str, int]]()
        for key, n in tx.counts.of_document(document.digest).items():
            counted[key.stratum, key.block] += n
    assert counted == {
        (f"{{{A},{NORTH}}}", 0): 6,
        (f"{{{B},{NORTH}}}", 0): 4,
        (f"{{{B},{NORTH}}}", 1): 4,
    }
    with database.transaction("rebuild") as tx:
        assert tx.counts.rebuild(SURVEY) == 10
        assert tx.counts.recount(SURVEY) == []
