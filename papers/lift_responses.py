# SPDX-License-Identifier: Apache-2.0
"""Lift, Figures 4, 5 and 8 to 10: optimal random response, subset random response and subset merging."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from statistics import fmean

from frankly_design.families.lift.merging import subset_merging
from frankly_design.families.lift.subset_rr import subset_random_response
from frankly_design.notions.declared.belief import two_sided
from frankly_design.notions.prior import Prior
from frankly_protocol.audit import level_for

from papers import lift_common as common
from papers.figure import SECONDS, Check, Figure, Row, Rows, Run
from papers.lift_common import Curves, Measures, Weights
from papers.optimum import most_informative, weights_of

STEPS, QUICK_STEPS = 1000, 10
_AORR, _SRR, _MERGING = "AORR", "SRR", "subset merging"
_LARGE_ANSWERS, _LARGE_SECRETS = 200, 15
_LARGE = tuple(f"{k / 4:g}" for k in range(4, 33))

_QUICK = ("0.5", "2", "4")

Maker = Callable[[Prior, Fraction, Fraction, Run], Weights]


def aorr(prior: Prior, low: Fraction, high: Fraction, run: Run) -> Weights:
    """Return the optimal random response under (low, high)-ALIP  [Lift (12)], found by the design engine."""
    steps = QUICK_STEPS if run.quick else STEPS
    return weights_of(most_informative(prior, [two_sided(prior, low, high)], steps).mechanism)


def _srr(prior: Prior, low: Fraction, high: Fraction, _run: Run) -> Weights:
    return subset_random_response(prior.joint, level_for(low), level_for(high))


def _merging(prior: Prior, low: Fraction, high: Fraction, _run: Run) -> Weights:
    return subset_merging(prior.joint, level_for(low), level_for(high))


def _large(run: Run) -> list[Prior]:
    answers, secrets = (60, 8) if run.quick else (_LARGE_ANSWERS, _LARGE_SECRETS)
    return common.synthetic("lift-10", run, answers, secrets)


def _splits(priors: Callable[[Run], Sequence[Prior]]) -> Callable[[Run], Iterator[Row]]:
    def rows(run: Run) -> Iterator[Row]:
        def curves(prior: Prior, epsilon: Fraction) -> Curves:
            return {
                common.name_of(split): Measures.of(
                    aorr(prior, split * epsilon, (1 - split) * epsilon, run), prior
                )
                for split in common.SPLITS
            }

        yield from common.over(priors(run), run.points(common.EPSILONS, _QUICK), run, curves)

    return rows


def _compared(
    priors: Callable[[Run], Sequence[Prior]],
    makers: dict[str, Maker],
    split: Fraction,
    epsilons: tuple[Sequence[str], Sequence[str]],
) -> Callable[[Run], Iterator[Row]]:
    """Return a function that compares several mechanisms at one split, and the seconds they take."""

    def rows(run: Run) -> Iterator[Row]:
        durations: dict[tuple[str, Fraction], list[float]] = {}

        def curves(prior: Prior, epsilon: Fraction) -> Curves:
            measured: Curves = {}
            for name, make in makers.items():
                start = run.timer()
                weights = make(prior, split * epsilon, (1 - split) * epsilon, run)
                durations.setdefault((name, epsilon), []).append(run.timer() - start)
                measured[name] = Measures.of(weights, prior)
            return measured

        yield from common.over(priors(run), run.points(*epsilons), run, curves)
        for (name, epsilon), seconds in durations.items():
            yield Row(
                SECONDS, name, float(epsilon), fmean(seconds), least=min(seconds), most=max(seconds)
            )

    return rows


def _about_splits(value: float, tolerance: float) -> Callable[[Rows], Iterator[Check]]:
    def checks(rows: Rows) -> Iterator[Check]:
        yield Check.near("utility at λ = 0.5, ε = 2", rows.y("a", "ALIP, λ = 0.5", 2), value,
                         tolerance + 2 * rows.error("a", "ALIP, λ = 0.5", 2))  # fmt: skip
        relaxed = [rows.y("a", "ALIP, λ = 0.65", x) - rows.y("a", "ALIP, λ = 0.5", x)
                   for x in rows.curve("a", "ALIP, λ = 0.5") if x > 1]  # fmt: skip
        yield Check(
            "λ = 0.65 enhances utility for ε > 1: least gain",
            min(relaxed),
            holds=min(relaxed) >= -1e-3,
        )
        yield rows.ordered(
            "λ = 0.35 has lower utility than λ = 0.5", "a", "ALIP, λ = 0.35", "ALIP, λ = 0.5", 1e-3
        )
        for split in common.SPLITS:
            yield _levels_kept(rows, common.name_of(split), split)

    return checks


def _levels_kept(rows: Rows, name: str, split: Fraction) -> Check:
    high = [
        row
        for row in rows.curve("b", name).values()
        if (row.most or row.y) > (1 - split) * row.x + 1e-9
    ]
    low = [
        row
        for row in rows.curve("c", name).values()
        if (row.least or row.y) < -split * row.x - 1e-9
    ]
    return Check(f"{name}: points at which a level is broken", len(high) + len(low), holds=not high and not low,
                 always=True)  # fmt: skip


def _about_compared(split: Fraction, best: bool) -> Callable[[Rows], Iterator[Check]]:
    def checks(rows: Rows) -> Iterator[Check]:
        yield rows.ordered(
            "SRR has at least subset merging's utility", "a", _MERGING, _SRR, always=True
        )
        if best:
            yield rows.ordered("AORR has at least SRR's utility", "a", _SRR, _AORR, 1e-3)
            apart = [row.y - rows.y("a", _SRR, x) for x, row in rows.curve("a", _AORR).items()]
            yield Check("SRR is very close to AORR: mean difference of utility", fmean(apart))
            yield Check("SRR is very close to AORR: largest difference of utility", max(apart))
        for name in (_AORR, _SRR, _MERGING) if best else (_SRR, _MERGING):
            yield _levels_kept(rows, name, split)

    return checks


_THREE: dict[str, Maker] = {_AORR: aorr, _SRR: _srr, _MERGING: _merging}
_TWO: dict[str, Maker] = {_SRR: _srr, _MERGING: _merging}
_BOTH = (common.EPSILONS, _QUICK)
_SPLIT, _HALF = Fraction(65, 100), Fraction(1, 2)
_SEARCH = f"local search and at most {STEPS} steps of branch and bound"
_FIGURE_4 = {
    "levels": common.LEVELS,
    "ε": "0.25, 0.5, … 8",
    "λ": "0.35, 0.5, 0.65",
    "AORR": _SEARCH,
}
_FIGURE_8 = {"levels": common.LEVELS, "ε": "0.25, 0.5, … 8", "λ": "0.65", "AORR": _SEARCH,
             "panel d of the paper": "the seconds, in a separate file"}  # fmt: skip
FIGURES = (
    Figure(
        "lift-4", "Figure 4", "Optimal random response (AORR), synthetic data", common.PANELS,
        {"data": common.SYNTHETIC, **_FIGURE_4},
        _splits(lambda run: common.synthetic("lift-4", run)), _about_splits(0.94, 0.01), draws=100, quick_draws=1,
    ),
    Figure(
        "lift-5", "Figure 5", "Optimal random response (AORR), Adult", common.PANELS,
        {"data": common.ADULT, **_FIGURE_4},
        _splits(common.adult), _about_splits(0.96, 0.01), adult=True,
    ),
    Figure(
        "lift-8", "Figure 8", "AORR, subset random response and subset merging, synthetic data", common.PANELS,
        {"data": common.SYNTHETIC, **_FIGURE_8},
        _compared(lambda run: common.synthetic("lift-8", run), _THREE, _SPLIT, _BOTH), _about_compared(_SPLIT, True),
        draws=100, quick_draws=1,
    ),
    Figure(
        "lift-9", "Figure 9", "AORR, subset random response and subset merging, Adult", common.PANELS,
        {"data": common.ADULT, **_FIGURE_8},
        _compared(common.adult, _THREE, _SPLIT, _BOTH), _about_compared(_SPLIT, True), adult=True,
    ),
    Figure(
        "lift-10", "Figure 10", "Subset random response and subset merging, 200 answers and 15 secrets", common.PANELS,
        {"data": f"cells uniform, normalised; |X| = {_LARGE_ANSWERS}, |S| = {_LARGE_SECRETS} (quick: 60 and 8)",
         "ε": "1, 1.25, … 8", "λ": "0.5", "panel d of the paper": "the seconds, in a separate file"},
        _compared(_large, _TWO, _HALF, (_LARGE, ("2", "8"))),
        _about_compared(_HALF, False), draws=100, quick_draws=1,
    ),
)  # fmt: skip
