# SPDX-License-Identifier: Apache-2.0
"""Robust, Figures 2 and 3: normalised information of every mechanism, on Adult and on synthetic data."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from papers import robust_common as common
from papers.figure import Check, Figure, Panel, Row, Rows, Run, average
from papers.robust_common import (
    GRR,
    IR,
    IR_BALL,
    NR,
    POLYOPT,
    POLYOPT_PRINTED,
    QUICKLY,
    SRR,
    Estimate,
)

EPSILONS = ("0.075", "0.15", "0.3", "0.45", "0.6", "0.75", "0.9", "1.05", "1.2", "1.35", "1.5")
QUICK = ("0.6", "1.5")
_SMALL = (POLYOPT, POLYOPT_PRINTED, NR, IR, IR_BALL, SRR, GRR)
_LARGE = (IR, IR_BALL, SRR, GRR)
_COLUMNS = (
    ("sex", "race"),
    ("race", "sex"),
    ("occupation", "education"),
    ("native-country", "relationship"),
)


def _curves(estimate: Estimate, panel: str, run: Run) -> Iterator[tuple[str, str, float]]:
    """Yield (curve, ε, utility), without PolyOpt and NR for large alphabets, as in the paper."""
    for epsilon in run.points(EPSILONS, QUICK):
        names: Sequence[str] = _SMALL if panel in "ab" else _LARGE
        for name in names:
            run.on_progress(f"panel {panel}, ε = {epsilon}, {name}")
            yield (
                name,
                epsilon,
                estimate.utility(estimate.table(name, Fraction(epsilon), common.steps(run))),
            )


def _adult(run: Run) -> Iterator[Row]:
    assert run.records is not None  # noqa: S101 - `make` refuses a figure without its records
    for panel, (secret, value) in zip("abcd", _COLUMNS, strict=True):
        estimate = Estimate(tuple(map(tuple, run.records.joint(secret, value))))
        for name, epsilon, utility in _curves(estimate, panel, run):
            yield Row(panel, name, float(epsilon), utility)


def _synthetic(run: Run) -> Iterator[Row]:
    for panel, shape in zip("abcd", common.shapes(run), strict=True):
        utilities: dict[tuple[str, str], list[float]] = {}
        for i, drawn in enumerate(common.drawn(shape, run), 1):
            run.on_progress(f"panel {panel}, distribution {i} of {run.draws}")
            for name, epsilon, utility in _curves(drawn.estimate(), panel, run):
                utilities.setdefault((name, epsilon), []).append(utility)
        for (name, epsilon), values in utilities.items():
            yield average(panel, name, float(epsilon), values)


def _about(rows: Rows) -> Iterator[Check]:
    for panel in "ab":
        yield rows.ordered(f"{panel}: PolyOpt outperforms IR", panel, IR, POLYOPT, 1e-3)
        yield rows.ordered(f"{panel}: PolyOpt outperforms SRR", panel, SRR, POLYOPT, 1e-3)
        yield rows.ordered(f"{panel}: NR outperforms PolyOpt", panel, POLYOPT, NR, 1e-3)
        sentence = f"{panel}: the rows s₁ = s₂ only cost utility (errata 11)"
        yield rows.ordered(sentence, panel, POLYOPT_PRINTED, POLYOPT, 2e-3)
        small = min(rows.curve(panel, IR))
        better = rows.y(panel, IR, small) >= rows.y(panel, SRR, small) - 1e-12
        yield Check(
            f"{panel}: IR outperforms SRR at the lowest ε: IR there",
            rows.y(panel, IR, small),
            holds=better,
        )
        yield rows.ordered(f"{panel}: GRR is worst, below SRR", panel, GRR, SRR)
    for panel in "cd":
        yield rows.ordered(f"{panel}: IR outperforms SRR", panel, SRR, IR, 1e-9)
        yield rows.ordered(f"{panel}: GRR is worst, below SRR", panel, GRR, SRR)


def _panels(words: Sequence[str]) -> tuple[Panel, ...]:
    return tuple(
        Panel(key, title, "ε", "I(X;Y) / H(X)") for key, title in zip("abcd", words, strict=True)
    )


_PARAMETERS = {"β": "0.05, order 2 (χ²)", "ε": "0.075, 0.15, 0.3, … 1.5",
               "PolyOpt, NR": f"local search and at most {common.STEPS} steps of branch and bound",
               "utility": "under the estimate"}  # fmt: skip
_NOTES = ("PolyOpt omits the rows s₁ = s₂, which the guarantee does not need (errata 11)",
          "IR uses Theorem 5 with the ℓ1 norm (errata 13)")  # fmt: skip
FIGURES = (
    Figure(
        "robust-2", "Figure 2", "Utility on Adult",
        _panels([f"S = {s}, U = {u}" for s, u in _COLUMNS]), {"data": "Adult, all rows", **_PARAMETERS},
        _adult, _about, adult=True, notes=_NOTES,
    ),
    Figure(
        "robust-3", "Figure 3", "Utility on synthetic data",
        _panels([f"a₁ = {s}, a₂ = {u}" for s, u in common.SHAPES]),
        {"data": f"P* from Dirichlet(½), n = {common.PEOPLE}", **QUICKLY, **_PARAMETERS,
         "bars": "one standard deviation over the draws"},
        _synthetic, _about, draws=100, quick_draws=1, notes=_NOTES, seed=common.SEED,
    ),
)  # fmt: skip
