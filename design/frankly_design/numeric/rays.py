# SPDX-License-Identifier: Apache-2.0
"""Exact extreme rays of polyhedral cones. Only this module imports cdd."""

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm

import cdd.gmp
import numpy as np
from cdd import RepType, RowOrderType
from numpy.typing import NDArray

Ray = tuple[int, ...]

MAX_CANDIDATES = 300_000
"""Largest number of candidate rays of an enumeration; this many take about two seconds."""


def extreme_rays(rows: Sequence[Sequence[int]], dimension: int) -> list[Ray]:
    """Return the extreme rays of {q ≥ 0, r·q ≥ 0 for every row r}, sorted, coprime integers.

    This is the double description method on GMP rationals. With floats the method fails for about
    1% of the cones of ten answers, and silently loses rays of others. The cone is pointed because q
    ≥ 0, so its extreme rays generate it.
    """
    # cdd takes rows b + A·q ≥ 0 with b in the first column; here b = 0.
    nonnegative = [[0] + [int(i == x) for i in range(dimension)] for x in range(dimension)]
    inequalities = [[Fraction(v) for v in row] for row in nonnegative + [[0, *row] for row in rows]]
    matrix = cdd.gmp.matrix_from_array(inequalities, rep_type=RepType.INEQUALITY)
    generators = cdd.gmp.copy_generators(cdd.gmp.polyhedron_from_matrix(matrix))
    # cdd marks rays with 0 in the first column; the only vertex, marked 1, is the origin.
    return sorted(_coprime(row[1:]) for row in generators.array if row[0] == 0)


def float_vertices(equation: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return vertices of {q : rows·q ≥ 0, equation·q = 1} in floats, shape (n, dimension).

    This is a hundred times faster than `extreme_rays`, but vertices may be missing or wrong.
    """
    inequalities = np.vstack([np.append(-1.0, equation), np.insert(rows, 0, 0.0, axis=1)])
    try:
        matrix = cdd.matrix_from_array(
            inequalities.tolist(), rep_type=RepType.INEQUALITY, lin_set={0}
        )
        # Nonnegativity comes first, and rows stay in their order: sorted rows take up to twice as
        # long.
        polyhedron = cdd.polyhedron_from_matrix(matrix, RowOrderType.MIN_INDEX)
        generators = cdd.copy_generators(polyhedron).array
    except RuntimeError:
        generators = []
    # cdd marks vertices with 1 in the first column, and rays with 0.
    points = [generator[1:] for generator in generators if generator[0] == 1]
    return np.array(points).reshape(-1, len(equation))


def _coprime(ray: Sequence[Fraction]) -> Ray:
    scale = lcm(*(v.denominator for v in ray))
    # Integer products take a third of the time of fraction products.
    integers = [v.numerator * (scale // v.denominator) for v in ray]
    common = gcd(*integers)
    return tuple(v // common for v in integers)
