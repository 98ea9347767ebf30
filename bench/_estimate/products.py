# SPDX-License-Identifier: Apache-2.0
"""Mean squared errors of what may be told of the same reports: unbiased, projected, and clipped as other libraries do.

Clipped: below 0 becomes 0, then all are divided by their sum. It is biased, as is our projection; neither is better at
every truth.
"""

import numpy as np
from _runner import Seen, once
from frankly_server.estimate import estimate
from numpy.typing import NDArray

from _estimate import reports

FloatArray = NDArray[np.float64]
SIZES, SURVEYS = (2_000, 20_000, 100_000), 300


def clipped(shares: FloatArray) -> FloatArray:
    """Return shares, shape (surveys, answers), with what is below 0 cut off and the rest divided by its sum."""
    kept = np.maximum(shares, 0.0)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True), dtype=np.float64)


def errors(surveys: int = SURVEYS) -> Seen:
    """Return ratios of mean squared errors over simulated surveys of randomised response, by truth and n."""
    law = np.array(reports.grr().weights) / 2.0**reports.BITS
    rng = np.random.default_rng(61)
    found: dict[str, float] = {}
    for name, p in truths().items():
        for n in SIZES:
            told = [
                estimate(reports.grr(), [int(c) for c in drawn])
                for drawn in rng.multinomial(n, p @ law, surveys)
            ]
            shares = {
                what: np.array([getattr(each, what) for each in told])
                for what in ("unbiased", "projected")
            }
            error = {what: float(np.mean((each - p) ** 2)) for what, each in shares.items()}
            cut = float(np.mean((clipped(shares["unbiased"]) - p) ** 2))
            found[f"mse_projected_to_clipped_{name}_{n}"] = error["projected"] / cut
            found[f"mse_projected_to_unbiased_{name}_{n}"] = error["projected"] / error["unbiased"]
    return once(found)


def truths() -> dict[str, FloatArray]:
    """Return true shares: those that rivals are compared at, all on one answer, most on one, and even."""
    one = np.eye(reports.K)[0]
    return {
        "falling": reports.truth(),
        "corner": one,
        "skewed": 0.8 * one + 0.2 * (1 - one) / (reports.K - 1),
        "even": np.full(reports.K, 1 / reports.K),
    }
