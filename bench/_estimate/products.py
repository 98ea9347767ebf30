# SPDX-License-Identifier: Apache-2.0
"""Mean squared errors of unbiased, projected and clipped estimates from the same reports.

Clipping, as in other libraries, sets negative shares to 0 and divides by the sum. Clipping is
biased, and so is our projection; neither is better at every truth.
"""

import numpy as np
from _runner import Samples, once
from frankly_design.estimate import estimate
from numpy.typing import NDArray

from _estimate import reports

FloatArray = NDArray[np.float64]
SIZES, SURVEYS = (2_000, 20_000, 100_000), 300


def clipped(shares: FloatArray) -> FloatArray:
    """Return shares, shape (surveys, answers), with negatives set to 0, divided by their sum."""
    positive = np.maximum(shares, 0.0)
    return np.asarray(positive / positive.sum(axis=1, keepdims=True), dtype=np.float64)


def errors(surveys: int = SURVEYS) -> Samples:
    """Return ratios of mean squared errors over simulated surveys of randomised response, by truth and n."""
    law = np.array(reports.grr().weights) / 2.0**reports.BITS
    rng = np.random.default_rng(61)
    errors_by_name: dict[str, float] = {}
    for name, p in truths().items():
        for n in SIZES:
            estimates = [
                estimate(reports.grr(), [int(c) for c in drawn])
                for drawn in rng.multinomial(n, p @ law, surveys)
            ]
            shares = {
                kind: np.array([getattr(values, kind) for values in estimates])
                for kind in ("unbiased", "projected")
            }
            error = {kind: float(np.mean((values - p) ** 2)) for kind, values in shares.items()}
            cut = float(np.mean((clipped(shares["unbiased"]) - p) ** 2))
            errors_by_name[f"mse_projected_to_clipped_{name}_{n}"] = error["projected"] / cut
            errors_by_name[f"mse_projected_to_unbiased_{name}_{n}"] = (
                error["projected"] / error["unbiased"]
            )
    return once(errors_by_name)


def truths() -> dict[str, FloatArray]:
    """Return true shares: those of the rivals' comparison, all or most in one answer, and even."""
    point = np.eye(reports.K)[0]
    return {
        "falling": reports.truth(),
        "corner": point,
        "skewed": 0.8 * point + 0.2 * (1 - point) / (reports.K - 1),
        "even": np.full(reports.K, 1 / reports.K),
    }
