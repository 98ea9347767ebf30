# SPDX-License-Identifier: Apache-2.0
"""Robust, Figures 3 to 5, and Lift, Figures 9 and 10: points and orders, in small and printed
cases.

`python -m papers` makes the figures themselves.
"""

import math
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from frankly_design.families.lift.merging import subset_merging
from frankly_design.families.lift.subset_rr import subset_random_response
from frankly_design.notions.prior import Prior
from frankly_protocol.audit import level_for
from numpy.typing import NDArray

from papers.ball_leakage import realised_epsilon
from papers.robust_common import GRR, IR, NR, POLYOPT, POLYOPT_PRINTED, SRR, Estimate
from tests.frankly_design.families.lift.reference import lifts
from tests.papers.exact import information, polyopt
from tests.papers.registry import paper
from tests.papers.test_lift import adult_prior, drawn, optimum, share_left

Matrix = NDArray[np.float64]
STEPS = 300


def estimates(secrets: int, values: int, seed: int, draws: int) -> list[tuple[Matrix, Estimate]]:
    """Draw, as in §8.2, P* from Jeffreys' prior and counts of 32,561 people from P*, all positive."""
    drawn: list[Any] = []
    rng = np.random.default_rng(seed)
    while len(drawn) < draws:
        truth = rng.dirichlet(np.full(secrets * values, 0.5)).reshape(secrets, values)
        counts = rng.multinomial(32561, truth.ravel()).reshape(secrets, values)
        if counts.min() > 0:
            drawn.append((truth, Estimate(tuple(tuple(int(n) for n in row) for row in counts))))
    return drawn


@paper("Robust Figure 3")
def test_the_points_of_figure_3_are_the_optima_over_exact_vertices() -> None:
    """For 2 × 2 at ε = .3 and 1.5, the test checks PolyOpt with and without s₁ = s₂, and NR as
    PolyOpt over the estimate alone."""
    for _, estimate in estimates(2, 2, 3, 2):
        P = np.array(estimate.counts) / 32561
        bounds = [[Fraction(*bound) for bound in row] for row in estimate.bounds]
        alone = [[Fraction(n, sum(row)) for n in row] for row in estimate.counts]
        for epsilon in ("0.3", "1.5"):
            optima: dict[Any, Any] = {}
            E = Fraction(*level_for(Fraction(epsilon)))
            for name, lower, diagonal in (
                (POLYOPT, bounds, False),
                (POLYOPT_PRINTED, bounds, True),
                (NR, alone, False),
            ):
                value, _, _ = polyopt(lower, E, P, diagonal=diagonal)
                optima[name] = information(P, estimate.table(name, Fraction(epsilon), STEPS))
                assert optima[name] == pytest.approx(value, abs=1.1e-3), (
                    name
                )  # the figure's own gap
                assert optima[name] <= value + 1e-9
            for name in (IR, SRR, GRR):
                optima[name] = information(P, estimate.table(name, Fraction(epsilon), STEPS))
            assert optima[POLYOPT_PRINTED] <= optima[POLYOPT] + 1.1e-3
            assert max(optima[IR], optima[SRR]) <= optima[POLYOPT] + 1.1e-3
            assert optima[POLYOPT] <= optima[NR] + 1.1e-3
            assert optima[GRR] <= optima[SRR] + 1e-12


@paper("Robust Figure 3")
def test_independent_reporting_beats_secret_rr_on_large_alphabets() -> None:
    """For 15 × 16 and 42 × 6, panels c and d, where PolyOpt is left out, IR ≥ SRR ≥ GRR at ε = .3 and 1.5."""
    for shape in ((15, 16), (42, 6)):
        (truth,) = [
            np.random.default_rng(34).dirichlet(np.full(shape[0] * shape[1], 0.5)).reshape(shape)
        ]
        counts = np.random.default_rng(35).multinomial(32561, truth.ravel()).reshape(shape)
        estimate = Estimate(tuple(tuple(int(n) for n in row) for row in counts))
        P = counts / 32561
        for epsilon in ("0.3", "1.5"):
            ir, srr, grr = (
                information(P, estimate.table(name, Fraction(epsilon), 1))
                for name in (IR, SRR, GRR)
            )
            assert ir >= srr * (1 - 1e-9) >= grr * (1 - 1e-9)


@paper("Robust Figure 4")
def test_mechanisms_that_trust_the_estimate_exceed_their_level_under_the_truth() -> None:
    """By definition, ε* = max ln P*(y|s)/P*(y|t), which is above ε for NR, and at most ε for
    PolyOpt if P* is in the ball."""
    within = 0
    for truth, estimate in estimates(2, 3, 4, 3):
        if not np.sum((np.array(estimate.counts) / 32561 - truth) ** 2 / truth) <= float(
            estimate.ball.threshold
        ):
            continue
        within += 1
        cells = [[max(1, round(1e15 * v)) for v in row] for row in truth]
        for name, epsilon in ((POLYOPT, "0.6"), (NR, "0.6")):
            weights = estimate.weights(name, Fraction(epsilon), STEPS)
            Q = np.array(weights, dtype=float).reshape(2, 3, -1) / sum(weights[0])
            by_secret = np.einsum("su,suy->sy", truth / truth.sum(axis=1, keepdims=True), Q)
            worst = max(
                float(np.max(np.log(by_secret[s] / by_secret[t])))
                for s, t in permutations(range(2))
            )
            assert realised_epsilon(weights, cells) == pytest.approx(worst, rel=1e-6)
            assert (worst > 0.6) is (name == NR)
    assert within >= 2


@paper("Robust Figure 5")
def test_the_information_under_the_estimate_is_near_that_under_the_truth(full: bool) -> None:
    """At ε = 1.5, the difference is within 3% for mechanisms without a search, in both directions
    equally often."""
    apart: dict[str, list[float]] = {SRR: [], IR: []}
    for truth, estimate in estimates(2, 5, 5, 100 if full else 30):
        P = np.array(estimate.counts) / 32561
        for name, values in apart.items():
            Q = estimate.table(name, Fraction("1.5"), 1)
            under_truth = information(P, Q)
            values.append((under_truth - information(truth, Q)) / under_truth)
    for values in apart.values():
        assert max(map(abs, values)) < 0.03
        assert abs(np.median(values)) < 0.35 * max(map(abs, values))


@paper("Lift Figure 10", "Lift Def 3", "Lift Algorithm 1", "Lift Algorithm 2")
def test_both_mechanisms_work_on_many_answers_and_keep_their_levels(full: bool) -> None:
    """At λ = ½, subset random response has more information than subset merging, and both keep
    their levels; --full uses 200 × 15."""
    answers, secrets = (200, 15) if full else (40, 6)
    (prior,) = [next(drawn(secrets, answers, 10))]
    for epsilon in (2, 8) if full else (2,):
        level = level_for(Fraction(epsilon, 2))
        merged, response = (
            make(prior.joint, level, level) for make in (subset_merging, subset_random_response)
        )
        assert share_left(prior, merged) <= share_left(prior, response) + 1e-12
        for table in (merged, response):
            for column in zip(*table, strict=True):
                ends = lifts(list(column), prior)
                assert (
                    -epsilon / 2 - 1e-9
                    <= math.log(min(ends))
                    <= math.log(max(ends))
                    <= epsilon / 2 + 1e-9
                )


@paper("Lift Figure 9")
@pytest.mark.full_only
def test_the_order_of_figure_9_on_adult() -> None:
    """At λ = ½, AORR ≥ SRR ≥ subset merging; the test of Figure 8 is the same on random priors."""
    prior: Prior = adult_prior()
    for epsilon in (Fraction(1), Fraction(2), Fraction(4)):
        level = level_for(epsilon / 2)
        merged, response = (
            share_left(prior, make(prior.joint, level, level))
            for make in (subset_merging, subset_random_response)
        )
        assert merged <= response + 1e-9 <= optimum(prior, epsilon / 2) + 1e-3
