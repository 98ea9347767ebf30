# SPDX-License-Identifier: Apache-2.0
"""Thesis, chapter 5: extreme points of the polytope of m × m ε-LDP matrices, in fractions; E = e^ε.

For m ≤ 3, the points are enumerated exactly, as rays of the cone over the polytope. Points without
loose entries are counted from their patterns: k independent columns with entries w and E·w that sum
to 1 in every row.
"""

import math
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product

import pytest
from frankly_design.notions.ldp_polytope import is_extreme as said_extreme
from frankly_design.notions.ldp_polytope import loose_entries
from frankly_design.notions.prior import Prior
from frankly_design.numeric.rays import extreme_rays

from papers.extreme_points import extreme_points
from tests.frankly_design.maths import rays_of
from tests.papers.exact import rank
from tests.papers.registry import paper

Matrix = tuple[tuple[Fraction, ...], ...]
E = Fraction(5, 2)


@cache
def polytope(m: int, level: Fraction = E) -> tuple[Matrix, ...]:
    """Return ex(D): the rays of the cone of m² entries with equal row sums, scaled to sums of 1."""
    n, d = level.as_integer_ratio()
    rows = []
    for j in range(m):
        for i, k in permutations(range(m), 2):
            row = [0] * (m * m)
            row[k * m + j], row[i * m + j] = n, -d
            rows.append(row)
    for i in range(1, m):
        row = [1] * m + [0] * (m * m - m)
        row[i * m : i * m + m] = [-1] * m
        rows += [row, [-v for v in row]]
    return tuple(
        tuple(tuple(Fraction(v, sum(ray[:m])) for v in ray[i * m : i * m + m]) for i in range(m))
        for ray in extreme_rays(rows, m * m)
    )


def columns(A: Matrix) -> list[tuple[Fraction, ...]]:
    return list(zip(*A, strict=True))


def used(A: Matrix) -> list[int]:
    return [j for j, column in enumerate(columns(A)) if any(column)]


def loose(A: Matrix, level: Fraction = E) -> list[tuple[int, int]]:
    """Return λ(A): the entries that are not E times the least or 1/E times the largest of their column."""
    return [
        (i, j)
        for j, column in enumerate(columns(A))
        for i, v in enumerate(column)
        if v not in (level * min(column), max(column) / level)
    ]


def inside(A: Matrix, level: Fraction = E) -> bool:
    return all(sum(row) == 1 for row in A) and all(
        0 <= max(c) <= level * min(c) for c in columns(A)
    )


def is_extreme(A: Matrix, level: Fraction = E) -> bool:
    """Return True if, by Theorem 5.1, the number of independent tight constraints equals the number
    of entries."""
    m = len(A)
    tight = [[Fraction(k // m == i) for k in range(m * m)] for i in range(m)]
    for j, column in enumerate(columns(A)):
        for i, k in permutations(range(m), 2):
            if column[i] == level * column[k]:
                tight.append(
                    [Fraction(p == i * m + j) - level * (p == k * m + j) for p in range(m * m)]
                )
        tight += [
            [Fraction(p == i * m + j) for p in range(m * m)] for i in range(m) if column[i] == 0
        ]
    return inside(A, level) and rank(tight) == m * m


def listed(m: int) -> set[Matrix]:
    """Return the library's list, with each row scaled to 1."""
    return {
        tuple(tuple(Fraction(v, sum(row)) for v in row) for row in A)
        for A in extreme_points(m, E.as_integer_ratio())
    }


def without_loose_entries(m: int) -> int:
    """Count the matrices of D̃' ∪ D̃: m constant ones, and k patterns in any k of m columns."""
    patterns = [p for p in product((1, E), repeat=m) if len(set(p)) == 2]
    count = m
    for k in range(2, m + 1):
        for chosen in combinations(patterns, k):
            rows: list[tuple[Fraction, ...]] = list(zip(*chosen, strict=True))
            # The weights w > 0 with every row summing to 1 are unique, because the patterns must be
            # independent.
            if (
                rank(rows) == k
                and rank([[*row, Fraction(1)] for row in rows]) == k
                and all(w > 0 for w in solved(rows))
            ):
                count += math.perm(m, k)
    return count


def solved(rows: list[tuple[Fraction, ...]]) -> list[Fraction]:
    k = len(rows[0])
    table = [[Fraction(v) for v in row] + [Fraction(1)] for row in rows]
    for c in range(k):
        pivot = next(i for i in range(c, len(table)) if table[i][c])
        table[c], table[pivot] = table[pivot], table[c]
        table[c] = [v / table[c][c] for v in table[c]]
        for i in range(len(table)):
            if i != c and table[i][c]:
                table[i] = [u - table[i][c] * v for u, v in zip(table[i], table[c], strict=True)]
    return [table[c][k] for c in range(k)]


@paper("Thesis §5.5 counts", "Thesis Thm 5.10")
@pytest.mark.parametrize(("m", "count"), [(2, 4), (3, 33)])
def test_all_extreme_points_up_to_three_answers(m: int, count: int) -> None:
    points = polytope(m)
    assert len(points) == len(set(points)) == count == without_loose_entries(m)
    assert all(is_extreme(A) for A in points)
    assert set(points) == listed(m)
    for A in points:
        assert len(used(A)) == 1 or not loose(A)


@paper("Thesis §5.5 counts")
def test_four_answers_have_904_without_loose_entries() -> None:
    assert without_loose_entries(4) == 904


@paper("Thesis §5.5 counts")
@pytest.mark.full_only
def test_four_answers_have_no_others() -> None:
    """Exact enumeration in sixteen variables confirms the thesis's simulations at this level."""
    points = polytope(4)
    assert len(points) == 904
    assert set(points) == listed(4)
    assert all(len(used(A)) == 1 or not loose(A) for A in points)


@paper(
    "Thesis Thm 5.2",
    "Thesis Thm 5.5",
    "Thesis Lemma 5.3",
    "Thesis Cor 5.1",
    "Thesis Lemma 5.4",
    "Thesis Cor 5.5",
)
@pytest.mark.parametrize("m", [2, 3])
def test_rank_and_loose_entries_of_extreme_points(m: int) -> None:
    for A in polytope(m):
        used_columns = used(A)
        assert rank(A) == len(used_columns)
        if len(used_columns) == 1:
            assert len(loose(A)) == m
            continue
        assert len(loose(A)) <= m - len(used_columns)
        assert len({i for i, _ in loose(A)}) == len(loose(A))
        lifted = [[A[i][j] / min(columns(A)[j]) for j in used_columns] for i in range(m)]
        assert all(len(set(column)) > 1 for column in zip(*lifted, strict=True))
        assert all(len(set(row)) > 1 for row in lifted)


@paper("Thesis Thm 5.3", "Thesis Thm 5.6")
def test_extreme_points_are_closed_under_permutation_and_faces_are_their_own() -> None:
    points = set(polytope(3))
    for A in points:
        for order in permutations(range(3)):
            assert tuple(A[i] for i in order) in points
            assert tuple(tuple(row[j] for j in order) for row in A) in points
    # Of the points that leave the first column empty, 2 have one column and 6 have two.
    assert sum(0 not in used(A) for A in points) == 2 + 6


@paper("Thesis Thm 5.7", "Thesis Cor 5.2")
@pytest.mark.parametrize("m", [2, 3])
def test_one_column_and_no_column(m: int) -> None:
    constant = {
        tuple(tuple(Fraction(j == k) for j in range(m)) for _ in range(m)) for k in range(m)
    }
    assert {A for A in polytope(m) if len(used(A)) == 1} == constant
    assert set(polytope(m, Fraction(1))) == constant


@paper("Thesis Thm 5.8", "Thesis Cor 5.3", "Thesis Example 5.3")
def test_two_columns_swap_w_and_ew() -> None:
    for A in polytope(3):
        if len(used(A)) == 2:
            assert not loose(A)
            assert {tuple(row[j] for j in used(A)) for row in A} == {
                (1 / (1 + E), E / (1 + E)),
                (E / (1 + E), 1 / (1 + E)),
            }
    unit = Fraction(1)
    printed = [(unit, E), (unit, E), (E, unit), (unit, E)]
    assert is_extreme(
        tuple((u / (1 + E), Fraction(0), v / (1 + E), Fraction(0)) for u, v in printed)
    )


@paper("Thesis Thm 5.9", "Thesis Cor 5.4", "Thesis Thm 5.1")
def test_full_rank_and_no_loose_entry_make_an_extreme_point() -> None:
    """The test compares with the rank of Theorem 5.1 on all patterns of three answers and between
    vertices."""
    patterns = [p for p in product((Fraction(1), E), repeat=3) if len(set(p)) == 2]
    checked = 0
    for chosen in permutations(patterns, 3):
        rows: list[tuple[Fraction, ...]] = list(zip(*chosen, strict=True))
        if rank(rows) == 3:
            w = solved(rows)
            if min(w) > 0:
                A = tuple(tuple(v * u for v, u in zip(row, w, strict=True)) for row in rows)
                assert is_extreme(A)
                checked += 1
    assert checked == sum(len(used(A)) == 3 for A in polytope(3))
    points = polytope(3)
    for A, B in zip(points[::3], points[1::4], strict=False):
        if A != B:
            between = tuple(
                tuple((u + v) / 2 for u, v in zip(r, s, strict=True))
                for r, s in zip(A, B, strict=True)
            )
            assert inside(between)
            assert not is_extreme(between)


@paper("Thesis Example 5.2")
def test_example_52() -> None:
    A = tuple(tuple(Fraction(v, 7) for v in row) for row in ((4, 1, 2), (3, 2, 2), (2, 1, 4)))
    B = tuple((Fraction(1), Fraction(0), Fraction(0)) for _ in range(3))
    assert loose(A, Fraction(2)) == [(1, 0)]
    assert loose(B, Fraction(2)) == [(0, 0), (1, 0), (2, 0)]


@paper("Thesis §5.5 m = 5")
@pytest.mark.parametrize("level", [Fraction(3, 2), Fraction(5, 2), Fraction(20)])
def test_five_answers_have_an_extreme_point_with_a_loose_entry(level: Fraction) -> None:
    """Enumerating columns {0, w, E·w} misses this point; rays of the cone of a column have no loose entry."""
    e, unit = level, Fraction(1)
    rows: list[tuple[Fraction | int, ...]] = [
        (1, 1, 2 * e, 1, 0),
        (e, 1, 2, e, 0),
        (e, e, 2, 1, 0),
        (1, e, 2, e, 0),
        (1, 1, 1 + e, e, 0),
    ]
    A = tuple(tuple(unit * v / (3 + 2 * e) for v in row) for row in rows)
    assert is_extreme(A, level)
    assert loose(A, level) == [(4, 2)]
    assert (rank(A), len(used(A))) == (4, 4)
    integers = [[int(v * (3 + 2 * e) * 20) for v in row] for row in A]
    assert said_extreme(integers, level.as_integer_ratio())
    assert loose_entries(integers, level.as_integer_ratio()) == ((4, 2),)
    # The loose column is a mixture of rays of the cone, so as a mechanism with more reports it has
    # no loose entry.
    n, d = level.as_integer_ratio()
    rays = rays_of("ldp", (n, d), Prior.from_rows([[1, 1, 1, 1, 1]]))
    assert all(set(ray) == {min(ray), max(ray)} and max(ray) == level * min(ray) for ray in rays)
    high, low = (2 * e, e + 1, Fraction(2)), columns(A)[2]
    assert sorted({v * (3 + 2 * e) for v in low}, reverse=True) == sorted(set(high), reverse=True)


@paper("Thesis Thm 5.4")
def test_only_a_zero_column_has_tight_constraints_of_full_rank() -> None:
    """The rows e_i − E·e_k that are tight on a column have rank m only on the zero column, and at
    most m − 1 elsewhere."""
    full = 0
    for column in product([Fraction(v, 4) for v in range(11)], repeat=3):
        if any(u > E * v for u, v in permutations(column, 2)):
            continue
        tight = [
            [Fraction(x == i) - E * (x == k) for x in range(3)]
            for i, k in permutations(range(3), 2)
            if column[i] == E * column[k]
        ]
        assert (bool(tight) and rank(tight) == 3) is not any(column)
        full += not any(column)
    assert full == 1


@paper("Thesis Lemma 5.1", "Thesis Lemma 5.2")
def test_columns_are_not_negative_and_a_tight_pair_is_their_ends() -> None:
    grid = [Fraction(v, 4) for v in range(-4, 11)]
    for column in product(grid, repeat=3):
        if all(u <= E * v for u, v in permutations(column, 2)):
            assert min(column) >= 0
            for u, v in permutations(column, 2):
                if u == E * v:
                    assert (u, v) == (max(column), min(column))
