# SPDX-License-Identifier: Apache-2.0
"""Polytope D of the ε-LDP mechanisms with as many reports as answers  [Thesis ch. 5].

D holds the m×m matrices A (row = truth) with rows summing to 1, entries ≥ 0 and a_ij ≤ E·a_kj in
every column. All matrices are whole numbers with equal row sums; E = p/q. γ(A) are the nonzero
columns; an entry is loose if it is neither E times its column's least entry nor 1/E times its
largest.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations, product
from math import lcm

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server import rational

Level = tuple[int, int]
Matrix = tuple[tuple[int, ...], ...]
Rows = Sequence[Sequence[int]]

MAX_LISTED = 4
"""Largest m for which no extreme point of several columns has loose entries; m = 5 has others."""


def extreme_points(m: int, level: Level) -> Iterator[Matrix]:
    """Yield all extreme points of D for m ≤ 4: 4, 33 and 904 of them for m = 2, 3, 4 and E > 1.

    One nonzero column, of ones; or columns w_j·v_j with v_j ∈ {1, E}^m linearly independent and Σ_j
    w_j v_j = 1, w > 0 [Thesis Thms 5.7, 5.9, Cor 5.4]: there are no loose entries then. That these
    are all is Thm 5.10 for m ≤ 3, and for m = 4 what the thesis found by computer. At m = 5 points
    with loose entries exist (DESIGN §9.5).

    Raises InvalidInput(unsupported) for other m or a level of 1 or less.
    """
    if m not in range(2, MAX_LISTED + 1) or not level[0] > level[1] > 0:
        message = f"extreme points are listed for 2 to {MAX_LISTED} answers and levels above 1"
        raise InvalidInput(Problem.UNSUPPORTED, message, "prior.joint")
    for columns in _column_sets(m, level):
        # Permuting the columns gives an extreme point again, with zero columns in the other places.
        empty = (0,) * m
        for places in permutations(range(m), len(columns)):
            placed = dict(zip(places, columns, strict=True))
            yield tuple(zip(*(placed.get(j, empty) for j in range(m)), strict=True))


def _column_sets(m: int, level: Level) -> Iterator[list[tuple[int, ...]]]:
    """Yield the sets of nonzero columns, as whole numbers with equal row sums."""
    yield [(1,) * m]
    p, q = level
    shapes = [shape for shape in product((q, p), repeat=m) if len(set(shape)) == 2]
    for size in range(2, m + 1):
        for chosen in combinations(shapes, size):
            if rational.rank(chosen) < size:
                continue
            # The normal equations have a unique w; it solves Σ w_j v_j = 1 iff 1 lies in the span.
            rows = list(zip(*chosen, strict=True))
            if rational.rank([[*row, 1] for row in rows]) > size:
                continue
            gram = [[sum(a * b for a, b in zip(u, v, strict=True)) for v in chosen] for u in chosen]
            w = [row[0] for row in rational.solve(gram, [[sum(u)] for u in chosen])]
            if min(w) > 0:
                common = lcm(*(value.denominator for value in w))
                yield [
                    tuple(int(value * common) * v for v in u)
                    for value, u in zip(w, chosen, strict=True)
                ]


def nonzero_columns(matrix: Rows) -> tuple[int, ...]:
    """Return γ(A)."""
    return tuple(j for j, column in enumerate(zip(*matrix, strict=True)) if any(column))


def loose_entries(matrix: Rows, level: Level) -> tuple[tuple[int, int], ...]:
    """Return λ(A), as (row, column)  [Thesis Def 5.5]."""
    p, q = level
    loose = []
    for j, column in enumerate(zip(*matrix, strict=True)):
        smallest, largest = min(column), max(column)
        loose += [
            (i, j) for i, a in enumerate(column) if a * q != p * smallest and a * p != q * largest
        ]
    return tuple(sorted(loose))


def has_full_column_rank(matrix: Rows) -> bool:
    """Return True if rank(A) = |γ(A)|, as for every extreme point  [Thesis Thm 5.2]."""
    return rational.rank(matrix) == len(nonzero_columns(matrix))


def is_inside(matrix: Rows, level: Level) -> bool:
    """Return True if the matrix is a mechanism of this level, of any width  [Thesis (5.4)]."""
    p, q = level
    columns = list(zip(*matrix, strict=True))
    sums = set(map(sum, matrix))
    keeps_level = all(min(c) >= 0 and max(c) * q <= p * min(c) for c in columns)
    return keeps_level and len(sums) == 1 and min(sums) > 0


def is_extreme(matrix: Rows, level: Level) -> bool:
    """Return True for an extreme point: the tight constraints have full rank  [Thesis Thm 5.1].

    Exact and for any size: the rows' sums, a_ij = 0, and a_ij = E·a_kj, over the nonzero columns (a
    zero column is determined). Only columns' own constraints and the row sums enter, so the rank is
    that of a sparse system of m·|γ| unknowns. False outside D.
    """
    if not is_inside(matrix, level):
        return False
    p, q = level
    columns = [column for column in zip(*matrix, strict=True) if any(column)]
    m, k = len(matrix), len(columns)
    tight = [[1 if x == i else 0 for _ in range(k) for x in range(m)] for i in range(m)]
    for j, column in enumerate(columns):
        for i, partner in permutations(range(m), 2):
            if column[i] * q == p * column[partner]:
                row = [0] * (m * k)
                row[j * m + i], row[j * m + partner] = q, -p
                tight.append(row)
    return rational.rank(tight) == m * k
