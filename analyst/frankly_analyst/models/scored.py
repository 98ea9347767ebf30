# SPDX-License-Identifier: Apache-2.0
"""Weighted means of decoded scores and their linearised covariance, from counts by stratum.

The mean of a group is θ̂ = Σ w d / Σ w over its reports (Hájek), d the decoded score. Its error is
that of the total of u = w e / Σ w with e = d − θ̂ in the group and 0 elsewhere, minus the
regression of e on the calibration variables with the base weights.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from frankly_analyst.models.sample import SIMPLE, FloatArray, Sample


def version_weights(sample: Sample, targets: FloatArray) -> list[FloatArray]:
    """Return the weight of a report within its stratum by version: inverse variance at the design prior.

    The weights do not depend on answers. The total weight of each stratum is unchanged.
    """
    precision = [1 / max(v.prior_variance(targets), 1e-300) for v in sample.versions]
    if len(precision) == 1:
        return [np.ones(len(sample.versions[0].n))]
    keys = [list(v.strata.itertuples(index=False, name=None)) for v in sample.versions]
    reports: dict[Any, float] = {}
    scaled: dict[Any, float] = {}
    for version, named, p in zip(sample.versions, keys, precision, strict=True):
        for key, n in zip(named, version.n, strict=True):
            reports[key] = reports.get(key, 0.0) + float(n)
            scaled[key] = scaled.get(key, 0.0) + p * float(n)
    return [
        np.array([p * reports[key] / scaled[key] for key in named])
        for named, p in zip(keys, precision, strict=True)
    ]


@dataclass(frozen=True)
class Scores:
    """Decoded scores by stratum, with all versions stacked.

    means : shape (H, T). spread : covariance of single reports' scores (divisor n), shape (H, T, T). n, within :
    shape (H,), reports, and the weight of a report within its stratum by its version. groups : shape (H, D), 1 for
    the strata of each group.
    """

    means: FloatArray
    spread: FloatArray
    n: FloatArray
    within: FloatArray
    groups: FloatArray

    @classmethod
    def of(cls, sample: Sample, targets: FloatArray, groups: FloatArray | None = None) -> "Scores":
        """Return the decoded scores of `targets`, shape (T, S); one group of all strata by default."""
        moments = [version.score_moments(targets) for version in sample.versions]
        n = np.concatenate([version.n for version in sample.versions])
        return cls(
            np.concatenate([mean for mean, _ in moments]),
            np.concatenate([spread for _, spread in moments]),
            n,
            np.concatenate(version_weights(sample, targets)),
            np.ones((len(n), 1)) if groups is None else groups,
        )

    def part(self, w: FloatArray) -> FloatArray:
        """Return the fraction of each group's weight that each stratum has, shape (H, D)."""
        total = (self.n * w * self.within)[:, None] * self.groups
        return np.asarray(total / total.sum(axis=0))

    def population_variance(self, w: FloatArray) -> FloatArray:
        """Return the variance of decoded scores in the population that the weights stand for, shape (D, T)."""
        part, spread = self.part(w).T, np.einsum("htt->ht", self.spread)
        return np.asarray(part @ (spread + self.means**2) - (part @ self.means) ** 2)

    def variance(
        self, w: FloatArray, base: FloatArray, Z: FloatArray | None, sampling: str
    ) -> tuple[FloatArray, FloatArray]:
        """Return the means, shape (D, T), and their covariance matrix, shape (D·T, D·T), the targets fastest."""
        n, part = self.n, self.part(w)
        theta = part.T @ self.means
        # A report's share of its group's weight, divided by its own weight, so that e has the units
        # of the weights.
        inside = part / (n * w * self.within)[:, None]
        e = inside[:, :, None] * (self.means[:, None, :] - theta)
        e = e.reshape(len(n), -1)
        weight = w * self.within
        scale = weight**2 * n if sampling == SIMPLE else weight**2 * n * n / np.maximum(n - 1, 1)
        pairs = (scale[:, None, None] * inside[:, :, None] * inside[:, None, :]).transpose(1, 2, 0)
        spread = np.tensordot(pairs, self.spread, axes=1).transpose(0, 2, 1, 3)
        V = spread.reshape(e.shape[1], e.shape[1])
        if sampling != SIMPLE:
            return theta, V
        if Z is not None:
            scaled = Z * (n * base * self.within)[:, None]
            e = e - Z @ (np.linalg.pinv(scaled.T @ Z, hermitian=True) @ (scaled.T @ e))
        u, reports = weight[:, None] * e, n.sum()
        centre = n @ u / reports
        V = V + (u * n[:, None]).T @ u - reports * np.outer(centre, centre)
        return theta, V * reports / (reports - 1)


def group_shares(sample: Sample, w: FloatArray, groups: FloatArray) -> FloatArray:
    """Return the weighted decoded share of every state in each group, shape (D, S)."""
    scores = Scores.of(sample, np.eye(len(sample.versions[0].law)), groups)
    return scores.part(w).T @ scores.means
