# SPDX-License-Identifier: Apache-2.0
"""Engines that count exported reports: DuckDB (`duck`, one machine) and Spark (`spark`, cluster).

Every engine counts each id once, and computes the same counts as a database (`store.Layout`). So
counts do not depend on the engine, on the order of rows, or on tasks that a cluster repeats.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from frankly_server.scale.manifest import ExportBroken
from frankly_server.store import Layout

NO_BLOCK: Final = -1
"""Value of `CountCell.other` for the count of a single block."""


class CountCell(NamedTuple):
    """Key of a count within one document.

    The fields are those of `store.CountKey` if `other` is NO_BLOCK, else those of `store.PairKey`.
    """

    block: int
    other: int
    stratum: str
    symbol: int
    other_symbol: int


class DocumentCounts(NamedTuple):
    """Counts of one document, and the number of its distinct reports."""

    cells: Counter[CountCell]
    reports: int


GroupedReports = tuple[str, tuple[Any, ...], int]
"""Reports with equal contents: stratum, the value of every block's column, number of reports."""


class Engine(Protocol):
    """Counter of the reports of one document in Parquet files."""

    def count(self, files: Sequence[Path], layout: Layout, rows: int) -> DocumentCounts:
        """Return the counts of the reports in `files`, each id once.

        rows : number of rows in `files`, including duplicates.

        Raises ExportBroken if two different reports have the same id.
        """
        ...

    def grouped_reports(
        self, files: Sequence[Path], layout: Layout, rows: int
    ) -> Iterator[GroupedReports]:
        """Yield the reports grouped by contents, each id once, in no particular order.

        A group may be yielded in several pieces. Call `count` first, because only `count` raises an
        error if two different reports have the same id.
        """
        ...

    def distinct(self, files: Sequence[Path]) -> int:
        """Return the number of distinct ids in files of several documents."""
        ...


def require_one_report_per_id(rows: int, ids: int) -> None:
    """Raise ExportBroken if there are more distinct rows than ids."""
    # Rows are distinct, so an id with two rows has two different contents.
    if rows != ids:
        raise ExportBroken(
            f"{rows - ids} ids have more than one report: these exports do not belong together"
        )
