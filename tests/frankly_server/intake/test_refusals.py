# SPDX-License-Identifier: Apache-2.0
"""Refusals, which are counted exactly; a flood of refusals writes little."""

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_server.intake.refusals import BURST, PER_S, Refusals
from frankly_server.store import Database, StoreUnavailable

from tests.frankly_server.samples import SURVEY, published

REFUSED = InvalidInput(Problem.CLOSED, "closed")
DAY = "2026-06-01"


def test_a_flood_is_counted_exactly_and_written_rarely(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(database)
    now, writes = 0.0, []
    transaction = database.transaction
    monkeypatch.setattr(
        database, "transaction", lambda name: writes.append(name) or transaction(name)
    )
    refusals = Refusals(database, now=lambda: now)
    flood, seconds = 1000, 10
    for i in range(flood):
        now = i * seconds / flood
        refusals.add(SURVEY, DAY, [REFUSED, REFUSED])
    assert len(writes) <= BURST + PER_S * seconds + 1
    assert len(writes) < flood / 5
    refusals.flush()
    with database.reading("check") as tx:
        assert tx.days.of_survey(SURVEY) == {(DAY, "closed"): 2 * flood}


def test_counts_that_cannot_be_written_stay_in_memory(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(sqlite)
    refusals = Refusals(sqlite)

    def away(name: str) -> None:
        raise StoreUnavailable(name)

    with monkeypatch.context() as gone:
        gone.setattr(sqlite, "transaction", away)
        refusals.add(SURVEY, DAY, [REFUSED])
    refusals.add(SURVEY, DAY, [REFUSED])
    with sqlite.reading("check") as tx:
        assert tx.days.of_survey(SURVEY) == {(DAY, "closed"): 2}
