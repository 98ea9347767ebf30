# SPDX-License-Identifier: Apache-2.0
"""Euclidean projection onto the probability simplex."""

import numpy as np
from numpy.typing import NDArray


def onto_simplex(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return argmin Σ (s_x − values_x)² over s ≥ 0, Σ s = 1; shape (a,).

    The optimum is max(values − t, 0), where t makes the sum 1.
    """
    # In descending order the values that stay positive come first, up to the last j with
    # values_j > t_j, where t_j is the threshold if j values stay positive.
    descending = np.sort(values)[::-1]
    thresholds = (np.cumsum(descending) - 1) / np.arange(1, len(values) + 1)
    positive = int(np.flatnonzero(descending > thresholds)[-1])
    return np.asarray(np.maximum(values - thresholds[positive], 0.0), dtype=np.float64)
