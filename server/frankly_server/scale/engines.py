# SPDX-License-Identifier: Apache-2.0
"""Counting exported reports with an existing engine: DuckDB on one machine, Apache Spark on a cluster.

Both do the same: reports of one id count once, and every count that the database keeps (`store.Layout`) is made from
what is left. Counts of integers do not depend on the engine, on the order of rows or on how often a task was repeated.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from frankly_server.scale.columns import ID, STRATUM, block_column, needed
from frankly_server.scale.manifest import ExportBroken
from frankly_server.store import Layout
from frankly_server.store.statistics import NO_NUMBER

ALONE: Final = -1
"""Stands in `Cell.other` for a block counted by itself."""


class Cell(NamedTuple):
    """What is counted: as `store.CountKey` if `other` is ALONE, else as `store.PairKey`."""

    block: int
    other: int
    stratum: str
    symbol: int
    other_symbol: int


class Counted(NamedTuple):
    """Counts of one document, and how many different reports there are."""

    cells: Counter[Cell]
    reports: int


class Engine(Protocol):
    """Counts the reports of one document in Parquet files."""

    def count(self, files: Sequence[Path], layout: Layout, rows: int) -> Counted:
        """Return the counts of the `rows` reports in `files`, each id once.

        Raises ExportBroken if one id stands for two different reports.
        """
        ...

    def distinct(self, files: Sequence[Path]) -> int:
        """Return how many different ids there are in files of several documents."""
        ...


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
            for low, high in _slices(ceil(rows / self.slice_rows)):
                given = {"files": [str(path) for path in files], "low": low, "high": high}
                until = "" if high is None else f"AND {ID} < $high"
                connection.execute(
                    f"CREATE OR REPLACE TEMP TABLE t AS SELECT DISTINCT * FROM read_parquet($files) "  # noqa: S608
                    f"WHERE {ID} >= $low {until}",
                    given if high is not None else {k: v for k, v in given.items() if k != "high"},
                )
                n, ids = connection.execute(f"SELECT count(*), count(DISTINCT {ID}) FROM t").fetchone()  # noqa: S608
                _require_one_each(n, ids)
                reports += n
                for statement in _statements(layout):
                    for *cell, found in connection.execute(statement).fetchall():
                        cells[Cell(*cell)] += found
        return Counted(cells, reports)

    def distinct(self, files: Sequence[Path]) -> int:
        """Count ids."""
        with self._connected() as connection:
            names = [str(path) for path in files]
            found = connection.execute(f"SELECT count(DISTINCT {ID}) FROM read_parquet($1)", [names])  # noqa: S608
            return int(found.fetchone()[0])

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        duckdb = needed("duckdb", "duckdb")
        with duckdb.connect(config={"memory_limit": self.memory, "threads": self.threads}) as connection:
            yield connection


@dataclass(frozen=True, slots=True)
class Spark:
    """A Spark cluster. master : its URL, as in spark://host:7077, or local[2]. options : further settings of Spark.

    Every worker must read the files under the paths they have here: a shared file system, or one machine.
    """

    master: str
    options: dict[str, str] = field(default_factory=dict)

    def count(self, files: Sequence[Path], layout: Layout, rows: int) -> Counted:  # noqa: ARG002 - Spark slices by itself
        """Count in one job of two shuffles: by id, then by what is counted."""
        with self._session() as spark:
            functions = needed("pyspark.sql.functions", "spark")
            read = spark.read.parquet(*map(str, files))
            rest = functions.struct(*[name for name in read.columns if name != ID])
            # A task that is repeated after a worker's death gives the same: the least and the greatest row of an id.
            once = read.groupBy(ID).agg(functions.min(rest).alias("a"), functions.max(rest).alias("z"))
            every = functions.array_compact(functions.array(*_spark_cells(functions, layout)))
            flat = functions.flatten(functions.array(every, *_spark_pairs(functions, layout)))
            cells = once.select(functions.explode(flat).alias("cell")).groupBy("cell").count().collect()
        found = Counter({Cell(*row["cell"]): int(row["count"]) for row in cells})
        differing = sum(found.pop(cell) for cell in list(found) if cell.block == _CONFLICT)
        reports = sum(found.pop(cell) for cell in list(found) if cell.block == _REPORT)
        _require_one_each(reports + differing, reports)
        return Counted(found, reports)

    def distinct(self, files: Sequence[Path]) -> int:
        """Count ids."""
        with self._session() as spark:
            # Read apart: files of different documents have different columns.
            ids = spark.read.schema(f"{ID} binary").parquet(*map(str, files))
            return int(ids.distinct().count())

    @contextmanager
    def _session(self) -> Iterator[Any]:
        sql = needed("pyspark.sql", "spark")
        builder = sql.SparkSession.builder.master(self.master).appName("frankly-counts")
        for name, value in {"spark.ui.enabled": "false", **self.options}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        try:
            yield session
        finally:
            session.stop()


_REPORT: Final = -2
_CONFLICT: Final = -3


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


def _spark_cells(functions: Any, layout: Layout) -> Iterator[Any]:
    """Yield the struct of each cell that every report adds one to; of a report that is not one, only the conflict."""
    alike = functions.col("a").eqNullSafe(functions.col("z"))
    yield functions.when(alike, _struct(functions, _REPORT, ALONE, NO_NUMBER, NO_NUMBER, ""))
    yield functions.when(~alike, _struct(functions, _CONFLICT, ALONE, NO_NUMBER, NO_NUMBER, ""))
    for block, sizes in enumerate(layout.radices):
        yield _struct(functions, block, ALONE, _spark_column(functions, block) if sizes else NO_NUMBER, NO_NUMBER)
    for block, other in layout.pairs:
        yield _struct(functions, block, other, _spark_column(functions, block), _spark_column(functions, other))


def _spark_pairs(functions: Any, layout: Layout) -> Iterator[Any]:
    """Yield, for each set whose positions are counted, the array of the structs of its pairs."""
    for block in layout.sets:
        yield _spark_pairs_of(functions, block)


def _spark_pairs_of(functions: Any, block: int) -> Any:
    column = _spark_column(functions, block)

    def pairs_from(x: Any) -> Any:  # Spark tells what to pass by how many parameters there are
        later = functions.filter(column, lambda z: z >= x)
        return functions.transform(later, lambda z: _struct(functions, block, block, x, z))

    return functions.flatten(functions.transform(column, pairs_from))


def _spark_column(functions: Any, block: int) -> Any:
    return functions.col(f"a.{block_column(block)}")


def _struct(functions: Any, block: int, other: int, symbol: Any, other_symbol: Any, stratum: str | None = None) -> Any:
    found = functions.col(f"a.{STRATUM}") if stratum is None else functions.lit(stratum)

    def whole(value: Any, name: str) -> Any:
        column = functions.lit(value) if isinstance(value, int) else value
        return column.cast("int").alias(name)

    return functions.struct(
        whole(block, "block"),
        whole(other, "other"),
        found.alias("stratum"),
        whole(symbol, "symbol"),
        whole(other_symbol, "other_symbol"),
    )


def _slices(count: int) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield ranges of ids that cover all of them, about equally: (from, below), None for no end."""
    count = max(1, min(count, 1 << 16))
    edges = [(i << 16) // count for i in range(count)]
    for i, edge in enumerate(edges):
        yield edge.to_bytes(2, "big"), edges[i + 1].to_bytes(2, "big") if i + 1 < count else None


def _require_one_each(rows: int, ids: int) -> None:
    if rows != ids:
        raise ExportBroken(f"{rows - ids} ids stand for more than one report: these exports do not belong together")
