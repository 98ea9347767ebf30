# SPDX-License-Identifier: Apache-2.0
"""Robust: claims that are too strong in their printed form, each with a counterexample."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from frankly_design.families.robust.independent_reporting import best_split, grr_rows
from frankly_design.notions.balls import Ball, confidence_ball, least

from papers.value_leak import leak_of_distance
from tests.papers.exact import information
from tests.papers.registry import paper


@paper("Robust (9) coverage")
def test_the_ball_covers_the_truth_only_asymptotically(full: bool) -> None:
    """Erratum 9.6: with 240 cells from Jeffreys' prior, n = 32,561 and β = .05, coverage is well
    below 95%; with even cells it is 95%."""
    rng, count = np.random.default_rng(240), 10000 if full else 2500
    bound = float(confidence_ball([[1] * 16] * 15, 2, 32561, "0.05").threshold)

    def covered(shares: np.ndarray) -> float:
        observed = np.array([rng.multinomial(32561, P) for P in shares]) / 32561
        present = np.maximum(shares, 1e-300)
        return float(
            np.mean(
                np.sum(np.where(observed > 0, (observed - shares) ** 2 / present, shares), axis=1)
                <= bound
            )
        )

    error = math.sqrt(0.05 * 0.95 / count)
    assert covered(rng.dirichlet(np.full(240, 0.5), count)) < 0.95 - 3 * error
    assert covered(np.full((count, 240), 1 / 240)) == pytest.approx(0.95, abs=4 * error)


@paper("Robust Prop 1, domain of ξ")
def test_the_roots_at_the_ends_of_their_domain() -> None:
    """Erratum 9.8: ρξ ≤ 1; as ρ → 0, a value may gain 1 − e^−B_s; for α < 1, ξ₋ = 0 is possible."""
    B = 0.3
    for order in (0.5, 1.0, 2.0, 5.0):
        gain = [1 - float(least(np.array([1 - rho]), B, order)[0]) for rho in (1e-3, 1e-6, 1e-9)]
        assert all(
            rho <= value <= 1 for rho, value in zip((1e-3, 1e-6, 1e-9), gain, strict=True)
        )  # ξ₊ in [1, 1/ρ]
        assert gain[-1] == pytest.approx(1 - math.exp(-B), rel=2e-2)
        assert abs(gain[-1] - (1 - math.exp(-B))) <= abs(gain[0] - (1 - math.exp(-B))) + 1e-9
    rho = 0.05
    roots = [float(least(np.array([rho]), B, order)[0]) for order in (0.5, 1.0, 2.0)]
    assert roots[0] == 0 < roots[1]
    # For α = ½, −2 ln Σ √(P R) is at most B for R = (0, 1).
    assert -2 * math.log(math.sqrt(1 - rho)) < B
    assert Ball(((1, 19), (10, 10)), Fraction(1, 2), Fraction(1, 4)).least(0)[0] == 0


@paper("Robust (82)")
def test_the_best_split_is_often_at_an_end_and_the_middle_may_be_worse() -> None:
    """Erratum 9.10: information has several local maxima in ε₂, so a local search is not enough."""
    rng, several, ends = np.random.default_rng(82), 0, 0
    for _ in range(16):
        P = rng.dirichlet(np.full(6, 0.5)).reshape(2, 3)
        counts = np.maximum(1, np.rint(P * 10000)).astype(int).tolist()
        leak, epsilon = (leak_of_distance(float(rng.uniform(0.3, 2))), float(rng.uniform(0.3, 3)))
        shares = np.array(counts) / np.sum(counts)
        grid = np.linspace(0, epsilon, 61)
        values = [
            information(
                shares,
                np.kron(grr_rows(2, epsilon - e), grr_rows(3, leak.delta2(e))).astype(np.float64),
            )
            for e in grid
        ]
        tops = sum(
            value >= max(values[max(0, i - 1)], values[min(60, i + 1)])
            for i, value in enumerate(values)
        )
        several += tops > 1
        split = best_split(counts, epsilon, leak)
        assert split.information >= max(values) - 1e-9
        ends += split.eps2 in (0.0, pytest.approx(epsilon))
    assert several > 0
    assert ends > 8


@paper("Robust (69), d = 0")
def test_with_equal_secrets_values_may_be_reported_unchanged() -> None:
    """Erratum 9.10: δ₂ = ln(1 + 2(e^ε₂ − 1)/d) grows without bound as d → 0; at d = 0, δ₂ is ∞."""
    leak = leak_of_distance
    for e in (0.1, 1.0):
        assert leak(2.0).delta2(e) == pytest.approx(e)
        assert leak(1e-6).delta2(e) > 12
        assert leak(0.0).delta2(e) == math.inf


@paper("Robust (A122)-(A124)")
@pytest.mark.parametrize(
    ("a1", "a2", "E"), [(2, 2, Fraction(3)), (2, 3, Fraction(10)), (3, 2, Fraction(50))]
)
def test_the_printed_dual_of_theorem_4_does_not_satisfy_its_equation(
    a1: int, a2: int, E: Fraction
) -> None:
    """Erratum 9.12: α* = (c₁ at x, c₂ at other values of the same secret, c₃ elsewhere) times μ
    should satisfy v̂_x·α* = μ(v̂_x) (A126)."""
    a = a1 * a2
    norm = E + (a2 - 1) / E + a - a2
    c1 = (-(a2 - 2) * (a2 - 1) + (a - a2 + 1) * (a2 - 2) * E + (a - 2 * a2 + 1) * E**2 + E**3) / (
        (E - 1) * (E + 1) * (E - a2 + 1) * norm
    )
    c2 = (a2 - 1 + (a - a2 + 1) * E) / ((E - 1) * (E + 1) * (E - a2 + 1) * norm)
    c3 = -(E**2) / ((E - 1) * (E - a2 + 1) * norm)
    cells = list(product(range(a1), range(a2)))

    def entry(x: tuple[int, int], z: tuple[int, int]) -> Fraction:
        return E if x == z else 1 / E if x[0] == z[0] else Fraction(1)

    def printed(x: tuple[int, int], z: tuple[int, int]) -> Fraction:
        return c1 if x == z else c2 if x[0] == z[0] else c3

    # With the matrices V of the v̂ and C of the c, (A126) for every μ means V·C = 1 (in either
    # scaling of v̂).
    for scale in (Fraction(1), 1 / norm):
        product_of = [
            [sum(scale * entry(x, w) * printed(w, z) for w in cells) for z in cells] for x in cells
        ]
        assert product_of != [[Fraction(x == z) for z in cells] for x in cells]
