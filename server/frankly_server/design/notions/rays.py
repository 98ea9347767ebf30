# SPDX-License-Identifier: Apache-2.0
"""Extreme rays of polyhedral cones, exact; the only module that imports cdd."""

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm

import cdd.gmp
from cdd import RepType

Ray = tuple[int, ...]

MAX_CANDIDATES = 300_000
"""Largest number of candidate rays of an enumeration, which then takes about two seconds."""


def extreme_rays(rows: Sequence[Sequence[int]], dimension: int) -> list[Ray]:
    """Return the extreme rays of {q ≥ 0, r·q ≥ 0 for every row r}, sorted, coprime integers.

    Uses the double description method on GMP rationals: with floats it fails on about 1% of the
    cones of ten answers, and silently loses rays of others. The cone is pointed because q ≥ 0, so
    its extreme rays generate it.
    """
    # cdd takes rows b + A·q ≥ 0 with b in the first column; here b = 0.
    nonnegative = [[0] + [int(i == x) for i in range(dimension)] for x in range(dimension)]
    inequalities = [[Fraction(v) for v in row] for row in nonnegative + [[0, *row] for row in rows]]
    matrix = cdd.gmp.matrix_from_array(inequalities, rep_type=RepType.INEQUALITY)
    generators = cdd.gmp.copy_generators(cdd.gmp.polyhedron_from_matrix(matrix))
    # cdd marks rays with 0 in the first column; the only vertex, marked 1, is the origin.
    return sorted(_coprime(row[1:]) for row in generators.array if row[0] == 0)


def _coprime(ray: Sequence[Fraction]) -> Ray:
    scale = lcm(*(v.denominator for v in ray))
    integers = [int(v * scale) for v in ray]
    common = gcd(*integers)
    return tuple(v // common for v in integers)
