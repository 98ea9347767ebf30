# SPDX-License-Identifier: Apache-2.0
"""Intake of reports: each report is stored and counted once; of refused reports, only the reason is
counted (bad inputs 36-41)."""

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.tokens import TokenRule
from frankly_server.intake import Intake, Invites, Outcome
from frankly_server.intake.admission import TooEarly
from frankly_server.store import Database, StoreUnavailable
from frankly_server.store.schema import metadata

from tests.frankly_protocol.samples import NOW, ldp_block, question, survey
from tests.frankly_server.samples import SURVEY, body, published, put, release, report, stored
from tests.refusals import refusal

ID = "5a" * 16


@pytest.fixture
def document(database: Database) -> SurveyDocument:
    """A published survey with two blocks of two symbols each."""
    return published(database)


@pytest.fixture
def intake(database: Database) -> Intake:
    """An intake whose clock is set to NOW."""
    return Intake(database, FixedClock(NOW))


def _counted(database: Database, document: SurveyDocument) -> dict[tuple[int, int], int]:
    """Release everything, and return the counts."""
    release(database, document)
    with database.reading("check") as tx:
        assert tx.counts.recount(SURVEY) == []
        return {
            (key.block, key.symbol): n for key, n in tx.counts.of_document(document.digest).items()
        }


def _stored(database: Database) -> int:
    with database.reading("check") as tx:
        return len(stored(tx, SURVEY))


def test_a_report_is_stored_and_counted_once(
    database: Database, document: SurveyDocument, intake: Intake
) -> None:
    sent = body(document, 0, 1, report_id=ID)
    assert intake.accept(SURVEY, sent) == Outcome("accepted", ID)
    for _ in range(3):
        assert intake.accept(SURVEY, sent) == Outcome("duplicate", ID)
    assert _counted(database, document) == {(0, 0): 1, (1, 1): 1}


def test_padding_does_not_matter(document: SurveyDocument, intake: Intake) -> None:
    sent = body(document, report_id=ID)
    assert intake.accept(SURVEY, sent).status == "accepted"
    assert intake.accept(SURVEY, sent.strip()).status == "duplicate"


def test_the_first_report_of_an_id_is_kept(
    database: Database, document: SurveyDocument, intake: Intake
) -> None:
    intake.accept(SURVEY, body(document, 0, 1, report_id=ID))
    error = refusal(InvalidInput, intake.accept, SURVEY, body(document, 1, 1, report_id=ID))
    assert (error.code, error.problem.status) == ("id_conflict", 409)
    assert _counted(database, document) == {(0, 0): 1, (1, 1): 1}
    assert intake.refusals(SURVEY) == {("2026-06-01", "id_conflict"): 1}


def _bent(**changes: Any) -> Callable[[SurveyDocument], bytes]:
    def make(document: SurveyDocument) -> bytes:
        sound = json.loads(report(document, 0, 1, report_id=ID).to_bytes(0))
        return json.dumps(
            {name: value for name, value in {**sound, **changes}.items() if value != "drop"}
        ).encode()

    return make


BAD_REPORTS: dict[str, tuple[Callable[[SurveyDocument], bytes], str, int]] = {
    "empty": (lambda _: b"", "json_invalid", 400),
    "no JSON": (lambda _: b"canary", "json_invalid", 400),
    "not UTF-8": (lambda _: b"\xff\xfe", "json_invalid", 400),
    "a list": (lambda _: b"[]", "json_invalid", 400),
    "cut off": (lambda d: body(d).strip()[:-1], "json_invalid", 400),
    "key twice": (lambda d: body(d).strip()[:-1] + b',"v":1}', "json_invalid", 400),
    "5,000 digits": (
        lambda d: body(d, 7, 1).replace(b"[7,", b"[" + b"7" * 5000 + b","),
        "json_invalid",
        400,
    ),
    "NaN": (_bent(y=[float("nan"), 1]), "number_not_finite", 422),
    "fraction": (_bent(y=[0.5, 1]), "json_invalid", 400),
    "100,000 deep": (lambda _: b"[" * 4000 + b"]" * 4000, "json_invalid", 400),
    "too large": (lambda d: body(d) + b" " * 20_000, "body_too_large", 413),
    "unknown field": (_bent(ip="canary"), "field_unknown", 422),
    "no symbols": (_bent(y="drop"), "field_missing", 422),
    "no id": (_bent(id="drop"), "field_missing", 422),
    "newer version": (_bent(v=2), "field_type", 422),
    "id too short": (_bent(id="canary"), "field_type", 422),
    "id upper case": (_bent(id="5A" * 16), "field_type", 422),
    "digest malformed": (_bent(doc="sha256:canary"), "field_type", 422),
    "symbols as text": (_bent(y="01"), "y_type", 422),
    "symbol as text": (_bent(y=["0", 1]), "y_type", 422),
    "symbol as boolean": (_bent(y=[True, 1]), "y_type", 422),
    "symbol null": (_bent(y=[None, 1]), "y_type", 422),
    "symbol negative": (_bent(y=[-1, 1]), "y_type", 422),
    "symbol beyond the last": (_bent(y=[2, 1]), "symbol_unknown", 422),
    "symbol far beyond": (_bent(y=[2**53 - 1, 1]), "symbol_unknown", 422),
    "too few symbols": (_bent(y=[0]), "symbol_unknown", 422),
    "too many symbols": (_bent(y=[0, 1, 0]), "symbol_unknown", 422),
    "no symbol at all": (_bent(y=[]), "symbol_unknown", 422),
    "another document": (_bent(doc="sha256:" + "00" * 32), "doc_mismatch", 422),
    "strata unasked": (_bent(strata={"canary": "x"}), "strata_invalid", 422),
    "strata a list": (_bent(strata=[]), "field_type", 422),
    "a token": (_bent(token="canary"), "token_invalid", 401),
}


@pytest.mark.parametrize("name", BAD_REPORTS)
def test_bad_reports_are_refused_counted_and_not_stored(
    database: Database, document: SurveyDocument, intake: Intake, name: str
) -> None:
    make, code, status = BAD_REPORTS[name]
    error = refusal(InvalidInput, intake.accept, SURVEY, make(document))
    assert (error.code, error.problem.status) == (code, status)
    assert "canary" not in str(error)
    assert _stored(database) == 0
    assert intake.refusals(SURVEY) == {("2026-06-01", code): 1}


@pytest.mark.parametrize(
    "survey_id", ["cd" * 16, "", "../../x", "AB" * 16, "' OR 1=1 --", "\x00", "ab" * 15]
)
def test_an_unknown_survey_stores_nothing(
    database: Database, document: SurveyDocument, intake: Intake, survey_id: str
) -> None:
    for sent in (body(document), b"canary"):
        error = refusal(InvalidInput, intake.accept, survey_id, sent)
        assert error.code in ("survey_unknown", "json_invalid")
    with pytest.raises(InvalidInput, match="no survey"):
        intake.accept_batch(survey_id, [body(document)])
    assert _stored(database) == 0
    with database.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM day_counts").scalar_one() == 0


def test_a_document_of_another_survey_is_a_mismatch(
    database: Database, document: SurveyDocument, intake: Intake
) -> None:
    other_document = published(database, survey_id="cd" * 16)
    intake.accept(
        other_document.survey, body(other_document)
    )  # now known, but still for another survey
    assert refusal(InvalidInput, intake.accept, SURVEY, body(other_document)).code == "doc_mismatch"
    assert _stored(database) == 0


def test_a_superseded_document_counts_until_its_own_closing(
    database: Database, document: SurveyDocument
) -> None:
    newer = replace(
        survey(ldp_block(), version=2, prev=document.digest), closes=NOW + timedelta(days=40)
    )
    put(database, newer)
    assert Intake(database, FixedClock(NOW)).accept(SURVEY, body(document)).status == "accepted"
    assert (
        Intake(database, FixedClock(document.closes)).accept(SURVEY, body(document)).status
        == "accepted"
    )
    late = Intake(database, FixedClock(document.closes + timedelta(seconds=1)))
    assert late.accept(SURVEY, body(newer)).status == "accepted"
    error = refusal(InvalidInput, late.accept, SURVEY, body(document))
    assert (error.code, error.problem.status) == ("closed", 410)


def test_an_early_report_gets_the_time_to_retry(
    database: Database, document: SurveyDocument
) -> None:
    early = Intake(database, FixedClock(document.opens - timedelta(seconds=89, milliseconds=500)))
    error = refusal(TooEarly, early.accept, SURVEY, body(document))
    assert (error.code, error.problem.status, error.retry_after_s) == ("too_early", 409, 90)
    assert (
        Intake(database, FixedClock(document.opens)).accept(SURVEY, body(document)).status
        == "accepted"
    )


def test_public_strata_are_checked_and_counted_separately(
    database: Database, intake: Intake
) -> None:
    document_with_strata = replace(
        survey(ldp_block()), strata=(question("region", "north", "south"),)
    )
    put(database, document_with_strata)
    for region in ("north", "south", "south"):
        sent = report(document_with_strata, 1, strata={"region": region}).to_bytes(
            document_with_strata.report_length
        )
        assert intake.accept(SURVEY, sent).status == "accepted"
    for strata in ({}, {"region": "east"}, {"region": "north", "town": "x"}):
        with pytest.raises(InvalidInput) as refused:
            intake.accept(SURVEY, report(document_with_strata, 1, strata=strata).to_bytes(0))
        assert refused.value.code == "strata_invalid"
    release(database, document_with_strata)
    with database.reading("look") as tx:
        found = {
            (key.stratum, key.symbol): n
            for key, n in tx.counts.of_document(document_with_strata.digest).items()
        }
        assert tx.counts.recount(SURVEY) == []
    assert found == {('{"region":"north"}', 1): 1, ('{"region":"south"}', 1): 2}


def test_one_bad_report_does_not_affect_the_others(
    database: Database, document: SurveyDocument, intake: Intake
) -> None:
    intake.accept(SURVEY, body(document, 1, 1, report_id="11" * 16))
    reports: list[Any] = [
        body(document, 0, 1, report_id=ID),
        b"canary",
        json.loads(report(document, 1, 0).to_bytes(0)),  # already parsed
        body(document, 0, 1, report_id=ID),
        body(document, 1, 1, report_id=ID),
        body(document, 2, 0),
        body(document, 1, 1, report_id="11" * 16),
        body(document, 0, 1, report_id="11" * 16),
    ]
    outcomes = intake.accept_batch(SURVEY, reports)
    codes = [
        outcome.status if isinstance(outcome, Outcome) else outcome.code for outcome in outcomes
    ]
    first_codes = ["accepted", "json_invalid", "accepted", "duplicate"]
    assert codes == [*first_codes, "id_conflict", "symbol_unknown", "duplicate", "id_conflict"]
    assert _counted(database, document) == {(0, 0): 1, (0, 1): 2, (1, 0): 1, (1, 1): 2}
    assert intake.refusals(SURVEY) == {
        ("2026-06-01", "json_invalid"): 1,
        ("2026-06-01", "symbol_unknown"): 1,
        ("2026-06-01", "id_conflict"): 2,
    }


def test_an_empty_batch_changes_nothing(
    database: Database, document: SurveyDocument, intake: Intake
) -> None:
    assert intake.accept_batch(SURVEY, []) == []
    assert _stored(database) == 0


def test_many_copies_racing_leave_one_row(
    database: Database, document: SurveyDocument, intake: Intake
) -> None:
    copies = [body(document, i % 2, 1, report_id=f"{i:032x}") for i in range(20)] * 8

    with ThreadPoolExecutor(8) as threads:
        status_counts = Counter(
            outcome.status
            for outcome in threads.map(lambda sent: intake.accept(SURVEY, sent), copies)
        )
    assert status_counts == {"accepted": 20, "duplicate": 140}
    assert _counted(database, document) == {(0, 0): 10, (0, 1): 10, (1, 1): 20}


def test_different_reports_racing_for_one_id_leave_one(
    database: Database, document: SurveyDocument, intake: Intake
) -> None:
    def send(symbols: tuple[int, int]) -> str:
        try:
            return intake.accept(SURVEY, body(document, *symbols, report_id=ID)).status
        except InvalidInput as refusal:
            return refusal.code

    with ThreadPoolExecutor(8) as threads:
        code_counts = Counter(threads.map(send, [(0, 0), (0, 1), (1, 0), (1, 1)] * 4))
    assert code_counts == {"accepted": 1, "duplicate": 3, "id_conflict": 12}
    assert sum(_counted(database, document).values()) == 2


def test_overlapping_batches_racing_store_every_report_once(
    database: Database, document: SurveyDocument, intake: Intake
) -> None:
    sent = [body(document, i % 2, i % 2, report_id=f"{i:032x}") for i in range(60)]
    batches = [sent[:40], sent[20:], sent[::-1], sent]
    with ThreadPoolExecutor(4) as threads:
        outcomes = [
            each
            for batch_outcomes in threads.map(
                lambda batch: intake.accept_batch(SURVEY, batch), batches
            )
            for each in batch_outcomes
        ]
    assert Counter(outcome.status for outcome in outcomes if isinstance(outcome, Outcome)) == {
        "accepted": 60,
        "duplicate": 140,
    }
    assert _counted(database, document) == {(0, 0): 30, (0, 1): 30, (1, 0): 30, (1, 1): 30}


def test_nothing_is_acknowledged_when_storing_fails(fresh_database: Database) -> None:
    document, intake = published(fresh_database), Intake(fresh_database, FixedClock(NOW))
    with fresh_database.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE survey_standings RENAME TO away")
    with pytest.raises(StoreUnavailable):
        intake.accept(SURVEY, body(document, report_id=ID))
    with pytest.raises(StoreUnavailable):
        intake.accept_batch(SURVEY, [body(document, report_id=ID)])
    with fresh_database.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE away RENAME TO survey_standings")
    assert _stored(fresh_database) == 0
    assert intake.accept(SURVEY, body(document, report_id=ID)).status == "accepted"


def test_a_refusal_is_returned_even_when_it_cannot_be_counted(fresh_database: Database) -> None:
    published(fresh_database)
    with fresh_database.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE day_counts")
    error = refusal(InvalidInput, Intake(fresh_database, FixedClock(NOW)).accept, SURVEY, b"canary")
    assert error.code == "json_invalid"


@pytest.mark.parametrize("rule", [None, TokenRule("invite")], ids=["open", "invite"])
def test_accepting_writes_the_report_and_its_tokens_mark_and_nothing_else(
    database: Database, rule: TokenRule | None
) -> None:
    document = put(database, replace(survey(ldp_block()), token=rule))
    token = None if rule is None else Invites(database).make(SURVEY, 1)[0]
    intake = Intake(database, FixedClock(NOW))
    sent = replace(report(document), token=token).to_bytes(document.report_length)
    with pytest.raises(InvalidInput):
        intake.accept(
            SURVEY, replace(report(document), token="x").to_bytes(0)
        )  # loads the document into the cache
    before = _rows(database)

    intake.accept(SURVEY, sent)
    after = _rows(database)
    assert {name for name in after if after[name] != before[name]} == {
        "reports",
        *(["tokens"] if rule else []),
    }
    (row,) = after["reports"]
    assert row[-1] is None  # pending


def _rows(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    with database.engine.connect() as connection:
        return {
            name: [tuple(row) for row in connection.execute(table.select())]
            for name, table in metadata.tables.items()
        }
