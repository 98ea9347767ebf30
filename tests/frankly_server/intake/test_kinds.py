# SPDX-License-Identifier: Apache-2.0
"""Reports of every mechanism kind: stored unchanged, counted, and not repeated in errors."""

import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.report import Report
from frankly_server.analysis import Analysis
from frankly_server.intake import Intake
from frankly_server.store import Database

from tests.frankly_protocol.every_kind import KINDS, block
from tests.frankly_protocol.samples import NOW
from tests.frankly_server.samples import SURVEY, published, release, stored

TRUTHS = [0] * 30 + [1] * 10 + [2] * 15 + [3] * 25


@pytest.fixture
def document(database: Database) -> SurveyDocument:
    """A published survey with a block of every kind."""
    return published(database, *(block(kind, "ldp", name=kind) for kind in KINDS))


def _reports(document: SurveyDocument) -> list[Report]:
    """Return one report for each truth, which is the same in every block."""
    rng = Random(3)
    reports = []
    for number, truth in enumerate(TRUTHS):
        symbols = tuple(
            _symbol(document_block.mechanism, truth, rng) for document_block in document.blocks
        )
        reports.append(Report(document.digest, f"{number:032x}", symbols))
    return reports


def _symbol(mechanism: Any, truth: int, rng: Random) -> Any:
    return mechanism.symbol_json(mechanism.sample(truth, rng.getrandbits))


def test_reports_of_every_kind_are_stored_unchanged_and_counted(
    database: Database, document: SurveyDocument
) -> None:
    intake, sent = Intake(database, FixedClock(NOW)), _reports(document)
    outcomes = [
        intake.accept(SURVEY, report.to_bytes(document.report_length)).status for report in sent
    ]
    outcomes += [
        intake.accept(SURVEY, report.to_bytes(document.report_length)).status for report in sent
    ]
    assert Counter(outcomes) == {"accepted": len(sent), "duplicate": len(sent)}
    release(database, document)
    with database.reading("check") as tx:
        stored_symbols = {row.id: row.symbols for row in stored(tx, SURVEY)}
        assert stored_symbols == {report.id: report.symbols for report in sent}
        assert tx.counts.recount(SURVEY) == []
        counted = tx.counts.of_document(document.digest)
    symbol_counts = Counter({(key.block, key.symbol): n for key, n in counted.items()})
    assert symbol_counts == Counter(
        (i, _number(symbol)) for report in sent for i, symbol in enumerate(report.symbols)
    )


def _number(symbol: Any) -> int:
    """Return a symbol's number: the symbol of a table, the mask of a set, the two bits of a product."""
    if isinstance(symbol, str):
        return int(symbol, 16)
    return 2 * symbol[0] + symbol[1] if isinstance(symbol, list) else int(symbol)


def test_shares_are_estimated_from_every_kind(database: Database, document: SurveyDocument) -> None:
    intake, sent = Intake(database, FixedClock(NOW)), _reports(document)
    assert len(sent) >= document.min_reports
    for report in sent:
        intake.accept(SURVEY, report.to_bytes(document.report_length))
    release(database, document)
    question_results = {q["id"]: q for q in Analysis(database).estimates(SURVEY)["questions"]}
    assert set(question_results) == {f"{kind}-{part}" for kind in KINDS for part in "ab"}
    # A table with fewer symbols than answers may not distinguish some question at all.
    for question in question_results.values():
        has_figures = any(row["estimate"] is not None for row in question["rows"])
        assert question["status"] == ("ok" if has_figures else "not_identifiable")
    # In the unary block, an answer's share is (frequency of its bit − flip) / (keep − flip), plus
    # an equal correction that makes the sum 1; "yes" to a is answer 2 or 3.
    unary = list(KINDS).index("unary")
    masks = [int(str(report.symbols[unary]), 16) for report in sent]
    shares = [
        (sum(mask >> x & 1 for mask in masks) / len(masks) - 3 / 16) / (8 / 16 - 3 / 16)
        for x in range(4)
    ]
    shares = [share + (1 - sum(shares)) / 4 for share in shares]
    rows = [row["estimate"] for row in question_results["unary-a"]["rows"]]
    assert rows == pytest.approx([shares[0] + shares[1], shares[2] + shares[3]])


BAD: list[tuple[int, Any, str, str]] = [
    (1, 3, "y_type", "y[1]"),
    (1, "10", "y_type", "y[1]"),
    (1, [1], "y_type", "y[1]"),
    (2, "f", "symbol_unknown", "y[2]"),
    (2, "1", "symbol_unknown", "y[2]"),
    (3, 0, "y_type", "y[3]"),
    (3, [0, 2], "symbol_unknown", "y[3][1]"),
    (3, [0], "symbol_unknown", "y[3]"),
    (0, "1", "y_type", "y[0]"),
    (0, 3, "symbol_unknown", "y[0]"),
]


@pytest.mark.parametrize(("at", "symbol", "code", "field"), BAD)
def test_symbols_of_another_kind_are_refused_by_place(
    sqlite: Database, at: int, symbol: Any, code: str, field: str
) -> None:
    document = published(sqlite, *(block(kind, "ldp", name=kind) for kind in KINDS))
    assert list(KINDS) == ["dense", "unary", "subset", "product"]
    body = json.loads(_reports(document)[0].to_bytes(0))
    body["y"][at] = symbol
    intake = Intake(sqlite, FixedClock(NOW))
    with pytest.raises(InvalidInput) as refused:
        intake.accept(SURVEY, json.dumps(body).encode())
    assert (refused.value.code, refused.value.field) == (code, field)
    assert intake.refusals(SURVEY) == {("2026-06-01", code): 1}
