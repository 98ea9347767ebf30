# SPDX-License-Identifier: Apache-2.0
"""Estimates of a survey with their uncertainty, from stored counts wherever these suffice."""

from typing import Any

from frankly_protocol import __version__
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.counted_document import Received
from frankly_server.analysis.reading import received, replayed, with_periods, with_tables
from frankly_server.analysis.request import Request
from frankly_server.analysis.result import answer, encode, needed
from frankly_server.store import Database, DocumentRow, Transaction


class Analysis:
    """Estimates of published surveys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def estimates(self, survey_id: str, **fields: Any) -> dict[str, Any]:
        """Return unbiased estimates with standard errors and margins, as JSON values for `encode`.

        fields : fields of `EstimatesRequest`; None stands for a field's default.

        Versions of the survey with the same question and choice ids are pooled, and flagged
        `versions_differ` if a test finds that their truths differ. Other versions of a question
        have separate tables. With fewer reports than the documents' minimum, a question has status
        ``insufficient``, n and the number needed, but no estimate.

        Raises InvalidInput: survey_unknown, confidence_range unless 0 < level < 1,
        targets_invalid, strata_invalid, field_type, field_unknown, counts_invalid or unsupported.
        """
        request = Request.from_json(fields)
        # One read transaction, so that counts and releases are from one snapshot while releases
        # run.
        with self._database.reading("estimates") as tx:
            rows = tx.documents.versions(survey_id)
            documents = [received(tx, row) for row in rows]
            if not documents:
                raise InvalidInput(
                    Problem.SURVEY_UNKNOWN, "no survey is published under this id; check the link"
                )
            joint_blocks = needed(documents, request)
            documents = [
                with_tables(tx, row, document, joint_blocks[row.digest])
                if row.digest in joint_blocks
                else document
                for row, document in zip(rows, documents, strict=True)
            ]
            if request.is_dated:
                documents = [
                    with_periods(tx, row, document, request)
                    for row, document in zip(rows, documents, strict=True)
                ]
        return answer(survey_id, documents, request)

    def replay(self, result: Any) -> bytes:
        """Recompute a result, byte for byte, from the reports of the batches that it names.

        Raises InvalidInput(json_invalid) if it is not a result for a survey of this database, if the
        database lacks a document that it names, or if another version of the code computed it.
        """
        try:
            inputs = result["inputs"]
            if inputs["code"] != __version__:
                code = inputs["code"]
                detail = (
                    f"version {code} computed this result: replay it with that, not {__version__}"
                )
                raise InvalidInput(Problem.JSON_INVALID, detail, "inputs.code")
            request = Request.from_json(inputs["request"])
            releases = {
                str(document["digest"]): int(document["release"])
                for document in inputs["documents"]
            }
            with self._database.reading("replay") as tx:
                rows = [_stored(tx, digest) for digest in releases]
                documents = [Received.of(row.envelope, {}, releases[row.digest]) for row in rows]
                joint_blocks = needed(documents, request)
                documents = [
                    replayed(tx, row, document, joint_blocks.get(row.digest, ()), request)
                    for row, document in zip(rows, documents, strict=True)
                ]
            return encode(answer(str(result["survey"]), documents, request))
        except InvalidInput:
            raise
        # `result` is a file from the user, so any other error means that it was changed.
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, FranklyError):
            detail = "this is not a result of `estimates`: give its complete and unchanged JSON"
            raise InvalidInput(Problem.JSON_INVALID, detail, "inputs") from None


def _stored(tx: Transaction, digest: str) -> DocumentRow:
    # Without one of its documents, the result would be recomputed from fewer reports.
    row = tx.documents.get(digest)
    if row is None:
        detail = "this database lacks a document of the result: replay it where it was computed"
        raise InvalidInput(Problem.JSON_INVALID, detail, "inputs.documents")
    return row
