# SPDX-License-Identifier: Apache-2.0
"""Accepting reports: each stored once, as pending, and acknowledged after the commit; a release counts it later."""

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
from frankly_server.intake.tokens import spend_all
from frankly_server.store import NOT_TOLD, Database, ReportRow, StoreUnavailable


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a report: ``accepted``, or ``duplicate`` if the same content was stored under its id before."""

    status: str
    id: str = field(repr=False)


Judged = Outcome | InvalidInput


class Intake:
    """Stores reports of published surveys. Safe to share between threads."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._admissions = Admissions(database)
        self._refusals = Refusals(database)

    def accept(self, survey_id: str, body: bytes) -> Outcome:
        """Store one report and return after the commit; sending the same bytes again is safe.

        Raises InvalidInput: survey_unknown, doc_mismatch, too_early, closed, symbol_unknown, strata_invalid,
        token_invalid, token_foreign, token_spent, id_conflict (another report with this id was first), or what
        `Report.from_bytes` raises; StoreUnavailable if nothing is certain, in which case the same bytes should be sent
        again.
        """
        (judged,) = self._judged(survey_id, [body])
        if isinstance(judged, InvalidInput):
            raise judged
        return judged

    def accept_batch(self, survey_id: str, reports: Sequence[Any]) -> list[Judged]:
        """Store many reports in one transaction; return what became of each, in their order.

        `reports` are values that strict JSON parsing has already opened. A refused one, returned as its error, never
        fails its neighbours. Raises InvalidInput(survey_unknown) for all of them, or StoreUnavailable.
        """
        self._admissions.require_survey(survey_id)
        return self._judged(survey_id, reports)

    def refusals(self, survey_id: str) -> dict[tuple[str, str], int]:
        """Return (UTC day, problem code) -> how many reports were refused."""
        self._refusals.flush()
        with self._database.reading("refusals") as tx:
            return tx.days.of_survey(survey_id)

    def accepted(self, survey_id: str) -> int:
        """Return how many reports are stored, released or pending: never tell it but in bands."""
        with self._database.reading("accepted reports") as tx:
            return tx.reports.accepted(survey_id)

    def close(self) -> None:
        """Write the counts of refusals that are still in memory."""
        self._refusals.flush()

    def _judged(self, survey_id: str, reports: Iterable[Any]) -> list[Judged]:
        now = self._clock.now()
        found = [self._admissions.admit(survey_id, report, now) for report in reports]
        admitted = [one for one in found if isinstance(one, Admitted)]
        stored = iter(store(self._database, survey_id, admitted) if admitted else ())
        judged = [one if isinstance(one, InvalidInput) else next(stored) for one in found]
        if refused := [one for one in judged if isinstance(one, InvalidInput)]:
            self._count(survey_id, now, refused)
        return judged

    def _count(self, survey_id: str, now: datetime, refused: Sequence[InvalidInput]) -> None:
        """Count refusals of a published survey; a database that is down must not hide them."""
        with suppress(StoreUnavailable):  # logged by the store
            if self._admissions.is_published(survey_id):
                self._refusals.add(survey_id, now.date().isoformat(), refused)


def store(database: Database, survey: str, admitted: Sequence[Admitted]) -> list[Judged]:
    """Store a survey's reports as pending, and mark their tokens as spent; return what became of each, in their order.

    Returns after the commit; raises StoreUnavailable.
    """
    first: dict[str, Admitted] = {}
    for one in admitted:
        first.setdefault(one.row.id, one)
    spends = [(i, one.spend) for i, one in first.items() if one.spend is not None]
    rows, refused = [one.row for one in first.values()], dict[str, InvalidInput]()
    if spends:
        with database.transaction("accept reports") as tx:
            # A report comes before its token: a copy sent at the same time waits for the first, and touches no token.
            new = tx.reports.add(rows)
            refused = spend_all(tx, survey, [(i, spend) for i, spend in spends if i in new])
            tx.reports.take_back(survey, list(refused))
    else:
        new = database.add_reports(rows)
    old = first.keys() - new
    if not (old or refused) and len(first) == len(admitted):
        return [Outcome("accepted", one.row.id) for one in admitted]
    kept = dict[str, ReportRow]()
    if old:
        with database.reading("stored before") as tx:
            kept = tx.reports.get_many(survey, list(old))
            if len(kept) < len(old):  # neither new nor stored before: the survey takes no reports
                closed = refusal_of(tx, survey)
                refused |= {i: closed for i in old if i not in kept}
    judged: list[Judged] = []
    for row in (one.row for one in admitted):
        if row.id in new and row.id not in refused:
            new.remove(row.id)  # a second of this id is a copy of the first
            judged.append(Outcome("accepted", row.id))
        else:
            judged.append(refused.get(row.id) or _again(row, kept.get(row.id, first[row.id].row)))
    return judged


def _again(row: ReportRow, stored: ReportRow) -> Judged:
    # At the end of a survey, what a small cell holds is released without its stratum.
    if stored not in (row, replace(row, strata=NOT_TOLD)):
        return InvalidInput(Problem.ID_CONFLICT, "another report with this id came first and is kept", "id")
    return Outcome("duplicate", row.id)
