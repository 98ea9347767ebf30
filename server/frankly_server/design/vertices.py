# SPDX-License-Identifier: Apache-2.0
"""Extreme rays of polyhedral cones in exact rational arithmetic; the only module that imports cdd (DESIGN §9.14)."""

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm

import cdd.gmp
from cdd import RepType

Ray = tuple[int, ...]

MAX_CANDIDATES = 300_000
"""Largest number of candidate rays for which an enumeration is begun: about two seconds."""


def extreme_rays(rows: Sequence[Sequence[int]], dimension: int) -> list[Ray]:
    """Return the extreme rays of {q ≥ 0, r·q ≥ 0 for every row r}, sorted, each with coprime whole numbers.

    The double description method on GMP rationals: floats lose vertices without a word (DESIGN §9.14, §9.17).
    The cone is pointed because q ≥ 0, so its rays generate it.
    """
    positive = [[0] + [int(i == x) for i in range(dimension)] for x in range(dimension)]
    described = [[Fraction(v) for v in row] for row in positive + [[0, *row] for row in rows]]
    matrix = cdd.gmp.matrix_from_array(described, rep_type=RepType.INEQUALITY)
    generators = cdd.gmp.copy_generators(cdd.gmp.polyhedron_from_matrix(matrix))
    return sorted(_coprime(row[1:]) for row in generators.array if row[0] == 0)


def _coprime(ray: Sequence[Fraction]) -> Ray:
    scale = lcm(*(v.denominator for v in ray))
    whole = [int(v * scale) for v in ray]
    common = gcd(*whole)
    return tuple(v // common for v in whole)
