# SPDX-License-Identifier: Apache-2.0
"""Intake of reports: each report is stored once, as pending, and acknowledged after the commit.

A later release counts it (`releasing`).
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from frankly_protocol.clock import Clock
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.intake.admission import Admissions, Admitted, refusal_of
from frankly_server.intake.refusals import Refusals
from frankly_server.intake.throttle import Throttle
from frankly_server.intake.tokens import spend_all
from frankly_server.store import Database, ReportRow, StoreUnavailable


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a report: ``accepted``, or ``duplicate`` if the same report was stored before."""

    status: str
    id: str = field(repr=False)


Result = Outcome | InvalidInput


class Intake:
    """Service that stores reports of published surveys. Safe to share between threads.

    throttle : limits the reports of each source; None for no limit.
    """

    def __init__(self, database: Database, clock: Clock, throttle: Throttle | None = None) -> None:
        self._database, self._clock, self._throttle = database, clock, throttle
        self._admissions = Admissions(database)
        self._refusals = Refusals(database)

    def accept(self, survey_id: str, body: bytes) -> Outcome:
        """Store one report and return after the commit. Sending the same bytes again is safe.

        Raises InvalidInput: survey_unknown, doc_mismatch, too_early, closed, y_type,
        symbol_unknown, strata_invalid, token_invalid, token_foreign, token_spent, too_many (of one
        source), id_conflict (another report with this id is stored), or an error of `Report.from_bytes`. Raises
        StoreUnavailable if the report may or may not be stored; send the same bytes again.
        """
        (result,) = self._results(survey_id, [body])
        if isinstance(result, InvalidInput):
            raise result
        return result

    def accept_batch(self, survey_id: str, reports: Sequence[Any]) -> list[Result]:
        """Store many reports together; return one result per report, in their order.

        reports : values from strict JSON parsing. The result of a refused report is its error;
        other reports are not affected. Raises InvalidInput(survey_unknown), or StoreUnavailable,
        for all reports together.
        """
        self._admissions.require_survey(survey_id)
        return self._results(survey_id, reports)

    def refusals(self, survey_id: str) -> dict[tuple[str, str], int]:
        """Return (UTC day, problem code) -> number of refused reports."""
        self._refusals.flush()
        with self._database.reading("refusals") as tx:
            return tx.days.of_survey(survey_id)

    def accepted(self, survey_id: str) -> int:
        """Return the number of stored reports, pending or not; pages may only show its band."""
        with self._database.reading("accepted reports") as tx:
            return tx.reports.accepted(survey_id)

    def released_by_day(self, survey_id: str) -> dict[str, int]:
        """Return UTC day of release -> number of reports, the oldest first."""
        with self._database.reading("released reports") as tx:
            return tx.batches.by_day(survey_id)

    def release_mark(self, survey_id: str) -> tuple[str, int, int]:
        """Return what changes with every release and erasure of a survey (`BatchesTable.mark`)."""
        with self._database.reading("released reports") as tx:
            return tx.batches.mark(survey_id)

    def released(self) -> dict[str, int]:
        """Return survey id -> number of released reports, without surveys that have none."""
        with self._database.reading("released reports") as tx:
            return tx.batches.numbers()

    def close(self) -> None:
        """Write the counts of refusals that are still only in memory."""
        self._refusals.flush()

    def _results(self, survey_id: str, reports: Iterable[Any]) -> list[Result]:
        now = self._clock.now()
        admissions = [self._admissions.admit(survey_id, report, now) for report in reports]
        admitted = [admission for admission in admissions if isinstance(admission, Admitted)]
        stored = iter(
            record(self._database, survey_id, admitted, self._throttle) if admitted else ()
        )
        results = [
            admission if isinstance(admission, InvalidInput) else next(stored)
            for admission in admissions
        ]
        if refused := [result for result in results if isinstance(result, InvalidInput)]:
            self._count(survey_id, now, refused)
        return results

    def _count(self, survey_id: str, now: datetime, refused: Sequence[InvalidInput]) -> None:
        """Count refusals of a published survey."""
        # Even if the database is down, the sender must get the reason for the refusal. The store
        # logs the failure.
        with suppress(StoreUnavailable):
            if self._admissions.is_published(survey_id):
                self._refusals.add(survey_id, now.date().isoformat(), refused)


def record(
    database: Database, survey: str, admitted: Sequence[Admitted], throttle: Throttle | None = None
) -> list[Result]:
    """Store a survey's reports as pending and mark their tokens as spent.

    Returns one result per report, in their order, after the commit. Raises StoreUnavailable.
    """
    first: dict[str, Admitted] = {}
    for report in admitted:
        first.setdefault(report.row.id, report)
    new, refused = _insert(database, survey, list(first.values()), throttle)
    stored = dict[str, ReportRow]()
    if not_inserted := first.keys() - new:
        with database.reading("stored before") as tx:
            stored = tx.reports.get_many(survey, list(not_inserted))
            # The insert refused reports that are neither new nor already stored.
            if len(stored) < len(not_inserted):
                closed = refusal_of(tx, survey)
                refused |= {i: closed for i in not_inserted if i not in stored}
    results: list[Result] = []
    for row in (report.row for report in admitted):
        if row.id in refused:
            results.append(refused[row.id])
        elif row.id in new:
            # Later reports of this batch with the same id are compared with this report.
            new.remove(row.id)
            results.append(Outcome("accepted", row.id))
        else:
            results.append(_repeated(row, stored.get(row.id, first[row.id].row)))
    return results


def _insert(
    database: Database, survey: str, reports: Sequence[Admitted], throttle: Throttle | None
) -> tuple[set[str], dict[str, InvalidInput]]:
    """Insert reports with different ids; return the ids that are new, and refusals of tokens."""
    rows = [report.row for report in reports]
    spends = [(report.row.id, report.spend) for report in reports if report.spend is not None]
    if not spends:
        return database.add_reports(rows), {}  # without tokens no transaction is needed
    with database.transaction("accept reports") as tx:
        # The report is inserted before its token is spent: a concurrent copy blocks at its insert
        # until this transaction ends, then fails because its id exists, and touches no token.
        new = tx.reports.add(rows)
        refused = spend_all(tx, survey, [(i, spend) for i, spend in spends if i in new])
        if throttle is not None:
            fresh = [(i, spend) for i, spend in spends if i in new and i not in refused]
            refused |= throttle.refuse(tx, survey, fresh)
        tx.reports.take_back(survey, list(refused))
        return new, refused


def _repeated(row: ReportRow, stored: ReportRow) -> Result:
    # Releases remove the stratum of reports in small cells, and results of the instructed item, so
    # a copy may have answers in the clear that the stored report no longer has.
    kept = _answers(stored).items() <= _answers(row).items()
    if not kept or replace(stored, strata=row.strata) != row:
        return InvalidInput(
            Problem.ID_CONFLICT, "another report with this id is already stored", "id"
        )
    return Outcome("duplicate", row.id)


def _answers(row: ReportRow) -> dict[str, str]:
    answers: dict[str, str] = json.loads(row.strata) if row.strata else {}
    return answers
