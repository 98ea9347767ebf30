# SPDX-License-Identifier: Apache-2.0
"""What counts exported reports: an engine that exists, DuckDB on one machine (`duck`), Spark on a cluster (`spark`).

All do the same: reports of one id count once, and every count that the database keeps (`store.Layout`) is made from
what is left. Counts of integers do not depend on the engine, on the order of rows or on how often a task was repeated.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from frankly_server.scale.manifest import ExportBroken
from frankly_server.store import Layout

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


Whole = tuple[str, tuple[Any, ...], int]
"""Stratum, the value of every block's column, and how many reports hold these."""


class Engine(Protocol):
    """Counts the reports of one document in Parquet files."""

    def count(self, files: Sequence[Path], layout: Layout, rows: int) -> Counted:
        """Return the counts of the `rows` reports in `files`, each id once.

        Raises ExportBroken if one id stands for two different reports.
        """
        ...

    def together(self, files: Sequence[Path], layout: Layout, rows: int) -> Iterator[Whole]:
        """Yield what whole reports hold and how many do, each id once, in no order; one may come more than once.

        `count` must have been asked first: it finds ids that stand for two reports.
        """
        ...

    def distinct(self, files: Sequence[Path]) -> int:
        """Return how many different ids there are in files of several documents."""
        ...


def require_one_each(rows: int, ids: int) -> None:
    """Raise ExportBroken if there are more different rows than ids."""
    if rows != ids:
        raise ExportBroken(f"{rows - ids} ids stand for more than one report: these exports do not belong together")
