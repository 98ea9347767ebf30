# SPDX-License-Identifier: Apache-2.0
"""Counting with Apache Spark, on a cluster."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from frankly_server.scale.columns import ID, STRATUM, block_column, needed
from frankly_server.scale.engines import ALONE, Cell, Counted, Whole, require_one_each
from frankly_server.store import Layout
from frankly_server.store.statistics import NO_NUMBER

_REPORT: Final = -2
_CONFLICT: Final = -3


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
            once = _once(functions, spark, files)
            every = functions.array_compact(functions.array(*_spark_cells(functions, layout)))
            flat = functions.flatten(functions.array(every, *_spark_pairs(functions, layout)))
            cells = once.select(functions.explode(flat).alias("cell")).groupBy("cell").count().collect()
        found = Counter({Cell(*row["cell"]): int(row["count"]) for row in cells})
        differing = sum(found.pop(cell) for cell in list(found) if cell.block == _CONFLICT)
        reports = sum(found.pop(cell) for cell in list(found) if cell.block == _REPORT)
        require_one_each(reports + differing, reports)
        return Counted(found, reports)

    def together(self, files: Sequence[Path], layout: Layout, rows: int) -> Iterator[Whole]:  # noqa: ARG002 - as above
        """Group by all columns, in one job of two shuffles."""
        names = [STRATUM, *map(block_column, range(len(layout.radices)))]
        with self._session() as spark:
            once = _once(needed("pyspark.sql.functions", "spark"), spark, files)
            for stratum, *values, n in once.select("a.*").groupBy(*names).count().toLocalIterator():
                yield stratum, tuple(values), int(n)

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


def _once(functions: Any, spark: Any, files: Sequence[Path]) -> Any:
    """Return one row per id: the least and the greatest of its rows, `a` and `z`.

    A task that is repeated after a worker's death gives the same.
    """
    read = spark.read.parquet(*map(str, files))
    rest = functions.struct(*[name for name in read.columns if name != ID])
    return read.groupBy(ID).agg(functions.min(rest).alias("a"), functions.max(rest).alias("z"))


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
