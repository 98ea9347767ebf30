# SPDX-License-Identifier: Apache-2.0
"""What analysts get: every share beside its uncertainty, from counts alone. Reports are not read here."""

from typing import Any

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.questions import Asked, Counted, asked_alike, question_json
from frankly_server.store import Database, DocumentRow, Transaction


class Analysis:
    """Estimates of published surveys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def estimates(
        self, survey_id: str, *, level: float = 0.95, census: bool = False, simultaneous: bool = False
    ) -> dict[str, Any]:
        """Return unbiased shares of every question with standard errors and margins, as JSON values.

        level : confidence of the margins. census : the respondents are the whole population, so that margins hold the
        privacy noise alone. simultaneous : margins that hold for all choices of a question at once.

        Versions of the survey that asked a question alike (same ids of question and choices) are pooled; one that
        asked differently stands apart. Below the documents' minimum of reports a question has status ``insufficient``,
        n and how many are needed, and no number.

        Raises InvalidInput: survey_unknown, or confidence_range unless 0 < level < 1.
        """
        if not 0 < level < 1:
            words = "a confidence level lies strictly between 0 and 1; for 95% use 0.95"
            raise InvalidInput(Problem.CONFIDENCE_RANGE, words, "level")
        asked = Asked(level, census, simultaneous)
        with self._database.reading("estimates") as tx:
            documents = [_counted(tx, row) for row in tx.documents.versions(survey_id)]
        if not documents:
            raise InvalidInput(Problem.SURVEY_UNKNOWN, "no survey is published under this id; check the link")
        return {
            "survey": survey_id,
            "title": dict(documents[-1].document.title),
            "level": level,
            "method": asked.method,
            "census": census,
            "n": sum(each.received for each in documents),
            "documents": [
                {"digest": each.document.digest, "version": each.document.version, "n": each.received}
                for each in documents
            ],
            "questions": [question_json(sources, asked) for sources in asked_alike(documents)],
        }


def _counted(tx: Transaction, row: DocumentRow) -> Counted:
    document = SurveyDocument.parse(Envelope.from_bytes(row.envelope, SURVEY_TYPE).payload)
    counts = [[0] * block.mechanism.reports for block in document.blocks]
    for key, n in tx.counts.of_document(row.digest).items():
        counts[key.block][key.symbol] += n  # strata together
    return Counted(document, counts)
