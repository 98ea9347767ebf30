# SPDX-License-Identifier: Apache-2.0
"""Thesis, chapter 4: the discrete exponential mechanism and the best product sanitisation of categorical data.

All numbers are fractions, with E = e^ε and t = e^k. With the L1 norm, probabilities are polynomials
in 1/e; because e is transcendental, two probabilities are equal only if their polynomials are
equal.
"""

import random
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from frankly_design.families.sanitisation import error_range, exponent_range
from scipy.optimize import linprog

from papers.sanitisation import exponent_of, ratio_classes, sufficient_set, wrong_of, wrong_range
from tests.papers.exact import different, distribution, needed_delta, power, subsets
from tests.papers.registry import paper

Polynomial = Counter[int]
LEVELS = [
    (Fraction(1), Fraction(0)),
    (Fraction(3, 2), Fraction(1, 10)),
    (Fraction(3), Fraction(0)),
    (Fraction(2), Fraction(1, 3)),
]


def gap(P: list[Fraction], Q: list[Fraction], A: tuple[int, ...], E: Fraction) -> Fraction:
    return sum((P[y] - E * Q[y] for y in A), Fraction(0))


@paper("Thesis Thm 4.1")
def test_the_sufficient_set_decides() -> None:
    rng = random.Random(41)
    for _ in range(100):
        P, Q, E = distribution(rng, 6), distribution(rng, 6), 1 + Fraction(rng.randint(0, 20), 10)
        S = tuple(y for y in range(6) if P[y] > Q[y])
        assert (
            sufficient_set([int(2520 * 9 * v * 48) for v in P], [int(2520 * 9 * v * 48) for v in Q])
            == S
        )
        inside = max((gap(P, Q, A, E) for A in subsets(6) if set(A) <= set(S)), default=Fraction(0))
        assert inside == max(gap(P, Q, A, E) for A in subsets(6))


def exponential(n: int) -> tuple[list[tuple[int, ...]], list[list[Polynomial]], list[Polynomial]]:
    """Return the databases, e^u as powers of 1/e and the C_d as polynomials, for u = −L1 on {0, 1, 2}^n."""
    databases = list(product(range(3), repeat=n))
    weights = [
        [Counter({sum(abs(u - v) for u, v in zip(d, e, strict=True)): 1}) for e in databases]
        for d in databases
    ]
    return databases, weights, [sum(row, Counter()) for row in weights]


def times(left: Polynomial, right: Polynomial) -> Polynomial:
    result: Polynomial = Counter()
    for (i, u), (j, v) in product(left.items(), right.items()):
        result[i + j] += u * v
    return result


def larger(left: Polynomial, right: Polynomial) -> bool:
    """Return True if left > right at 1/e."""
    difference = Counter(left)
    difference.subtract(right)
    with localcontext() as context:
        context.prec = 60
        value = sum((c * Decimal(-k).exp() for k, c in difference.items() if c), Decimal(0))
    assert bool(value) == any(difference.values())
    return value > 0


@paper("Thesis Example 4.2")
def test_example_42_counts_924_checks() -> None:
    """Erratum 9.4: the thesis prints 1,092, because at ties floats yield P(Y_d = d*) > P(Y_d' = d*)."""
    databases, weights, C = exponential(2)
    near = [
        (i, j)
        for (i, d), (j, e) in product(enumerate(databases), repeat=2)
        if sum(map(int.__ne__, d, e)) == 1
    ]
    assert (len(near), len(near) * (2**9 - 2)) == (36, 18360)
    sizes = Counter(
        sum(larger(times(weights[i][y], C[j]), times(weights[j][y], C[i])) for y in range(9))
        for i, j in near
    )
    assert sum(count * (2**size - 1) for size, count in sizes.items()) == 924
    assert 21 * 7 + 15 * 63 == 1092  # as printed
    printed = [((0, 1), (2, 1)), ((1, 1), (2, 1))]
    for d, e in printed:
        i, j = databases.index(d), databases.index(e)
        S = [
            databases[y]
            for y in range(9)
            if larger(times(weights[i][y], C[j]), times(weights[j][y], C[i]))
        ]
        if d == (0, 1):
            assert S == [(0, 0), (0, 1), (0, 2)]  # the first example there has no ties
        else:
            assert len(S) in (3, 6)


@paper("Thesis Example 4.3")
@pytest.mark.parametrize(("half", "n"), [(1, 1), (2, 1), (3, 1), (2, 2), (2, 3)])
def test_example_43_has_one_constant(half: int, n: int) -> None:
    def rho(u: int, v: int) -> int:
        return 0 if u == v else 1 if u // half == v // half else 2

    constants = [
        Counter(sum(map(rho, d, e)) for e in product(range(2 * half), repeat=n))
        for d in product(range(2 * half), repeat=n)
    ]
    assert all(constant == constants[0] for constant in constants)


@paper("Thesis Example 4.4")
def test_example_44_lists_its_sets() -> None:
    """With D₀ = {A, B}, D₁ = {Y, Z}, n = 2, d = AZ and d' = AB, eight outputs are more likely under
    d, with ratios e and e²."""
    names = ["".join(pair) for pair in product("ABYZ", repeat=2)]

    def near(d: str, e: str) -> int:
        return sum(
            0 if u == v else 1 if (u in "AB") == (v in "AB") else 2
            for u, v in zip(d, e, strict=True)
        )

    # 1000 stands for e, so that different powers differ.
    weights = [[1000 ** (4 - near(d, e)) for e in names] for d in ("AZ", "AB")]
    assert [names[y] for y in sufficient_set(*weights)] == [
        "AY",
        "AZ",
        "BY",
        "BZ",
        "YY",
        "YZ",
        "ZY",
        "ZZ",
    ]
    classes = {tuple(names[y] for y in group) for group in ratio_classes(*weights)}
    assert classes == {("AY", "BY", "YY", "ZY"), ("AZ", "BZ", "YZ", "ZZ")}


@paper("Thesis Example 4.5")
def test_example_45_keeps_a_hobby_with_six_tenths() -> None:
    """With m = 5 and p = 1/10 ≤ 1/4, the truth has probability .6, as Theorem 4.6 allows at ε = ln 6."""
    wrong = Fraction(1, 10)
    rows = [[1 - 4 * wrong if x == y else wrong for y in range(5)] for x in range(5)]
    assert (rows[0][0], sum(rows[0])) == (Fraction(6, 10), 1)
    low, high = wrong_range(Fraction(6), Fraction(0), 5)
    assert low == wrong <= high <= Fraction(1, 4)
    for E in (Fraction(6), Fraction(59, 10)):
        assert (needed_delta(rows, different(5), E) == 0) is (
            wrong_range(E, Fraction(0), 5)[0] <= wrong
        )


@paper("Thesis Thm 4.2", "Thesis Cor 4.1", "Thesis (4.6)")
def test_classes_of_equal_ratio_decide_where_the_constant_is_fixed() -> None:
    """With δ = 0, the classes of equal ratios decide; with δ > 0, each class decides only its subsets."""
    rng, unions = random.Random(42), 0
    for _ in range(150):
        weights = [rng.choice([1, 2, 4]) for _ in range(6)]
        shuffled = rng.sample(weights, 6)  # the same numbers in another order have one constant
        P, Q = ([Fraction(w, sum(weights)) for w in row] for row in (weights, shuffled))
        classes = ratio_classes(weights, shuffled)
        assert sorted(y for group in classes for y in group) == [y for y in range(6) if P[y] > Q[y]]
        E = rng.choice([Fraction(1), Fraction(3, 2), Fraction(4)])
        delta = rng.choice([Fraction(0), Fraction(1, 10), Fraction(1, 5)])
        held = [gap(P, Q, group, E) <= delta for group in classes]
        for group, holds in zip(classes, held, strict=True):
            assert len({P[y] / Q[y] for y in group}) == 1
            if holds:
                assert all(gap(P, Q, A, E) <= delta for A in subsets(6) if set(A) <= set(group))
        all_private = all(gap(P, Q, A, E) <= delta for A in subsets(6))
        if delta == 0:
            assert all(held) == all_private
        else:
            unions += all(held) and not all_private
    assert unions > 0  # the corollary holds only for δ = 0


@paper("Thesis Prop 4.1", "Thesis Thm 4.5", "Thesis (4.16)")
@pytest.mark.parametrize(("m", "n"), [(2, 1), (2, 3), (3, 2), (4, 2)])
def test_the_exponential_mechanism_is_the_product_sanitisation(m: int, n: int) -> None:
    for t in (Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(9)):
        p = 1 / (t + m - 1)
        parent = [[1 - (m - 1) * p if i == j else p for j in range(m)] for i in range(m)]
        rows, _ = power(parent, n)
        databases = list(product(range(m), repeat=n))
        for d, row in zip(databases, rows, strict=True):
            weights = [t ** -sum(map(int.__ne__, d, e)) for e in databases]
            assert sum(weights) == (1 + (m - 1) / t) ** n
            assert row == [w / sum(weights) for w in weights]
        assert (exponent_of(p, m), wrong_of(t, m)) == (t, p)


@paper("Thesis Thm 4.3", "Thesis Thm 4.6", "Thesis Cor 4.2", "Thesis (4.10)")
@pytest.mark.parametrize(("m", "n"), [(2, 1), (2, 2), (3, 1), (4, 1), (3, 2)])
def test_when_the_exponential_mechanism_is_private(m: int, n: int) -> None:
    """The test checks (4.10) and (4.17) at both ends, with all sets (n = 1) or the positive part (n = 2)."""
    for E, delta in LEVELS:
        low, high = (
            max(Fraction(0), (1 - (m - 1) * delta) / (E + delta)),
            (E + (m - 1) * delta) / (1 - delta),
        )
        assert exponent_range(E, delta, m) == (low, high)
        step = Fraction(1, 10**6)
        for t in {
            low,
            low - step,
            low + step,
            high,
            high - step,
            high + step,
            Fraction(1),
            Fraction(1, 7),
        }:
            if t <= 0:
                continue  # e^k > 0: a lower end at or below 0 is no condition
            p = 1 / (t + m - 1)
            table = [[1 - (m - 1) * p if i == j else p for j in range(m)] for i in range(m)]
            if n == 1:
                needed = needed_delta(table, different(m), E)
            else:
                rows, near = power(table, n)
                needed = max(
                    sum(
                        (
                            max(Fraction(0), u - E * v)
                            for u, v in zip(rows[i], rows[j], strict=True)
                        ),
                        Fraction(0),
                    )
                    for i, j in near
                )
            assert (max(needed, Fraction(0)) <= delta) == (low <= t <= high)
            lowest, highest = (
                (1 - delta) / (E + m - 1),
                min(Fraction(1, m - 1), (E + delta) / (1 + (m - 1) * E)),
            )
            assert wrong_range(E, delta, m) == (lowest, highest)
            assert (lowest <= p <= highest) == (low <= t <= high)


@paper("Thesis Thm 4.4", "Thesis Thm 4.7", "Thesis (4.14)")
def test_the_error_lies_between_its_bounds_and_reaches_both() -> None:
    for (E, delta), m in product(LEVELS, (2, 3, 5)):
        low, high = (
            (1 - delta) / (1 + E / (m - 1)),
            min(Fraction(1), (E + delta) / (E + Fraction(1, m - 1))),
        )
        assert error_range(E, delta, m) == (low, high)
        lowest, highest = wrong_range(E, delta, m)
        for p in (lowest, highest, (lowest + highest) / 2):
            parent = [[1 - (m - 1) * p if i == j else p for j in range(m)] for i in range(m)]
            rows, _ = power(parent, 2)
            databases = list(product(range(m), repeat=2))
            wrong = max(
                sum(u * sum(map(int.__ne__, d, e)) for u, e in zip(row, databases, strict=True))
                for d, row in zip(databases, rows, strict=True)
            )
            assert low <= wrong / 2 <= high
            assert (wrong / 2 == low) == (p == lowest)
            assert (wrong / 2 == high) == (p == highest)


@paper("Thesis Thm 4.8")
@pytest.mark.parametrize("m", [2, 3, 4])
def test_no_product_sanitisation_is_more_often_right(m: int) -> None:
    """The reference is the LP over all m × m tables that maximises the least diagonal entry."""
    for E, delta in LEVELS:
        rows, ends = [], []
        for (i, j), A in product(different(m), subsets(m)):
            row = np.zeros(m * m + 1)
            row[[m * i + y for y in A]] += 1
            row[[m * j + y for y in A]] -= float(E)
            rows.append(row)
            ends.append(float(delta))
        for i in range(m):
            row = np.zeros(m * m + 1)
            row[m * i + i], row[-1] = -1, 1
            rows.append(row)
            ends.append(0)
        total = np.array([[float(k // m == i) for k in range(m * m)] + [0] for i in range(m)])
        solution = linprog([0] * (m * m) + [-1], rows, ends, total, np.ones(m), bounds=(0, 1))
        assert -solution.fun == pytest.approx(float((E + (m - 1) * delta) / (E + m - 1)), abs=1e-9)
