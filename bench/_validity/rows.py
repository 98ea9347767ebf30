# SPDX-License-Identifier: Apache-2.0
"""Rows of a bench of simulated surveys, and their output."""

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

from _design.row import Row
from _runner import load, markdown


def printed(
    name: str,
    description: str | None,
    surveys: int,
    measured: Callable[[int], Iterator[Row]],
    arguments: Sequence[str] | None,
) -> None:
    """Read the command line, simulate and print; exit with 1 if a demand is not met.

    surveys : simulated surveys per cell unless the command line has another number. measured :
    yields the rows for a number of surveys.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--surveys", type=int, default=surveys, help="simulated surveys per cell")
    chosen = parser.parse_args(arguments)
    before, rows = load(), list[Row]()
    for row in measured(chosen.surveys):
        rows.append(row)
        if not chosen.json:
            print(_line(row), flush=True)
    holds = all(row.holds is not False for row in rows)
    if chosen.json:
        body = {
            "bench": name,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "load": [before, load()],
            "rows": [asdict(row) | {"ratio": row.ratio} for row in rows],
            "holds": holds,
        }
        print(json.dumps(body, indent=1))
    else:
        print("", *markdown(_summary(rows)), sep="\n")
    sys.exit(0 if holds else 1)


def row_of(
    item: int,
    case: str,
    value: float,
    demand: tuple[float, float] | None,
    seconds: float,
    baseline: str = "",
    its_value: float | None = None,
    unit: str = "",
) -> Row:
    """Return a row. demand : least and largest allowed value, None without a demand."""
    # Five digits are more than the simulation determines.
    value, its_value = (
        float(f"{value:.5g}"),
        None if its_value is None else float(f"{its_value:.5g}"),
    )
    limit, holds = "", None
    if demand is not None:
        low, high = demand
        limit, holds = f"{low:.4g} to {high:.4g}{unit}", bool(low <= value <= high)
    return Row(
        item, case, value, None, None, round(seconds, 4), baseline, its_value, None, limit, holds
    )


def _line(row: Row) -> str:
    verdict = {None: "", True: "yes", False: "NO"}[row.holds]
    its = "" if row.baseline_value is None else f"{row.baseline} {row.baseline_value:.4g}"
    return f"{row.item} {row.case:84} {row.value:9.4g} {its:24} {row.limit:16} {verdict}".rstrip()


def _summary(rows: Sequence[Row]) -> list[dict[str, str | float]]:
    """Return a line per item and demand."""
    lines: list[dict[str, str | float]] = []
    for item, limit in dict.fromkeys((row.item, row.limit) for row in rows):
        of_item = [row for row in rows if (row.item, row.limit) == (item, limit)]
        values = [row.value or 0.0 for row in of_item]
        missed = sum(row.holds is False for row in of_item)
        lines.append(
            {
                "item": str(item),
                "demand": limit,
                "cells": len(of_item),
                "least": min(values),
                "largest": max(values),
                "missed": missed,
            }
        )
    return lines
