# SPDX-License-Identifier: Apache-2.0
"""Extreme points of the polytope of ε-LDP mechanisms, listed for up to four answers [Thesis ch. 5]."""

from collections.abc import Iterator
from itertools import combinations, permutations, product
from math import lcm

from frankly_design.notions.ldp_polytope import Level, Matrix
from frankly_design.numeric import rational
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

MAX_LISTED = 4
"""Largest m for which no extreme point with several nonzero columns has loose entries."""


def extreme_points(m: int, level: Level) -> Iterator[Matrix]:
    """Yield all extreme points of D for m ≤ 4: 4, 33 and 904 of them for m = 2, 3, 4 and E > 1.

    They have either one nonzero column, of ones, or columns w_j·v_j with linearly independent v_j ∈
    {1, E}^m and Σ_j w_j v_j = 1, w > 0 [Thesis Thms 5.7, 5.9, Cor 5.4], that is, no loose entries.
    This list is complete by Thm 5.10 for m ≤ 3, and for m = 4 by the thesis's computer search. For
    m = 5 there are points with loose entries (erratum 9.5).

    Raises InvalidInput(unsupported) for other m or a level of 1 or less.
    """
    if m not in range(2, MAX_LISTED + 1) or not level[0] > level[1] > 0:
        message = f"extreme points are listed for 2 to {MAX_LISTED} answers and levels above 1"
        raise InvalidInput(Problem.UNSUPPORTED, message, "prior.joint")
    for columns in _column_sets(m, level):
        # Permuting the columns, including zero columns, yields another extreme point.
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
