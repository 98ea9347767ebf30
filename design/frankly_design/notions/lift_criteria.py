# SPDX-License-Identifier: Apache-2.0
"""Criteria on the lift of a report: decided with integers, ranked with floats.

A report is represented by `counts`, integers proportional to P(s, y) over the secrets s. Its lift
is l(s) = P(s|y)/P(s). Levels are ratios (p, q) = p/q ≥ 1, close to e^ε_u (upper side) and e^ε_l
(lower side); None means that a side has no bound:

- ``lift``   Λ = max l ≤ e^ε_u, Ψ = min l ≥ e^−ε_l  (ALIP, Lift Def 3; LIP with equal levels, Def 1)
- ``ldp``    Γ = Λ/Ψ ≤ e^ε  (Lift Def 2)
- ``l1``     Σ P(s)|l−1| ≤ e^ε_u − 1, Σ P(s)|1/l−1| ≤ e^ε_l − 1  (Lift Defs 5, 6 with the bounds of
  §6.2)
- ``chi2``   Σ P(s)(l−1)² ≤ (e^ε_u − 1)², Σ P(s)(1/l−1)² ≤ (e^ε_l − 1)²
- ``alpha``  (Σ P(s) l^α)^(1/α) ≤ e^ε_u, (Σ P(s) l^−α)^(1/α) ≤ e^ε_l

A document can promise only `lift` and `ldp` (as alip, lip or secret-ldp). The other three criteria
bound averages over the secrets, so a single secret may be less protected.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Literal

import numpy as np
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.numeric.arrays import FloatArray

Level = tuple[int, int]
Joint = Sequence[Sequence[int]]
Measure = Literal["lift", "ldp", "l1", "chi2", "alpha"]
MEASURES: tuple[Measure, ...] = ("lift", "ldp", "l1", "chi2", "alpha")

# The exact comparison raises integers to the power α, so α is bounded.
MAX_ORDER = 1000
_RULED_OUT_RISK = 1e30
"""Risk of each secret with lift 0, far larger than the finite lifts of usual counts."""


@dataclass(frozen=True, slots=True)
class Criterion(ABC):
    """Condition that every report must meet.

    masses : counts of the secrets, all positive.
    low, high : levels of the lower and the upper side, None for a side without a bound.
    """

    masses: tuple[int, ...]
    low: Level | None
    high: Level | None

    @abstractmethod
    def holds(self, counts: Sequence[int]) -> bool:
        """Return True if a report meets the criterion (exact test); an empty report meets it."""

    @abstractmethod
    def rows(self, joint: Joint) -> list[list[int]] | None:
        """Return integer rows r such that q ≥ 0 meets the criterion iff r·q ≥ 0 for every row.

        Returns None if the criterion is not polyhedral.

        joint : counts N[s][x] of the answers that the column covers.
        """

    def risks(self, counts: FloatArray) -> FloatArray:
        """Return the risk ω of each report, shape (n, secrets) → (n,); larger is riskier.

        The risk is the sum of the bounded measures, such as Λ + 1/Ψ. The paper prints Λ + Ψ, which
        ranks a report that rules out a secret as safer than one that does not (erratum 9.22). Risks
        and `excess` are floats that guide the choice of reports; `holds` decides.
        """
        upper, lower = self._two_sides(counts)
        if self.low is None or self.high is None:
            return lower if self.high is None else upper
        return upper + lower

    def excess(self, counts: FloatArray) -> FloatArray:
        """Return by how much each report exceeds its bounds (floats); at most 0 if it does not."""
        upper, lower = self._two_sides(counts)
        excess = np.full(len(counts), -np.inf)
        if self.high is not None:
            excess = upper - float(self._bound(Fraction(*self.high)))
        if self.low is not None:
            excess = np.maximum(excess, lower - float(self._bound(Fraction(*self.low))))
        return excess

    def _two_sides(self, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both measures of each report; a lift of 0 dominates all other lifts."""
        prior = np.array(self.masses, dtype=float) / sum(self.masses)
        lift = counts / counts.sum(axis=1, keepdims=True) / prior
        upper, lower = self._sides(lift, 1 / np.where(lift > 0, lift, 1.0))
        ruled_out = _RULED_OUT_RISK * (lift <= 0).sum(axis=1)
        return (upper + ruled_out, lower) if self._one_sided() else (upper, lower + ruled_out)

    @abstractmethod
    def _sides(self, lift: FloatArray, inverse: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both measures, shape (n, secrets) → (n,); `inverse` is 1/lift, or 1 for lift 0."""

    @abstractmethod
    def _bound(self, level: Fraction) -> Fraction:
        """Return the bound of a side at a level."""

    def _one_sided(self) -> bool:
        """Return True if the upper measure includes the risk of ruled-out secrets."""
        return False


class Lift(Criterion):
    """Bounds of the lift itself: ALIP, and LIP if both levels are equal."""

    __slots__ = ()

    def holds(self, counts: Sequence[int]) -> bool:
        """Compare Λ·q ≤ p and Ψ·p ≥ q in integers, multiplied out."""
        n, total = sum(counts), sum(self.masses)
        if self.high is not None:
            p, q = self.high
            # t/n ÷ m/total is the lift P(s|y)/P(s); cross-multiplication avoids rounding.
            if any(t * total * q > p * n * m for t, m in zip(counts, self.masses, strict=True)):
                return False
        if self.low is not None:
            p, q = self.low
            return all(n * m * q <= p * t * total for t, m in zip(counts, self.masses, strict=True))
        return True

    def rows(self, joint: Joint) -> list[list[int]]:
        """Return one row per secret and side  [Lift eq. 25]."""
        total, totals = sum(self.masses), [sum(column) for column in zip(*joint, strict=True)]
        rows = []
        for row, m in zip(joint, self.masses, strict=True):
            if self.high is not None:
                p, q = self.high
                rows.append([p * m * n - q * total * t for n, t in zip(totals, row, strict=True)])
            if self.low is not None:
                p, q = self.low
                rows.append([p * total * t - q * m * n for n, t in zip(totals, row, strict=True)])
        # A row without negative entries is satisfied by every q ≥ 0.
        return [row for row in rows if min(row) < 0]

    def _sides(self, lift: FloatArray, inverse: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.asarray(lift.max(axis=1)), np.asarray(inverse.max(axis=1))

    def _bound(self, level: Fraction) -> Fraction:
        return level


class SecretLdp(Criterion):
    """ε-LDP of the secret; its only level is `high`."""

    __slots__ = ()

    def holds(self, counts: Sequence[int]) -> bool:
        """Compare Γ·q ≤ p for every pair of secrets, multiplied out."""
        p, q = self.high or (1, 1)
        secrets = list(zip(counts, self.masses, strict=True))
        return all(t * q * n <= p * u * m for t, m in secrets for u, n in secrets)

    def rows(self, joint: Joint) -> list[list[int]]:
        """Return one row per ordered pair of secrets  [Funnel eq. 5]."""
        p, q = self.high or (1, 1)
        secrets = list(zip(joint, self.masses, strict=True))
        rows = [
            [p * v * m - q * t * n for t, v in zip(first, second, strict=True)]
            for first, m in secrets
            for second, n in secrets
            if first is not second
        ]
        return [row for row in rows if min(row) < 0]

    def _sides(self, lift: FloatArray, inverse: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.asarray(lift.max(axis=1) * inverse.max(axis=1)), np.ones(len(lift))

    def _bound(self, level: Fraction) -> Fraction:
        return level

    def _one_sided(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class AverageLift(Criterion):
    """Bounds of ℓ1-, χ²- or α-lift and its inverse; `order` is the integer α of `alpha`."""

    measure: Measure = "l1"
    order: int = 2

    def holds(self, counts: Sequence[int]) -> bool:
        """Compare both averages with their bounds; a lift of 0 has an infinite inverse."""
        n, total = sum(counts), sum(self.masses)
        if not n:
            return True
        # The lift of secret s is observed[s]/expected[s].
        observed, expected = [t * total for t in counts], [n * m for m in self.masses]
        if self.high is not None and self._exceeds(observed, expected, self.high):
            return False
        return self.low is None or (all(counts) and not self._exceeds(expected, observed, self.low))

    def _exceeds(self, above: Sequence[int], below: Sequence[int], level: Level) -> bool:
        """Return True if the measure of the ratios above/below (below > 0) exceeds the bound."""
        # With a common denominator the average is computed in integers, without rounding.
        common = lcm(*below)
        ratios = [
            u * (common // v) for u, v in zip(above, below, strict=True)
        ]  # in units of 1/common
        p, q = level if self.measure == "alpha" else (level[0] - level[1], level[1])
        degree = self.order if self.measure == "alpha" else 1 if self.measure == "l1" else 2
        average = sum(m * self._term(r, common) for m, r in zip(self.masses, ratios, strict=True))
        return bool(average * q**degree > (p * common) ** degree * sum(self.masses))

    def _term(self, ratio: int, one: int) -> int:
        """Return a secret's term in units of 1/one^degree; `ratio` is in units of 1/one."""
        if self.measure == "alpha":
            return int(ratio**self.order)
        return abs(ratio - one) if self.measure == "l1" else (ratio - one) ** 2

    def _bound(self, level: Fraction) -> Fraction:
        if self.measure == "alpha":
            return level
        return level - 1 if self.measure == "l1" else (level - 1) ** 2

    def rows(self, joint: Joint) -> None:
        """Return None: columns that meet a bound on an average form no polyhedral cone."""

    def _sides(self, lift: FloatArray, inverse: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self._average(lift), self._average(inverse)

    def _average(self, lift: FloatArray) -> FloatArray:
        p = np.array(self.masses, dtype=float) / sum(self.masses)
        if self.measure == "alpha":
            # Scaled by the largest lift, so that lift^α does not overflow at α = 1000.
            top = lift.max(axis=1)
            return np.asarray(top * ((lift / top[:, None]) ** self.order @ p) ** (1 / self.order))
        return np.asarray((np.abs(lift - 1) if self.measure == "l1" else (lift - 1) ** 2) @ p)


def criterion(
    masses: Sequence[int],
    low_level: Level | None,
    level: Level | None,
    measure: Measure = "lift",
    order: int = 2,
) -> Criterion:
    """Return the criterion that every report must meet.

    masses : counts of the secrets, all positive.
    low_level, level : ratios (p, q), p ≥ q > 0, of the lower and the upper side; None for a side
        without a bound.
    measure : one of MEASURES; ldp has one level, `level`.
    order : α of `alpha`, a whole number from 2 to 1000; `alpha` tends to `lift` as α grows.

    Raises InvalidInput: unsupported for another measure; eps_out_of_range for levels or orders that
    promise nothing.
    """
    if measure not in MEASURES:
        raise InvalidInput(
            Problem.UNSUPPORTED, f"the measures are {', '.join(MEASURES)}", "measure"
        )
    for name, ratio in (("low_level", low_level), ("level", level)):
        if ratio is not None and not ratio[0] >= ratio[1] > 0:
            raise InvalidInput(
                Problem.EPS_OUT_OF_RANGE, "a level is a ratio p/q of at least 1", name
            )
    if measure == "ldp":
        if level is None or low_level is not None:
            raise InvalidInput(
                Problem.EPS_OUT_OF_RANGE, "ldp has one level, the upper one", "low_level"
            )
        return SecretLdp(tuple(masses), None, level)
    if level is None and low_level is None:
        raise InvalidInput(
            Problem.EPS_OUT_OF_RANGE, "two infinite levels promise nothing", "low_level"
        )
    if measure == "lift":
        return Lift(tuple(masses), low_level, level)
    if type(order) is not int or not 2 <= order <= MAX_ORDER:
        raise InvalidInput(
            Problem.EPS_OUT_OF_RANGE,
            f"the order α is a whole number from 2 to {MAX_ORDER}",
            "order",
        )
    return AverageLift(tuple(masses), low_level, level, measure, order)
