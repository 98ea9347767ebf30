# SPDX-License-Identifier: Apache-2.0
"""Benchmark designs: random requests under every notion, ceilings, levels of pairs, long lists.

Exits 1 if a demand is not met.
"""

import argparse
import importlib
import json
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from _design.row import Row

ITEMS = {
    1: "random_designs",
    2: "small_requests",
    3: "ceilings",
    4: "levels_of_pairs",
    5: "long_lists",
    6: "large_information",
}
_COLUMNS = (
    "item",
    "case",
    "value",
    "bound",
    "gap",
    "s",
    "baseline",
    "its value",
    "its s",
    "ratio",
    "limit",
    "holds",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument(
        "--items", type=_items, default=tuple(ITEMS), help="items, such as 1,2 (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="smaller sizes, about a minute in all")
    chosen = parser.parse_args(arguments)
    rows: list[Row] = []
    for item in chosen.items:
        for row in _measured(item, quick=chosen.quick):
            rows.append(row)
            if not chosen.json:
                _print(row, first=len(rows) == 1)
    broken = [row for row in rows if row.holds is False]
    if chosen.json:
        machine = {"python": platform.python_version(), "machine": platform.machine()}
        print(
            json.dumps(
                {"bench": "design", **_ratios(rows), "rows": _plain(rows), "holds": not broken}
                | machine,
                indent=2,
            )
        )
    elif broken:
        print("does not hold: " + "; ".join(f"{row.item} {row.case}" for row in broken))
    sys.exit(1 if broken else 0)


def _items(text: str) -> tuple[int, ...]:
    items = tuple(sorted({int(part) for part in text.split(",")}))
    if not set(items) <= set(ITEMS):
        raise ValueError(text)
    return items


def _measured(item: int, *, quick: bool) -> Iterator[Row]:
    start = time.perf_counter()

    def progress(message: str) -> None:
        print(
            f"[{time.perf_counter() - start:6.0f} s] item {item}: {message}",
            file=sys.stderr,
            flush=True,
        )

    yield from importlib.import_module(f"_design.{ITEMS[item]}").rows(quick, progress)


def _plain(rows: list[Row]) -> list[dict[str, object]]:
    return [asdict(row) | {"ratio": row.ratio} for row in rows]


def _ratios(rows: list[Row]) -> dict[str, float]:
    """Return the least and the largest ratio of each item: how many times longer the baselines took."""
    figures: dict[str, float] = {}
    for item in sorted({row.item for row in rows}):
        ratios = [row.ratio for row in rows if row.item == item and row.ratio is not None]
        if ratios:
            figures |= {f"ratio_{item}_least": min(ratios), f"ratio_{item}_most": max(ratios)}
    return figures


def _print(row: Row, *, first: bool) -> None:
    if first:
        print(_line(_COLUMNS))
    holds = {None: "", True: "yes", False: "NO"}[row.holds]
    numbers = (
        _number(row.value, ".6f"),
        _number(row.bound, ".6f"),
        _number(row.gap, ".1e"),
        _number(row.seconds, ".3f"),
    )
    baseline = (
        row.baseline,
        _number(row.baseline_value, ".6f"),
        _number(row.baseline_seconds, ".3f"),
    )
    print(
        _line(
            (
                str(row.item),
                row.case,
                *numbers,
                *baseline,
                _number(row.ratio, ".1f"),
                row.limit,
                holds,
            )
        ),
        flush=True,
    )


def _line(cells: Sequence[str]) -> str:
    widths = (4, 76, 9, 9, 8, 8, 56, 9, 10, 10, 36, 5)
    return " ".join(
        cell.ljust(w) if w > 10 else cell.rjust(w) for cell, w in zip(cells, widths, strict=True)
    ).rstrip()


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


if __name__ == "__main__":
    main()
