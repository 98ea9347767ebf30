# SPDX-License-Identifier: Apache-2.0
"""Keeping reports inside one transaction: what is new is inserted and counted, the rest compared with the first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.intake.gate import refusal
from frankly_server.intake.tokens import Spend, give_back, spend_all
from frankly_server.store import UNDATED, Database, Kind, ReportRow, Transaction


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a report: ``accepted``, or ``duplicate`` if the same content was stored under its id before."""

    status: str
    id: str = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class AllAccepted(Sequence[Outcome]):
    """What became of reports that were all accepted, by their ids: no object for each, unless it is asked for."""

    ids: Sequence[str] = field(repr=False)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, i: Any) -> Any:
        """Return one outcome."""
        return Outcome("accepted", self.ids[i])


@dataclass(frozen=True, slots=True)
class Admitted:
    """A report that its document lets in, and the token it brings; only the first is stored.

    kind : what it says, if that is known already.
    """

    row: ReportRow
    spend: Spend | None = None
    kind: Kind | None = None


def keep_plain(database: Database, admitted: Sequence[Admitted], day: str) -> dict[int, Outcome]:
    """Keep the reports that are plainly new and bring no token; return by number what became of them.

    The others need a transaction that looks at them: see `keep`. Raises StoreUnavailable if a survey's reports could
    not be kept; those of another may have been by then, and are duplicates when they come again.
    """
    surveys: dict[str, dict[str, tuple[int, Kind]]] = {}
    for i, one in enumerate(admitted):
        if one.spend is None and (kind := one.kind or database.kind(one.row)) is not None:
            surveys.setdefault(one.row.survey, {}).setdefault(one.row.id, (i, kind))
    return {
        first[report_id][0]: Outcome("accepted", report_id)
        for survey, first in surveys.items()
        for report_id in database.keep_new(survey, list(first), [kind for _, kind in first.values()], day)
    }


def keep(tx: Transaction, admitted: Sequence[Admitted], day: str = UNDATED) -> list[Outcome | InvalidInput]:
    """Store reports and return what became of each, in their order; counted under `day`, ``YYYY-MM-DD`` in UTC.

    InvalidInput (id_conflict, token_spent, token_foreign, token_invalid) is returned, not raised. Counts grow by
    exactly the reports that were new, and exactly their tokens are spent, in the same transaction.
    """
    outcomes: dict[int, Outcome | InvalidInput] = {}
    fresh: list[ReportRow] = []
    by_survey = sorted(enumerate(admitted), key=lambda numbered: numbered[1].row.survey)
    for survey, group in groupby(by_survey, key=lambda numbered: numbered[1].row.survey):
        fresh += _keep_of_survey(tx, survey, list(group), outcomes)
    tx.counts.add(fresh, day)
    return [outcomes[i] for i in range(len(admitted))]


def _keep_of_survey(
    tx: Transaction, survey: str, numbered: list[tuple[int, Admitted]], outcomes: dict[int, Outcome | InvalidInput]
) -> list[ReportRow]:
    """Insert one survey's reports, note every outcome under its number, and return the rows that were new."""
    first: dict[str, Admitted] = {}
    for _, one in numbered:
        first.setdefault(one.row.id, one)
    shut = refusal(tx, survey)
    if shut is not None:
        # What was kept before is still acknowledged: its device only did not hear so.
        kept = tx.reports.get_many(survey, list(first))
        outcomes.update({i: _again(one.row, kept[one.row.id]) if one.row.id in kept else shut for i, one in numbered})
        return []
    refused, spent = _spend(tx, survey, first)
    rows = {i: one.row for i, one in first.items() if i in spent or one.spend is None}
    new = tx.reports.add_many(list(rows.values()))
    # Somebody else may have stored a report of the same id since we looked: it has a token of its own.
    give_back(tx, survey, [spend for i, spend in spent.items() if i not in new])
    kept = rows | tx.reports.get_many(survey, [report_id for report_id in first if report_id not in new])
    unsaid = set(new)
    for i, one in numbered:
        row = one.row
        if row.id in unsaid:
            unsaid.remove(row.id)
            outcomes[i] = Outcome("accepted", row.id)
        elif row.id in kept:
            outcomes[i] = _again(row, kept[row.id])
        else:
            outcomes[i] = refused[row.id]
    return [row for row in rows.values() if row.id in new]


def _spend(
    tx: Transaction, survey: str, first: Mapping[str, Admitted]
) -> tuple[dict[str, InvalidInput], dict[str, Spend]]:
    """Spend the tokens of reports that are not stored yet; return why which could not be, and which were.

    A report that is stored already is a repetition: it keeps the token it spent then, and spends none now.
    """
    bringing = {report_id: one.spend for report_id, one in first.items() if one.spend is not None}
    stored = tx.reports.get_many(survey, list(bringing))
    wanted = {report_id: spend for report_id, spend in bringing.items() if report_id not in stored}
    refused = spend_all(tx, survey, list(wanted.items())) if wanted else {}
    return refused, {report_id: spend for report_id, spend in wanted.items() if report_id not in refused}


def _again(row: ReportRow, stored: ReportRow) -> Outcome | InvalidInput:
    if row != stored:
        return InvalidInput(Problem.ID_CONFLICT, "another report with this id came first and is kept", "id")
    return Outcome("duplicate", row.id)
