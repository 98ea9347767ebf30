# SPDX-License-Identifier: Apache-2.0
"""Counts by UTC day, of every block by itself: they add up to the totals, and lie apart from the reports.

Pairs of blocks have no days. Trends do not need them, and on a quiet day they would put whole reports together again.
No report tells its day, so what is lost here cannot be counted again: it becomes undated.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, delete, func, or_, select

from frankly_server.store.schema import counts_by_day as table
from frankly_server.store.statistics import NO_NUMBER

UNDATED: Final = ""
"""The day of reports whose day is not known: from before days were kept, or not to be believed any more."""


class DayKey(NamedTuple):
    """What is counted on a day.

    day : ``YYYY-MM-DD`` in UTC, or UNDATED. symbol, other_symbol : as in CountKey with NO_NUMBER beside it; of a larger
    set also every pair of positions, as in PairKey.
    """

    document: str
    block: int
    stratum: str
    day: str
    symbol: int
    other_symbol: int


class AllDaysKey(NamedTuple):
    """The same, all days together."""

    document: str
    block: int
    stratum: str
    symbol: int
    other_symbol: int

    def on(self, day: str) -> DayKey:
        """Return the key of one day."""
        return DayKey(self.document, self.block, self.stratum, day, self.symbol, self.other_symbol)


class ByDay:
    """The `counts_by_day` table within one transaction; written by `Counts` alone."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of_document(self, digest: str, since: str | None = None, until: str | None = None) -> Mapping[DayKey, int]:
        """Return the counts of one document, slots added up: of the undated, and of days from `since` to `until`."""
        wanted: list[Any] = [table.c.document == digest, or_(table.c.day >= (since or UNDATED), table.c.day == UNDATED)]
        if until is not None:
            wanted.append(table.c.day <= until)
        return {DayKey(*key): n for key, n in self._summed(DayKey._fields, wanted).items()}

    def totals(self, digest: str) -> Mapping[AllDaysKey, int]:
        """Return what all days of a document add up to."""
        return {
            AllDaysKey(*key): n for key, n in self._summed(AllDaysKey._fields, [table.c.document == digest]).items()
        }

    def erase(self, digest: str) -> int:
        """Delete the days of a document; return how many rows there were."""
        return int(self._connection.execute(delete(table).where(table.c.document == digest)).rowcount)

    def mended(self, digest: str, told: Mapping[AllDaysKey, int]) -> Mapping[DayKey, int]:
        """Return the days a document has once its reports are counted again, adding up to what those tell.

        Days are kept if whole reports are missing from them, which are then undated: as many in every block. Anything
        else is no longer a count of reports, and all of the document's days are given up.
        """
        days, totals = self.of_document(digest), self.totals(digest)
        missing = {key: told.get(key, 0) - totals.get(key, 0) for key in told.keys() | totals.keys()}
        if not _are_reports(missing):
            return {key.on(UNDATED): n for key, n in told.items()}
        found = Counter(days)
        for key, n in missing.items():
            found[key.on(UNDATED)] += n
        return {key: n for key, n in found.items() if n}

    def _summed(self, names: Iterable[str], wanted: list[Any]) -> dict[tuple[Any, ...], int]:
        keys = [table.c[name] for name in names]
        found = select(*keys, func.sum(table.c.n)).where(*wanted).group_by(*keys)
        return {tuple(key): int(n) for *key, n in self._connection.execute(found)}


def _are_reports(missing: Mapping[AllDaysKey, int]) -> bool:
    """Tell whether these can be the counts of some reports: none negative, as many in each block of a stratum."""
    if min(missing.values(), default=0) < 0:
        return False
    sizes: Counter[tuple[str, int]] = Counter()
    blocks = {key.block for key in missing}
    for key, n in missing.items():
        if key.other_symbol == NO_NUMBER:
            sizes[key.stratum, key.block] += n
    strata = {stratum for stratum, _ in sizes}
    return all(len({sizes[stratum, block] for block in blocks}) == 1 for stratum in strata)
