# SPDX-License-Identifier: Apache-2.0
"""Reports that are plainly new, kept and counted in a transaction of their own: what nearly every report is.

On PostgreSQL that is one statement and one journey; on SQLite the statements run without SQLAlchemy around them, which
costs several times what they do. Whatever is not plain (an id that is taken, a survey with a standing, a document not
counted here yet, very many counts) is left alone, for a `Transaction` to look at.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Engine, PoolProxiedConnection

from frankly_server.store.counts import Cells, cells, slot
from frankly_server.store.reports import ReportRow, symbols_text
from frankly_server.store.schema import counts, counts_by_day, pair_counts, reports
from frankly_server.store.upsert import add_each, adding, array, into

_MOST_CELLS: Final = 4096
"""Counts of one transaction; beyond, adding up in Python first is quicker."""
_MOST_KINDS: Final = 10_000
"""Kinds of reports that are remembered; then all are forgotten and learnt again."""
_LONGEST: Final = 64
"""Counts of a report worth remembering."""
_OPEN: Final = "survey = {} AND (state <> 'open' OR stop_reports IS NOT NULL)"
_NAME: Final = b"frankly_arrivals"
_NOT_PREPARED: Final = b"26000"
_ISOLATION: Final = b"SET default_transaction_isolation = 'read committed'"

# Sorted as `Counts.add` and `Reports.add_many` sort, and run in the order of `add_to_each`: transactions that meet take
# rows in one order and cannot deadlock. `reports` is named first, as `Counts.rebuild` locks it.
_POSTGRESQL: Final = f"""
WITH given AS MATERIALIZED (SELECT * FROM unnest($2::bytea[], $3::int[]) AS x(id, kind)),
kinds AS MATERIALIZED (
    SELECT * FROM unnest($7::bytea[], $8::text[], $9::text[]) WITH ORDINALITY AS x(document, symbols, strata, kind)
),
new AS (
    {into(reports)}
    SELECT $1::bytea, id, document, symbols, strata FROM given JOIN kinds USING (kind)
    WHERE NOT EXISTS (SELECT FROM survey_standings WHERE {_OPEN.format("$1::bytea")})
    ORDER BY id ON CONFLICT DO NOTHING RETURNING id
),
told AS (
    SELECT kind, document, strata, count(*) AS n
    FROM new JOIN given USING (id) JOIN kinds USING (kind) GROUP BY kind, document, strata
),
single AS (
    {into(counts)}
    SELECT document, block, strata, symbol, $5::smallint, sum(n)::bigint
    FROM told JOIN unnest($10::int[], $11::smallint[], $12::int[]) AS x(kind, block, symbol) USING (kind)
    GROUP BY document, block, strata, symbol ORDER BY document, block, strata COLLATE "C", symbol
    {adding(counts)}
),
pair AS (
    {into(pair_counts)}
    SELECT document, block, other, strata, symbol, other_symbol, $6::smallint, sum(n)::bigint
    FROM told JOIN unnest($13::int[], $14::smallint[], $15::smallint[], $16::int[], $17::int[])
        AS x(kind, block, other, symbol, other_symbol) USING (kind)
    GROUP BY document, block, other, strata, symbol, other_symbol
    ORDER BY document, block, other, strata COLLATE "C", symbol, other_symbol
    {adding(pair_counts)}
),
day AS (
    {into(counts_by_day)}
    SELECT document, block, strata, $4::text, symbol, other_symbol, $6::smallint, sum(n)::bigint
    FROM told JOIN unnest($18::int[], $19::smallint[], $20::int[], $21::int[])
        AS x(kind, block, symbol, other_symbol) USING (kind)
    GROUP BY document, block, strata, symbol, other_symbol
    ORDER BY document, block, strata COLLATE "C", symbol, other_symbol
    {adding(counts_by_day)}
)
SELECT id FROM new
"""  # noqa: S608 - names of ours; values travel as parameters
_SQLITE_OPEN: Final = f"SELECT 1 FROM survey_standings WHERE {_OPEN.format('?')}"  # noqa: S608
_SQLITE_NEW: Final = f"{into(reports)} VALUES {{}} ON CONFLICT DO NOTHING RETURNING id"
_SQLITE_ROWS: Final = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """Reports that say the same: all that is stored of them but survey and id, and what is counted of one."""

    document: bytes
    symbols: str
    strata: str
    cells: Cells


class Arrivals:
    """Keeps reports on one database. Safe to share between threads; on SQLite one may write at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._keep = self._on_sqlite if engine.dialect.name == "sqlite" else self._on_postgresql
        self._kinds: dict[tuple[str, str, str], Kind] = {}

    def keep(self, survey: str, ids: Sequence[str], kinds: Sequence[Kind], day: str) -> set[str]:
        """Insert and count those of a survey's reports that are plainly new; return their ids once that is committed.

        Of the others nothing is kept. ids : all different. kinds : one for each. day : as in `Counts.add`. Errors are
        the driver's own.
        """
        if not ids or sum(len(kind.cells) for kind in set(kinds)) > _MOST_CELLS:
            return set()
        with closing(self._engine.raw_connection()) as pooled:
            try:
                return self._keep(pooled, survey, ids, kinds, day)
            except BaseException:
                pooled.invalidate()  # whatever state it is in, nobody else gets it
                raise

    def kind(self, row: ReportRow) -> Kind | None:
        """Return a report's kind; None while nothing of its document was counted in this process."""
        text = symbols_text(row.symbols)
        key = row.document, text, row.strata
        found = self._kinds.get(key)
        if found is None and (counted := cells(row)) is not None:
            found = Kind(bytes.fromhex(row.document.removeprefix("sha256:")), text, row.strata, counted)
            if len(counted) <= _LONGEST:
                if len(self._kinds) >= _MOST_KINDS:
                    self._kinds = {}
                self._kinds[key] = found
        return found

    def _on_postgresql(
        self, pooled: PoolProxiedConnection, survey: str, ids: Sequence[str], kinds: Sequence[Kind], day: str
    ) -> set[str]:
        """Run the one statement, which commits by itself: libpq is asked as psycopg would ask it in the end."""
        driver: Any = self._engine.dialect.loaded_dbapi
        libpq: Any = getattr(pooled.driver_connection, "pgconn")  # noqa: B009 - the driver's type is not SQLAlchemy's
        numbers = {kind: i for i, kind in enumerate(dict.fromkeys(kinds), 1)}
        given = [
            b"\\x" + survey.encode(),
            b'{"\\\\x' + '","\\\\x'.join(ids).encode() + b'"}',
            array([numbers[kind] for kind in kinds]).encode(),
            day.encode(),
            b"%d" % slot(counts, ids[0]),
            b"%d" % slot(pair_counts, ids[0]),
            *_columns(tuple(numbers)),
        ]
        try:
            if _NAME not in pooled.info:
                self._prepare(libpq)
                pooled.info[_NAME] = True
            result = libpq.exec_prepared(_NAME, given, None, 1)
            if result.error_field(driver.pq.DiagnosticField.SQLSTATE) == _NOT_PREPARED:
                self._prepare(libpq)  # psycopg has put its own statements away, and with them all others
                result = libpq.exec_prepared(_NAME, given, None, 1)
        except MemoryError:  # what the driver makes of a connection that was lost before anything was sent
            raise driver.OperationalError("the connection is lost") from None
        self._check(result)
        if result.ntuples == len(ids):
            return set(ids)
        return {result.get_value(i, 0).hex() for i in range(result.ntuples)}

    def _prepare(self, libpq: Any) -> None:
        self._check(libpq.exec_(_ISOLATION))
        self._check(libpq.prepare(_NAME, _POSTGRESQL.encode()))

    def _check(self, result: Any) -> None:
        driver: Any = self._engine.dialect.loaded_dbapi
        if result.status not in (driver.pq.ExecStatus.TUPLES_OK, driver.pq.ExecStatus.COMMAND_OK):
            raise driver.errors.error_from_result(result)

    def _on_sqlite(
        self, pooled: PoolProxiedConnection, survey: str, ids: Sequence[str], kinds: Sequence[Kind], day: str
    ) -> set[str]:
        run = getattr(pooled.driver_connection, "execute")  # noqa: B009
        raw = bytes.fromhex(survey)
        run("BEGIN IMMEDIATE")
        if run(_SQLITE_OPEN, (raw,)).fetchone() is not None:
            run("ROLLBACK")
            return set()
        new: set[str] = set()
        rows = [(raw, bytes.fromhex(i), kind.document, kind.symbols, kind.strata)
                for i, kind in zip(ids, kinds, strict=True)]  # fmt: skip
        for start in range(0, len(rows), _SQLITE_ROWS):
            some = rows[start : start + _SQLITE_ROWS]
            marks = ",".join(["(?,?,?,?,?)"] * len(some))
            found = run(_SQLITE_NEW.format(marks), [value for row in some for value in row])
            new.update(value.hex() for (value,) in found)
        self._count_on_sqlite(pooled, Counter(kind for i, kind in zip(ids, kinds, strict=True) if i in new), day)
        run("COMMIT")
        return new

    def _count_on_sqlite(self, pooled: PoolProxiedConnection, told: Counter[Kind], day: str) -> None:
        singles: Counter[tuple[Any, ...]] = Counter()
        pairs: Counter[tuple[Any, ...]] = Counter()
        days: Counter[tuple[Any, ...]] = Counter()
        for kind, n in told.items():
            for block, symbol in kind.cells.singles:
                singles[kind.document, block, kind.strata, symbol, 0] += n
            for block, other, symbol, other_symbol in kind.cells.pairs:
                pairs[kind.document, block, other, kind.strata, symbol, other_symbol, 0] += n
            for block, symbol, other_symbol in kind.cells.days:
                days[kind.document, block, kind.strata, day, symbol, other_symbol, 0] += n
        run = getattr(pooled.driver_connection, "executemany")  # noqa: B009
        for table, found in ((counts, singles), (pair_counts, pairs), (counts_by_day, days)):
            if found:
                run(add_each(table), [(*key, n) for key, n in found.items()])


@lru_cache(maxsize=1024)
def _columns(kinds: tuple[Kind, ...]) -> tuple[bytes, ...]:
    """Return the statement's parameters from $7 on: the kinds, and the counts of each under its number."""
    columns = [
        array([kind.document for kind in kinds]),
        array([kind.symbols for kind in kinds]),
        array([kind.strata for kind in kinds]),
    ]
    for name, width in (("singles", 2), ("pairs", 4), ("days", 3)):
        rows = [(i, *key) for i, kind in enumerate(kinds, 1) for key in getattr(kind.cells, name)]
        columns += [array([row[column] for row in rows]) for column in range(width + 1)]
    return tuple(column.encode() for column in columns)
