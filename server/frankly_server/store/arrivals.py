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
from typing import Any, Final

from sqlalchemy import Engine, PoolProxiedConnection

from frankly_server.store.arrivals_sql import ALL_NEW, ANY_NEW, FORMATS, MAKE_ALL_NEW, OPEN, PREPARED, parameters
from frankly_server.store.counts import Cells, cells
from frankly_server.store.reports import ReportRow, symbols_text
from frankly_server.store.schema import counts, counts_by_day, pair_counts, reports
from frankly_server.store.upsert import add_each, into

_MOST_CELLS: Final = 4096
"""Counts of one transaction; beyond, adding up in Python first is quicker."""
_LARGEST: Final = 256
"""Counts of one report, as a large set has them; beyond, a report is not plain."""
_REMEMBERED: Final = 250_000
"""Counts of kinds that are remembered, some 30 MB; then all are forgotten and learnt again."""
_MANY: Final = 50
"""Reports among which one that is taken is rare enough to try first whether all are new."""
_NOT_PREPARED: Final = b"26000"
_NOT_ALLOWED: Final = (b"42501", b"42704")  # no right to temporary functions, or no PL/pgSQL
_ISOLATION: Final = b"SET default_transaction_isolation = 'read committed'"

_SQLITE_OPEN: Final = f"SELECT 1 FROM survey_standings WHERE {OPEN.format('?')}"  # noqa: S608
_SQLITE_NEW: Final = f"{into(reports)} VALUES {{}} ON CONFLICT DO NOTHING RETURNING id"
_SQLITE_ROWS: Final = 1000


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
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
        self._remembered = 0
        self._large: set[str] = set()  # documents with reports that are not plain: counting up to see it costs
        self._may_make = True  # temporary functions, which every role may unless that was taken away

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
        """Return a report's kind, one object as long as it is remembered.

        None while nothing of its document was counted in this process, and where reports of the document have very
        many counts.
        """
        if row.document in self._large:
            return None
        text = symbols_text(row.symbols)
        key = row.document, text, row.strata
        found = self._kinds.get(key)
        return found if found is not None else self._learn(row, key)

    def _learn(self, row: ReportRow, key: tuple[str, str, str]) -> Kind | None:
        counted = cells(row)
        if counted is None:
            return None
        if len(counted) > _LARGEST:
            self._large.add(row.document)
            return None
        found = Kind(bytes.fromhex(row.document.removeprefix("sha256:")), key[1], row.strata, counted)
        if self._remembered + len(counted) > _REMEMBERED:
            self._kinds, self._remembered = {}, 0
        self._kinds[key] = found
        self._remembered += len(counted)
        return found

    def _on_postgresql(
        self, pooled: PoolProxiedConnection, survey: str, ids: Sequence[str], kinds: Sequence[Kind], day: str
    ) -> set[str]:
        """Run one statement, which commits by itself: libpq is asked as psycopg would ask it in the end.

        Of many, a second one if not all were new.
        """
        given = parameters(survey, ids, kinds, day)
        if len(ids) >= _MANY and self._may_make and self._run(pooled, ALL_NEW, given) == b"\x01":
            return set(ids)
        new = (self._run(pooled, ANY_NEW, given) or b"").hex()
        return set(ids) if len(new) == 32 * len(ids) else {new[i : i + 32] for i in range(0, len(new), 32)}

    def _run(self, pooled: PoolProxiedConnection, name: bytes, given: Sequence[bytes]) -> bytes | None:
        """Return what a prepared statement gives, one value in binary form; None if it may not be made."""
        driver: Any = self._engine.dialect.loaded_dbapi
        libpq: Any = getattr(pooled.driver_connection, "pgconn")  # noqa: B009 - the driver's type is not SQLAlchemy's
        try:
            if name not in pooled.info and not self._prepare(libpq, name):
                return None
            pooled.info[name] = True
            result = libpq.exec_prepared(name, given, FORMATS, 1)
            if self._state(result) == _NOT_PREPARED:
                self._prepare(libpq, name)  # psycopg has put its own statements away, and with them all others
                result = libpq.exec_prepared(name, given, FORMATS, 1)
        except MemoryError:  # what the driver makes of a connection that was lost before anything was sent
            raise driver.OperationalError("the connection is lost") from None
        self._check(result)
        found: bytes | None = result.get_value(0, 0)
        return found

    def _prepare(self, libpq: Any, name: bytes) -> bool:
        self._check(libpq.exec_(_ISOLATION))
        if name == ALL_NEW:
            made = libpq.exec_(MAKE_ALL_NEW)
            if self._state(made) in _NOT_ALLOWED:
                self._may_make = False
                return False
            self._check(made)
        self._check(libpq.prepare(name, PREPARED[name]))
        return True

    def _state(self, result: Any) -> bytes | None:
        driver: Any = self._engine.dialect.loaded_dbapi
        state: bytes | None = result.error_field(driver.pq.DiagnosticField.SQLSTATE)
        return state

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
