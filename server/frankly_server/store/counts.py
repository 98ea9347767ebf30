# SPDX-License-Identifier: Apache-2.0
"""Counts per (document, block, stratum, symbol): all that estimates read, kept in step with the reports.

A PostgreSQL writer holds the rows it adds to until its commit is on disk. So that reporters do not queue behind each
other, every key has several slots there; which one a report takes follows from its id, and readers add them up.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from sqlalchemy import Connection, delete, func, select

from frankly_server.store.reports import ReportRow, Reports
from frankly_server.store.schema import counts, documents
from frankly_server.store.upsert import add_to

_SLOTS: Final = 64
NO_NUMBER: Final = -1


class CountKey(NamedTuple):
    """What is counted: ``block`` is a position from 0, ``stratum`` as in ReportRow.strata.

    symbol : a table's symbol; NO_NUMBER stands for all the symbols of another kind together, which are too many to be
    counted one by one: they are read from the reports.
    """

    document: str
    block: int
    stratum: str
    symbol: int


class Difference(NamedTuple):
    """A count that is not what the reports say."""

    key: CountKey
    counted: int
    reports: int


class Counts:
    """The `counts` table within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, rows: Iterable[ReportRow]) -> None:
        """Count newly inserted reports; call it once, in the transaction that inserted them."""
        rows = list(rows)
        if not rows:
            return
        slot = 0 if self._connection.dialect.name == "sqlite" else int(rows[0].id[:2], 16) % _SLOTS
        # Sorted: transactions that meet in a slot take its rows in one order and cannot deadlock.
        values = [{**key._asdict(), "slot": slot, "n": n} for key, n in sorted(_tally(rows).items())]
        add_to(self._connection, counts, values)

    def of_document(self, digest: str) -> Mapping[CountKey, int]:
        """Return the counts of one document, slots added up."""
        keys = (counts.c.document, counts.c.block, counts.c.stratum, counts.c.symbol)
        found = select(*keys, func.sum(counts.c.n)).where(counts.c.document == digest).group_by(*keys)
        return {CountKey(*key): int(n) for *key, n in self._connection.execute(found)}

    def erase(self, digest: str) -> int:
        """Delete the counts of a document; return how many rows there were."""
        return int(self._connection.execute(delete(counts).where(counts.c.document == digest)).rowcount)

    def recount(self, survey_id: str) -> list[Difference]:
        """Compare the counts of a survey with its reports, one by one; an empty list if they agree."""
        told = _tally(Reports(self._connection).scan(survey_id))
        kept: dict[CountKey, int] = {}
        for digest in self._connection.scalars(select(documents.c.digest).where(documents.c.survey == survey_id)):
            kept.update(self.of_document(digest))
        return [
            Difference(key, kept.get(key, 0), told.get(key, 0))
            for key in sorted(kept.keys() | told.keys())
            if kept.get(key, 0) != told.get(key, 0)
        ]


def _tally(rows: Iterable[ReportRow]) -> Counter[CountKey]:
    tally: Counter[CountKey] = Counter()
    for row in rows:
        for block, symbol in enumerate(row.symbols):
            tally[CountKey(row.document, block, row.strata, symbol if type(symbol) is int else NO_NUMBER)] += 1
    return tally
