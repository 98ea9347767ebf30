# SPDX-License-Identifier: Apache-2.0
"""Limits for the cells of the coverage grid, and the cells that miss them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from _estimate.grid import Coverage
from _estimate.guaranteed import OF_TWO
from _estimate.linear import FloatArray

LEAST = {
    "score": 0.93,
    "kl": 0.95,
    "exact": 0.95,
    "sequence": 0.95,
    "chebyshev": 0.95,
    "simultaneous": 0.95,
}
RUNS = 4000
"""Enumerated cells, which have no Monte Carlo error, get the tolerance of this many runs."""
ERRORS, GOOD, KL_SIZE = 3.5, 0.94, 500
LIMITS = {f"{method}_errors_below": ERRORS for method in LEAST} | {
    "score_width": 1.2,
    "kl_width_500": 1.5,
}
"""Largest allowed figures.

Widths are relative to `clt` of the same score, in cells where `clt` covers at least 94%.
`score_width` leaves out cells where `clt` covers less if two respondents change their answers;
`score_width_anywhere`, without a limit, does not. `kl` of a set uses a single bit;
`kl_width_500_shown`, without a limit, is relative to the `clt` of all bits.
"""


@dataclass(frozen=True)
class Found:
    """One figure of one target of a cell, compared with its limit."""

    demand: str
    figure: float
    coverage: float
    design: str
    kind: str
    truth: str
    n: int
    target: int


def figures(cells: Sequence[Coverage]) -> Iterator[Found]:
    """Yield the worst target's figure per cell and demand; none may exceed the demand's limit."""
    for cell in cells:
        for demand, figure in _figures(cell):
            if not np.isnan(figure).all():
                t = int(np.nanargmax(figure))
                method = demand.removesuffix("_errors_below") if demand in LIMITS else "clt"
                covered = float(cell.coverage[method if method in cell.coverage else "clt"][t])
                yield Found(
                    demand, float(figure[t]), covered, cell.design, cell.kind, cell.truth, cell.n, t
                )


def _figures(cell: Coverage) -> Iterator[tuple[str, FloatArray]]:
    runs = RUNS if cell.exactly else cell.runs
    for method, least in LEAST.items():
        if method in cell.coverage:
            yield (
                f"{method}_errors_below",
                (least - cell.coverage[method]) / (least * (1 - least) / runs) ** 0.5,
            )
    if "clt" not in cell.width:
        return
    is_good, beside = cell.coverage["clt"] >= GOOD, cell.beside("clt", "score")
    yield "score_width_anywhere", np.where(is_good, beside, np.nan)
    yield (
        "score_width",
        np.where(
            is_good if cell.nearby is None else is_good & (cell.nearby >= GOOD), beside, np.nan
        ),
    )
    if cell.n == KL_SIZE and "kl" in cell.width:
        yield "kl_width_500_shown", np.where(is_good & cell.two, cell.beside("clt", "kl"), np.nan)
        is_good = cell.coverage[OF_TWO] >= GOOD
        yield "kl_width_500", np.where(is_good & cell.two, cell.beside(OF_TWO, "kl"), np.nan)


def rows(cells: Sequence[Coverage]) -> list[dict[str, Any]]:
    """Return by design the least coverage over all its cells, and the largest width of `score`."""
    by_design: dict[str, list[Coverage]] = {}
    for cell in cells:
        by_design.setdefault(cell.design, []).append(cell)
    return [
        {"design": design, "cells": len(cells_of_design)}
        | {
            m: _least([cell.coverage[m] for cell in cells_of_design if m in cell.coverage])
            for m in ("clt", *LEAST)
        }
        | {
            "score_width": max(
                (f.figure for f in figures(cells_of_design) if f.demand == "score_width"),
                default=None,
            )
        }
        for design, cells_of_design in by_design.items()
    ]


def _least(arrays: Sequence[Any]) -> float | None:
    finite = [float(v) for values in arrays for v in values if not np.isnan(v)]
    return min(finite) if finite else None
