# SPDX-License-Identifier: Apache-2.0
"""Estimates written to the database for tools that read SQL: the default ones, and by group.

The rows are the API's results, once without parameters and once by each public question. Questions
of a block without stored counts are left out, because each release would have to read every report.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from frankly_protocol.errors import InvalidInput

from frankly_server.analysis.counted_document import Received
from frankly_server.analysis.groups import groupings
from frankly_server.analysis.reading import beside_each_other, received
from frankly_server.analysis.request import Request
from frankly_server.analysis.result import estimates_json
from frankly_server.analysis.tables import estimable_blocks
from frankly_server.store import Database, Layout
from frankly_server.store.published_estimates import PublishedEstimate


class Publishing:
    """Writer of `published_estimates`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def refresh(self, survey: str | None = None) -> list[str]:
        """Write the estimates of all surveys (or one) with a release since the last call.

        Return the ids of the surveys whose rows were replaced. Raises StoreUnavailable.
        """
        with self._database.reading("find stale estimates") as tx:
            stale = tx.published_estimates.stale(survey)
        return [survey_id for survey_id in stale if self._refresh(survey_id)]

    def _refresh(self, survey: str) -> bool:
        with self._database.reading("estimates") as tx:
            versions = tx.documents.versions(survey)
            documents = [one for row in versions for one in received(tx, row, only_counts=True)]
        rows = list(_rows(survey, beside_each_other(documents)))
        # Computed outside the write transaction, because SQLite has only one writer at a time.
        with self._database.transaction("publish estimates") as tx:
            return tx.published_estimates.replace(survey, sum(d.n for d in documents), rows)


def _rows(survey: str, documents: Sequence[Received]) -> Iterator[PublishedEstimate]:
    uncounted = {
        question.id
        for source in documents
        for position, block in estimable_blocks(source.document)
        if not Layout.of(source.document).covers((position,))
        for question in block.questions
    }
    versions = {source.document.digest: source.document.version for source in documents}
    strata = {name for source in documents for name in groupings(source.document)}
    for by in (None, *sorted(strata)):
        try:
            result = estimates_json(survey, documents, Request.from_json({"by": by}))
        except InvalidInput:
            # A question of an old version can lack this grouping; the API refuses such a request
            # too.
            continue
        for question in result["questions"]:
            if question["id"] not in uncounted:
                yield from _rows_of(question, by, versions, result["languages"])


def _rows_of(
    question: dict[str, Any], by: str | None, versions: dict[str, int], languages: Sequence[str]
) -> Iterator[PublishedEstimate]:
    """Yield the rows that have an estimate; none of a question with fewer reports than the minimum."""
    for row in question["rows"]:
        if row["estimate"] is None:
            continue
        yield PublishedEstimate(
            version=max(versions[digest] for digest in question["documents"]),
            question=question["id"],
            by_question=by or "",
            by_choice=question["by"][by] if by else "",
            choice=row["choice"],
            question_text=_main(question["text"], languages),
            label=_main(row["label"], languages),
            flags=" ".join(row["flags"]),
            **{
                name: row[name]
                for name in ("estimate", "se", "low", "high", "level", "method", "n")
            },
        )


def _main(texts: dict[str, str], languages: Sequence[str]) -> str:
    # The languages are those of the newest version; an older one may have others.
    return next((texts[name] for name in languages if name in texts), next(iter(texts.values())))
