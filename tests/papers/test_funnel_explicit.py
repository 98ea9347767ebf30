# SPDX-License-Identifier: Apache-2.0
"""Funnel §III-VI in fractions, E = e^α: bounds of notions, closed forms, Conditional Reporting.

Tables in this module have row = truth. A prior is a table of counts N[s][x].
"""

import math
import random
from fractions import Fraction
from itertools import pairwise, product

import pytest
from frankly_design.engine import DesignRequest, design
from frankly_design.families import grr
from frankly_design.measures import MeasureOptions, measure
from frankly_design.notions.prior import Prior
from frankly_protocol.audit import Claim, level_for, worst
from frankly_protocol.mechanisms import UnaryMechanism
from hypothesis import strategies as st

from tests.papers.exact import delta_rows, on_random
from tests.papers.registry import paper

Counts = list[list[int]]
Rows = list[list[Fraction]]


@st.composite
def priors(draw: st.DrawFn, most: int = 4) -> Counts:
    c, a = draw(st.integers(2, most)), draw(st.integers(2, most))
    return draw(
        st.lists(st.lists(st.integers(1, 99), min_size=a, max_size=a), min_size=c, max_size=c)
    )


@st.composite
def mechanisms(draw: st.DrawFn, answers: int) -> Rows:
    b = draw(st.integers(2, 4))
    rows = draw(
        st.lists(
            st.lists(st.integers(1, 30), min_size=b, max_size=b), min_size=answers, max_size=answers
        )
    )
    return [[Fraction(v, sum(row)) for v in row] for row in rows]


LEVELS = st.fractions(min_value=Fraction(101, 100), max_value=50, max_denominator=100)


def given_secret(counts: Counts) -> Rows:
    """Return P(x|s)."""
    return [[Fraction(n, sum(row)) for n in row] for row in counts]


def shares(counts: Counts) -> list[Fraction]:
    return [Fraction(sum(column), sum(map(sum, counts))) for column in zip(*counts, strict=True)]


def reports(counts: Counts, rows: Rows) -> tuple[Rows, list[Fraction]]:
    """Return P(y|s) and P(y) of a table over answers."""
    by_secret = [
        [
            sum((p * row[y] for p, row in zip(conditional, rows, strict=True)), Fraction(0))
            for y in range(len(rows[0]))
        ]
        for conditional in given_secret(counts)
    ]
    average = [
        sum((p * row[y] for p, row in zip(shares(counts), rows, strict=True)), Fraction(0))
        for y in range(len(rows[0]))
    ]
    return by_secret, average


def largest(pairs: list[tuple[Fraction, Fraction]]) -> Fraction:
    """Return the largest u/v or v/u over pairs, which is e to the power of the level."""
    return max(max(u / v, v / u) for u, v in pairs)


def lip(by_secret: Rows, average: list[Fraction]) -> Fraction:
    return largest([(u, v) for row in by_secret for u, v in zip(row, average, strict=True)])


def secret_ldp(by_secret: Rows) -> Fraction:
    return max(
        u / v
        for first, second in product(by_secret, repeat=2)
        for u, v in zip(first, second, strict=True)
    )


@paper(
    "Funnel Lemma 1", "Funnel Remark 1", "Funnel (24)", "Lift Def 1", "Lift Def 2", "Robust Def 2"
)
@on_random(st.data())
def test_lemma_1_on_random_instances(data: st.DataObject) -> None:
    """ε-LDP ⇒ ε-LIP ⇒ 2ε-LDP and I(S;Y) ≤ ε, so ε/2-LIP ⇒ ε-LDP, but not the reverse (erratum 9.19)."""
    counts = data.draw(priors())
    rows = data.draw(mechanisms(len(counts[0])))
    by_secret, average = reports(counts, rows)
    lip_level, ldp_level = lip(by_secret, average), secret_ldp(by_secret)
    assert lip_level <= ldp_level <= lip_level**2
    mass = [Fraction(sum(row), sum(map(sum, counts))) for row in counts]
    information = sum(
        float(p * u) * math.log(u / v)
        for p, row in zip(mass, by_secret, strict=True)
        for u, v in zip(row, average, strict=True)
    )
    assert information <= math.log(lip_level) * (1 + 1e-12) + 1e-15
    # Remark 1: for every prior, the level of the answer bounds the level of the secret.
    answer_level = max(max(column) / min(column) for column in zip(*rows, strict=True))
    assert ldp_level <= answer_level
    scale = math.lcm(*(v.denominator for row in rows for v in row))
    measured = measure([[int(v * scale) for v in row] for row in rows], Prior.from_rows(counts))
    assert measured["lip"] == pytest.approx(math.log(lip_level), rel=1e-12)
    assert measured["secret_ldp"] == pytest.approx(math.log(ldp_level), rel=1e-12)
    assert measured["answer_ldp"] == pytest.approx(math.log(answer_level), rel=1e-12)


@paper("Funnel Lemma 1 reversed")
def test_ldp_does_not_imply_lip_at_half_the_level() -> None:
    """The text mentions "ε-LDP protocols and ε/2-LIP", but ε-LDP does not imply ε/2-LIP."""
    by_secret, average = reports(
        [[9, 1], [1, 99]], [[Fraction(9, 10), Fraction(1, 10)], [Fraction(1, 10), Fraction(9, 10)]]
    )
    assert lip(by_secret, average) ** 2 > secret_ldp(by_secret)


@paper("Funnel Lemma 2")
@on_random(st.data())
def test_srlip_is_at_least_lip(data: st.DataObject) -> None:
    counts = data.draw(
        st.lists(st.lists(st.integers(1, 99), min_size=6, max_size=6), min_size=2, max_size=3)
    )
    weights = data.draw(
        st.lists(st.lists(st.integers(1, 30), min_size=2, max_size=2), min_size=6, max_size=6)
    )
    rows = [[w * math.prod(sum(r) for r in weights) // sum(row) for w in row] for row in weights]
    measured = measure(rows, Prior.from_rows(counts), MeasureOptions(attributes=(2, 3)))
    assert measured["srlip"] >= measured["lip"]


@paper("Funnel Thm 1")
def test_the_polytope_of_theorem_3_has_a_plus_2c_inequalities() -> None:
    """Erratum 9.17: Theorem 1 says 2ac; (10) and v ≥ 0 are a + 2c inequalities, as in §V.C."""
    for counts in ([[1, 2, 3], [3, 1, 1]], [[1, 2, 3, 4], [4, 3, 1, 1], [5, 1, 1, 1]]):
        c, a = len(counts), len(counts[0])
        assert len(delta_rows(Prior.from_rows(counts), Fraction(2))) == a + 2 * c < 2 * a * c


def grr_rows(a: int, E: Fraction) -> Rows:
    return [[(E if x == y else Fraction(1)) / (E + a - 1) for y in range(a)] for x in range(a)]


@paper("Funnel (25), (26)")
@on_random(priors(), LEVELS)
def test_the_level_of_grr(counts: Counts, E: Fraction) -> None:
    """The closed form increases with α and stays below the level of the identity, at α = ∞ (erratum 9.19)."""
    a, conditional, p = len(counts[0]), given_secret(counts), shares(counts)

    def closed(E: Fraction) -> Fraction:
        return largest(
            [
                (1 + (E - 1) * u, 1 + (E - 1) * v)
                for row in conditional
                for u, v in zip(row, p, strict=True)
            ]
        )

    assert lip(*reports(counts, grr_rows(a, E))) == closed(E) <= closed(E * 2)
    identity = [[Fraction(x == y) for y in range(a)] for x in range(a)]
    assert closed(E) <= lip(*reports(counts, identity))
    built = grr(a, level_for(Fraction(1)))
    assert measure(built.weights, Prior.from_rows(counts))["lip"] == pytest.approx(
        math.log(closed(Fraction(*level_for(Fraction(1))))), rel=1e-9, abs=1e-12
    )


@paper("Funnel (27), (28), (29)")
@on_random(priors(), LEVELS)
def test_the_level_of_oue(counts: Counts, E: Fraction) -> None:
    """The level is computed from the table of 2^a reports, the closed form, and the mechanism's
    kind (erratum 9.16)."""
    a, conditional, p = len(counts[0]), given_secret(counts), shares(counts)
    sets = list(product((0, 1), repeat=a))

    def chance(y: tuple[int, ...], x: int) -> Fraction:
        other_bits = math.prod(
            (1 / (E + 1) if bit else E / (E + 1)) for z, bit in enumerate(y) if z != x
        )
        return Fraction(1, 2) * other_bits

    rows = [[chance(y, x) for y in sets] for x in range(a)]
    for x, y in product(range(a), sets):
        power = a - sum(y) - (0 if y[x] else 1)
        assert chance(y, x) == E**power / (2 * (E + 1) ** (a - 1))  # (28)

    def weight(shares: list[Fraction], y: tuple[int, ...]) -> Fraction:
        return 1 + (E - 1) * sum((u for u, bit in zip(shares, y, strict=True) if bit), Fraction(0))

    closed = largest([(weight(row, y), weight(p, y)) for row in conditional for y in sets])
    assert lip(*reports(counts, rows)) == closed


def conditional_reporting(counts: Counts, E: Fraction) -> dict[tuple[int, int], list[Fraction]]:
    """Return P(y|s,x) of Algorithm 1, draw by draw, with e^α where e^α0 is printed."""
    conditional, c = given_secret(counts), len(counts)
    rows = {}
    for s, x in product(range(c), range(len(counts[0]))):
        row = [Fraction(0)] * len(counts[0])
        for sent in range(c):
            chance = (E if sent == s else Fraction(1)) / (E + c - 1)
            for y in range(len(row)):
                row[y] += chance * (Fraction(x == y) if sent == s else conditional[sent][y])
        rows[s, x] = row
    return rows


def conditional_reports(
    counts: Counts, rows: dict[tuple[int, int], list[Fraction]]
) -> tuple[Rows, list[Fraction]]:
    conditional, total = given_secret(counts), sum(map(sum, counts))
    a = len(counts[0])
    by_secret = [
        [sum((conditional[s][x] * rows[s, x][y] for x in range(a)), Fraction(0)) for y in range(a)]
        for s in range(len(counts))
    ]
    mass = [Fraction(sum(row), total) for row in counts]
    return by_secret, [
        sum((p * row[y] for p, row in zip(mass, by_secret, strict=True)), Fraction(0))
        for y in range(a)
    ]


@paper("Funnel Prop 1", "Funnel Prop 2", "Funnel (30), (31)")
@on_random(priors(), LEVELS)
def test_propositions_1_and_2_on_random_instances(counts: Counts, E: Fraction) -> None:
    rows = conditional_reporting(counts, E)
    by_secret, average = conditional_reports(counts, rows)
    conditional, p, c = given_secret(counts), shares(counts), len(counts)
    everyone = [sum(column) for column in zip(*conditional, strict=True)]
    L = largest(
        [
            ((E - 1) * row[x] + everyone[x], (E - 1) * p[x] + everyone[x])
            for row in conditional
            for x in range(len(p))
        ]
    )
    assert lip(by_secret, average) == L <= E
    assert secret_ldp(by_secret) <= E
    for s, y in product(range(c), range(len(p))):
        assert by_secret[s][y] == (E * conditional[s][y] + everyone[y] - conditional[s][y]) / (
            E + c - 1
        )


@paper("Funnel (43) corrected", "Funnel Algorithm 1 corrected")
def test_terms_missing_in_algorithm_1_and_in_43() -> None:
    """Erratum 9.18: rows sum to 1 only with e^α in the denominator and with δ_xy at e^α."""
    counts, E = [[3, 1, 2], [1, 4, 1]], Fraction(3)
    conditional = given_secret(counts)
    for (s, x), row in conditional_reporting(counts, E).items():
        assert sum(row) == 1
        right = [(E * (x == y) + conditional[1 - s][y]) / (E + 1) for y in range(3)]
        assert row == right
        assert sum((E + conditional[1 - s][y]) / (E + 1) for y in range(3)) != 1  # without δ_xy
    assert E / (E + 1) + 1 / (1 + 1) != 1  # s̃ with e^α0 = 1 in the second line


@paper("Funnel §VI.B information")
def test_the_information_of_conditional_reporting_needs_the_average_over_secrets() -> None:
    """Erratum 9.18: P(y|x) = Σ_s P(s|x) P(y|s,x) may have more information than the optimum without S."""
    exceeded = 0
    rng = random.Random(18)
    for _ in range(12):
        counts = [[rng.randint(1, 9) for _ in range(2)] for _ in range(2)]
        epsilon = Fraction(rng.randint(1, 8), 20)
        E = conditional_level(counts, Fraction(*level_for(epsilon)))
        rows, total = conditional_reporting(counts, E), sum(map(sum, counts))
        both = [
            [sum(Fraction(counts[s][x], total) * rows[s, x][y] for s in range(2)) for y in range(2)]
            for x in range(2)
        ]
        ends = [sum(column) for column in zip(*both, strict=True)]
        information = sum(
            float(v) * math.log(v / sum(row) / ends[y])
            for row in both
            for y, v in enumerate(row)
            if v
        )
        request = DesignRequest(
            Prior.from_rows(counts),
            (Claim("lip", level_for(epsilon), tuple(map(tuple, counts))),),
            objective="information",
            accept_identity=True,
            accept_unidentifiable=True,
        )
        exceeded += information > design(request).information * (1 + 1e-6)
        needed = worst_lip(counts, rows)
        assert needed <= Fraction(*level_for(epsilon))
    assert exceeded


def conditional_level(counts: Counts, ratio: Fraction) -> Fraction:
    """Return the largest e^α up to 10^6, in millionths, with L ≤ ratio, by bisection."""
    low, high = 10**6, 10**12
    while high - low > 1:
        middle = (low + high) // 2
        within = worst_lip(counts, conditional_reporting(counts, Fraction(middle, 10**6))) <= ratio
        low, high = (middle, high) if within else (low, middle)
    return Fraction(low, 10**6)


def worst_lip(counts: Counts, rows: dict[tuple[int, int], list[Fraction]]) -> Fraction:
    return lip(*conditional_reports(counts, rows))


@paper("Funnel §VI.A OUE at a = 16")
def test_unary_mechanisms_need_no_table_of_all_sets() -> None:
    """Erratum 9.16: only a 2^a table is infeasible; the level needs only two weights, for example
    at a = 200."""
    mechanism = UnaryMechanism(bits=48, answers=200, keep=1 << 47, flip=1 << 46)
    joint = tuple(tuple(1 + (x * (s + 1)) % 7 for x in range(200)) for s in range(2))
    assert worst(mechanism, Claim("lip", (1, 1), joint)).ratio is not None


@paper("Funnel (26), zero cells")
def test_with_zero_cells_a_finite_alpha_exists_for_every_level() -> None:
    """Erratum 9.19: LIP(identity) is infinite, and the level of GRR grows slowly without bound."""
    counts = [[5, 0, 3], [1, 4, 2]]
    identity = [[Fraction(x == y) for y in range(3)] for x in range(3)]
    by_secret, _ = reports(counts, identity)
    assert min(min(row) for row in by_secret) == 0
    levels = [lip(*reports(counts, grr_rows(3, Fraction(10) ** k))) for k in range(1, 7)]
    assert all(1 < u < v for u, v in pairwise(levels))
    assert levels[-1] > 10**4


@paper("Funnel (51) corrected")
def test_inverting_conditional_reporting_needs_the_true_share_of_the_secret() -> None:
    """Erratum 9.18: inverting P(y|x) with the published p_S is biased if p_S has changed."""
    published, truth, E = [[3, 1], [1, 3]], [[9, 3], [1, 3]], Fraction(3)
    rows = conditional_reporting(published, E)

    def channel(counts: Counts) -> Rows:
        p = shares(counts)
        total = sum(map(sum, counts))
        return [
            [
                sum(Fraction(counts[s][x], total) * rows[s, x][y] for s in range(2)) / p[x]
                for y in range(2)
            ]
            for x in range(2)
        ]

    observed = [
        sum(p * row[y] for p, row in zip(shares(truth), channel(truth), strict=True))
        for y in range(2)
    ]

    def inverted(table: Rows) -> Fraction:
        return (observed[0] - table[1][0]) / (table[0][0] - table[1][0])

    assert inverted(channel(truth)) == shares(truth)[0]
    assert inverted(channel(published)) != shares(truth)[0]
