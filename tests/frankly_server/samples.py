# SPDX-License-Identifier: Apache-2.0
"""Published documents and reports on them, without the designer."""

import secrets

from frankly_protocol.blocks import Block
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.report import Report
from frankly_server.store import Database, DocumentRow, ReportRow, SurveyRow

from tests.frankly_protocol.samples import ldp_block, lip_block, sealed, survey

SURVEY = "ab" * 16


def put(database: Database, document: SurveyDocument) -> SurveyDocument:
    """Store a document as published."""
    row = DocumentRow(document.digest, document.survey, document.version, document.digest, sealed(document.payload()))
    with database.transaction("test") as tx:
        if tx.surveys.get(document.survey) is None:
            tx.surveys.add(SurveyRow(document.survey, f"s-{document.survey[:8]}", "{}"))
        tx.documents.add(row)
    return document


def published(database: Database, *blocks: Block, survey_id: str = SURVEY) -> SurveyDocument:
    """Store and return a two-block document, open around NOW."""
    return put(database, survey(*(blocks or (ldp_block(), lip_block())), survey_id=survey_id))


def report(
    document: SurveyDocument, *symbols: int, report_id: str | None = None, strata: dict[str, str] | None = None
) -> Report:
    """A report on a document, with symbols 0 unless given."""
    return Report(
        document.digest, report_id or secrets.token_hex(16), symbols or (0,) * len(document.blocks), strata or {}
    )


def body(document: SurveyDocument, *symbols: int, report_id: str | None = None) -> bytes:
    """The bytes of a report, padded as a device would."""
    return report(document, *symbols, report_id=report_id).to_bytes(document.report_length)


def row(*symbols: int, report_id: str | None = None, document: str = "sha256:" + "cd" * 32) -> ReportRow:
    """A report as stored."""
    return ReportRow(SURVEY, report_id or secrets.token_hex(16), document, symbols or (0, 1), "")
