# SPDX-License-Identifier: Apache-2.0
"""What is asked of the cells of the grid, and the cells that miss it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from _estimate.grid import Held

LEAST = {"score": 0.93, "kl": 0.95, "exact": 0.95, "chebyshev": 0.95}
RUNS = 4000
"""Of these many runs is the Monte Carlo error that enumerated cells are judged by."""
ERRORS, WIDTH, KL_WIDTH, GOOD = 3.5, 1.2, 1.5, 0.94


@dataclass(frozen=True)
class Found:
    """One figure of one target of a cell; `worst` figures are the largest."""

    demand: str
    figure: float
    coverage: float
    design: str
    kind: str
    truth: str
    n: int
    target: int


def figures(cells: Sequence[Held]) -> Iterator[Found]:
    """Yield, per cell and demand, the figure of the worst target; a demand holds if all are at most its limit."""
    for cell in cells:
        where = (cell.design, cell.kind, cell.truth, cell.n)
        for method, least in LEAST.items():
            runs = RUNS if cell.exactly else cell.runs
            short = (least - cell.coverage.get(method, np.array([np.nan]))) / (least * (1 - least) / runs) ** 0.5
            if not np.isnan(short).all():
                t = int(np.nanargmax(short))
                yield Found(f"{method}_errors_below", float(short[t]), float(cell.coverage[method][t]), *where, t)
        good = cell.coverage["clt"] >= GOOD
        wide = np.where(good, cell.width["score"], np.nan)
        if not np.isnan(wide).all():
            t = int(np.nanargmax(wide))
            yield Found("score_width", float(wide[t]), float(cell.coverage["clt"][t]), *where, t)
        if cell.n == 500 and "kl" in cell.width and cell.two.any():
            wide = np.where(good & cell.two, cell.width["kl"], np.nan)
            if not np.isnan(wide).all():
                t = int(np.nanargmax(wide))
                yield Found("kl_width_500", float(wide[t]), float(cell.coverage["clt"][t]), *where, t)


def limit(demand: str) -> float:
    """Return the most that a figure may be."""
    return ERRORS if demand.endswith("_below") else WIDTH if demand == "score_width" else KL_WIDTH


def rows(cells: Sequence[Held]) -> list[dict[str, Any]]:
    """Return, by design, kind and n, the least coverage over truths and targets, and the largest width of `score`."""
    found: dict[tuple[str, str, int], list[Held]] = {}
    for cell in cells:
        found.setdefault((cell.design, cell.kind, cell.n), []).append(cell)
    return [
        {"design": design, "kind": kind, "n": n, "cells": len(here)}
        | {m: _least([cell.coverage[m] for cell in here if m in cell.coverage]) for m in ("score", "clt", *LEAST)}
        for (design, kind, n), here in found.items()
    ]


def _least(arrays: Sequence[Any]) -> float | None:
    known = [float(v) for each in arrays for v in each if not np.isnan(v)]
    return min(known) if known else None
