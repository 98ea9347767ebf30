# SPDX-License-Identifier: Apache-2.0
"""Ranks compared with products of known rank, and with elimination over the rationals."""

from fractions import Fraction
from random import Random

import pytest
from frankly_server import rational

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
