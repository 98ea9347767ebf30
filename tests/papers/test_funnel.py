# SPDX-License-Identifier: Apache-2.0
"""Funnel: optimal mechanisms for a secret, compared with a brute force that shares no code with the
engine.

Funnel writes Q_{y|x} with row = report; the engine's columns are its rows.
"""

import random
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from frankly_design.engine import design
from frankly_design.measures import measure
from frankly_design.notions.prior import Prior
from frankly_design.tables.quantise import quantise
from frankly_protocol.audit import Claim, level_for
from frankly_protocol.mechanisms import DenseMechanism

from tests.frankly_design.maths import (
    admits_identity,
    random_epsilon,
    random_mechanism,
    random_prior,
    rays_of,
    wanted,
)
from tests.narrowing import dense_of
from tests.papers.exact import Vector, best_information, delta_rows, secret_rows, vertices
from tests.papers.registry import paper


def columns_as_posteriors(prior: Prior, E: tuple[int, int], notion: str) -> set[Vector]:
    """Return the engine's rays in Funnel's variables: P(x|y) ∝ p_x Q(y|x)."""
    result = set()
    for ray in rays_of(notion, E, prior):
        mass = [n * v for n, v in zip(prior.shares, ray, strict=True)]
        result.add(tuple(Fraction(m, sum(mass)) for m in mass))
    return result


INFORMATION: dict[str, Any] = {
    "objective": "information",
    "accept_identity": True,
    "accept_unidentifiable": True,
}


@paper("Funnel Thm 3")
@pytest.mark.parametrize(
    ("answers", "secrets", "trials"), [(2, 2, 8), (3, 2, 12), (3, 3, 8), (4, 2, 8), (4, 3, 4)]
)
def test_the_optimum_under_lip_equals_that_of_brute_force(
    answers: int, secrets: int, trials: int
) -> None:
    rng = random.Random(1000 * answers + secrets)
    for _ in range(trials):
        prior, epsilon = random_prior(rng, answers, secrets), random_epsilon(rng, 0.02, 2.0)
        level = level_for(epsilon)
        points = vertices(delta_rows(prior, Fraction(*level)), answers)
        assert columns_as_posteriors(prior, level, "lip") == points
        # Erratum 9.17: a vertex has at most |S| nonzero entries.
        assert max(sum(x > 0 for x in v) for v in points) <= secrets
        request = wanted(prior, "lip", epsilon, **INFORMATION)
        designed = design(request)
        assert designed.information == pytest.approx(
            best_information(prior, points), rel=1e-7, abs=1e-12
        )
        assert designed.certified
        if designed.rank < answers:
            assert designed.mechanism.reports <= answers  # "One has b ≤ a"


@paper("Funnel Thm 2", "Funnel Def 1")
@pytest.mark.parametrize(
    ("answers", "secrets", "trials"), [(2, 2, 6), (3, 2, 8), (3, 3, 5), (4, 3, 3)]
)
def test_the_optimum_under_secret_ldp_equals_that_of_brute_force(
    answers: int, secrets: int, trials: int
) -> None:
    # Erratum 9.16: constraints are per column, so the programme of Theorem 3 also solves Theorem 2.
    rng = random.Random(2000 * answers + secrets)
    for _ in range(trials):
        prior, epsilon = random_prior(rng, answers, secrets), random_epsilon(rng, 0.02, 2.0)
        level = level_for(epsilon)
        points = vertices(secret_rows(prior, Fraction(*level)), answers)
        assert columns_as_posteriors(prior, level, "secret-ldp") == points
        request = wanted(prior, "secret-ldp", epsilon, **INFORMATION)
        assert design(request).information == pytest.approx(
            best_information(prior, points), rel=1e-7, abs=1e-12
        )


@paper("Funnel Lemma 1")
def test_lip_and_secret_ldp_bound_each_other() -> None:
    # ε-LDP of the secret implies ε-LIP; ε-LIP implies 2ε-LDP and I(S;Y) ≤ ε.
    rng = random.Random(3)
    for _ in range(60):
        prior = random_prior(rng, 4, 3)
        measured = measure(random_mechanism(rng, 4, 5).weights, prior)
        assert measured["lip"] <= measured["secret_ldp"] * (1 + 1e-12)
        assert measured["secret_ldp"] <= 2 * measured["lip"] * (1 + 1e-12)
        assert measured["information_secret"] <= measured["lip"] * (1 + 1e-12)


@paper("Funnel Def 2")
def test_measured_lip_equals_that_of_the_definition() -> None:
    rng = random.Random(4)
    for _ in range(40):
        prior = random_prior(rng, 3, 2)
        mechanism = random_mechanism(rng, 3, 4)
        ratios: list[Fraction] = []
        for y in range(4):
            conditional = [
                sum(
                    (Fraction(n, mass) * mechanism.probability(y, x) for x, n in enumerate(row)),
                    Fraction(0),
                )
                for row, mass in zip(prior.joint, prior.masses, strict=True)
            ]
            average = sum(
                (
                    Fraction(n, prior.total) * mechanism.probability(y, x)
                    for x, n in enumerate(prior.shares)
                ),
                Fraction(0),
            )
            ratios += [g / average for g in conditional] + [average / g for g in conditional]
        measured = measure(mechanism.weights, prior)
        exact = (
            Decimal(max(ratios).numerator) / Decimal(max(ratios).denominator)
        ).ln()  # 28 digits
        assert exact <= Decimal(measured["lip"]) <= exact * (1 + Decimal("1e-14"))  # rounded up


@paper("Funnel Thm 3")
@pytest.mark.parametrize("seed", range(6))
def test_every_draw_of_an_optimum_follows_the_published_row(seed: int) -> None:
    # With 12 bits, the test enumerates every possible draw instead of sampling.
    rng = random.Random(seed)
    prior, level = random_prior(rng, 4, 2), level_for(Fraction(1, 2))
    if admits_identity("lip", level, prior):
        prior = Prior.from_rows([[5, 1, 1, 1], [1, 1, 1, 5]])
    designed = design(wanted(prior, "lip", Fraction(1, 2)))
    coarse = quantise(
        dense_of(designed.mechanism).weights,
        [Claim("lip", level_for(Fraction(6, 10)), prior.joint)],
        prior.shares,
        12,
    )
    check_every_draw(coarse.mechanism)


def check_every_draw(mechanism: DenseMechanism) -> None:
    for x, row in enumerate(mechanism.weights):
        draws = Counter(
            mechanism.sample(x, lambda bits, u=u: u) for u in range(mechanism.denominator)
        )
        assert tuple(draws[y] for y in range(mechanism.reports)) == row
