# SPDX-License-Identifier: Apache-2.0
"""LDP polytope of thesis chapter 5: the number of extreme points, and the same points by exact
enumeration."""

import random
from fractions import Fraction
from itertools import permutations

import pytest
from frankly_design.notions import ldp_polytope as polytope
from frankly_design.numeric import rational
from frankly_design.numeric.rays import extreme_rays
from frankly_protocol.errors import InvalidInput

from papers.extreme_points import extreme_points
from tests.refusals import refusal


def normal(matrix: polytope.Rows) -> tuple[tuple[Fraction, ...], ...]:
    return tuple(tuple(Fraction(v, sum(row)) for v in row) for row in matrix)


@pytest.mark.parametrize(("m", "count"), [(2, 4), (3, 33), (4, 904)])
@pytest.mark.parametrize("level", [(2, 1), (21, 20)])
def test_the_number_of_extreme_points_equals_that_of_the_thesis(
    m: int, count: int, level: tuple[int, int]
) -> None:
    points = {normal(matrix) for matrix in extreme_points(m, level)}
    assert len(points) == len(list(extreme_points(m, level))) == count


@pytest.mark.parametrize("m", [2, 3])
def test_the_same_points_as_by_vertex_enumeration(m: int) -> None:
    """The cone over D has ε-LDP columns and equal row sums; its rays are the extreme points of D."""
    p, q = 5, 2
    rows = []
    for j in range(m):
        for i, k in permutations(range(m), 2):
            rows.append(
                [
                    p * (x == k and y == j) - q * (x == i and y == j)
                    for x in range(m)
                    for y in range(m)
                ]
            )
    for i in range(1, m):
        same = [(x == 0) - (x == i) for x in range(m) for _ in range(m)]
        rows += [same, [-v for v in same]]
    rays = extreme_rays(rows, m * m)
    points = {normal([ray[x * m : (x + 1) * m] for x in range(m)]) for ray in rays}
    assert points == {normal(matrix) for matrix in extreme_points(m, (p, q))}


def test_the_rank_test_recognises_extreme_points() -> None:
    rng = random.Random(1)
    for m in (2, 3, 4):
        points = [normal(matrix) for matrix in extreme_points(m, (3, 1))]
        for matrix in rng.sample(list(extreme_points(m, (3, 1))), min(8, len(points))):
            assert polytope.is_extreme(matrix, (3, 1))
            columns_in_use = sum(map(any, zip(*matrix, strict=True)))
            assert rational.rank(matrix) == columns_in_use  # Thesis Thm 5.2
            if columns_in_use > 1:
                assert polytope.loose_entries(matrix, (3, 1)) == ()
        for _ in range(20):  # the midpoint of two extreme points is not extreme
            first, second = rng.sample(points, 2)
            middle = [
                [u + v for u, v in zip(a, b, strict=True)]
                for a, b in zip(first, second, strict=True)
            ]
            common = rational.whole([v for row in middle for v in row])
            square = [common[x * m : (x + 1) * m] for x in range(m)]
            assert polytope.is_inside(square, (3, 1))
            assert not polytope.is_extreme(square, (3, 1))


def test_the_loose_entry_point_of_five_answers() -> None:
    """The test checks Thesis §5.5 at e^ε = 2 and 3."""
    for e in (2, 3):
        A = [
            [1, 1, 2 * e, 1, 0],
            [e, 1, 2, e, 0],
            [e, e, 2, 1, 0],
            [1, e, 2, e, 0],
            [1, 1, 1 + e, e, 0],
        ]
        assert {sum(row) for row in A} == {3 + 2 * e}
        assert polytope.is_extreme(A, (e, 1))
        assert polytope.loose_entries(A, (e, 1)) == ((4, 2),)
        assert rational.rank(A) == 4  # all columns in use


def test_example_52() -> None:
    """The thesis counts from 1; its loose entry (2, 1) is 3, between the extremes 2 and 4."""
    A, B = [[4, 1, 2], [3, 2, 2], [2, 1, 4]], [[1, 0, 0]] * 3
    assert polytope.loose_entries(A, (2, 1)) == ((1, 0),)
    assert polytope.loose_entries(B, (2, 1)) == ((0, 0), (1, 0), (2, 0))
    assert not polytope.is_extreme(A, (2, 1))


@pytest.mark.parametrize(("m", "level"), [(1, (2, 1)), (5, (2, 1)), (3, (1, 1)), (3, (1, 2))])
def test_sizes_and_levels_that_cannot_be_listed(m: int, level: tuple[int, int]) -> None:
    assert refusal(InvalidInput, list, extreme_points(m, level)).code == "unsupported"
