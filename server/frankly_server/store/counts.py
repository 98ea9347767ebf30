# SPDX-License-Identifier: Apache-2.0
"""Counts of symbols and of pairs of symbols in released batches: all that estimates read.

What is counted of a report is said in `statistics`. Counts by day hold every block by itself, on the UTC day of the
release. Pairs of blocks have no days: trends do not need them. All of them can be made again from the reports.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from frankly_protocol.errors import FranklyError
from sqlalchemy import Connection, Table, delete, select

from frankly_server.store.schema import batches, counts, counts_by_day, documents, pair_counts
from frankly_server.store.statistics import NO_NUMBER, Blocks, Layout, Pair
from frankly_server.store.upsert import add_to, driver_of
from frankly_server.store.whole import Alike, Whole

_TABLES: Final = (counts, pair_counts, counts_by_day)
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


class DayKey(NamedTuple):
    """What was released on a day, ``YYYY-MM-DD`` in UTC.

    symbol, other_symbol : as in CountKey with NO_NUMBER beside it; of a larger set also every pair of positions, as in
    PairKey.
    """

    document: str
    block: int
    stratum: str
    day: str
    symbol: int
    other_symbol: int


class Difference(NamedTuple):
    """A count that is not what the reports say."""

    key: CountKey | PairKey | DayKey
    counted: int
    reports: int


@dataclass(frozen=True, slots=True)
class _Tally:
    """Counts of some reports; pairs by document, stratum and blocks, so that adding a report is quick."""

    singles: Counter[CountKey] = field(default_factory=Counter)
    grouped: dict[tuple[str, str, Blocks], Counter[Pair]] = field(default_factory=lambda: defaultdict(Counter))
    by_day: Counter[DayKey] = field(default_factory=Counter)

    @property
    def pairs(self) -> dict[PairKey, int]:
        """By key, as `PairKey` says."""
        return {
            PairKey(document, *blocks, stratum, *pair): n
            for (document, stratum, blocks), found in self.grouped.items()
            for pair, n in found.items()
        }

    @property
    def tables(self) -> tuple[tuple[Table, Mapping[Any, int]], ...]:
        """What belongs into which table."""
        return ((counts, self.singles), (pair_counts, self.pairs), (counts_by_day, self.by_day))

    def add(self, digest: str, layout: Layout | None, alike: Alike, day: str) -> None:
        """Count reports that say the same, as their document's layout says."""
        symbols, stratum, n = alike.symbols, alike.stratum, alike.n
        numbers = [_plain(symbol) for symbol in symbols] if layout is None else layout.numbers(symbols)
        for block, number in enumerate(numbers):
            self.singles[CountKey(digest, block, stratum, number)] += n
            self.by_day[DayKey(digest, block, stratum, day, number, NO_NUMBER)] += n
        for blocks, pairs in () if layout is None else layout.pairs_of(symbols, numbers):
            found = dict.fromkeys(pairs, n)
            self.grouped[digest, stratum, blocks].update(found)
            if blocks[0] == blocks[1]:
                self.by_day.update({DayKey(digest, blocks[0], stratum, day, *pair): n for pair in found})


class Counts:
    """The `batch_counts`, `batch_pair_counts` and `batch_counts_by_day` tables within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, survey: str, digest: str, release: int, day: str) -> Mapping[str, int]:
        """Count the reports of a release, once, in its transaction; return how many there are by stratum."""
        tally, layout, numbers = _Tally(), self._layout(digest), Counter[str]()
        for alike in Whole(self._connection).of_document(survey, digest, release):
            tally.add(digest, layout, alike, day)
            numbers[alike.stratum] += alike.n
        self._write(tally)
        return numbers

    def of_document(self, digest: str) -> Mapping[CountKey, int]:
        """Return the counts of one document."""
        return self._kept(counts, CountKey, counts.c.document == digest)

    def pairs(self, digest: str, block: int, other: int) -> Mapping[PairKey, int]:
        """Return the counts of pairs of two blocks, or of a set's positions if both are its block; none if not kept."""
        wanted = pair_counts.c.document == digest, pair_counts.c.block == block, pair_counts.c.other == other
        return self._kept(pair_counts, PairKey, *wanted)

    def by_day(self, digest: str, since: str | None = None, until: str | None = None) -> Mapping[DayKey, int]:
        """Return what was released day by day, from `since` to `until` (both included), every block by itself."""
        wanted: list[Any] = [counts_by_day.c.document == digest]
        wanted += [] if since is None else [counts_by_day.c.day >= since]
        wanted += [] if until is None else [counts_by_day.c.day <= until]
        return self._kept(counts_by_day, DayKey, *wanted)

    def erase(self, digest: str) -> int:
        """Delete the counts of a document; return how many rows there were."""
        gone = (self._connection.execute(delete(table).where(table.c.document == digest)) for table in _TABLES)
        return sum(int(found.rowcount) for found in gone)

    def recount(self, survey_id: str) -> list[Difference]:
        """Compare the counts of a survey with its released reports; an empty list if they agree."""
        told = self._tally(survey_id)
        differences: list[Difference] = []
        for (table, found), kind in zip(told.tables, (CountKey, PairKey, DayKey), strict=True):
            kept: dict[Any, int] = {}
            for digest in self._digests(survey_id):
                kept |= self._kept(table, kind, table.c.document == digest)
            differences += _differences(kept, found)
        return differences

    def rebuild(self, survey_id: str) -> int:
        """Count every released report of a survey again, in place of the counts there were; return how many there are.

        Releases wait until the transaction ends; reports that come in do not.
        """
        if self._connection.dialect.name != "sqlite":  # there a writing transaction is alone anyway
            tables = ", ".join(table.name for table in _TABLES)
            self._connection.exec_driver_sql(f"LOCK TABLE {tables} IN EXCLUSIVE MODE")
        told = self._tally(survey_id)
        for digest in self._digests(survey_id):
            self.erase(digest)
        self._write(told)
        return sum(n for key, n in told.singles.items() if key.block == 0)

    def _tally(self, survey_id: str) -> _Tally:
        tally, whole = _Tally(), Whole(self._connection)
        for digest in self._digests(survey_id):
            wanted = select(batches.c.release, batches.c.released).where(batches.c.document == digest)
            days = {release: str(released)[:10] for release, released in self._connection.execute(wanted)}
            layout = self._layout(digest)
            for alike in whole.of_document(survey_id, digest):
                tally.add(digest, layout, alike, days.get(alike.release, ""))
        return tally

    def _write(self, tally: _Tally) -> None:
        for table, found in tally.tables:
            rows = [{**key._asdict(), "n": n} for key, n in sorted(found.items())]
            for start in range(0, len(rows), _CHUNK):
                add_to(*driver_of(self._connection), table, rows[start : start + _CHUNK])

    def _kept(self, table: Table, kind: Any, *wanted: Any) -> dict[Any, int]:
        columns = [table.c[name] for name in kind._fields]
        return {kind(*key): n for *key, n in self._connection.execute(select(*columns, table.c.n).where(*wanted))}

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


def _differences(kept: Mapping[Any, int], told: Mapping[Any, int]) -> Iterable[Difference]:
    return [
        Difference(key, kept.get(key, 0), told.get(key, 0))
        for key in sorted(kept.keys() | told.keys())
        if kept.get(key, 0) != told.get(key, 0)
    ]


def _plain(symbol: Any) -> int:
    return symbol if type(symbol) is int else NO_NUMBER
