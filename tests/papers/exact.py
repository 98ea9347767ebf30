# SPDX-License-Identifier: Apache-2.0
"""Small exact helpers for the tests of papers, independent of the code under test."""

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import chain, combinations, product
from typing import Any

from hypothesis import HealthCheck, settings

Row = Sequence[Fraction]
Table = Sequence[Row]


def tries(full: bool, default: int = 50) -> Callable[[Any], Any]:
    """Return settings with the number of random instances, 1,000 with --full; the instances are
    always the same."""
    slow = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    return settings(
        max_examples=1000 if full else default,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=slow,
    )


def subsets(n: int) -> list[tuple[int, ...]]:
    """Return all subsets of n outputs, including the empty one."""
    return list(chain.from_iterable(combinations(range(n), k) for k in range(n + 1)))


def needed_delta(table: Table, pairs: Sequence[tuple[int, int]], E: Fraction) -> Fraction:
    """Return the least δ with P(A|x) ≤ E·P(A|x') + δ for all sets A of outputs, by enumerating the sets."""
    return max(
        sum((table[x][y] - E * table[z][y] for y in A), Fraction(0))
        for x, z in pairs
        for A in subsets(len(table[0]))
    )


def distribution(rng: random.Random, size: int, top: int = 9, zeros: bool = True) -> list[Fraction]:
    while True:
        counts = [rng.randint(0 if zeros else 1, top) for _ in range(size)]
        if any(counts):
            return [Fraction(n, sum(counts)) for n in counts]


def power(table: Table, n: int) -> tuple[list[list[Fraction]], list[tuple[int, int]]]:
    """Return the n-fold product of a mechanism, and the pairs of neighbouring databases."""
    people = list(product(range(len(table)), repeat=n))
    outputs = list(product(range(len(table[0])), repeat=n))
    rows = [
        [_product(table[x][y] for x, y in zip(d, out, strict=True)) for out in outputs]
        for d in people
    ]
    near = [
        (i, j)
        for (i, d), (j, e) in product(enumerate(people), repeat=2)
        if sum(u != v for u, v in zip(d, e, strict=True)) == 1
    ]
    return rows, near


def different(n: int) -> list[tuple[int, int]]:
    return [(i, j) for i, j in product(range(n), repeat=2) if i != j]


def rank(rows: Table) -> int:
    """Return the rank by elimination in fractions."""
    remaining, pivots = [list(map(Fraction, row)) for row in rows], 0
    for column in range(len(remaining[0]) if remaining else 0):
        pivot = next((i for i in range(pivots, len(remaining)) if remaining[i][column]), None)
        if pivot is None:
            continue
        remaining[pivots], remaining[pivot] = remaining[pivot], remaining[pivots]
        for i in range(pivots + 1, len(remaining)):
            factor = remaining[i][column] / remaining[pivots][column]
            if factor:
                remaining[i] = [
                    u - factor * v for u, v in zip(remaining[i], remaining[pivots], strict=True)
                ]
        pivots += 1
    return pivots


def _product(values: Any) -> Fraction:
    result = Fraction(1)
    for value in values:
        result *= value
    return result
