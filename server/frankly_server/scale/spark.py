# SPDX-License-Identifier: Apache-2.0
"""Apache Spark engine: counts exported reports on a cluster."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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

# Pseudo blocks: one job returns the counts, the number of reports, and the number of conflicting
# ids.
_REPORT: Final = -2
_CONFLICT: Final = -3


@dataclass(frozen=True, slots=True)
class Spark:
    """A Spark cluster.

    master : its URL, such as spark://host:7077 or local[2]. options : settings of Spark.
    Every worker must be able to read the files under the same paths, on a shared file system or on
    one machine.
    """

    master: str
    options: dict[str, str] = field(default_factory=dict)

    def count(self, files: Sequence[Path], layout: Layout, rows: int) -> DocumentCounts:  # noqa: ARG002 - Spark slices by itself
        """Count in one job with two shuffles: by id, then by cell."""
        with self._session() as spark:
            functions = optional_module("pyspark.sql.functions")
            once = _once(functions, spark, files)
            single_cells = functions.array_compact(
                functions.array(*_spark_cells(functions, layout))
            )
            all_cells = functions.flatten(
                functions.array(single_cells, *_spark_pairs(functions, layout))
            )
            exploded = once.select(functions.explode(all_cells).alias("cell"))
            rows_of_cells = exploded.groupBy("cell").count().collect()
        totals = Counter({CountCell(*row["cell"]): int(row["count"]) for row in rows_of_cells})
        conflicts = sum(totals.pop(cell) for cell in list(totals) if cell.block == _CONFLICT)
        reports = sum(totals.pop(cell) for cell in list(totals) if cell.block == _REPORT)
        require_one_report_per_id(reports + conflicts, reports)
        return DocumentCounts(totals, reports)

    def grouped_reports(
        self,
        files: Sequence[Path],
        layout: Layout,
        rows: int,  # noqa: ARG002
    ) -> Iterator[GroupedReports]:  # noqa: ARG002, RUF100
        """Group by all columns, in one job with two shuffles."""
        names = [STRATUM, *map(block_column, range(len(layout.radices)))]
        with self._session() as spark:
            once = _once(optional_module("pyspark.sql.functions"), spark, files)
            for stratum, *values, n in once.select("a.*").groupBy(*names).count().toLocalIterator():
                yield stratum, tuple(values), int(n)

    def distinct(self, files: Sequence[Path]) -> int:
        """Return the number of distinct ids."""
        with self._session() as spark:
            # Only the id is read, because files of different documents have different other columns.
            ids = spark.read.schema(f"{ID} binary").parquet(*map(str, files))
            return int(ids.distinct().count())

    @contextmanager
    def _session(self) -> Iterator[Any]:
        sql = optional_module("pyspark.sql")
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
    """Return one row per id, with the least (`a`) and the greatest (`z`) contents of its rows.

    `a` and `z` differ if two reports have the same id. They do not depend on the order of rows, so
    a task that is repeated after a worker failure has the same result.
    """
    rows = spark.read.parquet(*map(str, files))
    contents = functions.struct(*[name for name in rows.columns if name != ID])
    return rows.groupBy(ID).agg(
        functions.min(contents).alias("a"), functions.max(contents).alias("z")
    )


def _spark_cells(functions: Any, layout: Layout) -> Iterator[Any]:
    """Yield the struct of each cell that a report increments, including pseudo blocks."""
    is_one_report = functions.col("a").eqNullSafe(functions.col("z"))
    # `when` without `otherwise` gives NULL, which array_compact drops.
    yield functions.when(
        is_one_report, _struct(functions, _REPORT, NO_BLOCK, NO_NUMBER, NO_NUMBER, "")
    )
    yield functions.when(
        ~is_one_report, _struct(functions, _CONFLICT, NO_BLOCK, NO_NUMBER, NO_NUMBER, "")
    )
    for block, sizes in enumerate(layout.radices):
        symbol = _spark_column(functions, block) if sizes else NO_NUMBER
        yield _struct(functions, block, NO_BLOCK, symbol, NO_NUMBER)
    for block, other in layout.pairs:
        yield _struct(
            functions,
            block,
            other,
            _spark_column(functions, block),
            _spark_column(functions, other),
        )


def _spark_pairs(functions: Any, layout: Layout) -> Iterator[Any]:
    """Yield an array of cells for each set whose pairs of positions are counted."""
    for block in layout.sets:
        yield _spark_pairs_of(functions, block)


def _spark_pairs_of(functions: Any, block: int) -> Any:
    column = _spark_column(functions, block)

    def pairs_from(x: Any) -> Any:  # one parameter: with two, Spark would also pass the index
        later = functions.filter(column, lambda z: z >= x)
        return functions.transform(later, lambda z: _struct(functions, block, block, x, z))

    return functions.flatten(functions.transform(column, pairs_from))


def _spark_column(functions: Any, block: int) -> Any:
    return functions.col(f"a.{block_column(block)}")


def _struct(
    functions: Any,
    block: int,
    other: int,
    symbol: Any,
    other_symbol: Any,
    stratum: str | None = None,
) -> Any:
    stratum_column = functions.col(f"a.{STRATUM}") if stratum is None else functions.lit(stratum)

    # All structs need the same type, because they are elements of one array.
    def int_column(value: Any, name: str) -> Any:
        column = functions.lit(value) if isinstance(value, int) else value
        return column.cast("int").alias(name)

    return functions.struct(
        int_column(block, "block"),
        int_column(other, "other"),
        stratum_column.alias("stratum"),
        int_column(symbol, "symbol"),
        int_column(other_symbol, "other_symbol"),
    )
