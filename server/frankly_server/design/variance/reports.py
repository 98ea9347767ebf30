# SPDX-License-Identifier: Apache-2.0
"""From the weights of the convex programme to few reports whose rows sum to one."""

import numpy as np
from numpy.typing import NDArray

from frankly_server.design.linear import FloatArray


def balanced(V: FloatArray, theta: FloatArray) -> FloatArray:
    """Return θ changed as little as possible, relative to itself, so that Σ θ_j v_j = 1."""
    for _ in range(3):
        missing = 1 - theta @ V
        theta = theta + theta * (V @ np.linalg.lstsq((V.T * theta) @ V, missing, rcond=None)[0])
    return theta


def thinned(features: FloatArray, kept: NDArray[np.intp], theta: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """Remove reports while features[:, kept]·θ stays the same (Carathéodory): at most as many remain as features.

    With all products v_i·v_j among the features A(θ) stays the same, and with it variance and rows (A·p = 1).
    """
    limit = len(features)
    while len(kept) > limit:
        some = np.argsort(theta)[: limit + 1]  # the rarest reports go first
        direction = np.linalg.svd(features[:, kept[some]])[2][-1]
        direction = direction if direction.max() > 0 else -direction
        ratios = np.full(len(some), np.inf)
        np.divide(theta[some], direction, out=ratios, where=direction > 1e-12)
        theta = theta.copy()
        theta[some] -= ratios.min() * direction
        remaining = np.delete(np.arange(len(kept)), some[ratios.argmin()])
        kept, theta = kept[remaining], np.maximum(theta[remaining], 0.0)
        kept, theta = kept[theta > 0], theta[theta > 0]
    return kept, theta
