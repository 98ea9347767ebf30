# SPDX-License-Identifier: Apache-2.0
"""Lift, Figures 2, 3, 6 and 7: the watchdog with complete and with subset merging, under LDP and ALIP."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from frankly_design.families.lift.complete_merging import complete_merging
from frankly_design.families.lift.groups import Partition, Watched
from frankly_design.families.lift.merging import subsets
from frankly_design.notions.prior import Prior

from papers import lift_common as common
from papers.figure import Check, Figure, Panel, Row, Rows, Run
from papers.lift_common import Curves, Measures
from papers.printed import lift as printed

_PRINTED = ", as printed"
_CRITERIA: tuple[Fraction | None, ...] = (None, *common.SPLITS)
_PANELS = (
    *common.PANELS,
    Panel("d", "how often the printed algorithm breaks its levels", "ε", "share"),
)

Mechanism = tuple[
    Callable[[Watched], Partition], Callable[[Watched, Fraction | None], printed.Printed]
]


def _ratio(largest: float, least: float) -> float:
    """Return ω = Γ = Λ/Ψ, the printed risk for LDP."""
    return largest / least if least > 0 else float("inf")


def _as_printed(watched: Watched, split: Fraction | None) -> printed.Printed:
    """Run Algorithm 1 with the printed risk: Λ + Ψ for ALIP, Γ for LDP."""
    return printed.subset_merging(watched, _ratio if split is None else printed.sum_of_lifts)


COMPLETE: Mechanism = (complete_merging, lambda watched, _split: printed.complete_merging(watched))
SUBSETS: Mechanism = (subsets, _as_printed)


class _Maker:
    """The corrected and the printed form of a mechanism; equal partitions are measured once."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._ours, self._printed = mechanism
        self._cache: dict[tuple[Prior, Partition], Measures] = {}
        self.broken: dict[tuple[str, float], list[bool]] = {}

    def curves(self, prior: Prior, epsilon: Fraction) -> Curves:
        measured: Curves = {}
        for split in _CRITERIA:
            watched = common.watched(prior, epsilon, split)
            measured[common.name_of(split)] = self._measured(prior, self._ours(watched))
            as_printed = self._printed(watched, split)
            measured[common.name_of(split) + _PRINTED] = self._measured(prior, as_printed.partition)
            key = (common.name_of(split) + _PRINTED, float(epsilon))
            self.broken.setdefault(key, []).append(as_printed.broken)
        return measured

    def _measured(self, prior: Prior, partition: Partition) -> Measures:
        key = (prior, partition)
        if key not in self._cache:
            self._cache[key] = Measures.of(partition.merged(prior.answers), prior)
        return self._cache[key]


def _rows(
    mechanism: Mechanism, priors: Callable[[Run], Sequence[Prior]]
) -> Callable[[Run], Iterator[Row]]:
    def rows(run: Run) -> Iterator[Row]:
        maker = _Maker(mechanism)
        yield from common.over(
            priors(run), run.points(common.EPSILONS, common.QUICK), run, maker.curves
        )
        for (name, epsilon), broken in maker.broken.items():
            yield Row("d", name, epsilon, sum(broken) / len(broken))

    return rows


def _about(*printed_at: tuple[float, float, float]) -> Callable[[Rows], Iterator[Check]]:
    """Return the checks of the text's claims, and of triples (ε, printed utility at λ = .5, tolerance)."""

    def checks(rows: Rows) -> Iterator[Check]:
        for epsilon, value, tolerance in printed_at:
            ours = rows.y("a", "ALIP, λ = 0.5", epsilon)
            allowed = tolerance + 2 * rows.error("a", "ALIP, λ = 0.5", epsilon)
            yield Check.near(f"utility at λ = 0.5, ε = {epsilon:g}", ours, value, allowed)
            printed_utility = rows.y("a", "ALIP, λ = 0.5" + _PRINTED, epsilon)
            yield Check(f"the same as printed, ε = {epsilon:g}", printed_utility)
        for split in common.SPLITS:
            name = common.name_of(split)
            over = [
                row
                for row in rows.curve("b", name).values()
                if (row.most or row.y) > (1 - split) * row.x + 1e-9
            ]
            under = [
                row
                for row in rows.curve("c", name).values()
                if (row.least or row.y) < -split * row.x - 1e-9
            ]
            broken = len(over) + len(under)
            yield Check(f"{name}: the levels are kept in all cases: points that break them", broken,
                        holds=not broken, always=True)  # fmt: skip
        for form in ("", _PRINTED):
            skewed, half = (
                rows.curve("a", f"ALIP, λ = {split}{form}") for split in ("0.65", "0.5")
            )
            least = min(row.y - half[x].y for x, row in skewed.items() if x > 1)
            sentence = f"λ = 0.65 enhances utility for ε > 1{form}: least gain"
            yield Check(sentence, least, holds=least >= -1e-9)
        worst = max(row.y for row in rows.all if row.panel == "d")
        yield Check("the printed algorithm keeps its levels in all cases: largest share broken", worst,
                    holds=not worst, expected=False)  # fmt: skip

    return checks


def _above(base: Callable[[Rows], Iterator[Check]]) -> Callable[[Rows], Iterator[Check]]:
    def checks(rows: Rows) -> Iterator[Check]:
        yield from base(rows)
        for split in common.SPLITS:
            sentence = f"Proposition 2: {common.name_of(split)} has at most LDP's utility"
            yield rows.ordered(
                sentence, "a", common.name_of(split) + _PRINTED, "LDP" + _PRINTED, always=True
            )

    return checks


_PARAMETERS = {"levels": common.LEVELS, "ε": "0.25, 0.5, … 8", "λ": "0.35, 0.5, 0.65; LDP at ε",
               "bars": "one standard deviation over the draws; least, most: extremes"}  # fmt: skip
_NOTES = (
    "the curves without 'as printed' are repaired until every report keeps its level (errata 21)",
)
FIGURES = (
    Figure(
        "lift-2", "Figure 2", "Watchdog with complete merging, synthetic data", _PANELS,
        {"data": common.SYNTHETIC, **_PARAMETERS},
        _rows(COMPLETE, lambda run: common.synthetic("lift-2", run)), _above(_about((2, 0.52, 0.01), (1, 0.17, 0.01))),
        draws=1000, quick_draws=4, notes=_NOTES,
    ),
    Figure(
        "lift-3", "Figure 3", "Watchdog with complete merging, Adult", _PANELS, {"data": common.ADULT, **_PARAMETERS},
        _rows(COMPLETE, common.adult), _above(_about((2, 0.73, 0.01), (1, 0.28, 0.01))), adult=True, notes=_NOTES,
    ),
    Figure(
        "lift-6", "Figure 6", "Watchdog with subset merging, synthetic data", _PANELS,
        {"data": common.SYNTHETIC, **_PARAMETERS},
        _rows(SUBSETS, lambda run: common.synthetic("lift-6", run)), _about((1, 0.73, 0.01)),
        draws=1000, quick_draws=3, notes=(*_NOTES, "as printed: risk Λ + Ψ; ours: Λ + 1/Ψ (errata 22)"),
    ),
    Figure(
        "lift-7", "Figure 7", "Watchdog with subset merging, Adult", _PANELS, {"data": common.ADULT, **_PARAMETERS},
        _rows(SUBSETS, common.adult), _about((1, 0.73, 0.01)), adult=True,
        notes=(*_NOTES, "as printed: risk Λ + Ψ; ours: Λ + 1/Ψ (errata 22)"),
    ),
)  # fmt: skip
