# SPDX-License-Identifier: Apache-2.0
"""Shared code of Lift's figures: the grid of levels, the two data sets, and the three panels."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from frankly_design.families.lift.groups import Watched
from frankly_design.measures.lift import Lifts
from frankly_design.notions.lift_criteria import Measure, criterion
from frankly_design.notions.prior import Prior
from frankly_design.tables import objectives
from frankly_protocol.audit import level_for

from papers.draws import normalised
from papers.figure import Panel, Row, Run, average

SECRETS, ANSWERS = 5, 17
EPSILONS = tuple(f"{k / 4:g}" for k in range(1, 33))
QUICK = ("0.5", "1", "2", "4", "8")
SPLITS = (Fraction(35, 100), Fraction(1, 2), Fraction(65, 100))
PANELS = (
    Panel("a", "utility", "ε", "I(X;Y) / H(X)"),
    Panel("b", "max-lift leakage", "ε", "log max Λ(y)"),
    Panel("c", "min-lift leakage", "ε", "log min Ψ(y)"),
)
SYNTHETIC = f"cells uniform in [0, 1], normalised; |X| = {ANSWERS}, |S| = {SECRETS}"
ADULT = "X = occupation, S = relationship without Other-relative (errata 23)"
LEVELS = "ε_l = λε, ε_u = (1 − λ)ε"

Weights = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Measures:
    """Utility and leakage of a mechanism: I(X;Y)/H(X), log of the largest and of the least lift."""

    utility: float
    largest: float
    least: float

    @classmethod
    def of(cls, weights: Weights, prior: Prior) -> "Measures":
        """Measure a table of whole numbers; `least` is −∞ if some lift is 0."""
        lifts = Lifts.of(weights, prior)
        least = float(lifts.table.min())
        utility = objectives.normalised(objectives.information(weights, prior.shares), prior.shares)
        return cls(
            utility, math.log(float(lifts.table.max())), math.log(least) if least > 0 else -math.inf
        )


Curves = dict[str, Measures]
"""Results for one prior at one level, by curve."""


def watched(prior: Prior, epsilon: Fraction, split: Fraction | None, measure: Measure = "lift", order: int = 2
            ) -> Watched:  # fmt: skip
    """Return the criterion at ε: levels (λε, (1−λ)ε) for a split λ, or ε-LDP of the secret if it is None."""
    if split is None:
        return Watched(prior, criterion(prior.masses, None, level_for(epsilon), "ldp"))
    low, high = level_for(split * epsilon), level_for((1 - split) * epsilon)
    return Watched(prior, criterion(prior.masses, low, high, measure, order))


def name_of(split: Fraction | None) -> str:
    """Return the name of the curve for a split."""
    return "LDP" if split is None else f"ALIP, λ = {float(split):g}"


def synthetic(figure: str, run: Run, answers: int = ANSWERS, secrets: int = SECRETS) -> list[Prior]:
    """Return the figure's random priors, as the paper draws them."""
    return list(normalised(secrets, answers, figure, run.draws))


def adult(run: Run) -> list[Prior]:
    """Return the prior counted in Adult, as a list of one."""
    assert run.records is not None  # noqa: S101 - `make` refuses a figure without its records
    return [run.records.prior("relationship", "occupation", ("relationship", "Other-relative"))]


def over(
    priors: Sequence[Prior],
    epsilons: Sequence[str],
    run: Run,
    curves: Callable[[Prior, Fraction], Curves],
) -> Iterator[Row]:
    """Yield the three panels: means and standard deviations over the priors, or the numbers of a single prior."""
    for epsilon in epsilons:
        per_prior: list[Curves] = []
        for i, prior in enumerate(priors, 1):
            run.on_progress(f"ε = {epsilon}, distribution {i} of {len(priors)}")
            per_prior.append(curves(prior, Fraction(epsilon)))
        for name in per_prior[0]:
            measures = [curves_of_prior[name] for curves_of_prior in per_prior]
            for panel, values in zip("abc", zip(*((m.utility, m.largest, m.least) for m in measures), strict=True),
                                     strict=True):  # fmt: skip
                yield from summed(panel, name, float(epsilon), values)


def summed(panel: str, curve: str, x: float, values: Sequence[float]) -> Iterator[Row]:
    """Yield the mean, or the value itself if there is only one; nothing if no value is finite."""
    finite = [value for value in values if math.isfinite(value)]
    if len(values) > 1 and finite:
        yield average(panel, curve, x, finite)
    elif finite:
        yield Row(panel, curve, x, finite[0])
