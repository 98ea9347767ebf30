# SPDX-License-Identifier: Apache-2.0
"""Polytope D of the ε-LDP mechanisms with as many reports as answers  [Thesis ch. 5].

D is the set of m×m matrices A (row = truth) with rows summing to 1, entries ≥ 0 and a_ij ≤ E·a_kj
in every column. The functions take a matrix as integers with equal row sums, and E as a level
(p, q), E = p/q. γ is the set of nonzero columns. An entry is loose if it is neither E times the
smallest entry of its column nor 1/E times the largest; λ(A) is the set of loose entries.
"""

from collections.abc import Sequence
from itertools import permutations

from frankly_design.numeric import rational

Level = tuple[int, int]
Matrix = tuple[tuple[int, ...], ...]
Rows = Sequence[Sequence[int]]


def loose_entries(matrix: Rows, level: Level) -> tuple[tuple[int, int], ...]:
    """Return λ(A), the loose entries as (row, column)  [Thesis Def 5.5]."""
    p, q = level
    loose = []
    for j, column in enumerate(zip(*matrix, strict=True)):
        smallest, largest = min(column), max(column)
        loose += [
            (i, j) for i, a in enumerate(column) if a * q != p * smallest and a * p != q * largest
        ]
    return tuple(sorted(loose))


def is_inside(matrix: Rows, level: Level) -> bool:
    """Return True for a mechanism of this level, with any number of columns  [Thesis (5.4)]."""
    p, q = level
    columns = list(zip(*matrix, strict=True))
    sums = set(map(sum, matrix))
    keeps_level = all(min(c) >= 0 and max(c) * q <= p * min(c) for c in columns)
    return keeps_level and len(sums) == 1 and min(sums) > 0


def is_extreme(matrix: Rows, level: Level) -> bool:
    """Return True if the tight constraints have full rank: an extreme point  [Thesis Thm 5.1].

    The test is exact for any size. The tight constraints are the row sums and a_ij = E·a_kj over
    the nonzero columns, a sparse system in m·|γ| unknowns. Inside D only zero columns have entries
    0, and these columns add no unknowns. Returns False outside D.
    """
    if not is_inside(matrix, level):
        return False
    p, q = level
    columns = [column for column in zip(*matrix, strict=True) if any(column)]
    m, k = len(matrix), len(columns)
    tight = [[1 if x == i else 0 for _ in range(k) for x in range(m)] for i in range(m)]
    for j, column in enumerate(columns):
        # Both orders, because either entry may be E times the other.
        for i, partner in permutations(range(m), 2):
            if column[i] * q == p * column[partner]:
                row = [0] * (m * k)
                row[j * m + i], row[j * m + partner] = q, -p
                tight.append(row)
    return rational.rank(tight) == m * k
