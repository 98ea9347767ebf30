# SPDX-License-Identifier: Apache-2.0
"""Estimates of a survey with their uncertainty, from stored counts where these suffice."""

from collections.abc import Sequence
from typing import Any

from frankly_analyst.formats import encode
from frankly_protocol import __version__
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.counted_document import Received
from frankly_server.analysis.counts import counts_answer, requested_blocks
from frankly_server.analysis.counts_request import CountsQuery
from frankly_server.analysis.reading import (
    beside_each_other,
    received,
    replayed,
    with_periods,
    with_tables,
)
from frankly_server.analysis.request import Request
from frankly_server.analysis.result import estimates_json, needed
from frankly_server.store import Database, DocumentRow, Transaction


class Analysis:
    """Estimates of published surveys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def estimates(self, survey_id: str, **fields: Any) -> dict[str, Any]:
        """Return unbiased estimates with standard errors and margins, as JSON values for `encode`.

        fields : fields of `EstimatesRequest`; None stands for a field's default.

        Versions of the survey with the same question and choice ids are pooled, and flagged
        `versions_differ` if a test finds that their true values differ. Other versions of a question
        have separate tables. With fewer reports than the documents' minimum, a question has status
        ``insufficient``, n and the number needed, but no estimate.

        Raises InvalidInput: survey_unknown, confidence_range unless 0 < level < 1,
        targets_invalid, strata_invalid, field_type, field_unknown, counts_invalid or unsupported.
        """
        request = Request.from_json(fields)
        # One read transaction: counts and releases come from one snapshot even while a release
        # runs.
        with self._database.reading("estimates") as tx:
            rows = [(row, one) for row in _published(tx, survey_id) for one in received(tx, row)]
            documents = [one for _, one in rows]
            joint_blocks = needed(documents, request)
            documents = [
                with_tables(tx, row, one, joint_blocks[one.key]) if one.key in joint_blocks else one
                for row, one in rows
            ]
            if request.is_dated:
                documents = [
                    with_periods(tx, row, document, request)
                    for (row, _), document in zip(rows, documents, strict=True)
                ]
        return estimates_json(survey_id, beside_each_other(documents), request)

    def counts(self, survey_id: str, **fields: Any) -> dict[str, Any]:
        """Return released counts of noisy symbols by stratum, with the mechanisms (spec 8.11).

        fields : fields of `CountsRequest`; None stands for a field's default. The result consists
        of JSON values for `encode`.

        Raises InvalidInput: survey_unknown, strata_invalid, targets_invalid, field_type,
        field_unknown, or unsupported for counts that releases do not store or that are too large
        for a response.
        """
        query = CountsQuery.from_json(fields)
        with self._database.reading("counts") as tx:
            rows = [
                (row, one)
                for row in _published(tx, survey_id)
                for one in received(tx, row, only_counts=True)
            ]
            documents = [one for _, one in rows]
            positions = requested_blocks(documents, query)
            documents = [
                with_tables(
                    tx,
                    row,
                    document,
                    [blocks for blocks in positions.get(document.key, ()) if len(blocks) > 1],
                )
                for row, document in rows
            ]
            if query.is_dated:
                documents = [
                    with_periods(tx, row, document, query)
                    for (row, _), document in zip(rows, documents, strict=True)
                ]
        return counts_answer(survey_id, documents, positions, query)

    def replay(self, result: Any) -> bytes:
        """Recompute a result, byte for byte, from the reports of the batches that it names.

        Raises InvalidInput(json_invalid) if `result` is not a result for a survey of this database,
        if it names a document that the database lacks, or if another version of the code computed
        it.
        """
        try:
            inputs = result["inputs"]
            if inputs["code"] != __version__:
                code = inputs["code"]
                raise InvalidInput(
                    Problem.JSON_INVALID,
                    f"version {code} computed this result: replay it with that, not {__version__}",
                    "inputs.code",
                )
            request = Request.from_json(inputs["request"])
            releases = {
                str(document["digest"]): int(document["release"])
                for document in inputs["documents"]
            }
            with self._database.reading("replay") as tx:
                rows = [
                    (row, one)
                    for row in (_stored(tx, digest) for digest in releases)
                    for one in Received.of(row.envelope, releases[row.digest])
                ]
                joint_blocks = needed([one for _, one in rows], request)
                documents = [
                    replayed(tx, row, one, joint_blocks.get(one.key, ()), request)
                    for row, one in rows
                ]
            return encode(
                estimates_json(str(result["survey"]), beside_each_other(documents), request)
            )
        except InvalidInput:
            raise
        # `result` is a file from the user, so any other error means that it was changed.
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, FranklyError):
            raise InvalidInput(
                Problem.JSON_INVALID,
                "this is not a result of `estimates`: give its complete and unchanged JSON",
                "inputs",
            ) from None


def _published(tx: Transaction, survey_id: str) -> Sequence[DocumentRow]:
    """Return a survey's documents, oldest first. Raises InvalidInput(survey_unknown) if none."""
    rows = tx.documents.versions(survey_id)
    if not rows:
        raise InvalidInput(
            Problem.SURVEY_UNKNOWN, "no survey is published under this id; check the link"
        )
    return rows


def _stored(tx: Transaction, digest: str) -> DocumentRow:
    # Without one of its documents, the result would be recomputed from fewer reports.
    row = tx.documents.get(digest)
    if row is None:
        raise InvalidInput(
            Problem.JSON_INVALID,
            "this database lacks a document of the result: replay it where it was computed",
            "inputs.documents",
        )
    return row
