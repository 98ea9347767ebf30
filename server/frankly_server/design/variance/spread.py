# SPDX-License-Identifier: Apache-2.0
"""Directions that are spread evenly, without chance: the same ones in every run."""

import numpy as np
from scipy.special import ndtri

from frankly_server.design.linear import FloatArray


def fractions(first: int, count: int, dimensions: int) -> FloatArray:
    """Return points of a Kronecker sequence in (0, 1)^dimensions, shape (count, dimensions).

    Its steps are powers of 1/φ, φ^(d+1) = φ + 1: for d = 1 the golden ratio.
    """
    phi = 2.0
    for _ in range(60):
        phi = (1 + phi) ** (1 / (dimensions + 1))
    steps = phi ** -np.arange(1.0, dimensions + 1)
    points = (0.5 + np.arange(first + 1, first + count + 1)[:, None] * steps) % 1.0
    return np.asarray(np.clip(points, 1e-9, 1 - 1e-9), dtype=np.float64)


def directions(first: int, count: int, dimensions: int) -> FloatArray:
    """Return directions as from a normal distribution, shape (count, dimensions); `first` numbers the first one."""
    return np.asarray(ndtri(fractions(first, count, dimensions)), dtype=np.float64)
