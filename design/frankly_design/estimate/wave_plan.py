# SPDX-License-Identifier: Apache-2.0
"""Planning of survey waves: the best division of respondents into groups that answer runs of waves.

A run is a set of consecutive waves. A respondent who answers a run of m waves spends ε/m on each
wave, so short runs have less noise, and long runs compare more answers of the same person. The
total variance of all changes between consecutive waves, by generalised least squares, is a convex
function of the shares of respondents in the runs. This is an A-optimal experimental design, whose
optimum is certified by directional derivatives (Kiefer 1974; docs/maths/waves.md).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from frankly_design.numeric.arrays import BoolArray, FloatArray

_ROUNDS, _LEAST_GAP = 5000, 1e-3
# Smaller groups are dropped at the end: so few people are not worth a separate invitation.
_LEAST_SHARE = 2e-3


@dataclass(frozen=True)
class WaveVariances:
    """Variances of one report per target, and the dependence of a person's answers over time.

    noise : shape (waves, targets); row m − 1 is the variance due to randomisation in a run of m
        waves.
    sampling : shape (targets,); the variance of one true value.
    persistence : in [0, 1]; the probability that a person's answer is not redrawn from one wave to
        the next, so that answers d waves apart have correlation persistence^d.
    """

    noise: FloatArray
    sampling: FloatArray
    persistence: float

    @property
    def waves(self) -> int:
        """Number of waves."""
        return len(self.noise)

    @cached_property
    def precisions(self) -> list[FloatArray]:
        """Information of one respondent about the waves of a run, by length of the run.

        Entry m − 1 has shape (targets, m, m) and does not depend on where the run begins.
        """
        times = np.arange(self.waves)
        # A redrawn answer is independent of all earlier answers, so correlations multiply.
        correlation = self.persistence ** np.abs(times[:, None] - times[None, :])
        return [
            np.linalg.inv(
                self.sampling[:, None, None] * correlation[:length, :length]
                + self.noise[length - 1][:, None, None] * np.eye(length)
            )
            for length in range(1, self.waves + 1)
        ]


@dataclass(frozen=True)
class WaveDesign:
    """Shares of the respondents in each run, and the resulting variances of changes.

    shares : shape (waves, waves); entry [m − 1, first] is the share of all respondents who answer
        the m waves from position `first` (counted from 0) on. The sum is 1.
    """

    variances: WaveVariances
    shares: FloatArray

    @property
    def runs(self) -> list[tuple[int, int, float]]:
        """(first, last, share) of each run with respondents, ordered by its waves."""
        return sorted(
            (int(first), int(first + m), float(self.shares[m, first]))
            for m, first in np.argwhere(self.shares)
        )

    @cached_property
    def changes(self) -> FloatArray:
        """Variance of each change for one respondent, shape (waves − 1, targets)."""
        contrasts = _contrasts(self.variances.waves)
        # Generalised least squares: the covariance of all waves' shares is the inverse information.
        solved = np.linalg.solve(self._information, contrasts.T[None])
        return np.asarray(np.einsum("ci,tic->ct", contrasts, solved), dtype=np.float64)

    @property
    def total(self) -> float:
        """Sum of the variances of all changes and targets for one respondent."""
        return float(self.changes.sum())

    @property
    def excess(self) -> float:
        """Upper bound on the ratio of `total` to that of any other division; at least 1.

        The least total is at least total²/max slope (docs/maths/waves.md, claim 2).
        """
        every_run = possible_runs(self.variances.waves)
        # rounding: at the optimum the ratio can be slightly below 1
        return max(1.0, float(self.slopes(every_run).max()) / self.total)

    def slopes(self, runs: BoolArray) -> FloatArray:
        """Return the negative derivative of `total` towards each of these runs, 0 for other runs.

        runs : same shape as `shares`. The mean of the slopes, weighted by the shares, is `total`.
        """
        slopes = np.zeros_like(self.shares)
        for m, first in np.argwhere(runs):
            inside = slice(first, first + m + 1)
            slopes[m, first] = np.vdot(
                self._spread[:, inside, inside], self.variances.precisions[m]
            )
        return slopes

    @cached_property
    def _spread(self) -> FloatArray:
        contrasts = _contrasts(self.variances.waves)
        inverse = np.linalg.inv(self._information)
        return np.asarray(inverse @ (contrasts.T @ contrasts) @ inverse, dtype=np.float64)

    @cached_property
    def _information(self) -> FloatArray:
        """Information about the shares of all waves, shape (targets, waves, waves)."""
        waves, targets = self.variances.noise.shape
        information = np.zeros((targets, waves, waves))
        for m, first in np.argwhere(self.shares):
            inside = slice(first, first + m + 1)
            information[:, inside, inside] += self.shares[m, first] * self.variances.precisions[m]
        return information


def equal_split(variances: WaveVariances) -> WaveDesign:
    """Return the design in which all respondents answer every wave."""
    shares = np.zeros((variances.waves, variances.waves))
    shares[-1, 0] = 1.0
    return WaveDesign(variances, shares)


def single_waves(variances: WaveVariances) -> WaveDesign:
    """Return the design in which each person answers one wave, with equal numbers per wave."""
    shares = np.zeros((variances.waves, variances.waves))
    shares[0] = 1 / variances.waves
    return WaveDesign(variances, shares)


def possible_runs(waves: int) -> BoolArray:
    """Return True for each [m − 1, first] where m waves can begin at `first`."""
    lengths, firsts = np.indices((waves, waves))
    return lengths + firsts < waves


def best_division(
    variances: WaveVariances, poll: Callable[[], object] = lambda: None
) -> WaveDesign:
    """Return the division of respondents with the least total variance of changes.

    This is column generation: a run is added only if its slope exceeds the total, so the many runs
    that are too long or too short cost no time.
    poll : called in every round; an exception that it raises ends the search.
    """
    every_run = possible_runs(variances.waves)
    design = _improved(single_waves(variances), poll)
    for _ in range(_ROUNDS):
        slopes = design.slopes(every_run)
        better = (slopes > design.total * (1 + _LEAST_GAP)) & (design.shares == 0)
        if not better.any():
            break
        # The multiplicative steps cannot leave 0, so new runs begin with a large share.
        shares = np.where(better, design.shares.max() / 2, design.shares)
        design = _improved(WaveDesign(variances, shares / shares.sum()), poll)
    large = np.where(design.shares >= _LEAST_SHARE, design.shares, 0.0)
    return _improved(WaveDesign(variances, large / large.sum()), poll)


def _improved(design: WaveDesign, poll: Callable[[], object]) -> WaveDesign:
    """Return the best design with only the runs of `design`, up to `_LEAST_GAP`.

    The multiplicative algorithm for A-optimal designs (Silvey, Titterington & Torsney 1978)
    multiplies each share by the square root of its slope, which never increases the total (Yu
    2010).
    """
    for _ in range(_ROUNDS):
        poll()
        slopes = design.slopes(design.shares > 0)
        if slopes.max() <= design.total * (1 + _LEAST_GAP):
            break
        shares = design.shares * np.sqrt(slopes)
        # Negligible shares are dropped, because every run costs time in each round.
        shares[shares < 1e-5 * shares.max()] = 0.0
        design = WaveDesign(design.variances, shares / shares.sum())
    return design


def _contrasts(waves: int) -> FloatArray:
    """Return the changes as rows: wave t + 1 minus wave t, shape (waves − 1, waves)."""
    return np.eye(waves - 1, waves, 1) - np.eye(waves - 1, waves)
