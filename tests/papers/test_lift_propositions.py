# SPDX-License-Identifier: Apache-2.0
"""Lift's Propositions 1, 3-6 and A1 in their true forms (erratum 9.20), on random lifts in fractions.

The printed forms fail on instances in this module and in test_lift. A report's lifts l_s > 0 with Σ
P(s) l_s = 1 are drawn as the ratio of a second distribution of the secret to the first.
"""

import math
from fractions import Fraction
from itertools import chain, combinations

import pytest
from frankly_design.measures import breach
from frankly_design.measures.lift import measure_lift
from frankly_design.notions.prior import Prior
from hypothesis import given
from hypothesis import strategies as st

from papers.lift_bounds import breach_levels, max_lift_from, min_lift_from, of_alip
from tests.papers.exact import on_random, tries
from tests.papers.registry import paper

Lifts = tuple[list[Fraction], list[Fraction]]


@st.composite
def one_report(draw: st.DrawFn) -> Lifts:
    """Draw P(s) and P(s|y)/P(s)."""
    size = draw(st.integers(2, 6))
    before, after = (
        draw(st.lists(st.integers(1, 200), min_size=size, max_size=size)) for _ in range(2)
    )
    p = [Fraction(n, sum(before)) for n in before]
    return p, [Fraction(n, sum(after)) / v for n, v in zip(after, p, strict=True)]


@st.composite
def channels(draw: st.DrawFn) -> tuple[list[list[int]], Prior]:
    secrets, answers, reports = (draw(st.integers(2, 4)) for _ in range(3))
    joint = draw(
        st.lists(
            st.lists(st.integers(1, 99), min_size=answers, max_size=answers),
            min_size=secrets,
            max_size=secrets,
        )
    )
    rows = draw(
        st.lists(
            st.lists(st.integers(1, 30), min_size=reports, max_size=reports),
            min_size=answers,
            max_size=answers,
        )
    )
    scale = math.lcm(*map(sum, rows))
    return [[w * scale // sum(row) for w in row] for row in rows], Prior.from_rows(joint)


def pair(value: Fraction) -> tuple[int, int]:
    return value.as_integer_ratio()


@paper("Lift Prop 1", "Lift Prop 1.2", "Lift Prop 1.3", "Lift Prop 1.4")
def test_proposition_1(full: bool) -> None:
    """The bounds of T, χ², I, Sibson, Arimoto (any order) and LDP of the secret hold at a channel's
    true levels."""
    orders = (0.2, 1, 1.5, 2, 20, math.inf)

    @tries(full)
    @given(channels())
    def check(drawn: tuple[list[list[int]], Prior]) -> None:
        weights, prior = drawn
        columns = list(zip(*weights, strict=True))
        by_secret = [
            [
                sum(n * w for n, w in zip(row, column, strict=True))
                * Fraction(prior.total, sum(row))
                for column in columns
            ]
            for row in prior.joint
        ]
        average = [
            sum(n * w for n, w in zip(prior.shares, column, strict=True)) for column in columns
        ]
        lifts = [[u / v for u, v in zip(row, average, strict=True)] for row in by_secret]
        m, M = min(map(min, lifts)), max(map(max, lifts))
        true, measured = of_alip(pair(1 / m), pair(M)), measure_lift(weights, prior, orders)
        assert measured["total_variation"] <= float(true.total_variation) * (1 + 1e-12)
        assert measured["chi2"] <= float(true.chi2_divergence) * (1 + 1e-12)
        for order in measured["sibson"]:
            assert (
                max(measured["sibson"][order], measured["arimoto"][order])
                <= true.information * (1 + 1e-9) + 1e-14
            )
        assert (
            max(max(column) / min(column) for column in zip(*lifts, strict=True))
            <= true.secret_ldp
            == M / m
        )
        if M > 1 > m:
            assert true.total_variation == (M - 1) * (1 - m) / (M - m)
            assert true.chi2_divergence == (M - 1) * (1 - m)

    check()


@paper("Lift Prop 1.3")
def test_proposition_13_as_printed_is_false_below_one() -> None:
    """α/(α−1)·ε_u is negative for α < 1, where the informations are positive."""
    measured = measure_lift([[3, 1], [1, 3]], Prior.from_rows([[1, 1], [1, 2]]), (0.5,))
    level = math.log(max(measured["max_lift"]))
    for name in ("sibson", "arimoto"):
        assert measured[name]["0.5"] > 0 > 0.5 / (0.5 - 1) * level


@paper("Lift Prop 3", "Lift Prop 3.1", "Lift Prop 3.2", "Lift Prop 3.3")
@on_random(one_report(), st.integers(1, 6))
def test_proposition_3(drawn: Lifts, alpha: int) -> None:
    p, lift = drawn
    m, M = min(lift), max(lift)
    true = of_alip(pair(1 / m), pair(M))
    assert sum(u * abs(v - 1) for u, v in zip(p, lift, strict=True)) <= true.l1
    assert sum(u * (v - 1) ** 2 for u, v in zip(p, lift, strict=True)) <= true.chi2
    assert sum(u * v**alpha for u, v in zip(p, lift, strict=True)) <= Fraction(true.alpha) ** alpha


@paper("Lift Prop 5", "Lift Prop 5.1", "Lift Prop 5.2", "Lift Prop 5.3")
@on_random(one_report(), st.integers(1, 6))
def test_proposition_5(drawn: Lifts, alpha: int) -> None:
    p, lift = drawn
    m, M = min(lift), max(lift)
    true = of_alip(pair(1 / m), pair(M))
    assert true.l1_inverse == max(1 / m - 1, 1 - 1 / M)
    assert sum(u * abs(1 / v - 1) for u, v in zip(p, lift, strict=True)) <= true.l1_inverse
    assert sum(u * (1 / v - 1) ** 2 for u, v in zip(p, lift, strict=True)) <= true.chi2_inverse
    assert (
        sum(u / v**alpha for u, v in zip(p, lift, strict=True))
        <= Fraction(true.alpha_inverse) ** alpha
    )


def averages(p: list[Fraction], lift: list[Fraction], alpha: int) -> dict[str, float]:
    """Return the averages over the reports by which propositions 4 and 6 bound the largest lift."""
    powers = sum(u * v**alpha for u, v in zip(p, lift, strict=True))
    return {
        "l1": float(sum(u * abs(v - 1) for u, v in zip(p, lift, strict=True))),
        "chi2": float(sum(u * (v - 1) ** 2 for u, v in zip(p, lift, strict=True))),
        "alpha": math.pow(powers, 1 / alpha),
    }


@paper("Lift Prop 4", "Lift Prop 4.1", "Lift Prop 4.2", "Lift Prop 4.3")
@on_random(one_report(), st.integers(2, 6))
def test_proposition_4(drawn: Lifts, alpha: int) -> None:
    """The largest lift is bounded by an average, with the root that 4.2 lacks."""
    p, lift = drawn
    M = max(lift)
    mass = float(p[lift.index(M)])
    for name, value in averages(p, lift, alpha).items():
        assert float(M) <= max_lift_from(name, value, mass, alpha) * (1 + 1e-12)


@paper("Lift Prop 6", "Lift Prop 6.1", "Lift Prop 6.2", "Lift Prop 6.3")
@on_random(one_report(), st.integers(2, 6))
def test_proposition_6(drawn: Lifts, alpha: int) -> None:
    """The least lift is bounded by an inverse average, with the roots that 6.2 lacks."""
    p, lift = drawn
    m = min(lift)
    mass = float(p[lift.index(m)])
    for name, value in averages(p, [1 / v for v in lift], alpha).items():
        assert float(m) >= min_lift_from(name, value, mass, alpha) * (1 - 1e-12)


@paper("Lift Prop A1")
def test_proposition_a1(full: bool) -> None:
    """With (1−ρ₂)/(1−ρ₁) ≤ Ψ and Λ ≤ ρ₂/ρ₁, no event rises from ρ₁ above ρ₂ or falls from ρ₂ below ρ₁."""
    met = 0

    @tries(full)
    @given(
        one_report(),
        st.fractions(Fraction(1, 50), Fraction(48, 50), max_denominator=50),
        st.integers(1, 99),
    )
    def check(drawn: Lifts, low: Fraction, percent: int) -> None:
        nonlocal met
        p, lift = drawn
        high = low + (1 - low) * Fraction(percent, 100)
        smallest_lift, largest_lift = breach_levels(low, high)
        # Move the lifts towards 1 until they keep both levels, by mixing with the constant report.
        down = [(1 - smallest_lift) / (1 - v) for v in lift if v < 1]
        up = [(largest_lift - 1) / (v - 1) for v in lift if v > 1]
        pull = min([Fraction(1), *down, *up])
        pulled_lift = [1 + pull * (v - 1) for v in lift]
        assert smallest_lift <= min(pulled_lift) <= max(pulled_lift) <= largest_lift
        for event in chain.from_iterable(combinations(range(len(p)), k) for k in range(1, len(p))):
            before, after = sum(p[s] for s in event), sum(p[s] * pulled_lift[s] for s in event)
            assert before > low or after <= high
            assert before < high or after >= low
            met += before <= low or before >= high

    check()
    assert met > 0


@paper("Lift Prop A1, printed proof")
def test_the_downward_breach_needs_both_levels() -> None:
    """The printed proof uses Ψ alone; lifts that keep Ψ and not Λ let an event fall below ρ₁."""
    low, high = Fraction(1, 2), Fraction(3, 5)
    smallest_lift, largest_lift = breach_levels(low, high)
    lift = [smallest_lift, (1 - high * smallest_lift) / (1 - high)]
    assert lift[1] > largest_lift
    assert min(lift) >= smallest_lift
    assert high * lift[0] < low
    # The same case as a mechanism is the identity under a prior with exactly these lifts.
    prior = Prior.from_rows([[48, 72], [52, 28]])
    breached = breach([[1, 0], [0, 1]], prior, high)
    assert breached.lowest == pytest.approx(Fraction(12, 25))
