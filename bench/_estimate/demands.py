# SPDX-License-Identifier: Apache-2.0
"""Limits for the cells of the coverage grid, and the cells that miss them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from _estimate.grid import Coverage
from _estimate.guaranteed import OF_TWO
from _estimate.linear import FloatArray

LEAST = {
    "score": 0.88,
    "kl": 0.95,
    "exact": 0.95,
    "sequence": 0.95,
    "chebyshev": 0.95,
    "simultaneous": 0.95,
}
RUNS = 4000
"""Enumerated cells, which have no Monte Carlo error, get the tolerance of this many runs."""
ERRORS, GOOD, KL_SIZE = 3.5, 0.94, 500
USUAL_SCORE = 0.93
"""Least coverage of `score` in nearly all cells; LEAST holds in every cell."""
USUAL = {"score_errors_below_93": ERRORS, "score_width": 1.2}
"""Largest figures of nearly all cells; the other cells are listed as exceptions."""
MOST_EXCEPTIONS = {"score_errors_below_93": 0.001, "score_width": 0.01}
"""Largest allowed shares of exceptions among all cells."""
LIMITS = (
    {f"{method}_errors_below": ERRORS for method in LEAST}
    | {"kl_width_500": 1.5}
    | {f"{name}_exceptions": share for name, share in MOST_EXCEPTIONS.items()}
)
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
                method, is_coverage, _ = demand.partition("_errors_below")
                covered = float(cell.coverage[method if is_coverage else "clt"][t])
                yield Found(
                    demand, float(figure[t]), covered, cell.design, cell.kind, cell.truth, cell.n, t
                )


def exceptions(found: Sequence[Found]) -> list[Found]:
    """Return the figures beyond those of nearly all cells."""
    return [figure for figure in found if figure.figure > USUAL.get(figure.demand, inf)]


def shares_of_exceptions(found: Sequence[Found], cells: int) -> dict[str, float]:
    """Return the share of exceptions among all cells, by name of a limit."""
    names = [figure.demand for figure in exceptions(found)]
    return {f"{name}_exceptions": names.count(name) / cells for name in USUAL}


def _figures(cell: Coverage) -> Iterator[tuple[str, FloatArray]]:
    for method, least in LEAST.items():
        if method in cell.coverage:
            yield f"{method}_errors_below", _errors_below(cell, method, least)
    if "score" in cell.coverage:
        yield "score_errors_below_93", _errors_below(cell, "score", USUAL_SCORE)
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


def _errors_below(cell: Coverage, method: str, least: float) -> FloatArray:
    """Return by how many Monte Carlo errors the coverage of each target is below a level."""
    runs = RUNS if cell.exactly else cell.runs
    errors: FloatArray = (least - cell.coverage[method]) / (least * (1 - least) / runs) ** 0.5
    return errors


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
