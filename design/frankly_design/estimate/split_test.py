# SPDX-License-Identifier: Apache-2.0
"""The test of two arms' shares of one choice at guessed shares: power, reports and best chance.

This is the test of two groups (spec 8.12): its variance is that of shares common to both arms, which
are the arms' shares weighted by their precision at equally frequent choices (docs/maths/split.md).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from frankly_design.estimate.margins import normal_quantile
from frankly_design.estimate.split_plan import WHOLE, power_of, reports_needed
from frankly_design.kinds.evidence import Evidence
from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special

_SHARES = np.arange(1, WHOLE) / WHOLE
"""The share of reports in the first arm, by its chance less 1."""
_FEWEST = 5
"""Reports that an arm has to expect for a normal approximation of its estimate."""


@dataclass(frozen=True, slots=True, eq=False)
class Arm:
    """An arm's question, at guessed shares of its choices.

    moments : E[d_t²|x] of the decoded values of one report, row = choice t, column = true choice x,
        shape (choices, choices). shares : guessed shares, which sum to 1, shape (choices,).
    """

    moments: FloatArray
    shares: FloatArray

    @classmethod
    def in_clear(cls, shares: FloatArray) -> "Arm":
        """Return the arm of a public question, whose reports contain the true choice."""
        return cls(np.eye(len(shares)), shares)

    @classmethod
    def protected(cls, evidence: Evidence, shares: FloatArray) -> "Arm":
        """Return an arm with a mechanism. evidence : of all shares, each of which must be known."""
        return cls(evidence.truth_moments(), shares)

    def variance(self, target: int) -> float:
        """Return the variance of one report's estimate of a choice's share, at the guessed shares."""
        moment = float(self.moments[target] @ self.shares)
        # rounding: the variance of a certain answer can come out slightly below 0
        return max(0.0, moment - float(self.shares[target]) ** 2)

    @property
    def spread(self) -> float:
        """The summed variance of one report's shares if all choices are equally frequent; above 0."""
        choices = len(self.shares)
        return float(self.moments.sum()) / choices - 1 / choices


class SplitTest:
    """The two-sided test that a choice's share is the same in both arms.

    target : position of the choice. level : of confidence, in [½, 1); the test rejects equal shares
    with the chance 1 − level. Chances are those of the first arm, out of 65,536, from 1 to 65,535.
    The guessed shares of the target must differ, and not both be certain in the clear.
    """

    def __init__(self, first: Arm, second: Arm, target: int, level: float) -> None:
        self._arms, self._target, self._level = (first, second), target, level
        self.difference = float(first.shares[target] - second.shares[target])
        self.variances = first.variance(target), second.variance(target)

    def null(self, chance: int) -> tuple[float, float]:
        """Return the variances of one report's estimate in each arm at the common shares."""
        first, second = self._null(np.array([chance / WHOLE]))
        return float(first[0]), float(second[0])

    def reports(self, chance: int, power: float) -> int:
        """Return the reports of both arms with which the test has this power, in [½, 1).

        Raises ValueError if more than 10^12 are needed.
        """
        null, share = self.null(chance), chance / WHOLE
        return reports_needed(self.difference, *self.variances, share, power, 1 - self._level, null)

    def power(self, n: int, chance: int) -> float:
        """Return the power with n reports of both arms."""
        null, share = self.null(chance), chance / WHOLE
        return power_of(n, self.difference, *self.variances, share, 1 - self._level, null)

    def best_for_power(self, power: float) -> int | None:
        """Return the chance with which the fewest reports have this power.

        None if there is none with which both arms expect at least 5 reports.
        """
        tested, actual = self._roots
        distance = normal_quantile(self._level) * tested + special.ndtri(power) * actual
        return _least(distance, (distance / self.difference) ** 2)

    def best_for_reports(self, n: int) -> int | None:
        """Return the chance with which n reports of both arms have the most power.

        None if there is none with which both arms expect at least 5 reports.
        """
        tested, actual = self._roots
        limit = normal_quantile(self._level) * tested / actual
        shift = abs(self.difference) * np.sqrt(n) / actual
        # Logarithms of what the power lacks are compared, because powers near 1 are equal as floats.
        within = special.log_ndtr(limit - shift)
        below = special.log_ndtr(-limit - shift)
        return _least(within + np.log1p(-np.exp(below - within)), n)

    @cached_property
    def _roots(self) -> tuple[FloatArray, FloatArray]:
        """√n times the standard error of the test, and the true one, for every chance."""

        def root(first: FloatArray | float, second: FloatArray | float) -> FloatArray:
            return np.asarray(np.sqrt(first / _SHARES + second / (1 - _SHARES)), dtype=np.float64)

        return root(*self._null(_SHARES)), root(*self.variances)

    def _null(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the `null` of every share of reports in the first arm."""
        first, second = (arm.shares for arm in self._arms)
        weights = shares / self._arms[0].spread, (1 - shares) / self._arms[1].spread
        of_first = weights[0] / (weights[0] + weights[1])

        def at_common(row: FloatArray) -> FloatArray:
            return of_first * float(row @ first) + (1 - of_first) * float(row @ second)

        target = self._target
        squares = at_common(np.eye(len(first))[target]) ** 2
        of_arms = [at_common(arm.moments[target]) - squares for arm in self._arms]
        # rounding: the variance of an all but certain answer can come out slightly below 0
        return np.maximum(0.0, of_arms[0]), np.maximum(0.0, of_arms[1])


def _least(values: FloatArray, n: FloatArray | int) -> int | None:
    """Return the chance with the least value, of those with enough of n reports in both arms."""
    enough = n * np.minimum(_SHARES, 1 - _SHARES) >= _FEWEST
    return 1 + int(np.argmin(np.where(enough, values, np.inf))) if enough.any() else None
