# SPDX-License-Identifier: Apache-2.0
"""Exact linear algebra: ranks compared with products of known rank and with elimination over the
rationals."""

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from random import Random

import pytest
from flint import ctx
from frankly_design.numeric import rational

PRIME = 2**61 - 1


def eliminated(rows: list[list[int]]) -> int:
    """Return the rank by elimination over the rationals."""
    remaining, rank = [[Fraction(value) for value in row] for row in rows], 0
    for column in range(len(rows[0])):
        pivot = next((row for row in remaining if row[column]), None)
        if pivot is None:
            continue
        rank += 1
        remaining = [
            [a - b * row[column] / pivot[column] for a, b in zip(row, pivot, strict=True)]
            for row in remaining
            if row is not pivot
        ]
    return rank


@pytest.mark.parametrize("seed", range(60))
def test_rank(seed: int) -> None:
    rng = Random(seed)
    inner = rng.randint(1, 4)
    left = [[rng.randint(-(10**20), 10**20) for _ in range(inner)] for _ in range(5)]
    right = [[rng.randint(-3, 3) for _ in range(6)] for _ in range(inner)]
    rows = [
        [
            sum(a * b for a, b in zip(row, column, strict=True))
            for column in zip(*right, strict=True)
        ]
        for row in left
    ]
    assert rational.rank(rows) == rational.least_rank(rows) == eliminated(rows)


def test_a_prime_that_divides_a_minor() -> None:
    rows = [[PRIME, 0], [0, 1]]
    assert (rational.least_rank(rows), rational.rank(rows)) == (1, 2)


def gram(rng: Random, size: int, common: int) -> list[list[int]]:
    """Return W·Wᵀ for random whole numbers plus `common`, which is nearly singular if `common` is large."""
    W = [[rng.randrange(2**40) + common for _ in range(size + 1)] for _ in range(size)]
    return [[sum(a * b for a, b in zip(v, w, strict=True)) for w in W] for v in W]


@pytest.mark.parametrize("common", [0, 2**60, 2**500])
@pytest.mark.parametrize("size", [1, 3, 12])
def test_forms_of_an_inverse_equal_those_of_exact_fractions(size: int, common: int) -> None:
    rng = Random(size)
    square = gram(rng, size, common)
    # Some rows lie in the directions of the smallest eigenvalues, and some rows differ by only one
    # unit.
    rows = [[rng.randint(-3, 3) for _ in range(size)] for _ in range(3)] + [[1] * size]
    units = [[int(x == y) for y in range(size)] for x in range(size)]
    for given, used in ((None, units), (rows, rows)):
        columns = [list(column) for column in zip(*used, strict=True)]
        solved = rational.solve(square, columns)
        exact = [
            sum((w * solved[x][t] for x, w in enumerate(row)), Fraction(0))
            for t, row in enumerate(used)
        ]
        forms = rational.inverse_forms(square, given)
        for found, value in zip(forms, exact, strict=True):
            assert abs(found - value) <= abs(value) / 2**64


def test_forms_of_a_singular_matrix_are_refused() -> None:
    with pytest.raises(ZeroDivisionError, match="singular"):
        rational.inverse_forms([[1, 2], [2, 4]])
    # The prime divides the determinant, which is not 0.
    assert rational.inverse_forms([[PRIME, 0], [0, 2]])[1] == Fraction(1, 2)


def test_threads_with_other_precisions_get_their_own_digits() -> None:
    square = gram(Random(1), 6, 2**200)
    expected = rational.inverse_forms(square)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: rational.inverse_forms(square), range(40)))
    assert set(found) == {expected}
    assert ctx.prec == 53
