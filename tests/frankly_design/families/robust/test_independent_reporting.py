# SPDX-License-Identifier: Apache-2.0
"""Independent Reporting: leakage, information and integer weights."""

import math
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.families.robust.independent_reporting import ValueLeak, best_split, grr_rows
from frankly_design.notions.ball_bounds import ball_bounds, lower_bounds
from frankly_design.notions.balls import confidence_ball
from frankly_protocol.audit import Claim, level_for, require_private
from frankly_protocol.errors import InvalidInput

from papers.ball_leakage import worst_case_epsilon, worst_case_over_ball
from papers.value_leak import (
    distance_bound,
    independent_reporting,
    leak_of_ball,
    leak_of_distance,
    split_table,
    weights,
)
from tests.frankly_design.notions.ball_reference import random_counts

SIZES = [(2, 2), (2, 5), (5, 2), (3, 4)]


def direct_information(counts: list[list[int]], Q: np.ndarray) -> float:
    p = np.ravel(counts) / np.sum(counts)
    y = p @ Q
    return float(
        sum(
            p[x] * q * math.log(q / y[j])
            for x, row in enumerate(Q)
            for j, q in enumerate(row)
            if q and p[x]
        )
    )


def integer_rows(Q: np.ndarray) -> list[list[int]]:
    """Return integer rows close to Q, all with the same sum."""
    rows = [[round(q * 2**40) for q in row] for row in Q]
    for row in rows:
        row[row.index(max(row))] += 2**40 - sum(row)
    return rows


@pytest.mark.parametrize(("secrets", "values"), SIZES)
def test_the_verifier_accepts_the_best_split_of_a_claim(secrets: int, values: int) -> None:
    rng = np.random.default_rng(secrets * 10 + values)
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(4)):
        counts = random_counts(rng, secrets, values)
        claim = Claim(
            "rldp", level_for(epsilon), lower_bounds=lower_bounds(counts, 2, 2000, "0.05")
        )
        split, designed = independent_reporting(counts, claim)
        require_private(designed.mechanism, claim)
        assert designed.eta <= Fraction(1, 2**30)
        assert split.eps1 + split.eps2 == pytest.approx(float(epsilon), rel=1e-12)
        # The mechanism uses the full level.
        leaked = worst_case_epsilon(designed.mechanism.weights, claim.lower_bounds or ())
        assert leaked == pytest.approx(float(epsilon), rel=1e-6)
        table = np.array(designed.mechanism.weights) / 2**48
        assert direct_information(counts, table) == pytest.approx(
            split.information, rel=1e-6, abs=1e-9
        )
        assert direct_information(counts, split_table(split)) == pytest.approx(
            split.information, rel=1e-9, abs=1e-12
        )


@pytest.mark.slow
@pytest.mark.parametrize(("secrets", "values"), SIZES)
def test_no_split_on_a_finer_grid_is_better(secrets: int, values: int, full: bool) -> None:
    rng = np.random.default_rng(99 + secrets * 10 + values)
    for epsilon in (0.3, 1.5, 9.0):
        counts = random_counts(rng, secrets, values)
        ball = confidence_ball(counts, 2, 500, "0.05")
        for leak in (
            leak_of_distance(distance_bound(ball)),
            ValueLeak.of_bounds(ball_bounds(ball)),
        ):
            split = best_split(counts, epsilon, leak)
            for eps2 in np.linspace(0, epsilon, 1337 if full else 167):
                Q = np.kron(
                    grr_rows(secrets, epsilon - eps2), grr_rows(values, leak.delta2(float(eps2)))
                )
                assert direct_information(counts, Q) <= split.information + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2, 3])
def test_no_rule_leaks_more_than_its_level_over_the_ball(order: int, full: bool) -> None:
    rng = np.random.default_rng(order)
    for _ in range(6 if full else 2):
        counts = random_counts(rng, 3, 3)
        ball = confidence_ball(counts, order, 400, "0.05")
        rules = [leak_of_distance(distance_bound(ball)), leak_of_ball(ball)]
        rules.append(ValueLeak.of_bounds(ball_bounds(ball)))
        values = []
        for leak in rules:
            split = best_split(counts, 1.0, leak)
            leaked = worst_case_over_ball(integer_rows(split_table(split)), ball).epsilon
            assert leaked <= 1 + 1e-6
            values.append(split.information)
        # Intervals of values in the ball are never worse than the ball's ℓ1 distance or its
        # polytopes.
        assert values[0] <= values[1] + 1e-9
        assert values[2] <= values[1] + 1e-9


def test_independence_sends_the_value_unchanged() -> None:
    # d = 0 (erratum 9.10): U carries no information about S, so all of ε goes to S.
    leak = leak_of_distance(0.0)
    assert (leak.delta2(0.0), leak.knee) == (math.inf, 0.0)
    split = best_split([[10, 30], [20, 60]], 1.0, leak)
    assert (split.eps1, split.delta2) == (1.0, math.inf)
    expected = np.kron(grr_rows(2, 1.0), np.eye(2))
    assert split_table(split) == pytest.approx(expected)


def test_a_distance_of_two_is_composition() -> None:
    leak = leak_of_distance(2.0)
    for eps2 in (0.0, 0.3, 2.0):
        assert leak.delta2(eps2) == pytest.approx(eps2, abs=1e-15)


def test_at_and_above_the_knee_values_are_sent_unchanged() -> None:
    bounds = (((3, 10), (6, 10)), ((2, 10), (7, 10)))
    leak = ValueLeak.of_bounds(bounds)
    # In D_s, P(u₁|s) is in [.3, .4], [.2, .3] and P(u₂|s) in [.6, .7], [.7, .8], so the largest
    # ratio is .4/.2.
    assert leak.knee == pytest.approx(math.log(2))
    assert leak.delta2(math.log(2) + 1e-9) == math.inf
    assert leak.delta2(math.log(2) - 1e-3) < math.inf
    identity = ((1, 0), (0, 1), (1, 0), (0, 1))
    assert worst_case_epsilon(identity, bounds) == pytest.approx(math.log(2))


def test_the_knee_is_chosen_if_it_is_best() -> None:
    bounds = (((30, 100), (60, 100)), ((29, 100), (61, 100)))
    leak = ValueLeak.of_bounds(bounds)
    split = best_split([[35, 65], [34, 66]], 1.0, leak)
    assert 0 < leak.knee < 1
    assert split.eps2 == pytest.approx(leak.knee, abs=1e-9)
    sent = np.kron(grr_rows(2, 1.0 - leak.knee), np.eye(2))
    assert split.information >= direct_information([[35, 65], [34, 66]], sent) - 1e-12


@pytest.mark.parametrize("eps2", [0.05, 0.3, 0.6])
def test_delta2_uses_exactly_eps2(eps2: float) -> None:
    bounds = (((3, 10), (6, 10)), ((2, 10), (7, 10)))
    delta2 = ValueLeak.of_bounds(bounds).delta2(eps2)
    rows = integer_rows(grr_rows(2, delta2))
    assert worst_case_epsilon(rows + rows, bounds) == pytest.approx(eps2, rel=1e-9)


def test_theorem_5s_split_may_break_a_claim_about_the_polytope() -> None:
    # The polytope is larger than the ball; `weights` calls the verifier, which refuses the split.
    counts = [[300, 80, 70, 50], [260, 110, 75, 55]]
    ball = confidence_ball(counts, 2, 1000, "0.05")
    claim = Claim("rldp", level_for(Fraction(1)), lower_bounds=ball_bounds(ball))
    loose = best_split(counts, 1.0, leak_of_ball(ball))
    assert loose.delta2 > best_split(counts, 1.0, ValueLeak.of_bounds(ball_bounds(ball))).delta2
    with pytest.raises(InvalidInput):
        weights(loose, claim, counts)


def test_only_rldp_can_be_claimed() -> None:
    with pytest.raises(InvalidInput) as refusal:
        independent_reporting([[1, 2], [3, 4]], Claim("ldp", (2, 1)))
    assert refusal.value.field == "mechanism"
