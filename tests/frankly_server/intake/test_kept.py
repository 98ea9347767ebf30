# SPDX-License-Identifier: Apache-2.0
"""Stored data after random traffic: reports and counts, nothing about senders (spec 9.2)."""

import json
from collections import Counter
from pathlib import Path

from frankly_protocol.clock import FixedClock
from frankly_protocol.errors import InvalidInput
from frankly_server.intake import Intake, Outcome
from frankly_server.store import Database
from frankly_server.store.schema import metadata
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.frankly_protocol.samples import NOW
from tests.frankly_server.samples import SURVEY, body, published, release, report, stored

CANARIES = ("203.0.113.77", "canary-agent/1.0", "2026-06-01T12:00:01")
# Few ids are used, so that repeats and conflicts are frequent; symbol 2 does not exist.
_report = st.tuples(st.integers(0, 30), st.integers(0, 2), st.integers(0, 1))
_traffic = st.lists(st.one_of(_report, st.lists(_report, max_size=12)), max_size=12)


@given(traffic=_traffic)
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_counts_equal_a_recount_after_any_mix(database: Database, traffic: list[object]) -> None:
    with database.engine.begin() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())
    document = published(database)
    intake = Intake(database, FixedClock(NOW))
    first: dict[int, tuple[int, int]] = {}
    refused = 0

    def expect(item: tuple[int, int, int], outcome: Outcome | InvalidInput) -> int:
        number, *symbols = item
        if symbols[0] == 2:
            assert isinstance(outcome, InvalidInput)
            assert outcome.code == "symbol_unknown"
            return 1
        first_symbols = first.setdefault(number, (symbols[0], symbols[1]))
        code = outcome.code if isinstance(outcome, InvalidInput) else outcome.status
        if number in sent_numbers:
            assert code == ("duplicate" if first_symbols == tuple(symbols) else "id_conflict")
        else:
            assert code == "accepted"
        sent_numbers.add(number)
        return int(isinstance(outcome, InvalidInput))

    sent_numbers: set[int] = set()
    for step in traffic:
        if isinstance(step, list):
            sent = [body(document, y0, y1, report_id=f"{number:032x}") for number, y0, y1 in step]
            refused += sum(map(expect, step, intake.accept_batch(SURVEY, sent)))
        elif isinstance(step, tuple):
            number, y0, y1 = step
            try:
                outcome: Outcome | InvalidInput = intake.accept(
                    SURVEY, body(document, y0, y1, report_id=f"{number:032x}")
                )
            except InvalidInput as refusal:
                outcome = refusal
            refused += expect(step, outcome)
    release(database, document)
    with database.reading("check") as tx:
        assert tx.counts.recount(SURVEY) == []
        assert {int(row.id, 16): row.symbols for row in stored(tx, SURVEY)} == first
        code = Counter(
            {
                key.symbol: n
                for key, n in tx.counts.of_document(document.digest).items()
                if key.block == 0
            }
        )
    assert code == Counter(symbols[0] for symbols in first.values())
    assert sum(intake.refusals(SURVEY).values()) == refused


def _everything(database: Database, folder: Path) -> bytes:
    """Return every byte in the files and rows of the database."""
    with database.engine.connect() as connection:
        rows = repr(
            [connection.execute(table.select()).all() for table in metadata.sorted_tables]
        ).encode()
    return rows + b"".join(path.read_bytes() for path in folder.glob("frankly.db*"))


def test_nothing_about_the_sender_is_stored(database: Database, tmp_path: Path) -> None:
    document = published(database)
    intake = Intake(database, FixedClock(NOW))
    intake.accept(SURVEY, body(document))
    sound = json.loads(report(document).to_bytes(0))
    bent = [
        json.dumps({**sound, field: canary}).encode()
        for canary in CANARIES
        for field in ("ip", "token", "id")
    ]
    outcomes = intake.accept_batch(SURVEY, bent)
    assert all(isinstance(outcome, InvalidInput) for outcome in outcomes)
    stored_bytes = _everything(database, tmp_path)
    assert bytes.fromhex(SURVEY) in stored_bytes or SURVEY.encode() in stored_bytes
    for canary in (*CANARIES, NOW.strftime("%H:%M")):
        assert canary.encode() not in stored_bytes
