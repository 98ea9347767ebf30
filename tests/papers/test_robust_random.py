# SPDX-License-Identifier: Apache-2.0
"""Robust: Lemma 3 and Theorems 1, 5 and 6 in their true forms, each on random instances (errata
9.7, 9.10)."""

import math
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.families.robust.independent_reporting import best_split, grr_rows
from frankly_design.notions.balls import Ball
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from papers.value_leak import distance_bound, leak_of_distance, split_table
from tests.frankly_design.notions.ball_reference import renyi
from tests.papers.exact import on_random
from tests.papers.registry import paper

Matrix = NDArray[np.float64]
Counts = list[list[int]]

ORDERS = st.sampled_from([Fraction(n, 10) for n in (3, 5, 9, 10, 17, 20, 50)])
LEVELS = st.integers(0, 2000).map(lambda n: n / 1000)


def counts(secrets: int, values: int) -> st.SearchStrategy[Counts]:
    row = st.lists(st.integers(1, 200), min_size=values, max_size=values)
    return st.lists(row, min_size=secrets, max_size=secrets)


def shares(table: Counts) -> Matrix:
    return np.array(table) / np.sum(table)


def ball_through(estimate: Counts, order: Fraction, radius: float) -> Ball:
    """Return the ball with threshold c, where e^((α−1)B) = 1 + α(α−1)c/2, or c = 2B for α = 1."""
    if order == 1:
        return Ball(tuple(map(tuple, estimate)), order, Fraction(2 * radius))
    c = 2 * math.expm1(float(order - 1) * radius) / float(order * (order - 1))
    return Ball(tuple(map(tuple, estimate)), order, Fraction(c))


@paper("Robust Thm 1")
@on_random(counts(3, 3), counts(3, 3), ORDERS)
def test_theorem_1_no_truth_of_the_ball_projects_beyond_b_s(
    estimate: Counts, truth: Counts, order: Fraction
) -> None:
    """For a true distribution on the ball's boundary, every P(·|s) lies within B_s of the estimate's."""
    ball = ball_through(estimate, order, renyi(shares(estimate), shares(truth), float(order)))
    for s in range(3):
        far = renyi(shares([estimate[s]]), shares([truth[s]]), float(order))
        assert far <= ball.conditional_radius(s) * (1 + 1e-9) + 1e-12


@paper("Robust Thm 1")
@on_random(
    counts(3, 3), st.lists(st.integers(1, 200), min_size=3, max_size=3), ORDERS, st.integers(0, 2)
)
def test_theorem_1_every_distribution_within_b_s_is_a_projection(
    estimate: Counts, row: list[int], order: Fraction, s: int
) -> None:
    """The smallest ball that contains a P with P(·|s) = R is the ball whose B_s is the distance of R."""
    P, R = shares(estimate), shares([row])[0]

    def holding(share: float) -> float:
        Q = (
            P * (1 - share) / (1 - P[s].sum())
        )  # other rows keep their proportions, so no P is nearer
        Q[s] = share * R
        return renyi(P, Q, float(order))

    solution = minimize_scalar(
        holding, bounds=(1e-12, 1 - 1e-12), method="bounded", options={"xatol": 1e-13}
    )
    ball = ball_through(estimate, order, max(0.0, float(solution.fun)))
    far = renyi(P[s] / P[s].sum(), R, float(order))
    assert ball.conditional_radius(s) == pytest.approx(far, rel=1e-6, abs=1e-9)


@paper("Robust Lemma 3")
@on_random(st.lists(st.tuples(*[st.integers(1, 99)] * 3), min_size=2, max_size=6))
def test_lemma_3(cells: list[tuple[int, int, int]]) -> None:
    """The lemma is checked in fractions: P·q ≤ (1 + (E−1)/2·‖P − R‖₁)·R·q for a report q of ε-LDP."""
    column, first, second = zip(*cells, strict=True)
    P, R = (
        [Fraction(n, sum(distribution)) for n in distribution] for distribution in (first, second)
    )
    E = Fraction(max(column), min(column))
    apart = sum(abs(u - v) for u, v in zip(P, R, strict=True))
    under_P, under_R = (
        sum(u * q for u, q in zip(distribution, column, strict=True)) for distribution in (P, R)
    )
    assert under_P <= (1 + (E - 1) / 2 * apart) * under_R


@paper("Robust Lemma 3")
def test_lemma_3_needs_its_one_half() -> None:
    """With (E−1)/4 instead of (E−1)/2, a stored instance, which attains the bound, fails."""
    column, P, R = (2, 1), (Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))
    under_P, under_R = (
        sum(u * q for u, q in zip(distribution, column, strict=True)) for distribution in (P, R)
    )
    assert under_P == (1 + Fraction(1, 2) * 2) * under_R > (1 + Fraction(1, 4) * 2) * under_R


@paper("Robust Thm 5")
@on_random(counts(2, 3), counts(2, 3), LEVELS, LEVELS)
def test_theorem_5_over_the_ball(estimate: Counts, truth: Counts, eps1: float, eps2: float) -> None:
    """For a true distribution on the ball's boundary, the reports of s at ε₁ and of u at δ₂(ε₂)
    leak at most ε₁ + ε₂ of s."""
    ball = ball_through(estimate, Fraction(2), renyi(shares(estimate), shares(truth), 2))
    leak = leak_of_distance(distance_bound(ball))
    Q = np.kron(grr_rows(2, eps1), grr_rows(3, min(30.0, leak.delta2(eps2))))
    by_secret = [shares([truth[s]])[0] @ Q[3 * s : 3 * s + 3] for s in (0, 1)]
    assert max(
        np.max(by_secret[0] / by_secret[1]), np.max(by_secret[1] / by_secret[0])
    ) <= math.exp(eps1 + eps2) * (1 + 1e-9)


@paper("Robust Thm 5")
def test_theorem_5_fails_with_the_distance_of_one_coordinate() -> None:
    """The printed IR row of Table 2 needs d = max |P(u|s) − P(u|t)| instead of the ℓ1 norm (erratum 9.13)."""
    truth = shares([[80, 10, 10], [10, 80, 10]])
    given_s = truth / truth.sum(axis=1, keepdims=True)
    of_one_coordinate, of_all = (
        np.abs(given_s[0] - given_s[1]).max(),
        np.abs(given_s[0] - given_s[1]).sum(),
    )
    ratio_at = {}
    for d in (of_one_coordinate, of_all):
        Q = grr_rows(3, leak_of_distance(float(d)).delta2(1.0))
        rows = given_s @ Q
        ratio_at[d] = float(np.max(rows[0] / rows[1]))
    assert ratio_at[of_all] <= math.e < ratio_at[of_one_coordinate]


@paper("Robust Thm 6")
@on_random(st.integers(2, 3), st.integers(2, 3), LEVELS, LEVELS, st.data())
def test_theorem_6_the_information_of_two_reports(
    secrets: int, values: int, eps1: float, delta2: float, data: st.DataObject
) -> None:
    """The test computes each term of (77) from its definition."""
    P = shares(data.draw(counts(secrets, values)))
    R1, R2 = grr_rows(secrets, eps1), grr_rows(values, delta2)
    beside = R1.T @ P  # P(y₁, u)
    second = sum(row.sum() * information(row / row.sum(), R2) for row in beside)
    first = information(P.sum(axis=1), R1)
    assert information(P.ravel(), np.kron(R1, R2).astype(np.float64)) == pytest.approx(
        first + second, rel=1e-9, abs=1e-12
    )


@paper("Robust Thm 6", "Robust Def 5")
def test_a_splits_information_equals_that_of_theorem_6() -> None:
    for table, distance in (([[7, 10], [26, 57]], 1.0), ([[3, 1, 9], [5, 5, 2]], 0.4)):
        split = best_split(table, 0.5, leak_of_distance(distance))
        factors = grr_rows(len(table), split.eps1), grr_rows(len(table[0]), split.delta2)
        assert split_table(split) == pytest.approx(
            np.kron(*factors), abs=1e-12
        )  # both reports, drawn independently
        assert split.information == pytest.approx(
            information(shares(table).ravel(), split_table(split)), rel=1e-9
        )


def information(p: Matrix, Q: Matrix) -> float:
    """Return I(X;Y) = Σ P(x) Q(y|x) ln(Q(y|x)/P(y)) for Q with row = truth."""
    joint = p[:, None] * Q
    positive = joint > 0
    return float(np.sum(joint[positive] * np.log((Q / (p @ Q))[positive])))
