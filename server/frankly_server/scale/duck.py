# SPDX-License-Identifier: Apache-2.0
"""Counting with DuckDB, on one machine."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, Final

from frankly_server.scale.columns import ID, STRATUM, block_column, needed
from frankly_server.scale.engines import ALONE, Cell, Counted, Whole, require_one_each
from frankly_server.store import Layout
from frankly_server.store.statistics import NO_NUMBER

_FETCHED: Final = 10_000
"""Rows that are taken from DuckDB at a time."""


@dataclass(frozen=True, slots=True)
class DuckDB:
    """DuckDB in this process. slice_rows : so many rows are de-duplicated at a time, which bounds its memory."""

    slice_rows: int = 10_000_000
    memory: str = "2GB"
    threads: int = 2

    def count(self, files: Sequence[Path], layout: Layout, rows: int) -> Counted:
        """Count, slice by slice of the ids: equal ids are always in one slice, and slices add up."""
        cells: Counter[Cell] = Counter()
        reports = 0
        with self._connected() as connection:
            for _ in self._sliced(connection, files, rows):
                n, ids = connection.execute(f"SELECT count(*), count(DISTINCT {ID}) FROM t").fetchone()  # noqa: S608
                require_one_each(n, ids)
                reports += n
                for statement in _statements(layout):
                    for *cell, found in connection.execute(statement).fetchall():
                        cells[Cell(*cell)] += found
        return Counted(cells, reports)

    def together(self, files: Sequence[Path], layout: Layout, rows: int) -> Iterator[Whole]:
        """Group slice by slice; what two slices hold comes twice."""
        columns = ", ".join(map(block_column, range(len(layout.radices))))
        with self._connected() as connection:
            for _ in self._sliced(connection, files, rows):
                found = connection.execute(f"SELECT {STRATUM}, {columns}, count(*) FROM t GROUP BY ALL")  # noqa: S608
                while page := found.fetchmany(_FETCHED):
                    for stratum, *values, n in page:
                        yield stratum, tuple(values), n

    def distinct(self, files: Sequence[Path]) -> int:
        """Count ids."""
        with self._connected() as connection:
            names = [str(path) for path in files]
            found = connection.execute(f"SELECT count(DISTINCT {ID}) FROM read_parquet($1)", [names])  # noqa: S608
            return int(found.fetchone()[0])

    def _sliced(self, connection: Any, files: Sequence[Path], rows: int) -> Iterator[None]:
        """Put one slice of the ids after another into the table `t`, each different row once."""
        for low, high in _slices(ceil(rows / self.slice_rows)):
            given = {"files": [str(path) for path in files], "low": low}
            until = "" if high is None else f"AND {ID} < $high"
            connection.execute(
                f"CREATE OR REPLACE TEMP TABLE t AS SELECT DISTINCT * FROM read_parquet($files) "  # noqa: S608
                f"WHERE {ID} >= $low {until}",
                given if high is None else given | {"high": high},
            )
            yield

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        duckdb = needed("duckdb", "duckdb")
        with duckdb.connect(config={"memory_limit": self.memory, "threads": self.threads}) as connection:
            yield connection


def _statements(layout: Layout) -> Iterable[str]:
    """Yield SELECTs of (block, other, stratum, symbol, other symbol, how many) from `t`."""
    for block, sizes in enumerate(layout.radices):
        symbol = block_column(block) if sizes else str(NO_NUMBER)
        yield _select(block, ALONE, symbol, str(NO_NUMBER), "t")
    for block in layout.sets:
        column = f"t.{block_column(block)}"
        yield _select(
            block, block, "x.x", "z.z", f"t, UNNEST({column}) AS x(x), UNNEST({column}) AS z(z)", "x.x <= z.z"
        )
    for block, other in layout.pairs:
        yield _select(block, other, block_column(block), block_column(other), "t")


def _select(block: int, other: int, symbol: str, other_symbol: str, source: str, where: str = "true") -> str:
    # Names and numbers of ours only; nothing of a report is part of a statement.
    return (
        f"SELECT {block}, {other}, {STRATUM}, {symbol}, {other_symbol}, count(*) FROM {source} WHERE {where} "  # noqa: S608
        "GROUP BY ALL"
    )


def _slices(count: int) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield ranges of ids that cover all of them, about equally: (from, below), None for no end."""
    count = max(1, min(count, 1 << 16))
    edges = [(i << 16) // count for i in range(count)]
    for i, edge in enumerate(edges):
        yield edge.to_bytes(2, "big"), edges[i + 1].to_bytes(2, "big") if i + 1 < count else None
