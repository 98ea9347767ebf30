# SPDX-License-Identifier: Apache-2.0
"""Coverage of margins and accuracy of variances in simulated surveys."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from frankly_design.estimate.estimator import evidence_of
from frankly_design.estimate.figures import Figures
from frankly_design.estimate.margins import METHODS, Margins
from frankly_design.kinds.decoder import shares

from _estimate.designs import Case, distinct

POINTWISE = ("score", "kl", "exact", "chebyshev", "clt", "chebyshev_plugin", "sequence")
JOINT = ("simultaneous", "simultaneous_plugin")
GUARANTEED = ("exact", "chebyshev", "kl", "sequence", "simultaneous")


@dataclass(frozen=True)
class Cell:
    """One design at one n and one truth.

    coverage : by method, the least over the targets (pointwise), or the joint coverage of all
    targets. variance_z : distance of the mean estimated variance from the variance of the
    estimates, in Monte Carlo standard errors, for the worst target.
    """

    case: str
    truth: str
    n: int
    runs: int
    coverage: dict[str, float | None]
    variance_z: float

    def below(self, method: str, level: float) -> float:
        """Return the standard errors by which a coverage is below its level; negative if above."""
        rates = self.coverage[method]
        return 0.0 if rates is None else (level - rates) / (level * (1 - level) / self.runs) ** 0.5


def measure(case: Case, truth: str, n: int, runs: int, seed: int, level: float = 0.95) -> Cell:
    """Simulate `runs` surveys; return the coverage of intervals and the accuracy of variances."""
    p, targets = case.truth(truth), shares(case.mechanism.answers)
    held: dict[str, list[np.ndarray | None]] = {method: [] for method in METHODS}
    values, variances = [], []
    drawn, places = distinct(case, p, n, runs, seed)
    for counts in drawn:
        figures = Figures(
            evidence_of(case.mechanism, counts, targets, None),
            len(p),
            None,
            census=False,
            are_shares=True,
        ).spreads(level)
        value = np.array(figures["unbiased"])
        values.append(value)
        variances.append(np.diagonal(np.array(figures["covariance"], dtype=float)))
        for method in METHODS:
            held[method].append(_holds(figures["margins"], method, value, p))
    held = {method: [rates[place] for place in places] for method, rates in held.items()}
    coverage = {method: _share(held[method], joint=method in JOINT) for method in METHODS}
    return Cell(
        case.name,
        truth,
        n,
        runs,
        coverage,
        _variance_z(np.array(values)[places], np.array(variances)[places]),
    )


def corrected(errors: float, comparisons: int) -> float:
    """Return the Bonferroni-corrected number of standard errors for this many comparisons."""
    normal = NormalDist()
    return -normal.inv_cdf(normal.cdf(-errors) / comparisons)


def _holds(margins: Margins, method: str, value: np.ndarray, p: np.ndarray) -> np.ndarray | None:
    """Return True per target if its interval contains the truth, up to float rounding."""
    pairs = margins.ends(method, tuple(value))
    if None in pairs:
        return None
    low, high = np.array(pairs).T
    return np.asarray((low <= p + 1e-12) & (p <= high + 1e-12))


def _share(held: Sequence[np.ndarray | None], *, joint: bool) -> float | None:
    if any(rate is None for rate in held):
        return None
    table = np.array(held)
    return float(table.all(axis=1).mean() if joint else table.mean(axis=0).min())


def _variance_z(values: np.ndarray, variances: np.ndarray) -> float:
    """Return |mean of (estimate − mean)² − T| in standard errors, T the estimated variance.

    A sample that happens to vary little would understate the standard error. Therefore it is at
    least that of normal estimates, whose squared deviations have variance 2T².
    """
    runs = len(values)
    terms = (values - values.mean(axis=0)) ** 2 * runs / (runs - 1) - variances
    error = np.sqrt(np.maximum(terms.var(axis=0, ddof=1), 2 * variances.mean(axis=0) ** 2) / runs)
    mean = np.abs(terms.mean(axis=0))
    return float(np.max(np.where(error > 0, mean / np.where(error > 0, error, 1), 0.0)))
