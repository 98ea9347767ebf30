# SPDX-License-Identifier: Apache-2.0
"""Weights of the convex programme, corrected to exact row sums and thinned to few reports."""

import numpy as np
from numpy.typing import NDArray

from frankly_server.design.tables.linear import FloatArray


def balanced(V: FloatArray, theta: FloatArray) -> FloatArray:
    """Return θ with Σ θ_j v_j = 1, changed as little as possible relative to itself."""
    # One step is exact up to rounding; two more remove the error of an ill-conditioned system.
    for _ in range(3):
        missing = 1 - theta @ V
        theta = theta + theta * (V @ np.linalg.lstsq((V.T * theta) @ V, missing, rcond=None)[0])
    return theta


def thinned(
    features: FloatArray, reports: NDArray[np.intp], theta: FloatArray
) -> tuple[NDArray[np.intp], FloatArray]:
    """Remove reports while features[:, reports]·θ stays the same (Carathéodory).

    At most as many reports remain as there are features. If all products v_i·v_j are among the
    features, A(θ) stays the same, and with it the variance and the row sums (A·p = 1).
    """
    limit = len(features)
    while len(reports) > limit:
        candidates = np.argsort(theta)[: limit + 1]  # the rarest reports go first
        direction = np.linalg.svd(features[:, reports[candidates]])[2][-1]
        # θ − t·direction reaches 0 for some t > 0 only if the direction has a positive entry.
        direction = direction if direction.max() > 0 else -direction
        ratios = np.full(len(candidates), np.inf)
        np.divide(theta[candidates], direction, out=ratios, where=direction > 1e-12)
        theta = theta.copy()
        theta[candidates] -= ratios.min() * direction
        remaining = np.delete(np.arange(len(reports)), candidates[ratios.argmin()])
        reports, theta = reports[remaining], np.maximum(theta[remaining], 0.0)
        reports, theta = reports[theta > 0], theta[theta > 0]
    return reports, theta
