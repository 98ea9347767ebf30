# SPDX-License-Identifier: Apache-2.0
"""Thesis, chapter 6: randomised response for one sensitive attribute.

The thesis's design matrix has row = truth, like ours: P = [[p00, 1−p00], [1−p11, p11]] (6.2).
"""

import math
from fractions import Fraction
from itertools import product

import pytest
from frankly_design.engine import design
from frankly_design.estimate import Decoder, estimate
from frankly_design.estimate.margins import chebyshev_factor
from frankly_design.kinds.decoder import decoder, shares
from frankly_design.notions.prior import Prior
from frankly_design.tables import objectives
from frankly_protocol.audit import level_for, parse_epsilon
from frankly_protocol.mechanisms import DenseMechanism

from tests.frankly_design.maths import wanted
from tests.narrowing import dense_of
from tests.papers.registry import paper

BITS = 48


def variance_66(p00: Fraction, p11: Fraction, pi: Fraction, n: int = 1) -> Fraction:
    """Return (6.6) as printed in the thesis."""
    k = p00 + p11 - 1
    return (Fraction(1, 4) - (p00 - Fraction(1, 2) - pi * k) ** 2) / (k**2 * n)


def binary(p00: Fraction, p11: Fraction, bits: int = BITS) -> DenseMechanism:
    denominator = 1 << bits
    w00, w11 = round(p00 * denominator), round(p11 * denominator)
    return DenseMechanism(bits, ((w00, denominator - w00), (denominator - w11, w11)))


def library_variance(mechanism: DenseMechanism, pi: Fraction) -> float:
    """Return the library's variance of one share; the library's total covers both shares, which are
    complements."""
    weights = (pi.denominator - pi.numerator, pi.numerator)
    return objectives.variance(mechanism.weights, weights) / 2


def binary_decoder(mechanism: DenseMechanism) -> Decoder:
    return decoder(mechanism, shares(2), None)


@paper("Thesis Thm 6.2")
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "3"])
def test_the_binary_optimum_beats_every_mechanism_on_an_exact_grid(epsilon: str) -> None:
    # (6.6) is computed in fractions, for several π, at every ε-private point of a grid of p00,
    # p11 > ½ with the corner E/(E+1): no point is better, and only the corner is as good.
    E = Fraction(*level_for(parse_epsilon(epsilon)))
    corner = E / (E + 1)
    grid = [Fraction(1, 2) + (corner - Fraction(1, 2)) * Fraction(i, 12) for i in range(1, 25)]
    feasible = [
        (u, v)
        for u, v in product(grid, grid)
        if u < 1 and v < 1 and u <= E * (1 - v) and v <= E * (1 - u)
    ]
    assert len(feasible) > 100
    for pi in (Fraction(1, 100), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)):
        reached = variance_66(corner, corner, pi)
        assert [point for point in feasible if variance_66(*point, pi) <= reached] == [
            (corner, corner)
        ]


@paper("Thesis Thm 6.2")
@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_along_both_tight_lines_the_variance_only_falls_towards_the_optimum(epsilon: str) -> None:
    # This is a step of the proof: on p11 = E(1−p00) and on its mirror image, the variance decreases
    # in t (6.19).
    E = Fraction(*level_for(parse_epsilon(epsilon)))
    half, corner = Fraction(1, 2), E / (E + 1)
    for pi in (Fraction(1, 50), Fraction(1, 2), Fraction(4, 5)):
        s = [half + (corner - half) * Fraction(i, 40) for i in range(41)]
        along_first = [variance_66(1 - t / E, t, pi) for t in s]
        along_second = [variance_66(t, 1 - t / E, pi) for t in s]
        assert along_first == sorted(along_first, reverse=True)
        assert along_second == sorted(along_second, reverse=True)


@paper("Thesis Thm 6.2")
@pytest.mark.parametrize("mechanism", ["optimal", "grr", "warner"])
@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "4", "10"])
def test_our_optimum_for_two_answers_equals_that_of_the_theorem(
    mechanism: str, epsilon: str
) -> None:
    # The test tries several priors, because the optimum of the theorem does not depend on π.
    for counts in ([1, 1], [97, 3], [1, 4000]):
        designed = design(
            wanted(Prior.from_rows([counts]), "ldp", parse_epsilon(epsilon), mechanism)
        )
        E = Fraction(*designed.level)
        assert designed.mechanism.reports == 2
        first = dense_of(designed.mechanism).weights[0]
        truthful = first.index(max(first))
        for x in range(2):
            probability = dense_of(designed.mechanism).probability(
                truthful if x == 0 else 1 - truthful, x
            )
            assert abs(probability - E / (E + 1)) < Fraction(1, 10**9)


@paper("Thesis Thm 6.1, (6.4)", "Thesis Cor 6.1, (6.6)")
@pytest.mark.parametrize(("p00", "p11"), [(12, 13), (9, 16), (15, 2), (4, 3), (16, 16)])
def test_estimator_and_its_variance_against_every_outcome(p00: int, p11: int) -> None:
    # The test enumerates, in fractions, every N of n = 1..4 respondents with its exact probability.
    a, b = Fraction(p00, 16), Fraction(p11, 16)
    mechanism = DenseMechanism(4, ((p00, 16 - p00), (16 - p11, p11)))
    decode = binary_decoder(mechanism)
    for n, pi in product(range(1, 5), (Fraction(0), Fraction(1, 10), Fraction(3, 7), Fraction(1))):
        chance_of_one = (1 - pi) * (1 - a) + pi * b
        mean = square = Fraction(0)
        for N in range(n + 1):
            chance = math.comb(n, N) * chance_of_one**N * (1 - chance_of_one) ** (n - N)
            value = decode.apply((n - N, N))[1]
            assert value == (a - 1) / (a + b - 1) + Fraction(N) / ((a + b - 1) * n)  # (6.4)
            mean, square = mean + chance * value, square + chance * value**2
        assert mean == pi
        assert square - mean**2 == variance_66(a, b, pi, n)


@paper("Thesis Cor 6.1, (6.6)")
def test_the_library_variance_is_66() -> None:
    for p00, p11 in ((12, 13), (9, 16), (15, 2)):
        mechanism = DenseMechanism(4, ((p00, 16 - p00), (16 - p11, p11)))
        for pi in (Fraction(1, 10), Fraction(3, 7), Fraction(9, 10)):
            expected = variance_66(Fraction(p00, 16), Fraction(p11, 16), pi)
            assert library_variance(mechanism, pi) == pytest.approx(float(expected), rel=1e-13)


@paper("Thesis Cor 6.2, (6.8)")
def test_the_worst_case_is_at_the_clamped_share() -> None:
    # Erratum 9.1: 1/(4k²n) is the maximum over π ∈ [0, 1] only if p00, p11 are on one side of ½.
    for p00, p11 in ((12, 13), (9, 16), (15, 2), (3, 4), (16, 12), (14, 6)):
        a, b = Fraction(p00, 16), Fraction(p11, 16)
        k = a + b - 1
        at = min(Fraction(1), max(Fraction(0), (2 * a - 1) / (2 * k)))
        mechanism = DenseMechanism(4, ((p00, 16 - p00), (16 - p11, p11)))
        worst_se = estimate(mechanism, [30, 70]).worst_case_se
        expected = math.sqrt(variance_66(a, b, at, 100))
        assert worst_se == pytest.approx((expected, expected), rel=1e-12)
        printed = math.sqrt(1 / (400 * k**2))
        same_side = (a >= Fraction(1, 2)) == (b >= Fraction(1, 2))
        assert (abs(printed - expected) < 1e-12) == same_side
        assert printed > expected - 1e-12


@paper("Thesis (6.7)")
def test_chebyshev_at_95_percent_is_the_root_of_twenty() -> None:
    assert chebyshev_factor(0.95) == pytest.approx(
        math.sqrt(20), rel=1e-12
    )  # rounded to 4.5 in the thesis (erratum 9.5)


# Example 6.1, compared with the formulas of section 6.3.2, which are written out here.


def g(epsilon: float, delta: float) -> float:
    """Return (6.22)."""
    e = math.exp(epsilon)
    return ((e - 1) * (3 * delta - 1) + 3 * delta**2) / (e - 1 + 2 * delta) ** 2


def r(epsilon: float, delta: float, t: float) -> float:
    """Return (6.21), with r(0) = 1 + e^(−ε)(δ − ½)."""
    e = math.exp(epsilon)
    return (1 + (delta - 0.5) / e) * (1 - t) + (e + delta) / (e + 1) * t


def s(epsilon: float, delta: float, t: float) -> float:
    """Return (6.21)."""
    e = math.exp(epsilon)
    return (1 - t) / 2 + (e + delta) / (e + 1) * t


def var(p00: float, p11: float, pi: str) -> float:
    """Return (6.6), computed by the library from the published integer weights."""
    return library_variance(binary(Fraction(p00), Fraction(p11)), Fraction(pi))


@paper("Thesis Example 6.1")
def test_example_61_first_case() -> None:
    epsilon, delta, pi = 0.1, 0.0, "0.25"
    assert g(epsilon, delta) == pytest.approx(-9.508, abs=5e-4)
    assert var(r(epsilon, delta, 1), s(epsilon, delta, 1), pi) == pytest.approx(100.104, abs=5e-4)
    assert var(r(epsilon, delta, 0), s(epsilon, delta, 0), pi) == pytest.approx(109.863, abs=5e-4)
    # δ = 0, so the printed matrix is the mechanism we publish.
    designed = design(wanted(Prior.from_rows([[3, 1]]), "ldp", parse_epsilon("0.1"), "warner"))
    e = math.exp(epsilon)
    assert dense_of(designed.mechanism).probability(0, 0) == pytest.approx(
        (e + delta) / (e + 1), abs=1e-12
    )
    assert dense_of(designed.mechanism).probability(1, 0) == pytest.approx(
        (1 - delta) / (e + 1), abs=1e-12
    )
    assert designed.variance / 2 == pytest.approx(100.104, abs=5e-4)


@paper("Thesis Example 6.1")
def test_example_61_second_case() -> None:
    epsilon, delta, pi = 1.0, 0.4, "0.1"
    assert g(epsilon, delta) == pytest.approx(0.130, abs=5e-4)
    assert g(epsilon, delta) > float(pi)
    assert var(r(epsilon, delta, 1), s(epsilon, delta, 1), pi) == pytest.approx(0.385, abs=5e-4)
    assert var(r(epsilon, delta, 0), s(epsilon, delta, 0), pi) == pytest.approx(0.355, abs=5e-4)
    mechanism = binary(Fraction(r(epsilon, delta, 0)), Fraction(s(epsilon, delta, 0)))
    assert mechanism.probability(1, 0) == pytest.approx(math.exp(-1) * (0.5 - 0.4), abs=1e-12)
    assert mechanism.weights[1] == (1 << 47, 1 << 47)


@paper("Thesis Example 6.1")
def test_example_61_third_case() -> None:
    epsilon, delta, pi = 0.5, 0.3, "0.9"
    assert g(epsilon, delta) == pytest.approx(0.132, abs=5e-4)
    assert g(epsilon, delta) > 1 - float(pi)
    assert var(s(epsilon, delta, 1), r(epsilon, delta, 1), pi) == pytest.approx(0.965, abs=5e-4)
    assert var(s(epsilon, delta, 0), r(epsilon, delta, 0), pi) == pytest.approx(0.933, abs=5e-4)
    assert var(r(epsilon, delta, 0), s(epsilon, delta, 0), pi) == pytest.approx(1.733, abs=5e-4)
    mechanism = binary(Fraction(s(epsilon, delta, 0)), Fraction(r(epsilon, delta, 0)))
    assert mechanism.weights[0] == (1 << 47, 1 << 47)
    assert mechanism.probability(0, 1) == pytest.approx(math.exp(-0.5) * (0.5 - 0.3), abs=1e-12)


@paper("Thesis (6.21)")
def test_r_at_zero_is_on_the_boundary_only_with_the_corrected_sign() -> None:
    # Erratum 9.4: the thesis prints 1 + e^ε(δ − ½), but only 1 + e^(−ε)(δ − ½) makes (6.14a) tight.
    for epsilon, delta in ((0.5, 0.3), (1.0, 0.4), (2.0, 0.1)):
        p00, p11 = r(epsilon, delta, 0), s(epsilon, delta, 0)
        assert p11 == pytest.approx(math.exp(epsilon) * (1 - p00) + delta, abs=1e-12)
        printed = 1 + math.exp(epsilon) * (delta - 0.5)
        assert abs(p11 - (math.exp(epsilon) * (1 - printed) + delta)) > 0.01
