# SPDX-License-Identifier: Apache-2.0
"""Correction of the convex programme's weights: exact row sums, and fewer reports."""

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from frankly_design.numeric.arrays import FloatArray

_ROUNDING = 4e-16


def balanced(V: FloatArray, theta: FloatArray) -> FloatArray:
    """Return θ with Σ θ_j v_j = 1 and the least relative change."""
    if len(V) == V.shape[1]:
        with suppress(np.linalg.LinAlgError):
            # There is only one such θ.
            return np.asarray(np.linalg.solve(V.T, np.ones(len(V))), dtype=np.float64)
    # One step is exact up to rounding; two more correct the error of an ill-conditioned system.
    for _ in range(3):
        missing = 1 - theta @ V
        if np.max(np.abs(missing), initial=0.0) <= _ROUNDING:
            break
        theta = theta + theta * (V @ np.linalg.lstsq((V.T * theta) @ V, missing, rcond=None)[0])
    return theta


def thinned(
    features: FloatArray, reports: NDArray[np.intp], theta: FloatArray
) -> tuple[NDArray[np.intp], FloatArray]:
    """Remove reports without changing features[:, reports]·θ (Carathéodory).

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
