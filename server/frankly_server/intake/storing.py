# SPDX-License-Identifier: Apache-2.0
"""Keeping reports inside one transaction: what is new is inserted and counted, the rest compared with the first."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.store import ReportRow, Transaction


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a report: ``accepted``, or ``duplicate`` if the same content was stored under its id before."""

    status: str
    id: str = field(repr=False)


def keep(tx: Transaction, rows: Sequence[ReportRow]) -> list[Outcome | InvalidInput]:
    """Store reports and return what became of each, in their order; InvalidInput(id_conflict) is returned, not raised.

    Counts grow by exactly the reports that were new, in the same transaction.
    """
    outcomes: dict[int, Outcome | InvalidInput] = {}
    fresh: list[ReportRow] = []
    by_survey = sorted(enumerate(rows), key=lambda numbered: numbered[1].survey)
    for survey, group in groupby(by_survey, key=lambda numbered: numbered[1].survey):
        fresh += _keep_of_survey(tx, survey, list(group), outcomes)
    tx.counts.add(fresh)
    return [outcomes[i] for i in range(len(rows))]


def _keep_of_survey(
    tx: Transaction, survey: str, numbered: list[tuple[int, ReportRow]], outcomes: dict[int, Outcome | InvalidInput]
) -> list[ReportRow]:
    """Insert one survey's reports, note every outcome under its number, and return the rows that were new."""
    first: dict[str, ReportRow] = {}
    for _, row in numbered:
        first.setdefault(row.id, row)
    new = tx.reports.add_many(list(first.values()))
    kept = first | tx.reports.get_many(survey, [report_id for report_id in first if report_id not in new])
    unsaid = set(new)
    for i, row in numbered:
        if row.id in unsaid:
            unsaid.remove(row.id)
            outcomes[i] = Outcome("accepted", row.id)
        else:
            outcomes[i] = _again(row, kept[row.id])
    return [row for row in first.values() if row.id in new]


def _again(row: ReportRow, stored: ReportRow) -> Outcome | InvalidInput:
    if row != stored:
        return InvalidInput(Problem.ID_CONFLICT, "another report with this id came first and is kept", "id")
    return Outcome("duplicate", row.id)
