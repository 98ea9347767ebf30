# SPDX-License-Identifier: Apache-2.0
"""Published documents and their reports, made without the designer."""

import secrets
from collections.abc import Iterable

from frankly_protocol.blocks import Block
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.report import Report
from frankly_server.store import Database, DocumentRow, ReportRow, SurveyRow, Transaction
from frankly_server.store.reports import reports
from frankly_server.store.tokens import tokens
from sqlalchemy import func, select

from tests.frankly_protocol.samples import ldp_block, lip_block, sealed, survey

SURVEY = "ab" * 16


def put(database: Database, document: SurveyDocument) -> SurveyDocument:
    """Store a document as a published document."""
    row = DocumentRow(
        document.digest,
        document.survey,
        document.version,
        document.digest,
        sealed(document.payload()),
    )
    with database.transaction("test") as tx:
        if tx.surveys.get(document.survey) is None:
            tx.surveys.add(SurveyRow(document.survey, f"s-{document.survey[:8]}", "{}"))
        tx.documents.add(row)
    return document


def published(database: Database, *blocks: Block, survey_id: str = SURVEY) -> SurveyDocument:
    """Store and return a two-block document that is open at NOW."""
    return put(database, survey(*(blocks or (ldp_block(), lip_block())), survey_id=survey_id))


def report(
    document: SurveyDocument,
    *symbols: int,
    report_id: str | None = None,
    strata: dict[str, str] | None = None,
) -> Report:
    """Return a report on a document; symbols are 0 by default."""
    return Report(
        document.digest,
        report_id or secrets.token_hex(16),
        symbols or (0,) * len(document.blocks),
        strata or {},
    )


def body(document: SurveyDocument, *symbols: int, report_id: str | None = None) -> bytes:
    """Return the bytes of a report, padded as a device would pad them."""
    return report(document, *symbols, report_id=report_id).to_bytes(document.report_length)


def row(
    *symbols: int, report_id: str | None = None, document: str = "sha256:" + "cd" * 32
) -> ReportRow:
    """Return a report as stored."""
    return ReportRow(SURVEY, report_id or secrets.token_hex(16), document, symbols or (0, 1), "")


def release(
    database: Database, *documents: SurveyDocument, at: str = "2026-06-02T00:00:00Z", step: int = 1
) -> int:
    """Release pending reports of some documents, in all cells by default; return the number of reports."""
    n = 0
    for document in documents:
        with database.transaction("release") as tx:
            n += tx.releases.release(
                document.survey, document.digest, step, at, is_over=lambda: False
            )
    return n


def released(
    database: Database, document: SurveyDocument, rows: Iterable[ReportRow], day: str = "2026-06-02"
) -> int:
    """Store reports on a document and release them on a day."""
    with database.transaction("receive") as tx:
        tx.reports.add(list(rows))
    return release(database, document, at=f"{day}T00:00:00Z")


def stored(tx: Transaction, survey_id: str = SURVEY) -> list[ReportRow]:
    """Return every report of a survey, including pending ones."""
    ids = tx._connection.scalars(select(reports.c.id).where(reports.c.survey == survey_id)).all()
    return [
        row
        for i in range(0, len(ids), 500)
        for row in tx.reports.get_many(survey_id, ids[i : i + 500]).values()
    ]


def spent(database: Database, survey_id: str = SURVEY) -> int:
    """Return the number of spent tokens of a survey, released or not."""
    with database.engine.connect() as connection:
        query = select(func.count()).where(tokens.c.survey == survey_id, tokens.c.spent)
        return int(connection.execute(query).scalar_one())
