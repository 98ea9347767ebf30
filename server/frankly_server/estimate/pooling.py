# SPDX-License-Identifier: Apache-2.0
"""One estimate from several that are independent and of the same truth: weights by inverse covariance (DESIGN §6).

Weights must not look at the answers, or the pooled estimate is biased. So the covariance is the one at the published
design prior, which the mechanism and n determine: Σ_v = (M_v − (Wp₀)(Wp₀)ᵀ)/n_v with M_v = E[d dᵀ] at p₀.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def matrices(covariances: Sequence[FloatArray]) -> list[FloatArray]:
    """Return B_v = (Σ_u Σ_u⁺)⁺ Σ_v⁺ on the common range, which sum to the identity there.

    Σ_v B_v x_v has the least variance, for every combination of the targets, of all unbiased combinations at these
    covariances (generalised least squares; Aitken 1935). Targets that sum to a constant make the Σ_v singular in the
    same direction; there the values agree, and the mean is taken.

    covariances : symmetric, shape (t, t), one for each estimate.
    """
    size = len(covariances[0])
    total = np.sum(covariances, axis=0)
    values, vectors = np.linalg.eigh(total)
    free = vectors[:, values > 1e-9 * max(float(values.max()), 1e-300)]
    fixed = np.eye(size) - free @ free.T
    precisions = [np.linalg.pinv(free.T @ C @ free, hermitian=True) for C in covariances]
    whole = np.linalg.pinv(np.sum(precisions, axis=0), hermitian=True)
    parts = [free @ (whole @ P) @ free.T + fixed / len(covariances) for P in precisions]
    return [np.asarray(part, dtype=np.float64) for part in parts]


def pooled(weights: Sequence[FloatArray], values: Sequence[FloatArray]) -> FloatArray:
    """Return Σ_v B_v x_v."""
    return np.asarray(np.sum([B @ x for B, x in zip(weights, values, strict=True)], axis=0), dtype=np.float64)


def pooled_covariance(weights: Sequence[FloatArray], covariances: Sequence[FloatArray]) -> FloatArray:
    """Return Σ_v B_v C_v B_vᵀ: the estimates are of different people's reports, so they are independent."""
    return np.asarray(
        np.sum([B @ C @ B.T for B, C in zip(weights, covariances, strict=True)], axis=0), dtype=np.float64
    )
