# SPDX-License-Identifier: Apache-2.0
"""Evenly spread directions from a Kronecker sequence; deterministic."""

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special


def fractions(first: int, count: int, dimensions: int) -> FloatArray:
    """Return points of a Kronecker sequence in (0, 1)^dimensions, shape (count, dimensions).

    first : index of the first point; consecutive ranges continue the sequence.

    The steps are powers of 1/φ with φ^(d+1) = φ + 1, the golden ratio for d = 1.
    """
    phi = 2.0
    # Fixed-point iteration for φ: a contraction, which converges to float precision in 60 steps.
    for _ in range(60):
        phi = (1 + phi) ** (1 / (dimensions + 1))
    steps = phi ** -np.arange(1.0, dimensions + 1)
    points = (0.5 + np.arange(first + 1, first + count + 1)[:, None] * steps) % 1.0
    # `directions` applies ndtri, which is infinite at 0 and 1.
    return np.asarray(np.clip(points, 1e-9, 1 - 1e-9), dtype=np.float64)


def directions(first: int, count: int, dimensions: int) -> FloatArray:
    """Return normally distributed directions, shape (count, dimensions), from index `first` on."""
    return np.asarray(special.ndtri(fractions(first, count, dimensions)), dtype=np.float64)
