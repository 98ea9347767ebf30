# SPDX-License-Identifier: Apache-2.0
"""Thesis, chapter 6: Warner's and Mangat's models, (ε, δ)-DP, the degree of privacy violation, several attributes.

All numbers are fractions, and E = e^ε. This module writes out (6.6); test_thesis_ch6 compares (6.6)
with the library.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import pytest
from frankly_design.estimate import estimate
from frankly_design.families import best_point
from frankly_design.notions.prior import Prior
from frankly_protocol.audit import Claim, worst
from frankly_protocol.mechanisms import DenseMechanism

from tests.narrowing import present
from tests.papers.registry import paper
from tests.papers.test_thesis_ch6 import binary, library_variance, variance_66

HALF = Fraction(1, 2)
Point = tuple[Fraction, Fraction]
SHARES = [Fraction(k, 20) for k in range(21)]
LEVELS = [
    (Fraction(11, 10), Fraction(1, 20)), (Fraction(2), Fraction(3, 10)), (Fraction(27, 10), Fraction(2, 5)),
    (Fraction(5, 3), Fraction(0)), (Fraction(5, 3), HALF), (Fraction(7, 5), Fraction(9, 20)),
]  # fmt: skip


def private(p00: Fraction, p11: Fraction, E: Fraction, delta: Fraction) -> bool:
    """Return True if the four inequalities (6.13) of (ε, δ)-DP hold for two answers."""
    first, second = (p00, 1 - p00), (1 - p11, p11)
    return all(
        u <= E * v + delta and v <= E * u + delta for u, v in zip(first, second, strict=True)
    )


def grid(E: Fraction, delta: Fraction, least: Fraction) -> Iterator[Point]:
    """Yield a grid of R (or of p00, p11 ≥ least), including its boundary."""
    steps = [least + (1 - least) * Fraction(i, 20) for i in range(21)]
    points = {(u, v) for u, v in product(steps, steps)}
    for u in steps:
        for v in (E * (1 - u) + delta, 1 - (u - delta) / E):
            if least <= v <= 1:
                points |= {(u, v), (v, u)}
    for u, v in points:
        if u + v > 1 and private(u, v, E, delta):
            yield u, v


def g(E: Fraction, delta: Fraction) -> Fraction:
    return ((E - 1) * (3 * delta - 1) + 3 * delta**2) / (E - 1 + 2 * delta) ** 2


def boundary(E: Fraction, delta: Fraction, t: Fraction) -> Point:
    """Return (6.21)."""
    s = (E + delta) / (E + 1)
    return (1 + (delta - HALF) / E) * (1 - t) + s * t, (1 - t) / 2 + s * t


# --- optimal (ε, δ) randomised response -----------------------------------------------------------------------------


@paper("Thesis Thm 6.3", "Thesis Cor 6.3", "Thesis Lemma 6.1")
@pytest.mark.parametrize(("E", "delta"), LEVELS)
def test_the_best_response_on_the_closure(E: Fraction, delta: Fraction) -> None:
    """For p00, p11 ≥ ½ (erratum 9.3), no point of a grid with the boundary is better, for any
    share; there are ties where g = π."""
    points = list(grid(E, delta, HALF))
    symmetric, lopsided = boundary(E, delta, Fraction(1)), boundary(E, delta, Fraction(0))
    assert all(private(*point, E, delta) for point in (symmetric, lopsided))
    claim = Claim("dp", E.as_integer_ratio(), delta=delta.as_integer_ratio())
    for pi in SHARES[1:-1]:
        rare = min(pi, 1 - pi)
        printed = lopsided if g(E, delta) > rare else symmetric
        printed = printed if pi <= HALF else printed[::-1]
        least = variance_66(*printed, pi)
        assert least <= min(variance_66(*point, pi) for point in points)
        best = best_point(claim, prior_of(pi), "honest")
        assert variance_66(*best, pi) == least
        if g(E, delta) != rare:
            assert best == printed


def prior_of(pi: Fraction) -> Prior:
    return Prior.from_rows([[pi.denominator - pi.numerator, pi.numerator]])


@paper("Thesis Thm 6.3 on all of R")
@pytest.mark.parametrize(("E", "delta"), [level for level in LEVELS if level[1]])
def test_on_the_whole_region_another_corner_is_best(E: Fraction, delta: Fraction) -> None:
    """Erratum 9.3: (1, δ) is better where min(π, 1−π) < h, so the theorem needs its restriction."""
    points = list(grid(E, delta, Fraction(0)))
    h = delta * (E + delta) / (E - 1 + 2 * delta) ** 2
    claim, beaten = Claim("dp", E.as_integer_ratio(), delta=delta.as_integer_ratio()), 0
    s = (E + delta) / (E + 1)
    for pi in [*SHARES[1:-1], Fraction(1, 1000)]:
        corner = (Fraction(1), delta) if pi <= HALF else (delta, Fraction(1))
        stated = corner if min(pi, 1 - pi) < h else (s, s)
        least = variance_66(*stated, pi)
        assert least <= min(variance_66(*point, pi) for point in points)
        assert variance_66(*best_point(claim, prior_of(pi), "whole"), pi) == least
        honest = variance_66(*best_point(claim, prior_of(pi), "honest"), pi)
        beaten += least < honest
    assert bool(beaten) == (delta < HALF)  # at δ = ½, both regions have this corner
    exposed = (Fraction(1), delta)
    assert private(*exposed, E, delta)
    assert exposed[1] < HALF or delta == HALF


@paper("Thesis Lemma 6.2")
def test_along_the_boundary_the_least_variance_is_at_an_end() -> None:
    """The test also checks the second derivative at the maximum, whose printed exponent is wrong
    (erratum 9.4)."""
    for (E, delta), pi in product(LEVELS, SHARES[1::3]):
        values = [variance_66(*boundary(E, delta, Fraction(i, 24)), pi) for i in range(25)]
        for i, j in ((0, 24), (3, 17), (10, 12)):
            assert min(values[i : j + 1]) == min(values[i], values[j])
    E, delta, pi = Fraction(2), Fraction(3, 10), Fraction(3, 10)
    D = E - 1 + 2 * delta
    top = (1 + E) * (
        -(E**2) * pi
        + (1 - pi) * (1 - 2 * delta) ** 2
        + E * (2 * pi * (1 - 2 * delta) + 4 * delta - 1)
    )
    at = top / ((1 + (E - 1) * pi) * D**2)
    step = Fraction(1, 10**12)
    before, middle, after = (
        variance_66(*boundary(E, delta, at + k * step), pi) for k in (-1, 0, 1)
    )
    assert abs((after - before) / (2 * step)) < Fraction(1, 10**9)
    second = (after - 2 * middle + before) / step**2
    common = -((1 + (E - 1) * pi) ** 4) / (
        E**2 * 32 * (1 + E) ** 2 * delta**3 * (E - 1 + delta) ** 3
    )
    assert float(second) == pytest.approx(float(common * D**6), rel=1e-6)
    assert float(second) != pytest.approx(float(common * D**2), rel=0.1)  # printed


@paper("Thesis Lemma 6.3")
def test_which_side_of_the_boundary_is_better() -> None:
    for (E, delta), pi, i in product(LEVELS, SHARES, range(13)):
        t = Fraction(i, 12)
        u, v = boundary(E, delta, t)
        if u + v == 1:
            continue  # no estimate exists
        difference = variance_66(u, v, pi) - variance_66(v, u, pi)
        assert (difference <= 0) if pi <= HALF else (difference >= 0)
        if delta == 0 and u + v != 1:
            assert difference == -(E + 1) * (1 - 2 * pi) * (1 - t) / (E * (1 + t) + 1 - t) or (
                E,
                delta,
            ) == (1, 0)


# --- Warner and Mangat ----------------------------------------------------------------------------------------------


@paper("Thesis (6.9), (6.10)")
def test_warners_error_and_its_largest() -> None:
    for k in (9, 12, 15):
        p = Fraction(k, 16)
        for pi in SHARES:
            expected = (Fraction(1, 4) - (p - HALF - pi * (2 * p - 1)) ** 2) / (2 * p - 1) ** 2
            assert library_variance(binary(p, p), pi) == pytest.approx(float(expected), rel=1e-12)
            assert expected <= 1 / (4 * (2 * p - 1) ** 2)
        worst_se = estimate(binary(p, p), [60, 40]).worst_case_se[1]
        assert worst_se == pytest.approx(
            math.sqrt(1 / (4 * float(2 * p - 1) ** 2 * 100)), rel=1e-12
        )


@paper("Thesis (6.11), (6.12)")
def test_mangats_error_and_its_largest() -> None:
    """Erratum 9.1: for p_m ≤ ½, the maximum is (1−p_m)/(p_m n), below the printed 1/(4 p_m² n)."""
    for k in (1, 3, 8, 11, 15):
        p = Fraction(k, 16)
        values = [
            (1 - pi) * (1 - p * (1 - pi)) / p for pi in (Fraction(i, 1000) for i in range(1001))
        ]
        for pi in SHARES:
            assert library_variance(binary(p, Fraction(1)), pi) == pytest.approx(
                float((1 - pi) * (1 - p * (1 - pi)) / p), rel=1e-12, abs=1e-14
            )
        true = (1 - p) / p if p <= HALF else 1 / (4 * p**2)
        assert max(values) == pytest.approx(float(true), rel=1e-5)
        assert max(values) <= true
        worst_se = estimate(binary(p, Fraction(1)), [60, 40]).worst_case_se[1]
        assert worst_se == pytest.approx(math.sqrt(true / 100), rel=1e-12)
        assert (1 / (4 * p**2) > true) == (p < HALF)


@paper("Thesis Thm 6.6", "Thesis (6.31)", "Thesis §6.5.1")
def test_without_sampling_only_the_randomisation_varies() -> None:
    """The test enumerates every outcome of four people with k ones; the gap of Figure 6.3 at small
    p_m is an artefact of (6.12)."""
    n = 4
    for p00, p11, ones in product(
        (Fraction(3, 16), Fraction(3, 4)), (Fraction(3, 4), Fraction(1)), range(n + 1)
    ):
        k, pi = p00 + p11 - 1, Fraction(ones, n)
        if k <= 0:
            continue
        mean = square = Fraction(0)
        for yes, no in product(range(ones + 1), range(n - ones + 1)):
            chance = math.comb(ones, yes) * p11**yes * (1 - p11) ** (ones - yes)
            chance *= math.comb(n - ones, no) * (1 - p00) ** no * p00 ** (n - ones - no)
            value = (p00 - 1) / k + Fraction(yes + no) / (k * n)
            mean, square = mean + chance * value, square + chance * value**2
        assert mean == pi
        variance = square - mean**2
        if p11 == 1:
            assert variance == (1 - pi) * (1 - p00) / (p00 * n)
            assert variance <= (1 - p00) / (p00 * n)
        if p00 == p11:
            assert variance == (1 / (4 * (2 * p00 - 1) ** 2) - Fraction(1, 4)) / n
    for p in (Fraction(1, 10), Fraction(2, 5)):
        largest = max((1 - pi) * (1 - p * (1 - pi)) / p for pi in SHARES)
        assert largest == (1 - p) / p  # with sampling, at π = 0, as in (6.31), without a gap
        assert 1 / (4 * p**2) > largest


# --- degree of privacy violation ------------------------------------------------------------------------------------


def violation(p00: Fraction, p11: Fraction, pi: Fraction) -> list[Fraction]:
    """Return P(x = 1 | X = 0) and P(x = 1 | X = 1)."""
    chance_of_one = 1 - p00 + pi * (p00 + p11 - 1)
    return [(1 - p11) * pi / (1 - chance_of_one), p11 * pi / chance_of_one]


@paper("Thesis Thm 6.4", "Thesis Cor 6.4", "Thesis (6.24)")
def test_which_report_gives_the_violation() -> None:
    for a, b, k in product(range(1, 16, 2), range(1, 16, 2), range(1, 8)):
        p00, p11, pi = Fraction(a, 16), Fraction(b, 16), Fraction(k, 8)
        of_zero, of_one = violation(p00, p11, pi)
        assert (of_one >= of_zero) if p00 + p11 >= 1 else (of_zero > of_one)
        joint = ((8 - k, 0), (0, k))
        worst_case = worst(
            DenseMechanism(4, ((a, 16 - a), (16 - b, b))), Claim("dpv", (1, 1), joint, sensitive=1)
        )
        assert worst_case.ratio == max(of_zero, of_one)


@paper("Thesis (6.28), (6.30)", "Thesis §6.4.2")
def test_the_parameters_for_a_violation() -> None:
    for k, j in product(range(1, 19), range(2, 20)):
        pi, alpha = Fraction(k, 20), Fraction(j, 20)
        if alpha <= pi:
            continue
        both = alpha * (1 - pi) + pi * (1 - alpha)
        above, below, pm = (
            alpha * (1 - pi) / both,
            pi * (1 - alpha) / both,
            (alpha - pi) / (alpha * (1 - pi)),
        )
        assert HALF < above <= 1
        assert below == 1 - above
        assert 0 < pm <= 1
        assert max(violation(above, above, pi)) == alpha
        if below:
            assert max(violation(below, below, pi)) == alpha
        if pm < 1:
            assert violation(pm, Fraction(1), pi)[1] == alpha


@paper("Thesis Thm 6.5")
def test_mangat_is_at_least_as_efficient_at_equal_violation() -> None:
    """Erratum 9.4: a bracket and 1/n are missing; with Mangat's true maximum, the claim still holds."""
    apart = 0
    for k, j in product(range(1, 19), range(2, 20)):
        pi, alpha = Fraction(k, 20), Fraction(j, 20)
        if alpha <= pi:
            continue
        both = alpha * (1 - pi) + pi * (1 - alpha)
        pw, pm = alpha * (1 - pi) / both, (alpha - pi) / (alpha * (1 - pi))
        warner, mangat = variance_66(pw, pw, pi), variance_66(pm, Fraction(1), pi)
        assert warner == pi * (1 - pi) * (alpha * (1 - pi) + pi * (pi - alpha)) / (alpha - pi) ** 2
        assert mangat == pi * (1 - pi) ** 2 / (alpha - pi)
        assert warner >= mangat
        largest = (1 - pm) / pm if pm <= HALF else 1 / (4 * pm**2)
        ratio = 1 / (4 * (2 * pw - 1) ** 2) / largest
        assert ratio >= (1 + pi * (1 - alpha) / (alpha * (1 - pi))) ** 2 >= 1
        apart += ratio > (1 + pi * (1 - alpha) / (alpha * (1 - pi))) ** 2
    assert apart  # the printed ratio is too small if p_m < ½


# --- several attributes ---------------------------------------------------------------------------------------------


def super_binary(m: int) -> list[list[Fraction]]:
    """Return (6.32)."""
    return [[Fraction(1, m)] * m] + [[Fraction(x == y) for y in range(m)] for x in range(1, m)]


def shares_of(m: int, steps: int) -> Iterator[list[Fraction]]:
    for counts in product(range(steps + 1), repeat=m - 1):
        if sum(counts) <= steps:
            yield [Fraction(n, steps) for n in (steps - sum(counts), *counts)]


@paper(
    "Thesis Def 6.3",
    "Thesis Thm 6.8",
    "Thesis Thm 6.9",
    "Thesis Lemma 6.4",
    "Thesis Cor 6.6",
    "Thesis Cor 6.7",
)
@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_the_super_binary_mangat_model(m: int) -> None:
    """The errors (6.35) and (6.37) are checked by expectation; (6.36) is (m−1)/n for m > 2
    (erratum 9.2), and (6.38) holds."""
    Q, first, second = super_binary(m), [], []
    for pi in shares_of(m, 12 if m < 5 else 6):
        rates = [sum(p * row[y] for p, row in zip(pi, Q, strict=True)) for y in range(m)]
        assert m * rates[0] == pi[0]
        error = m * m * rates[0] - pi[0] ** 2
        assert error == pi[0] * (m - pi[0])
        first.append(error)
        for j in range(1, m):
            assert rates[j] - rates[0] == pi[j]
            assert rates[j] + rates[0] == 2 * pi[0] / m + pi[j]
            error = rates[j] + rates[0] - pi[j] ** 2
            assert error == 2 * pi[0] / m + pi[j] * (1 - pi[j])
            second.append(error)
    assert max(first) == max(m - 1, Fraction(m * m, 4) if m == 2 else 0)
    assert (max(first) == Fraction(m * m, 4)) == (m == 2)
    assert max(second) <= (HALF + Fraction(1, m)) ** 2
    if m != 5:
        assert (
            max(second) == (HALF + Fraction(1, m)) ** 2
        )  # attained at π_j = ½ − 1/m, a point of the grid


@paper("Thesis Thm 6.7", "Thesis Cor 6.5")
def test_the_closed_form_is_the_likelihoods_maximum_only_inside() -> None:
    """Erratum 9.2: (6.34) leaves the simplex if N_j < N_1 for some j; then the maximum is elsewhere."""
    m = 4
    mechanism = DenseMechanism(4, ((4, 4, 4, 4), (0, 16, 0, 0), (0, 0, 16, 0), (0, 0, 0, 16)))

    def log_likelihood(pi: list[float], counts: list[int]) -> float:
        rates = [pi[0] / m, *(p + pi[0] / m for p in pi[1:])]
        return sum(
            n * math.log(r) if r > 0 else -math.inf for n, r in zip(counts, rates, strict=True) if n
        )

    for counts, within in (
        ([10, 40, 30, 20], True),
        ([5, 5, 60, 30], True),
        ([30, 20, 35, 15], False),
    ):
        n = sum(counts)
        closed = [m * counts[0] / n, *((k - counts[0]) / n for k in counts[1:])]
        assert (min(closed) >= 0) == within == (counts[0] <= min(counts[1:]))
        best = max(log_likelihood(list(map(float, pi)), counts) for pi in shares_of(m, 24))
        result = estimate(mechanism, counts)
        assert list(result.unbiased) == pytest.approx(closed, abs=1e-12)
        assert log_likelihood([present(share) for share in result.mle], counts) >= best - 1e-6
        if within:
            assert log_likelihood(closed, counts) >= best - 1e-9
            assert list(result.mle) == pytest.approx(closed, abs=1e-5)
            # This is (6.33a) at this point.
            for j in range(1, m):
                total = counts[j] * (m - 1) / (m * closed[j] + closed[0])
                other_terms = sum(
                    counts[k] / (m * closed[k] + closed[0]) for k in range(1, m) if k != j
                )
                assert total == pytest.approx(other_terms + counts[0] / closed[0])


@paper("Thesis Mangat is no DP")
def test_mangats_models_have_no_level() -> None:
    """Erratum 9.2: one report comes from only one answer."""
    for weights in (
        ((12, 4), (0, 16)),
        ((4, 4, 4, 4), (0, 16, 0, 0), (0, 0, 16, 0), (0, 0, 0, 16)),
    ):
        assert worst(DenseMechanism(4, weights), Claim("ldp", (1, 1))).ratio is None
