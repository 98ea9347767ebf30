# SPDX-License-Identifier: Apache-2.0
"""DuckDB engine: counts exported reports on one machine."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, Final

from frankly_design.kinds.symbols import NO_NUMBER

from frankly_server.scale.columns import ID, STRATUM, block_column, optional_module
from frankly_server.scale.engines import (
    NO_BLOCK,
    CountCell,
    DocumentCounts,
    GroupedReports,
    require_one_report_per_id,
)
from frankly_server.store import Layout

_FETCHED: Final = 10_000
"""Number of rows fetched from DuckDB at a time."""


@dataclass(frozen=True, slots=True)
class DuckDB:
    """DuckDB in this process.

    slice_rows : approximate number of rows to de-duplicate at a time. memory : DuckDB's memory
    limit.
    """

    slice_rows: int = 10_000_000
    memory: str = "2GB"
    threads: int = 2

    def count(self, files: Sequence[Path], layout: Layout, rows: int) -> DocumentCounts:
        """Count one slice of the ids after another.

        Rows with the same id are in the same slice, so the counts of the slices can be added.
        """
        cells: Counter[CountCell] = Counter()
        reports = 0
        with self._connected() as connection:
            for _ in self._sliced(connection, files, rows):
                totals = f"SELECT count(*), count(DISTINCT {ID}) FROM t"  # noqa: S608
                n, ids = connection.execute(totals).fetchone()
                require_one_report_per_id(n, ids)
                reports += n
                for statement in _statements(layout):
                    for *cell, cell_count in connection.execute(statement).fetchall():
                        cells[CountCell(*cell)] += cell_count
        return DocumentCounts(cells, reports)

    def grouped_reports(
        self, files: Sequence[Path], layout: Layout, rows: int
    ) -> Iterator[GroupedReports]:
        """Group one slice of the ids after another; a group is yielded once per slice."""
        columns = ", ".join(map(block_column, range(len(layout.radices))))
        with self._connected() as connection:
            for _ in self._sliced(connection, files, rows):
                query = f"SELECT {STRATUM}, {columns}, count(*) FROM t GROUP BY ALL"  # noqa: S608
                result = connection.execute(query)
                while page := result.fetchmany(_FETCHED):
                    for stratum, *values, n in page:
                        yield stratum, tuple(values), n

    def distinct(self, files: Sequence[Path]) -> int:
        """Return the number of distinct ids."""
        with self._connected() as connection:
            names = [str(path) for path in files]
            query = f"SELECT count(DISTINCT {ID}) FROM read_parquet($1)"  # noqa: S608
            return int(connection.execute(query, [names]).fetchone()[0])

    def _sliced(self, connection: Any, files: Sequence[Path], rows: int) -> Iterator[None]:
        """Fill the table `t` with one slice of the ids after another, and yield after each slice.

        Duplicate rows are dropped. Different rows with the same id are not, so that the caller can
        detect the conflict.
        """
        for low, high in _slices(ceil(rows / self.slice_rows)):
            parameters = {"files": [str(path) for path in files], "low": low}
            until = "" if high is None else f"AND {ID} < $high"
            connection.execute(
                f"CREATE OR REPLACE TEMP TABLE t AS SELECT DISTINCT * FROM read_parquet($files) "  # noqa: S608
                f"WHERE {ID} >= $low {until}",
                parameters if high is None else parameters | {"high": high},
            )
            yield

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        duckdb = optional_module("duckdb")
        with duckdb.connect(
            config={"memory_limit": self.memory, "threads": self.threads}
        ) as connection:
            yield connection


def _statements(layout: Layout) -> Iterable[str]:
    """Yield SELECT statements of (block, other, stratum, symbol, other symbol, count) from `t`."""
    # A block whose symbols have no numbers has a single count, the number of its reports.
    for block, sizes in enumerate(layout.radices):
        symbol = block_column(block) if sizes else str(NO_NUMBER)
        yield _select(block, NO_BLOCK, symbol, str(NO_NUMBER), "t")
    # Pairs of positions in a set: a self-join of the list, smaller position first.
    for block in layout.sets:
        column = f"t.{block_column(block)}"
        yield _select(
            block,
            block,
            "x.x",
            "z.z",
            f"t, UNNEST({column}) AS x(x), UNNEST({column}) AS z(z)",
            "x.x <= z.z",
        )
    for block, other in layout.pairs:
        yield _select(block, other, block_column(block), block_column(other), "t")


def _select(
    block: int, other: int, symbol: str, other_symbol: str, source: str, where: str = "true"
) -> str:
    # Statements contain only column names and numbers from this package, never a report's value.
    return (
        f"SELECT {block}, {other}, {STRATUM}, {symbol}, {other_symbol}, count(*) FROM {source} WHERE {where} "  # noqa: S608
        "GROUP BY ALL"
    )


def _slices(count: int) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield `count` ranges (from, below) that cover all ids, 1 to 65,536; the last has no end."""
    # Ids are random, so equal ranges of their first two bytes contain about equally many reports.
    count = max(1, min(count, 1 << 16))
    edges = [(i << 16) // count for i in range(count)]
    for i, edge in enumerate(edges):
        yield edge.to_bytes(2, "big"), edges[i + 1].to_bytes(2, "big") if i + 1 < count else None
