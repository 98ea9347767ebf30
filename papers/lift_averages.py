# SPDX-License-Identifier: Apache-2.0
"""Lift, Figures 11 to 13: subset merging with bounds on averages of the lift instead of its extremes."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from frankly_design.families.lift.merging import subsets
from frankly_design.notions.lift_criteria import Measure
from frankly_design.notions.prior import Prior

from papers import lift_common as common
from papers.figure import Check, Figure, Row, Rows, Run
from papers.lift_common import Curves, Measures

_HALF, _MORE = Fraction(1, 2), Fraction(65, 100)

Case = tuple[str, Measure, int, Fraction]
_AVERAGES: tuple[Case, ...] = (
    ("ALIP, λ = 0.5", "lift", 2, _HALF),
    ("ℓ1, λ = 0.5", "l1", 2, _HALF),
    ("ℓ1, λ = 0.65", "l1", 2, _MORE),
    ("χ², λ = 0.5", "chi2", 2, _HALF),
    ("χ², λ = 0.65", "chi2", 2, _MORE),
)
_ORDERS: tuple[Case, ...] = (
    ("ALIP", "lift", 2, _HALF),
    ("α = 2", "alpha", 2, _HALF),
    ("α = 10", "alpha", 10, _HALF),
    ("α = 100", "alpha", 100, _HALF),
)


def _rows(
    cases: tuple[Case, ...], priors: Callable[[Run], Sequence[Prior]]
) -> Callable[[Run], Iterator[Row]]:
    def curves(prior: Prior, epsilon: Fraction) -> Curves:
        measured: Curves = {}
        for name, measure, order, split in cases:
            partition = subsets(common.watched(prior, epsilon, split, measure, order))
            measured[name] = Measures.of(partition.merged(prior.answers), prior)
        return measured

    return lambda run: common.over(
        priors(run), run.points(common.EPSILONS, common.QUICK), run, curves
    )


def _about_averages(rows: Rows) -> Iterator[Check]:
    for name in ("ℓ1", "χ²"):
        sentence = f"{name}, λ = 0.5, has at least ALIP's utility"
        yield rows.ordered(sentence, "a", "ALIP, λ = 0.5", f"{name}, λ = 0.5", slack=1e-9)
        gain = {
            x: row.y - rows.y("a", f"{name}, λ = 0.5", x)
            for x, row in rows.curve("a", f"{name}, λ = 0.65").items()
        }
        above, below = (
            [v for x, v in gain.items() if 1 < x < 8],
            [v for x, v in gain.items() if x < 1],
        )
        yield Check(
            f"{name}: λ = 0.65 enhances utility for ε > 1: least gain",
            min(above),
            holds=min(above) >= -1e-9,
        )
        yield Check(
            f"{name}: λ = 0.65 lowers it for ε < 1: largest gain",
            max(below),
            holds=max(below) <= 1e-9,
        )


def _about_orders(rows: Rows) -> Iterator[Check]:
    yield rows.ordered("α = 2 has the highest utility, above α = 10", "a", "α = 10", "α = 2")
    yield rows.ordered("α = 100 is below α = 10", "a", "α = 100", "α = 10")
    apart = [abs(row.y - rows.y("a", "ALIP", x)) for x, row in rows.curve("a", "α = 100").items()]
    two = [abs(row.y - rows.y("a", "ALIP", x)) for x, row in rows.curve("a", "α = 2").items()]
    yield Check(
        "α = 100 is closer to ALIP than α = 2: its largest distance",
        max(apart),
        holds=max(apart) < max(two),
    )


_PARAMETERS = {"levels": common.LEVELS, "ε": "0.25, 0.5, … 8", "mechanism": "subset merging (Algorithm 1, corrected)",
               "bounds": "ℓ1: e^ε − 1; χ²: (e^ε − 1)²; α: e^ε, on both sides"}  # fmt: skip
FIGURES = (
    Figure(
        "lift-11", "Figure 11", "ALIP, ℓ1- and χ²-privacy, synthetic data", common.PANELS,
        {"data": common.SYNTHETIC, "λ": "0.5, 0.65", **_PARAMETERS},
        _rows(_AVERAGES, lambda run: common.synthetic("lift-11", run)), _about_averages, draws=1000, quick_draws=3,
    ),
    Figure(
        "lift-12", "Figure 12", "ALIP, ℓ1- and χ²-privacy, Adult", common.PANELS,
        {"data": common.ADULT, "λ": "0.5, 0.65", **_PARAMETERS}, _rows(_AVERAGES, common.adult), _about_averages,
        adult=True,
    ),
    Figure(
        "lift-13", "Figure 13", "ALIP and α-lift privacy, synthetic data", common.PANELS,
        {"data": common.SYNTHETIC, "λ": "0.5", "α": "2, 10, 100", **_PARAMETERS},
        _rows(_ORDERS, lambda run: common.synthetic("lift-13", run)), _about_orders, draws=1000, quick_draws=1,
    ),
)  # fmt: skip
