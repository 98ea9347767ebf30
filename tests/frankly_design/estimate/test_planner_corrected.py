# SPDX-License-Identifier: Apache-2.0
"""Planned margins of figures corrected for random answers, against the exact law of one report."""

from collections.abc import Iterator
from fractions import Fraction
from math import exp, sqrt

import numpy as np
import pytest
from frankly_design.estimate.anchors import AnchorScore
from frankly_design.estimate.margins import normal_quantile
from frankly_design.estimate.planner import Correction, Plan, Setting
from frankly_design.kinds.decoder import decoder, shares
from frankly_protocol.mechanisms import DenseMechanism

from tests.frankly_design.maths import grid
from tests.frankly_server.analysis.samples import grr

Z = normal_quantile(0.95)
MECHANISM = DenseMechanism(4, ((10, 4, 2), (3, 11, 2), (1, 4, 11)))
TRUTH = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))
LAW = (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2))
RANDOM, CHOICES = Fraction(1, 5), 4


def item_variance(random: float, choices: int) -> float:
    failed = random * (1 - 1 / choices)
    return failed * (1 - failed) * (choices / (choices - 1)) ** 2


def correction(random: Fraction = RANDOM, choices: int = CHOICES) -> Correction:
    """Return the correction by an instructed item that everybody gets."""
    kept, lam = 1 - float(random), float(random)
    return Correction(
        np.array([float(p) for p in LAW]), lam, item_variance(lam, choices) - 2 * kept * lam
    )


def reports(random: Fraction) -> Iterator[tuple[Fraction, int, Fraction]]:
    """Yield the chance, the symbol and the value k with mean κ of every possible report."""
    good, bad = Fraction(1), 1 - Fraction(CHOICES, CHOICES - 1)
    passing = Fraction(1, CHOICES)
    for x, (p, r) in enumerate(zip(TRUTH, LAW, strict=True)):
        for y in range(3):
            chance = Fraction(MECHANISM.weights[x][y], 16)
            yield (1 - random) * p * chance, y, good
            yield random * r * passing * chance, y, good
            yield random * r * (1 - passing) * chance, y, bad


@pytest.mark.parametrize("random", [Fraction(0), Fraction(1, 10), RANDOM])
def test_the_variance_is_that_of_every_possible_report(random: Fraction) -> None:
    """In exact fractions: Var(t − (θ − ρ)k)/κ² of one report, with an instructed item of four choices."""
    rows = decoder(MECHANISM, shares(3), (1, 1, 1)).rows
    plan = Plan(MECHANISM, shares(3), (1, 1, 1), Setting())
    widths = plan.corrected_margins(correction(random), 100, np.array([float(p) for p in TRUTH]))
    for target, (values, width) in enumerate(zip(rows, widths, strict=True)):
        assert values is not None
        off = TRUTH[target] - LAW[target]
        law = [(p, Fraction(values[y]) - off * k) for p, y, k in reports(random)]
        mean = sum(p * d for p, d in law)
        assert mean == LAW[target]  # d has the mean ρ whatever κ is
        variance = sum(p * d**2 for p, d in law) - mean**2
        assert width == pytest.approx(Z * sqrt(variance / 100) / float(1 - random), rel=1e-9)


def test_no_shares_of_a_grid_need_more() -> None:
    plan = Plan(MECHANISM, shares(3), (1, 1, 1), Setting())
    known = grr(2, 2.0)
    score = AnchorScore.of(known, (Fraction(11, 12), Fraction(1, 12)), (Fraction(1, 2),) * 2)
    assert score is not None
    costly = Correction(np.full(3, 1 / 3), 0.1, score.variance(0.9) - 0.18)
    for one in (correction(), costly):
        widest = np.array(plan.corrected_margins(one, 50))
        found = np.array([plan.corrected_margins(one, 50, p) for p in grid(3, 60)])
        assert np.all(found <= widest + 1e-12)
        assert widest == pytest.approx(found.max(axis=0), rel=1e-3)


@pytest.mark.parametrize("population", [None, 60, 100])
def test_without_random_answers_and_cost_it_is_the_usual_margin(population: int | None) -> None:
    plan = Plan(MECHANISM, shares(3), (1, 1, 1), Setting(population=population, subgroup=0.7))
    nothing = Correction(np.full(3, 1 / 3), 0.0, 0.0)
    assert plan.corrected_margins(nothing, 60) == pytest.approx(plan.margins(60), rel=1e-12)
    p = np.array([float(one) for one in TRUTH])
    assert plan.corrected_margins(nothing, 60, p) == pytest.approx(plan.margins_at(p, 60))


def test_of_a_population_only_the_attentive_answers_get_rarer() -> None:
    """20 of 30 people without replacement: 24 who read, with fixed answers, and 6 who answer afresh."""
    people, drawn = 30, 20
    plan = Plan(MECHANISM, shares(3), (1, 1, 1), Setting(population=people))
    widths = plan.corrected_margins(correction(), drawn, np.array([float(p) for p in TRUTH]))
    rows = decoder(MECHANISM, shares(3), (1, 1, 1)).rows
    for target, (values, width) in enumerate(zip(rows, widths, strict=True)):
        assert values is not None
        off = TRUTH[target] - LAW[target]
        squares = sum(p * (Fraction(values[y]) - off * k) ** 2 for p, y, k in reports(RANDOM))
        # The means of 12, 8 and 4 people who read, and of 6 who do not.
        means = [(int(x == target) - off) for x in range(3) for _ in range(int(24 * TRUTH[x]))]
        means += [LAW[target]] * 6
        between = sum(Fraction(m) ** 2 for m in means) / people - LAW[target] ** 2
        within = squares - LAW[target] ** 2 - between
        variance = (within + Fraction(people - drawn, people - 1) * between) / drawn
        assert width == pytest.approx(Z * sqrt(variance) / 0.8, rel=1e-9)


@pytest.mark.parametrize(("share", "random", "printed"), [
    (0.03, "0", (1.33, 1.60, 2.68)), (0.03, "0.1", (1.42, 1.69, 2.76)),
    (0.2, "0", (1.09, 1.18, 1.60)), (0.2, "0.1", (1.21, 1.30, 1.75)),
])  # fmt: skip
def test_costs_of_known_shares(share: float, random: str, printed: tuple[float, ...]) -> None:
    """Standard errors at ε = 2 over those without correction, for known shares of 0, 1 of 12 and 1 of 4."""
    lam, p = float(random), np.array([1 - share, share])
    keep = exp(2) / (1 + exp(2))
    mechanism = grr(2, 2.0)
    plan = Plan(mechanism, shares(2), (1, 1), Setting())
    seen = (1 - lam) * share + lam / 2
    told = seen * keep + (1 - seen) * (1 - keep)
    today = Z * sqrt(told * (1 - told)) / (2 * keep - 1)
    for known, cost in zip((Fraction(0), Fraction(1, 12), Fraction(1, 4)), printed, strict=True):
        score = AnchorScore.of(mechanism, (1 - known, known), (Fraction(1, 2),) * 2)
        assert score is not None
        excess = score.variance(1 - lam) - 2 * lam * (1 - lam)
        (_, width) = plan.corrected_margins(Correction(np.full(2, 0.5), lam, excess), 1, p)
        assert width / today == pytest.approx(cost, abs=0.006)


def test_simulated_surveys_have_the_planned_error() -> None:
    """40,000 surveys of 3,000 reports with an instructed item, by their counts from the exact law."""
    n, surveys, rng = 3000, 40_000, np.random.default_rng(17)
    kinds: dict[tuple[int, Fraction], Fraction] = {}
    for p, y, k in reports(RANDOM):
        kinds[y, k] = kinds.get((y, k), Fraction(0)) + p
    counts = rng.multinomial(n, [float(p) for p in kinds.values()], size=surveys) / n
    kept = counts @ np.array([float(k) for _, k in kinds])
    plan = Plan(MECHANISM, shares(3), (1, 1, 1), Setting())
    widths = plan.corrected_margins(correction(), n, np.array([float(p) for p in TRUTH]))
    for target, values in enumerate(decoder(MECHANISM, shares(3), (1, 1, 1)).rows):
        assert values is not None
        t = counts @ np.array([float(values[y]) for y, _ in kinds])
        rho, theta = float(LAW[target]), float(TRUTH[target])
        found = rho + (t - rho) / kept
        assert float(np.std(found)) == pytest.approx(widths[target] / Z, rel=0.015)
        inside = np.mean(np.abs(found - theta) <= widths[target])
        assert inside == pytest.approx(0.95, abs=0.005)
