# SPDX-License-Identifier: Apache-2.0
"""Counts of symbols and of pairs of symbols: all that estimates read, kept in step with the reports.

What is counted of a report is said in `statistics`. A PostgreSQL writer holds the rows it adds to until its commit is
on disk. So that reporters do not queue behind each other, every key has several slots there; which one a report takes
follows from its id, and readers add them up.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

from frankly_protocol.errors import FranklyError
from sqlalchemy import Connection, Table, delete, func, select

from frankly_server.store.by_day import UNDATED, AllDaysKey, ByDay, DayKey
from frankly_server.store.reports import ReportRow, Reports
from frankly_server.store.schema import counts, counts_by_day, documents, pair_counts
from frankly_server.store.statistics import NO_NUMBER, Blocks, Layout, Pair
from frankly_server.store.upsert import add_to, add_to_each

_SLOTS: Final = {counts: 64, pair_counts: 16, counts_by_day: 16}
"""Fewer for pairs and days: they have far more keys, each of which readers find in every slot."""
_TOTALS: Final = (counts, pair_counts)
_CHUNK: Final = 10_000
_layouts: Final[dict[str, Layout]] = {}  # by digest; documents never change


class CountKey(NamedTuple):
    """What is counted: ``block`` is a position from 0, ``stratum`` as in ReportRow.strata.

    symbol : a table's symbol, a product's or a small set's as one number; NO_NUMBER stands for all the symbols of a
    larger set together.
    """

    document: str
    block: int
    stratum: str
    symbol: int


class PairKey(NamedTuple):
    """Symbols of two blocks (block < other) that came together; or two positions in one set, ``other`` being its block.

    A position paired with itself is counted whenever the set holds it.
    """

    document: str
    block: int
    other: int
    stratum: str
    symbol: int
    other_symbol: int


class Difference(NamedTuple):
    """A count that is not what the reports say; of days, their sum."""

    key: CountKey | PairKey | AllDaysKey
    counted: int
    reports: int


@dataclass(frozen=True, slots=True)
class _Tally:
    """Counts of some reports; pairs by document, stratum and blocks, so that adding a report is quick."""

    singles: Counter[CountKey] = field(default_factory=Counter)
    grouped: dict[tuple[str, str, Blocks], Counter[Pair]] = field(default_factory=lambda: defaultdict(Counter))

    @property
    def pairs(self) -> dict[PairKey, int]:
        """By key, as `PairKey` says."""
        return {
            PairKey(document, *blocks, stratum, *pair): n
            for (document, stratum, blocks), found in self.grouped.items()
            for pair, n in found.items()
        }

    @property
    def all_days(self) -> dict[AllDaysKey, int]:
        """What the days of these reports add up to: every block by itself."""
        found = {AllDaysKey(*key, NO_NUMBER): n for key, n in self.singles.items()}
        for (document, stratum, (block, other)), pairs in self.grouped.items():
            if block == other:
                found |= {AllDaysKey(document, block, stratum, *pair): n for pair, n in pairs.items()}
        return found

    def add(self, row: ReportRow, layout: Layout | None, n: int = 1) -> None:
        """Count n reports that say the same, as their document's layout says."""
        numbers = [_plain(symbol) for symbol in row.symbols] if layout is None else layout.numbers(row.symbols)
        for block, number in enumerate(numbers):
            self.singles[CountKey(row.document, block, row.strata, number)] += n
        for blocks, pairs in () if layout is None else layout.pairs_of(row.symbols, numbers):
            grouped = self.grouped[row.document, row.strata, blocks]
            if n == 1:
                grouped.update(pairs)  # in one go: a large set has thousands
            else:
                grouped.update(dict.fromkeys(pairs, n))

    def tables(self, day: str) -> Iterable[tuple[Table, Mapping[Any, int]]]:
        """Return what belongs into which table, always in the same order: see `Counts.add`."""
        days = {key.on(day): n for key, n in self.all_days.items()}
        return ((counts, self.singles), (pair_counts, self.pairs), (counts_by_day, days))


@dataclass(frozen=True, slots=True)
class Cells:
    """What one report adds one to, apart from document and stratum.

    singles : (block, symbol). pairs : (block, other, symbol, other symbol). days : (block, symbol, other symbol).
    """

    singles: tuple[tuple[int, int], ...]
    pairs: tuple[tuple[int, int, int, int], ...]
    days: tuple[tuple[int, int, int], ...]

    def __len__(self) -> int:
        return len(self.singles) + len(self.pairs) + len(self.days)


def cells(row: ReportRow) -> Cells | None:
    """Return what a report adds to; None while nothing of its document was counted in this process."""
    if row.document not in _layouts:
        return None
    tally = _Tally()
    tally.add(row, _layouts[row.document])
    return Cells(
        tuple((key.block, key.symbol) for key in tally.singles),
        tuple((key.block, key.other, key.symbol, key.other_symbol) for key in tally.pairs),
        tuple((key.block, key.symbol, key.other_symbol) for key in tally.all_days),
    )


def slot(table: Table, first: str) -> int:
    """Return the slot in which reports are counted together, the first of which has this id (PostgreSQL alone)."""
    return int(first[:2], 16) % _SLOTS[table]


class Counts:
    """The `counts`, `pair_counts` and `counts_by_day` tables within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._days = ByDay(connection)

    def add(self, rows: Iterable[ReportRow], day: str = UNDATED) -> None:
        """Count newly inserted reports, in one statement; call it once, in the transaction that inserted them.

        day : the UTC day on which they came in, ``YYYY-MM-DD``.
        """
        rows = list(rows)
        if not rows:
            return
        spread = self._connection.dialect.name != "sqlite"
        found = [
            (table, _values(of, slot(table, rows[0].id) if spread else 0))
            for table, of in self._tally(rows).tables(day)
        ]
        # Sorted: transactions that meet in a slot take its rows in one order and cannot deadlock.
        add_to_each(self._connection, [(table, values) for table, values in found if values])

    def of_document(self, digest: str) -> Mapping[CountKey, int]:
        """Return the counts of one document, slots added up."""
        return self._kept(counts, CountKey, counts.c.document == digest)

    def pairs(self, digest: str, block: int, other: int) -> Mapping[PairKey, int]:
        """Return the counts of pairs of two blocks, or of a set's positions if both are its block; none if not kept."""
        wanted = pair_counts.c.document == digest, pair_counts.c.block == block, pair_counts.c.other == other
        return self._kept(pair_counts, PairKey, *wanted)

    def by_day(self, digest: str, since: str | None = None, until: str | None = None) -> Mapping[DayKey, int]:
        """Return the counts of one document day by day: the undated, and days from `since` to `until` (both included).

        Every block by itself: nothing says what came together.
        """
        return self._days.of_document(digest, since, until)

    def erase(self, digest: str) -> int:
        """Delete the counts of a document; return how many rows there were."""
        gone = (self._connection.execute(delete(table).where(table.c.document == digest)) for table in _TOTALS)
        return sum(int(found.rowcount) for found in gone) + self._days.erase(digest)

    def recount(self, survey_id: str) -> list[Difference]:
        """Compare the counts of a survey with its reports, one by one; an empty list if they agree."""
        told = self._tally(Reports(self._connection).scan(survey_id))
        singles: dict[CountKey, int] = {}
        pairs: dict[PairKey, int] = {}
        days: dict[AllDaysKey, int] = {}
        for digest in self._digests(survey_id):
            singles.update(self.of_document(digest))
            pairs.update(self._kept(pair_counts, PairKey, pair_counts.c.document == digest))
            days.update(self._days.totals(digest))
        compared = ((singles, told.singles), (pairs, told.pairs), (days, told.all_days))
        return [difference for kept, found in compared for difference in _differences(kept, found)]

    def rebuild(self, survey_id: str) -> int:
        """Count every report of a survey again, in place of the counts there were; return how many reports there are.

        Reports do not tell their days: see `ByDay.mended` for which of these stay. Writers of any survey wait until the
        transaction ends, on PostgreSQL readers do not.
        """
        if self._connection.dialect.name != "sqlite":  # there a writing transaction is alone anyway
            # Nobody may stand between a report and its counts: who holds rows is waited for, and the scan begins later.
            # `reports` first, as writers do: they take the others all at once, in an order of the database's own.
            self._connection.exec_driver_sql("LOCK TABLE reports IN SHARE ROW EXCLUSIVE MODE")
            self._connection.exec_driver_sql("LOCK TABLE counts, pair_counts, counts_by_day IN EXCLUSIVE MODE")
        told = self._tally(Reports(self._connection).scan(survey_id))
        days: dict[DayKey, int] = {}
        all_days = told.all_days
        for digest in {*self._digests(survey_id), *(key.document for key in told.singles)}:
            days |= self._days.mended(digest, {key: n for key, n in all_days.items() if key.document == digest})
            self.erase(digest)
        for table, found in ((counts, told.singles), (pair_counts, told.pairs), (counts_by_day, days)):
            values = _values(found, 0)
            for start in range(0, len(values), _CHUNK):
                add_to(self._connection, table, values[start : start + _CHUNK])
        return sum(n for key, n in told.singles.items() if key.block == 0)

    def _kept(self, table: Table, kind: Any, *wanted: Any) -> dict[Any, int]:
        keys = [table.c[name] for name in kind._fields]
        found = select(*keys, func.sum(table.c.n)).where(*wanted).group_by(*keys)
        return {kind(*key): int(n) for *key, n in self._connection.execute(found)}

    def _tally(self, rows: Iterable[ReportRow]) -> _Tally:
        tally, left = _Tally(), iter(rows)
        while chunk := list(islice(left, _CHUNK)):
            # Reports that say the same are added up first: one more of a kind costs next to nothing.
            kinds = [(row.document, row.strata, repr(row.symbols)) for row in chunk]
            examples = dict(zip(kinds, chunk, strict=True))
            for kind, n in Counter(kinds).items():
                tally.add(examples[kind], self._layout(kind[0]), n)
        return tally

    def _layout(self, digest: str) -> Layout | None:
        """Return what is counted of a document's reports; None if it is not there or broken, which `audit` tells."""
        if digest not in _layouts:
            envelope = self._connection.scalar(select(documents.c.envelope).where(documents.c.digest == digest))
            try:
                _layouts[digest] = Layout.read(bytes(envelope or b""))
            except FranklyError:
                return None
        return _layouts[digest]

    def _digests(self, survey_id: str) -> list[str]:
        return list(self._connection.scalars(select(documents.c.digest).where(documents.c.survey == survey_id)))


def _differences(kept: Mapping[Any, int], told: Mapping[Any, int]) -> list[Difference]:
    return [
        Difference(key, kept.get(key, 0), told.get(key, 0))
        for key in sorted(kept.keys() | told.keys())
        if kept.get(key, 0) != told.get(key, 0)
    ]


def _values(found: Mapping[Any, int], slot: int) -> list[dict[str, Any]]:
    return [{**key._asdict(), "slot": slot, "n": n} for key, n in sorted(found.items())]


def _plain(symbol: Any) -> int:
    return symbol if type(symbol) is int else NO_NUMBER
