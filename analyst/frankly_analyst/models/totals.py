# SPDX-License-Identifier: Apache-2.0
"""Calibration of noisy estimates to known totals by generalised least squares.

Among all estimates θ with Cθ = t, the calibrated estimate is nearest to the unbiased estimate θ̂ in
the metric of its covariance Σ: θ̃ = θ̂ − ΣCᵀ(CΣCᵀ)⁺(Cθ̂ − t), with covariance Σ − ΣCᵀ(CΣCᵀ)⁺CΣ,
never larger than Σ. The calibrated estimate remains linear, and unbiased if the totals are true.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models.numbers import numbers
from frankly_analyst.models.sample import FloatArray


@dataclass(frozen=True)
class Calibrated:
    """Calibrated estimates, their covariance, and the Wald test that the known totals fit the reports.

    chi2, df : statistic of the distance Cθ̂ − t, which has `df` degrees of freedom if the totals are true.
    """

    estimate: FloatArray
    covariance: FloatArray
    chi2: float
    df: int

    @property
    def p(self) -> float:
        """P-value of the test."""
        from scipy.special import chdtrc  # noqa: PLC0415 (slow to import, and needed here only)

        return float(chdtrc(self.df, self.chi2)) if self.df else 1.0


def calibrate(
    estimate: Sequence[float] | FloatArray,
    covariance: Sequence[Sequence[float]] | FloatArray,
    constraints: Sequence[Sequence[float]] | FloatArray,
    totals: Sequence[float] | FloatArray,
) -> Calibrated:
    """Return estimates that meet known totals.

    estimate, covariance : unbiased estimates, shape (T,), with their covariance, such as the cells of a joint
        table. constraints : shape (R, T). totals : shape (R,), known values of constraints · truth.

    Raises InvalidRequest(targets_invalid) for shapes that do not fit, or totals that no estimate meets.
    """
    theta, S = numbers(estimate, "estimate"), numbers(covariance, "covariance")
    C, t = numbers(constraints, "constraints"), numbers(totals, "totals")
    if theta.ndim != 1 or S.shape != (len(theta),) * 2:
        raise _invalid("covariance", "needs one row and one column per estimate")
    if C.ndim != 2 or C.shape[1] != len(theta) or t.shape != (len(C),):
        raise _invalid("constraints", "needs one row per total and one column per estimate")
    middle = C @ S @ C.T
    scale = max(float(np.abs(np.diagonal(middle)).max(initial=0.0)), 1e-300)
    inverse = np.linalg.pinv(middle, rcond=1e-10, hermitian=True)
    rank = int(np.linalg.matrix_rank(middle, tol=1e-10 * scale, hermitian=True))
    gap = C @ theta - t
    gain = S @ C.T @ inverse
    found = theta - gain @ gap
    if np.abs(C @ found - t).max(initial=0.0) > 1e-7 * max(1.0, float(np.abs(t).max(initial=0.0))):
        raise _invalid("totals", "contradict each other, or the sum that the estimates always have")
    return Calibrated(found, S - gain @ C @ S, float(gap @ inverse @ gap), rank)


def margins(
    states: Sequence[tuple[str, ...]], known: Mapping[int, Mapping[str, float]]
) -> tuple[FloatArray, FloatArray]:
    """Return constraints and totals for known shares of the questions of a joint table.

    states : joint answers in the order of the estimates. known : by the question's place in the table, the
    share of each of its choices.

    Raises InvalidRequest(targets_invalid) for a question or choice that no joint answer has.
    """
    rows, totals = [], []
    for place, shares in known.items():
        for choice, share in shares.items():
            if not any(state[place : place + 1] == (choice,) for state in states):
                raise _invalid("known", f"question {place} of the table has no choice {choice}")
            rows.append([float(state[place] == choice) for state in states])
            totals.append(share)
    return np.array(rows), numbers(totals, "known")


def _invalid(field: str, detail: str) -> InvalidRequest:
    return InvalidRequest(detail, code="targets_invalid", field=field)
