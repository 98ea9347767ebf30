# SPDX-License-Identifier: Apache-2.0
"""Randomised responses and sanitisations of the thesis, compared with formulas, grids and enumeration."""

from fractions import Fraction
from itertools import chain, combinations
from math import exp

import numpy as np
import pytest
from frankly_design.families import best_point, variance_at
from frankly_design.families.randomised_response import symmetric_response
from frankly_design.families.sanitisation import error_bound_discrete, error_range, exponent_range
from frankly_design.notions.prior import Prior
from frankly_protocol.audit import Claim, level_for, require_private
from frankly_protocol.mechanisms import DenseMechanism

from papers import sanitisation as theory
from tests.frankly_design.families.asking import ask, exact, floats, mechanism_of

HALF = Fraction(1, 2)


def dpv(Q: list[list[Fraction]], pi: Fraction) -> Fraction:
    """Return (6.24) by Bayes' rule, report by report."""
    return max(pi * v / (pi * v + (1 - pi) * u) for u, v in zip(Q[0], Q[1], strict=True) if u + v)


@pytest.mark.parametrize("alpha", ["0.35", "0.5", "0.9"])
@pytest.mark.parametrize("pi", [Fraction(1, 10), Fraction(3, 10)])
def test_warner_and_mangat_at_a_degree_of_privacy_violation(alpha: str, pi: Fraction) -> None:
    joint = [[pi.denominator - pi.numerator, pi.numerator]]
    bound = Fraction(alpha)
    p_w = bound * (1 - pi) / (bound * (1 - pi) + pi * (1 - bound))  # (6.28)
    mirrored = pi * (1 - bound) / (bound * (1 - pi) + pi * (1 - bound))  # (6.30)
    p_m = (bound - pi) / (bound * (1 - pi))
    warner = ask("warner", joint, notion="dpv", dpv=alpha)
    mangat = ask("mangat", joint, notion="dpv", dpv=alpha)
    assert warner["parameters"]["p"] == pytest.approx(float(p_w), abs=1e-12)
    assert p_w + mirrored == 1
    assert mangat["parameters"]["p_m"] == pytest.approx(float(p_m), abs=1e-12)
    for response in (warner, mangat):
        assert bound - Fraction(1, 10**12) < dpv(exact(mechanism_of(response)), pi) <= bound
    # By Theorem 6.5, with bracket and 1/n corrected, the variance of one share is half the total.
    var_w = pi * (1 - pi) * (bound * (1 - pi) + pi * (pi - bound)) / (bound - pi) ** 2
    assert warner["variance"] / 2 == pytest.approx(float(var_w), rel=1e-9)
    assert mangat["variance"] / 2 == pytest.approx(
        float(pi * (1 - pi) ** 2 / (bound - pi)), rel=1e-9
    )
    assert mangat["variance"] <= warner["variance"]
    # (6.30) as explicit parameter gives the same variance with the reports exchanged.
    mirrored_response = ask("warner", joint, notion="dpv", p00=f"{float(mirrored):.15f}")
    assert mirrored_response["variance"] == pytest.approx(warner["variance"], rel=1e-9)
    assert mirrored_response["parameters"]["claims"][0]["level"][0] / mirrored_response[
        "parameters"
    ]["claims"][0]["level"][1] == (pytest.approx(float(bound), abs=1e-12))


def test_mangat_with_the_other_answer_sensitive() -> None:
    response = ask("mangat", [[1, 9]], notion="dpv", dpv="0.5", sensitive=0)
    assert exact(mechanism_of(response))[0][1] == 0
    assert response["parameters"]["p_m"] == pytest.approx((0.5 - 0.1) / (0.5 * 0.9), abs=1e-12)
    assert response["parameters"]["sensitive_answer"] == 0


def test_super_binary_mangat_without_a_notion_promises_dpv() -> None:
    """Super-binary Mangat satisfies no level of LDP, which is the default notion of the other families."""
    response = ask("super-binary-mangat", [[1, 1, 1]])
    (claim,) = response["parameters"]["claims"]
    assert claim["notion"] == "dpv"


def test_an_exponent_without_a_lower_end_is_minus_infinity() -> None:
    response = ask("product-sanitisation", [[1] * 5], notion="dp", epsilon="0.7227", delta="0.3081")
    low, high = response["parameters"]["k_range"]
    assert low == "-inf"
    assert high == pytest.approx(1.5599, abs=1e-4)


def test_super_binary_mangat_equals_that_of_6_32() -> None:
    m = 5
    response = ask("super-binary-mangat", [[6, 1, 2, 3, 4]], notion="dpv", sensitive=2)
    Q = floats(mechanism_of(response))
    expected = np.eye(m)
    expected[0] = 1 / m
    assert pytest.approx(expected, abs=1e-14) == Q
    (claim,) = response["parameters"]["claims"]
    assert claim["level"][0] / claim["level"][1] == pytest.approx(
        (2 / 16) / (2 / 16 + 6 / 16 / m), abs=1e-12
    )
    assert response["measures"]["answer_ldp"] == "inf"
    # (6.34)-(6.35): Var(share 1) from its unbiased estimate m·N_1/n
    p = np.array([6, 1, 2, 3, 4]) / 16
    assert response["parameters"]["target_variances"][0] == pytest.approx(
        m * p[0] - p[0] ** 2, rel=1e-9
    )


def allowed(p00: Fraction, p11: Fraction, E: Fraction, delta: Fraction) -> bool:
    """Return True if (6.14) holds for both answers and both reports."""
    return (
        p11 <= E * (1 - p00) + delta
        and p00 <= E * (1 - p11) + delta
        and 1 - p00 <= E * p11 + delta
        and 1 - p11 <= E * p00 + delta
    )


@pytest.mark.parametrize("region", ["honest", "whole"])
@pytest.mark.parametrize("delta", ["0", "0.05", "0.2", "0.45", "0.7"])
@pytest.mark.parametrize("epsilon", ["0.2", "1", "2.5"])
def test_no_grid_point_of_the_region_beats_the_binary_optimum(
    epsilon: str, delta: str, region: str
) -> None:
    E, d, steps = Fraction(*level_for(Fraction(epsilon))), Fraction(delta), 24
    grid = [Fraction(i, steps) for i in range(steps + 1)]
    least = HALF if region == "honest" else Fraction(0)
    feasible = [
        (u, v)
        for u in grid
        for v in grid
        if min(u, v) >= least and u + v > 1 and allowed(u, v, E, d)
    ]  # below the line u + v = 1, the mechanisms are the same with the reports exchanged
    # The grid includes the boundary: p00 as large as p11 allows, and the reverse.
    edge = [(min(Fraction(1), E * (1 - v) + d), v) for v in grid if v >= least]
    feasible += [
        pt
        for u, v in edge
        for pt in ((u, v), (v, u))
        if u >= least and u + v > 1 and allowed(u, v, E, d)
    ]
    for share in (2, 20, 50, 90):
        claim = Claim("dp", level_for(Fraction(epsilon)), delta=d.as_integer_ratio())
        point = best_point(claim, Prior.from_rows([[100 - share, share]]), region)
        assert allowed(*point, E, d)
        assert min(point) >= least
        pi = Fraction(share, 100)
        assert all(variance_at(point, pi) <= variance_at(rival, pi) for rival in feasible)


def test_the_two_regions_of_a_rare_answer() -> None:
    """By erratum 9.3, h decides in the whole region and g in the honest region  [Thesis (6.22)]."""
    E, delta = Fraction(*level_for(Fraction(1))), Fraction(1, 5)
    h = delta * (E + delta) / (E - 1 + 2 * delta) ** 2
    g = ((E - 1) * (3 * delta - 1) + 3 * delta**2) / (E - 1 + 2 * delta) ** 2
    s = (E + delta) / (E + 1)
    claim = Claim("dp", level_for(Fraction(1)), delta=(1, 5))
    for share in range(1, 50):
        pi, prior = Fraction(share, 100), Prior.from_rows([[100 - share, share]])
        assert best_point(claim, prior, "whole") == ((1, delta) if pi < h else (s, s))
        r = 1 - (HALF - delta) / E  # Erratum 9.4
        assert best_point(claim, prior, "honest") == ((r, HALF) if pi < g else (s, s))
        mirrored = Prior.from_rows([[share, 100 - share]])
        for region in ("honest", "whole"):
            assert best_point(claim, mirrored, region) == best_point(claim, prior, region)[::-1]


def test_the_optimum_under_dp_is_certified_for_two_answers_without_delta() -> None:
    """With δ > 0 it is the optimum of two reports, for any targets, and has no bound."""
    for extra in (
        {},
        {"targets": [[1, -1]]},
        {"targets": [[0, 1], [2, 0.5]], "criterion": "worst"},
    ):
        for region in ("honest", "whole"):
            options = {"notion": "dp", "epsilon": "0.5", "delta": "0", "region": region, **extra}
            response = ask("optimal", [[97, 3]], **options)
            assert response["certified"] is True
            assert response["parameters"]["exact"] is True
            assert response["parameters"]["bound"] <= response["parameters"]["value"] * (1 + 1e-12)
            for delta in ("0", "0.2"):
                response = ask("optimal", [[97, 3]], **options | {"delta": delta})
                family = ask("binary", [[97, 3]], **options | {"delta": delta})
                assert (family["weights"], family["gap"]) == (response["weights"], None)
            assert (response["certified"], response["parameters"]["bound"]) == (False, None)


def test_four_reports_can_be_better_under_dp_than_the_best_two() -> None:
    """With probability δ the answer is sent unchanged, else randomised response at ε."""
    D, delta = 1 << 48, Fraction(1, 5)
    level = Fraction(*level_for(Fraction(1, 2)))
    sent = int(delta * D)
    high = (D - sent) * level.numerator // (level.numerator + level.denominator)
    low = D - sent - high
    four = DenseMechanism(48, ((sent, 0, high, low), (0, sent, low, high)))
    claim = Claim("dp", level_for(Fraction(1, 2)), delta=(1, 5))
    require_private(four, claim)
    two = ask("optimal", [[7, 3]], notion="dp", epsilon="0.5", delta="0.2")
    p = np.array([0.7, 0.3])
    Q = np.array(four.weights) / D
    variance = np.trace(np.linalg.inv((Q / (p @ Q)) @ Q.T)) - p @ p
    assert variance < 0.6 * two["variance"]


def test_explicit_chances_are_used_unchanged() -> None:
    response = ask("binary", [[7, 3]], p00="0.75", p11=0.625)
    assert exact(mechanism_of(response)) == [
        [Fraction(3, 4), Fraction(1, 4)],
        [Fraction(3, 8), Fraction(5, 8)],
    ]
    assert response["parameters"]["claims"] == [{"notion": "ldp", "level": [5 << 47, 1 << 48]}]


@pytest.mark.parametrize(("m", "delta"), [(2, "0"), (3, "0.1"), (5, "0.25"), (8, "0.5")])
def test_product_sanitisation_has_the_least_error(m: int, delta: str) -> None:
    """By Theorem 4.8, (4.10), (4.14) and (3.17), p = (1−δ)/(e^ε+m−1), the error is at its bound,
    and δ is attained."""
    E, d = exp(0.75), float(delta)
    response = ask("product-sanitisation", [[1] * m], notion="dp", epsilon="0.75", delta=delta)
    figures = response["parameters"]
    assert figures["p"] == pytest.approx((1 - d) / (E + m - 1), abs=1e-12)
    assert figures["hamming_error"] == pytest.approx((m - 1) * (1 - d) / (m - 1 + E), abs=1e-11)
    assert figures["error_bound"] == pytest.approx(figures["hamming_error"], abs=1e-11)
    assert figures["error_range"][0] == pytest.approx(figures["hamming_error"], abs=1e-11)
    assert figures["error_range"][1] == pytest.approx(
        min(1, (E + d) / (E + 1 / (m - 1))), abs=1e-12
    )
    assert np.exp(figures["k"]) == pytest.approx((E + (m - 1) * d) / (1 - d), rel=1e-11)
    assert figures["k_range"][1] == pytest.approx(figures["k"], abs=1e-11)
    rows = exact(mechanism_of(response))
    level = Fraction(*level_for(Fraction(3, 4)))
    subsets = list(chain.from_iterable(combinations(range(m), k) for k in range(m + 1)))
    excess = max(sum(rows[0][y] - level * rows[1][y] for y in T) for T in subsets)
    assert Fraction(delta) - Fraction(1, 10**12) < excess <= Fraction(delta)
    same = ask("discrete-exponential", [[1] * m], notion="dp", epsilon="0.75", delta=delta)
    assert same["weights"] == response["weights"]


def test_exponent_and_chance_are_inverse_functions_with_equal_ranges() -> None:
    for m in (2, 3, 7):
        for d in (Fraction(0), Fraction(1, 10), Fraction(3, 5)):
            E = Fraction(7, 4)
            low, high = exponent_range(E, d, m)
            lowest, highest = theory.wrong_range(E, d, m)
            assert theory.exponent_of(lowest, m) == high  # (4.16) takes (4.17) to (4.10)
            assert theory.exponent_of(highest, m) == low
            assert theory.wrong_of(high, m) == lowest
            assert error_range(E, d, m) == (lowest * (m - 1), highest * (m - 1))
            assert theory.error_bound(E, d) <= error_bound_discrete(E, d, m) == lowest * (m - 1)


def test_the_ranges_agree_with_the_verifier() -> None:
    E, d, m = Fraction(3, 2), Fraction(1, 8), 4
    lowest, highest = theory.wrong_range(E, d, m)
    for p, holds in (
        (lowest, True),
        (lowest - Fraction(1, 2**40), False),
        (highest, True),
        (highest + Fraction(1, 2**40), False),
    ):
        off = int(p * 2**48) + (p == lowest)
        assert (theory.delta_needed(symmetric_response(m, off), E) <= d) is holds


def test_a_discrete_exponential_mechanism_of_two_parts_is_the_exponential_of_hamming_distance() -> (
    None
):
    response = ask("discrete-exponential", notion="srlip", attributes=[2, 2], alpha="0.5")
    Q = floats(mechanism_of(response))
    distance = np.array([[(x ^ y).bit_count() for y in range(4)] for x in range(4)])
    expected = np.exp(-0.5 * distance)
    assert (
        pytest.approx(expected / expected.sum(axis=1, keepdims=True), abs=1e-12) == Q
    )  # Def 4.2, Theorem 4.5
    assert response["parameters"]["hamming_error"] == pytest.approx(2 / (exp(0.5) + 1), abs=1e-12)
