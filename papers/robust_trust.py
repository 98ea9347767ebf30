# SPDX-License-Identifier: Apache-2.0
"""Robust, Figures 4 and 5: leakage and utility, under the true distribution, of mechanisms for an estimated one."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from papers import channel
from papers import robust_common as common
from papers.ball_leakage import realised_epsilon
from papers.figure import Check, Figure, Panel, Row, Rows, Run, quartiles
from papers.robust_common import IR, NR, POLYOPT, QUICKLY, SRR
from papers.robust_utility import EPSILONS

QUICK = ("0.075", "1.5")
_EPSILON = "1.5"
_SCALE = 1e15
_NAMES = (SRR, POLYOPT, IR)


def _realised(run: Run) -> Iterator[Row]:
    for panel, shape in zip("ab", common.shapes(run), strict=False):
        realised: dict[tuple[str, str], list[float]] = {}
        for i, drawn in enumerate(common.drawn(shape, run), 1):
            run.on_progress(f"panel {panel}, distribution {i} of {run.draws}")
            truth = [[max(1, int(v)) for v in row] for row in np.rint(_SCALE * drawn.truth)]
            estimate = drawn.estimate()
            for epsilon in run.points(EPSILONS, QUICK):
                for name in (POLYOPT, NR):
                    weights = estimate.weights(name, Fraction(epsilon), common.steps(run))
                    realised.setdefault((name, epsilon), []).append(
                        realised_epsilon(weights, truth)
                    )
        for (name, epsilon), values in realised.items():
            yield quartiles(panel, name, float(epsilon), values)
        for epsilon in run.points(EPSILONS, QUICK):
            yield Row(panel, "ε* = ε", float(epsilon), float(epsilon))


def _about_realised(rows: Rows) -> Iterator[Check]:
    for panel in "ab":
        curve = rows.curve(panel, NR)
        above = sum((row.low or 0.0) > x for x, row in curve.items())
        yield Check(f"{panel}: NR's ε* is greater than ε, quartile by quartile (share of points)", above / len(curve),
                    holds=above == len(curve))  # fmt: skip
        ours = rows.curve(panel, POLYOPT)
        below = sum((row.high or 0.0) <= x for x, row in ours.items())
        yield Check(f"{panel}: PolyOpt's ε* is less than ε, quartile by quartile (share of points)", below / len(ours),
                    holds=below == len(ours))  # fmt: skip
    highest = {panel: rows.curve(panel, NR)[0.075].high or 0.0 for panel in "ab"}
    nearest = min(highest, key=lambda panel: abs(highest[panel] - 0.3897))
    sentence = f"NR's third quartile of ε* at ε = 0.075 (the nearer panel, {nearest})"
    yield Check.near(sentence, highest[nearest], 0.3897, 0.15)


def _robust(run: Run) -> Iterator[Row]:
    for panel, shape in zip("abcd", common.shapes(run), strict=True):
        differences: dict[str, list[float]] = {}
        for i, drawn in enumerate(common.drawn(shape, run), 1):
            run.on_progress(f"panel {panel}, distribution {i} of {run.draws}")
            estimate = drawn.estimate()
            for name in _NAMES if panel in "ab" else (SRR, IR):
                Q = estimate.table(name, Fraction(_EPSILON), common.steps(run))
                estimated = channel.information(Q, estimate.shares)
                realised = channel.information(Q, np.asarray(drawn.truth.ravel()))
                differences.setdefault(name, []).append((estimated - realised) / estimated)
        for name, values in differences.items():
            yield quartiles(panel, name, float(_NAMES.index(name)), values)


def _about_robust(rows: Rows) -> Iterator[Check]:
    for panel in "abcd":
        panel_rows = [row for row in rows.all if row.panel == panel]
        largest = max(abs(v) for row in panel_rows for v in (row.least or 0.0, row.most or 0.0))
        yield Check(
            f"{panel}: the difference is less than 3% at its most extreme",
            largest,
            holds=largest < 0.03,
        )
        middle = max(abs(row.y) for row in panel_rows)
        yield Check(f"{panel}: differences are symmetric: largest |median| / largest difference", middle / largest,
                    holds=middle < 0.35 * largest)  # fmt: skip


_DATA = {"data": f"P* from Dirichlet(½), n = {common.PEOPLE}", "β": "0.05, order 2 (χ²)",
         "PolyOpt, NR": f"local search and at most {common.STEPS} steps of branch and bound"}  # fmt: skip
FIGURES = (
    Figure(
        "robust-4", "Figure 4", "Realised privacy parameter ε* on synthetic data",
        tuple(Panel(key, f"a₁ = {s}, a₂ = {u}", "ε", "ε*") for key, (s, u) in zip("ab", common.SHAPES, strict=False)),
        {**_DATA, "ε": "0.075, 0.15, 0.3, … 1.5", "bars": "quartiles around the median", **QUICKLY},
        _realised, _about_realised, draws=100, quick_draws=2, seed=common.SEED,
        notes=("ε* is the logarithm of the printed maximum (errata 12); draws with infinite ε* are left out",),
    ),
    Figure(
        "robust-5", "Figure 5", "Normalised difference of the information under the estimate and the truth, ε = 1.5",
        tuple(Panel(key, f"a₁ = {s}, a₂ = {u}", "mechanism", "(I − I*) / I", kind="box", names=_NAMES)
              for key, (s, u) in zip("abcd", common.SHAPES, strict=True)),
        {**_DATA, "ε": _EPSILON, "boxes": "quartiles, whiskers to the extremes", **QUICKLY},
        _robust, _about_robust, draws=100, quick_draws=2, seed=common.SEED,
    ),
)  # fmt: skip
