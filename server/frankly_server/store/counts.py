# SPDX-License-Identifier: Apache-2.0
"""Counts of symbols and of pairs of symbols in released batches: the only input of most estimates.

`statistics.Layout` determines which counts a report increments. Counts by day are stored for each
block separately, by the UTC day of the release. Pairs of blocks are not counted by day, because
trends do not need these counts. All these counts can be rebuilt from the reports.

With an instructed item, reports that failed it are counted once more, by themselves, if their rows
do not say so (`store.releases`): in *batches of failures* over all strata, each of at least a step.
Those that still wait for enough others are in no estimate. Rebuilding keeps these counts.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from frankly_design.kinds.symbols import NO_NUMBER
from frankly_protocol.errors import FranklyError
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ColumnElement,
    Integer,
    SmallInteger,
    String,
    Table,
    func,
    select,
)

from frankly_server.store.access import TableAccess
from frankly_server.store.batches import batches, day_of
from frankly_server.store.documents import documents
from frankly_server.store.released_reports import IdenticalReports, ReleasedReports
from frankly_server.store.schema import column, key_column, key_columns, metadata
from frankly_server.store.statistics import Blocks, Layouts, Pair

counts = Table(
    "batch_counts",
    metadata,
    *key_columns("document", "block", "stratum"),
    key_column("symbol", Integer, "the report symbol"),
    column("n", BigInteger, "number of released reports with this symbol"),
    CheckConstraint("n >= 0", name="n"),
    sqlite_with_rowid=False,
)

pair_counts = Table(
    "batch_pair_counts",
    metadata,
    *key_columns("document", "block"),
    key_column("other", SmallInteger, "position of a later block; for a set, its own"),
    *key_columns("stratum"),
    key_column("symbol", Integer, "symbol of the block, or a position in a set"),
    key_column(
        "other_symbol", Integer, "symbol of the other block, or a later position in the set"
    ),
    column("n", BigInteger, "number of released reports with both"),
    CheckConstraint("n >= 0", name="n"),
    sqlite_with_rowid=False,
)

counts_by_day = Table(
    "batch_counts_by_day",
    metadata,
    *key_columns("document", "block", "stratum"),
    key_column("day", String(10), "UTC day of the release"),
    key_column("symbol", Integer, "the report symbol, or a set's position"),
    key_column("other_symbol", Integer, "a set's later position; -1 for a symbol alone"),
    column("n", BigInteger, "reports released on that day with this symbol"),
    CheckConstraint("n >= 0", name="n"),
    sqlite_with_rowid=False,
)

_TABLES: Final = (counts, pair_counts, counts_by_day)
_FAILURES: Final = "failed"
"""First word of the stratum of reports that are counted a second time, because they failed."""
_WAITING: Final = f"{_FAILURES}, waiting"
_CHUNK: Final = 10_000  # rows per statement; limits its parameters when rebuilding a large survey
_layouts: Final[dict[str, Layouts]] = {}  # by digest; documents never change


class CountKey(NamedTuple):
    """Key of a count of one block.

    block : its position, from 0. stratum : as in ReportRow.strata. symbol : the symbol of a table,
    or the symbol of a product or a small set encoded as one number. NO_NUMBER stands for all
    symbols of a block whose symbols have no numbers, such as a larger set.
    """

    document: str
    block: int
    stratum: str
    symbol: int


class PairKey(NamedTuple):
    """Key of a count of pairs of symbols of two blocks, or of two positions in one set.

    For two blocks, block < other. For positions of a set, other = block; a position paired with
    itself is counted whenever the set contains it.
    """

    document: str
    block: int
    other: int
    stratum: str
    symbol: int
    other_symbol: int


class DayKey(NamedTuple):
    """Key of a count of the reports released on one day, ``YYYY-MM-DD`` in UTC.

    symbol : as in CountKey, if other_symbol is NO_NUMBER. Otherwise both are positions in a larger
    set, as in PairKey.
    """

    document: str
    block: int
    stratum: str
    day: str
    symbol: int
    other_symbol: int


class Difference(NamedTuple):
    """A stored count (`counted`) that differs from the count of the reports (`reports`)."""

    key: CountKey | PairKey | DayKey
    counted: int
    reports: int


@dataclass(frozen=True, slots=True)
class _Tally:
    """Counts of some reports.

    grouped : counts of pairs by (document, stratum, blocks), which avoids building a PairKey for
    every pair of every report.
    """

    singles: Counter[CountKey] = field(default_factory=Counter)
    grouped: dict[tuple[str, str, Blocks], Counter[Pair]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    by_day: Counter[DayKey] = field(default_factory=Counter)

    @property
    def pairs(self) -> dict[PairKey, int]:
        """Return the counts of pairs by PairKey."""
        return {
            PairKey(document, *blocks, stratum, *pair): n
            for (document, stratum, blocks), pair_totals in self.grouped.items()
            for pair, n in pair_totals.items()
        }

    @property
    def tables(self) -> tuple[tuple[Table, Mapping[Any, int]], ...]:
        """Return (table, counts by key) for each of the three tables."""
        return ((counts, self.singles), (pair_counts, self.pairs), (counts_by_day, self.by_day))

    def add(
        self,
        digest: str,
        layouts: Layouts | None,
        reports: IdenticalReports,
        day: str,
        counted_as: str | None = None,
    ) -> None:
        """Count identical reports, in their stratum or as `counted_as`.

        layouts : those of their document, None if it is unreadable.
        """
        symbols, n = reports.symbols, reports.n
        layout = None if layouts is None else layouts.of(reports.stratum)
        stratum = reports.stratum if counted_as is None else counted_as
        numbers = list(map(_number_of, symbols)) if layout is None else layout.numbers(symbols)
        for block, number in enumerate(numbers):
            if number is None:
                continue
            self.singles[CountKey(digest, block, stratum, number)] += n
            self.by_day[DayKey(digest, block, stratum, day, number, NO_NUMBER)] += n
        for blocks, pairs in () if layout is None else layout.pairs_of(symbols, numbers):
            pair_totals = dict.fromkeys(pairs, n)
            self.grouped[digest, stratum, blocks].update(pair_totals)
            # The shares of a larger set are estimated from pairs, so trends need pairs by day.
            if blocks[0] == blocks[1]:
                self.by_day.update(
                    {DayKey(digest, blocks[0], stratum, day, *pair): n for pair in pair_totals}
                )


class CountsTables(TableAccess):
    """Counts of symbols, counts of pairs, and counts by day, within one transaction.

    The tables are `batch_counts`, `batch_pair_counts` and `batch_counts_by_day`.
    """

    def add(self, survey: str, digest: str, release: int, day: str) -> Mapping[str, int]:
        """Count the reports of a release; return their number by stratum.

        Call this once, in the transaction of the release: a second call would count them twice.
        """
        tally, layouts, numbers = _Tally(), self._layouts(digest), Counter[str]()
        for reports in ReleasedReports(self._connection).of_document(survey, digest, release):
            tally.add(digest, layouts, reports, day)
            numbers[reports.stratum] += reports.n
        self._write(tally)
        return numbers

    def add_failures(
        self, survey: str, digest: str, release: int, strata: Collection[str], step: int
    ) -> None:
        """Count reports of a release, of some strata, once more as waiting failures.

        If at least `step` of an arm wait after this, they become the arm's batch of failures of this
        release. Without arms there is one such batch.
        """
        layouts = self._layouts(digest)
        if not strata or layouts is None:
            return
        tally = _Tally()
        for reports in ReleasedReports(self._connection).of_document(survey, digest, release):
            if reports.stratum in strata:
                waits = _WAITING + _of_arm(layouts.arm(reports.stratum))
                tally.add(digest, layouts, reports, "", waits)
        tally.by_day.clear()
        self._write(tally)
        for arm in {layouts.arm(stratum) for stratum in strata}:
            self._release_failures(digest, release, _of_arm(arm), step)

    def _release_failures(self, digest: str, release: int, arm: str, step: int) -> None:
        waits = _WAITING + arm
        waiting = (counts.c.document == digest) & (counts.c.stratum == waits)
        # Every report increments one count of block 0.
        of_reports = select(func.sum(counts.c.n)).where(waiting, counts.c.block == 0)
        if (self._connection.scalar(of_reports) or 0) >= step:
            for table in (counts, pair_counts):
                condition = (table.c.document == digest) & (table.c.stratum == waits)
                self._update(table, condition, stratum=f"{_FAILURES} {release}{arm}")

    def failures(
        self, digest: str, newest: int, arm: str | None = None
    ) -> tuple[Mapping[CountKey, int], Mapping[PairKey, int]]:
        """Return counts, and counts of pairs, of all batches of failures up to release `newest`.

        arm : of this arm; None without arms.
        """
        singles, pairs = Counter[CountKey](), Counter[PairKey]()

        def is_wanted(stratum: str) -> bool:
            _, release, *of_arm = stratum.split(" ")
            return int(release) <= newest and of_arm == ([arm] if arm else [])

        for key, n in self._read(counts, CountKey, digest):
            if is_wanted(key.stratum):
                singles[key._replace(stratum=_FAILURES)] += n
        for pair, n in self._read(pair_counts, PairKey, digest):
            if is_wanted(pair.stratum):
                pairs[pair._replace(stratum=_FAILURES)] += n
        return singles, pairs

    def _read(self, table: Table, key_type: Any, digest: str) -> list[tuple[Any, int]]:
        columns = [table.c[name] for name in key_type._fields]
        is_batch = table.c.stratum.startswith(f"{_FAILURES} ")
        query = select(*columns, table.c.n).where(table.c.document == digest, is_batch)
        return [(key_type(*key), n) for *key, n in self._connection.execute(query)]

    def of_document(self, digest: str) -> Mapping[CountKey, int]:
        """Return the counts of one document."""
        return self._stored(counts, CountKey, counts.c.document == digest)

    def pairs(self, digest: str, block: int, other: int) -> Mapping[PairKey, int]:
        """Return the counts of pairs of two blocks, or of positions of a set if `other` is `block`.

        The result is empty if these pairs are not counted.
        """
        columns = pair_counts.c
        conditions = columns.document == digest, columns.block == block, columns.other == other
        return self._stored(pair_counts, PairKey, *conditions)

    def by_day(
        self, digest: str, since: str | None = None, until: str | None = None
    ) -> Mapping[DayKey, int]:
        """Return the counts by day of release, from `since` to `until` (both included)."""
        conditions: list[Any] = [counts_by_day.c.document == digest]
        conditions += [] if since is None else [counts_by_day.c.day >= since]
        conditions += [] if until is None else [counts_by_day.c.day <= until]
        return self._stored(counts_by_day, DayKey, *conditions)

    def erase(self, digest: str) -> None:
        """Delete the counts of a document."""
        for table in _TABLES:
            self._delete(table, document=digest)

    def recount(self, survey_id: str) -> list[Difference]:
        """Return the counts of a survey that differ from its released reports, sorted by key."""
        tally = self._tally(survey_id)
        differences: list[Difference] = []
        for (table, totals), key_type in zip(
            tally.tables, (CountKey, PairKey, DayKey), strict=True
        ):
            stored: dict[Any, int] = {}
            for digest in self._digests(survey_id):
                stored |= self._stored(table, key_type, table.c.document == digest)
            differences += _differences(stored, totals)
        return differences

    def rebuild(self, survey_id: str) -> int:
        """Rebuild a survey's counts; return the number of its released reports.

        Releases wait until the transaction ends. Intake does not wait: pending reports are not
        counted.
        """
        if self._is_postgresql:  # SQLite has one writer at a time
            # EXCLUSIVE blocks writers but not readers, so estimates can still read the old counts.
            tables = ", ".join(table.name for table in _TABLES)
            self._connection.exec_driver_sql(f"LOCK TABLE {tables} IN EXCLUSIVE MODE")
        tally = self._tally(survey_id)
        for digest in self._digests(survey_id):
            for table in _TABLES:
                self._delete(table, ~_again(table), document=digest)
        self._write(tally)
        # Every report increments one count of block 0, so these counts sum to the number of
        # reports.
        return sum(n for key, n in tally.singles.items() if key.block == 0)

    def _tally(self, survey_id: str) -> _Tally:
        tally, released = _Tally(), ReleasedReports(self._connection)
        for digest in self._digests(survey_id):
            query = select(batches.c.release, batches.c.released).filter_by(document=digest)
            days = {release: day_of(str(time)) for release, time in self._connection.execute(query)}
            layouts = self._layouts(digest)
            for reports in released.of_document(survey_id, digest):
                tally.add(digest, layouts, reports, days.get(reports.release, ""))
        return tally

    def _write(self, tally: _Tally) -> None:
        for table, totals in tally.tables:
            # Sorted by key, so that two transactions that add to the same rows cannot deadlock.
            rows = [{**key._asdict(), "n": n} for key, n in sorted(totals.items())]
            for start in range(0, len(rows), _CHUNK):
                self._add_to(table, rows[start : start + _CHUNK])

    def _stored(self, table: Table, key_type: Any, *conditions: Any) -> dict[Any, int]:
        columns = [table.c[name] for name in key_type._fields]
        query = select(*columns, table.c.n).where(*conditions, ~_again(table))
        return {key_type(*key): n for *key, n in self._connection.execute(query)}

    def _layouts(self, digest: str) -> Layouts | None:
        """Return a document's layouts; None if the document is missing or broken (see `audit`)."""
        # Two threads may both compute a layout; the results are equal, so no lock is needed.
        if digest not in _layouts:
            query = select(documents.c.envelope).where(documents.c.digest == digest)
            envelope = self._connection.scalar(query)
            try:
                _layouts[digest] = Layouts.read(bytes(envelope or b""))
            except FranklyError:
                return None
        return _layouts[digest]

    def _digests(self, survey_id: str) -> list[str]:
        query = select(documents.c.digest).where(documents.c.survey == survey_id)
        return list(self._connection.scalars(query))


def _differences(stored: Mapping[Any, int], recounted: Mapping[Any, int]) -> Iterable[Difference]:
    return [
        Difference(key, stored.get(key, 0), recounted.get(key, 0))
        for key in sorted(stored.keys() | recounted.keys())
        if stored.get(key, 0) != recounted.get(key, 0)
    ]


def _again(table: Table) -> ColumnElement[bool]:
    """Return the condition of counts of reports that are counted a second time."""
    return table.c.stratum.startswith(_FAILURES)


def _of_arm(arm: str) -> str:
    """Return what the stratum of failures of an arm ends with."""
    return f" {arm}" if arm else ""


def _number_of(symbol: Any) -> int:
    return symbol if type(symbol) is int else NO_NUMBER
