# SPDX-License-Identifier: Apache-2.0
"""Directions to search in, the same each time: a Weyl sequence instead of a random generator.

Nothing here is random and nothing needs to be: searches must be repeatable and spread out evenly.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from frankly_server.design.linear import FloatArray


class Directions:
    """An endless, evenly spread sequence of points; {k·√prime_j} for k = 1, 2, … [Weyl 1916]."""

    def __init__(self, dimension: int, seed: int = 0) -> None:
        self._steps = np.sqrt(_primes(dimension + 1)) % 1.0
        self._k = 1 + 1009 * seed

    def uniform(self) -> FloatArray:
        """Return the next point of (0, 1)^dimension."""
        self._k += 1
        return np.asarray((self._k * self._steps[:-1]) % 1.0, dtype=np.float64)

    def normal(self) -> FloatArray:
        """Return the next point, spread like a standard normal vector."""
        return np.asarray(ndtri(np.clip(self.uniform(), 1e-9, 1 - 1e-9)), dtype=np.float64)

    def number(self) -> float:
        """Return the next number of (0, 1)."""
        self._k += 1
        return float((self._k * self._steps[-1]) % 1.0)

    def indices(self, count: int, below: int) -> NDArray[np.int64]:
        """Return `count` whole numbers from 0 to below − 1."""
        return np.array([int(self.number() * below) for _ in range(count)], dtype=np.int64)


def _primes(count: int) -> FloatArray:
    found: list[int] = []
    n = 2
    while len(found) < count:
        if all(n % p for p in found if p * p <= n):
            found.append(n)
        n += 1
    return np.array(found, dtype=np.float64)
