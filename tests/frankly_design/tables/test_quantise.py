# SPDX-License-Identifier: Apache-2.0
"""Rounding that satisfies the claim where naive rounding does not (spec 2.4)."""

import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.notions.prior import Prior
from frankly_design.numeric.rays import Ray
from frankly_design.optimum import programme
from frankly_design.optimum.variance.column_base import Listed
from frankly_design.optimum.variance.criteria import least_variance
from frankly_design.tables.quantise import quantise
from frankly_protocol.audit import Claim, level_for, require_private
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism

from tests.frankly_design.maths import (
    admits_identity,
    claim_of,
    random_epsilon,
    random_prior,
    rays_of,
)
from tests.frankly_protocol.samples import is_private

TRIALS, FULL_TRIALS = 120, 400


def steady(rays: Sequence[Ray], prior: Prior) -> programme.Optimum:
    optimum = least_variance(
        Listed(programme.scaled(rays, prior), prior.probabilities()), np.eye(prior.answers)
    )
    return programme.generated(
        optimum.columns, optimum.theta, optimum.bound, np.zeros(prior.answers)
    )


def informative(rays: Sequence[Ray], prior: Prior) -> programme.Optimum:
    return programme.most_gain(rays, prior, "information")


def naive(rows: list[list[int]], bits: int = 48) -> DenseMechanism:
    """Round every entry to the nearest unit and add the missing units to the row's largest entry."""
    weights = []
    for row in rows:
        rounded = [round(Fraction(r << bits, sum(row))) for r in row]
        rounded[row.index(max(row))] += (1 << bits) - sum(rounded)
        weights.append(tuple(rounded))
    return DenseMechanism(bits, tuple(weights))


@pytest.mark.slow
def test_random_optima_pass_and_naive_rounding_fails_most_of_them(full: bool) -> None:
    trials = FULL_TRIALS if full else TRIALS
    rng = random.Random(31)
    runs = naive_passes = 0
    while runs < trials:
        notion = rng.choice(["ldp", "lip", "secret-ldp", "lip"])
        prior = random_prior(rng, rng.randint(2, 6), rng.randint(1, 4))
        level = level_for(random_epsilon(rng))
        if admits_identity(notion, level, prior):
            continue
        rays = rays_of(notion, level, prior)
        solver = steady if rng.random() < 0.5 else informative
        rows = solver(rays, prior).rows(prior)
        claim = claim_of(notion, level, prior)
        quantised = quantise(rows, [claim], prior.shares)
        require_private(quantised.mechanism, claim)
        assert quantised.eta <= Fraction(1, 10**6)
        for row, weights in zip(rows, quantised.mechanism.weights, strict=True):
            for r, w in zip(row, weights, strict=True):
                assert abs(
                    Fraction(w, 1 << 48) - Fraction(r, sum(row))
                ) <= quantised.eta + Fraction(2, 1 << 48)
        naive_passes += is_private(naive(rows), claim)
        runs += 1
    assert naive_passes < trials // 2  # otherwise the check above would prove nothing


def test_a_table_that_passes_is_not_changed() -> None:
    rows = [[3, 1], [1, 3]]
    quantised = quantise(rows, [Claim("ldp", (3, 1))], [1, 1], bits=8)
    assert quantised.mechanism.weights == ((192, 64), (64, 192))
    assert quantised.eta == 0


def test_largest_remainders_go_first_and_ties_by_index() -> None:
    quantised = quantise([[1, 1, 1], [1, 1, 1]], [Claim("ldp", (2, 1))], [1, 1], bits=4)
    assert quantised.mechanism.weights == ((6, 5, 5), (6, 5, 5))
    quantised = quantise(
        [[10, 13, 9], [10, 13, 9]], [Claim("ldp", (2, 1))], [1, 1], bits=4
    )  # 5, 6.5, 4.5
    assert quantised.mechanism.weights == ((5, 7, 4), (5, 7, 4))


def mixed(rows: list[list[int]], u: list[Fraction], eta: Fraction) -> DenseMechanism:
    """Mix and round by largest remainders, in fractions."""
    weights = []
    for row in rows:
        exact = [
            ((1 - eta) * Fraction(r, sum(row)) + eta * share) * 2**48
            for r, share in zip(row, u, strict=True)
        ]
        low = [int(v) for v in exact]
        order = sorted(range(len(row)), key=lambda y: (low[y] - exact[y], y))
        for y in order[: 2**48 - sum(low)]:
            low[y] += 1
        weights.append(tuple(low))
    return DenseMechanism(48, tuple(weights))


def test_the_mixture_is_the_smallest_that_passes() -> None:
    # Exactly at E = e^½, rounding violates the claim; the first η that repairs it is used.
    p, q = level_for(Fraction(1, 2))
    rows = [[p, q, q], [q, p, q], [q, q, p]]
    claim, prior = Claim("ldp", (p, q)), [1, 2, 3]
    quantised = quantise(rows, [claim], prior)
    u = [
        sum(
            (n * Fraction(row[y], sum(row)) for n, row in zip(prior, rows, strict=True)),
            Fraction(0),
        )
        / 6
        for y in range(3)
    ]
    smaller = [
        Fraction(0),
        *(Fraction(1, 1 << k) for k in range(44, 19, -3) if Fraction(1, 1 << k) < quantised.eta),
    ]
    assert len(smaller) >= 1
    assert not any(is_private(mixed(rows, u, eta), claim) for eta in smaller)
    assert mixed(rows, u, quantised.eta) == quantised.mechanism
    assert is_private(quantised.mechanism, claim)


def test_rare_reports_are_mixed_uniformly() -> None:
    """Report 1 is rarer than 2^-20; proportional mixing fails even then, but uniform mixing works."""
    p, q = level_for(Fraction(1, 100))
    claim = Claim("ldp", (p, q))
    for offset in range(1, 200, 2):
        denominator = (p << 26) + offset * (p << 2) + offset
        rows = [[denominator - p, p], [denominator - q, q]]
        u = [Fraction(row[1], sum(row)) for row in rows]
        share = (u[0] + u[1]) / 2
        if is_private(mixed(rows, [1 - share, share], Fraction(0)), claim):
            continue  # this table rounds well; search for a table that does not
        assert not is_private(mixed(rows, [1 - share, share], Fraction(1, 1 << 20)), claim)
        quantised = quantise(rows, [claim], [1, 1])
        assert 0 < quantised.eta < Fraction(1, 1 << 30)
        assert is_private(quantised.mechanism, claim)
        return
    raise AssertionError("no case was found that needs mixing")


def test_rows_outside_the_notion_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no mechanism was made") as caught:
        quantise([[3, 1], [1, 3]], [Claim("ldp", (2, 1))], [1, 1])
    assert caught.value.code == "mechanism_not_certified"


def test_a_side_without_slack_passes_unchanged_or_is_refused() -> None:
    # E = 1 leaves no room for mixing (spec 2.4).
    assert quantise([[1, 3], [1, 3]], [Claim("ldp", (1, 1))], [1, 1]).eta == 0
    with pytest.raises(InvalidInput):
        quantise([[1000001, 3000000], [1000000, 3000000]], [Claim("ldp", (1, 1))], [1, 1])
