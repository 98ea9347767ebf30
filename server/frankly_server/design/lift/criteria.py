# SPDX-License-Identifier: Apache-2.0
"""Whether a report tells too much of the secret: decided in whole numbers, ranked in floats.

A report is given by `told`, whole numbers proportional to P(s, y) over the secrets s; its lift is l(s) = P(s|y)/P(s).
Levels are ratios (p, q) = p/q ≥ 1 close to e^ε_u (upper side) and e^ε_l (lower side), None for a side not promised:

- ``lift``   Λ = max l ≤ e^ε_u, Ψ = min l ≥ e^−ε_l           (ALIP, Lift Def 3; LIP with equal levels, Def 1)
- ``ldp``    Γ = Λ/Ψ ≤ e^ε                                     (Lift Def 2)
- ``l1``     Σ P(s)|l−1| ≤ e^ε_u − 1, Σ P(s)|1/l−1| ≤ e^ε_l − 1          (Lift Defs 5, 6 with the bounds of §6.2)
- ``chi2``   Σ P(s)(l−1)² ≤ (e^ε_u − 1)², Σ P(s)(1/l−1)² ≤ (e^ε_l − 1)²
- ``alpha``  (Σ P(s) l^α)^(1/α) ≤ e^ε_u, (Σ P(s) l^−α)^(1/α) ≤ e^ε_l

Only `lift` and `ldp` are notions that a document can promise (alip, lip, secret-ldp); the others bound averages over
the secrets and leave single secrets less protected.
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
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Level = tuple[int, int]
Joint = Sequence[Sequence[int]]
Measure = Literal["lift", "ldp", "l1", "chi2", "alpha"]
MEASURES: tuple[Measure, ...] = ("lift", "ldp", "l1", "chi2", "alpha")

MAX_ORDER = 1000
_RULED_OUT = 1e30
"""What a secret with lift 0 counts for in a risk: more than any lift, so that fewer such secrets are safer."""


@dataclass(frozen=True, slots=True)
class Criterion(ABC):
    """What every report must keep. masses : counts of the secrets, all positive. low, high : levels, see above."""

    masses: tuple[int, ...]
    low: Level | None
    high: Level | None

    @abstractmethod
    def holds(self, told: Sequence[int]) -> bool:
        """Decide about one report, exactly. A report that never occurs (all zero) tells nothing."""

    @abstractmethod
    def rows(self, joint: Joint) -> list[list[int]] | None:
        """Return whole-number rows r such that a column q ≥ 0 holds iff r·q ≥ 0 for all; None if rows cannot say it.

        joint : counts N[s][x] of the answers that the column speaks of.
        """

    def risks(self, told: FloatArray) -> FloatArray:
        """Return the risk ω of each report, shape (n, secrets) → (n,): larger is riskier.

        The upper plus the lower side, as far as they are promised: Λ + 1/Ψ. Lift prints Λ + Ψ, by which a report that
        rules a secret out would be the safest (DESIGN §9.22). For choices, not decisions; so is `excess`.
        """
        upper, lower = self._two_sides(told)
        if self.low is None or self.high is None:
            return lower if self.high is None else upper
        return upper + lower

    def excess(self, told: FloatArray) -> FloatArray:
        """Return by how much each report exceeds its bounds, 0 or less where it keeps them; floats, see `risks`."""
        upper, lower = self._two_sides(told)
        over = np.full(len(told), -np.inf)
        if self.high is not None:
            over = upper - float(self._bound(Fraction(*self.high)))
        if self.low is not None:
            over = np.maximum(over, lower - float(self._bound(Fraction(*self.low))))
        return over

    def _two_sides(self, told: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the upper and the lower measure of each report; a lift of 0 counts for more than any other."""
        lift = told / told.sum(axis=1, keepdims=True) / (np.array(self.masses, dtype=float) / sum(self.masses))
        upper, lower = self._sides(lift, 1 / np.where(lift > 0, lift, 1.0))
        ruled_out = _RULED_OUT * (lift <= 0).sum(axis=1)
        return (upper + ruled_out, lower) if self._one_sided() else (upper, lower + ruled_out)

    @abstractmethod
    def _sides(self, lift: FloatArray, inverse: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the measure and the inverse measure, shape (n, secrets) → (n,); `inverse` is 1/lift, 1 for 1/0."""

    @abstractmethod
    def _bound(self, level: Fraction) -> Fraction:
        """Return what a side is compared with."""

    def _one_sided(self) -> bool:
        """Tell whether the upper measure minds a secret that is ruled out, which else only the lower one does."""
        return False


class Lift(Criterion):
    """ALIP, and LIP where both levels are equal."""

    __slots__ = ()

    def holds(self, told: Sequence[int]) -> bool:
        """Λ·q ≤ p and Ψ·p ≥ q, multiplied out."""
        n, total = sum(told), sum(self.masses)
        if self.high is not None:
            p, q = self.high
            if any(t * total * q > p * n * m for t, m in zip(told, self.masses, strict=True)):
                return False
        if self.low is not None:
            p, q = self.low
            return all(n * m * q <= p * t * total for t, m in zip(told, self.masses, strict=True))
        return True

    def rows(self, joint: Joint) -> list[list[int]]:
        """Return one row per secret and side  [Lift eq. 25]."""
        total, everybody = sum(self.masses), [sum(column) for column in zip(*joint, strict=True)]
        rows = []
        for own, m in zip(joint, self.masses, strict=True):
            if self.high is not None:
                p, q = self.high
                rows.append([p * m * n - q * total * t for n, t in zip(everybody, own, strict=True)])
            if self.low is not None:
                p, q = self.low
                rows.append([p * total * t - q * m * n for n, t in zip(everybody, own, strict=True)])
        return [row for row in rows if min(row) < 0]

    def _sides(self, lift: FloatArray, inverse: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.asarray(lift.max(axis=1)), np.asarray(inverse.max(axis=1))

    def _bound(self, level: Fraction) -> Fraction:
        return level


class SecretLdp(Criterion):
    """ε-LDP of the secret; its one level is `high`."""

    __slots__ = ()

    def holds(self, told: Sequence[int]) -> bool:
        """Γ·q ≤ p: every pair of secrets, multiplied out."""
        p, q = self.high or (1, 1)
        given = list(zip(told, self.masses, strict=True))
        return all(t * q * n <= p * u * m for t, m in given for u, n in given)

    def rows(self, joint: Joint) -> list[list[int]]:
        """Return one row per ordered pair of secrets  [Funnel eq. 5]."""
        p, q = self.high or (1, 1)
        given = list(zip(joint, self.masses, strict=True))
        rows = [
            [p * v * m - q * t * n for t, v in zip(own, other, strict=True)]
            for own, m in given
            for other, n in given
            if own is not other
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
    """ℓ1-, χ²- or α-lift and its inverse; `order` is α, a whole number, for `alpha`."""

    measure: Measure = "l1"
    order: int = 2

    def holds(self, told: Sequence[int]) -> bool:
        """Both averages against their bounds, multiplied out; a lift of 0 has an infinite inverse."""
        n, total = sum(told), sum(self.masses)
        if not n:
            return True
        own, even = [t * total for t in told], [n * m for m in self.masses]  # a lift is own/even
        if self.high is not None and self._exceeds(own, even, self.high):
            return False
        return self.low is None or (all(told) and not self._exceeds(even, own, self.low))

    def _exceeds(self, above: Sequence[int], below: Sequence[int], level: Level) -> bool:
        """Tell whether the measure of the ratios above/below, all below > 0, is larger than the level allows."""
        common = lcm(*below)
        ratios = [u * (common // v) for u, v in zip(above, below, strict=True)]  # in units of 1/common
        p, q = level if self.measure == "alpha" else (level[0] - level[1], level[1])
        degree = self.order if self.measure == "alpha" else 1 if self.measure == "l1" else 2
        average = sum(m * self._part(r, common) for m, r in zip(self.masses, ratios, strict=True))
        return bool(average * q**degree > (p * common) ** degree * sum(self.masses))

    def _part(self, ratio: int, one: int) -> int:
        """Return what a ratio, in units of 1/one, adds to the average, in units of that to the power of the degree."""
        if self.measure == "alpha":
            return int(ratio**self.order)
        return abs(ratio - one) if self.measure == "l1" else (ratio - one) ** 2

    def _bound(self, level: Fraction) -> Fraction:
        if self.measure == "alpha":
            return level
        return level - 1 if self.measure == "l1" else (level - 1) ** 2

    def rows(self, joint: Joint) -> None:
        """None: what an average allows has curved sides."""

    def _sides(self, lift: FloatArray, inverse: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self._average(lift), self._average(inverse)

    def _average(self, lift: FloatArray) -> FloatArray:
        p = np.array(self.masses, dtype=float) / sum(self.masses)
        if self.measure == "alpha":
            top = lift.max(axis=1)
            return np.asarray(top * ((lift / top[:, None]) ** self.order @ p) ** (1 / self.order))
        return np.asarray((np.abs(lift - 1) if self.measure == "l1" else (lift - 1) ** 2) @ p)


def criterion(
    masses: Sequence[int], low_level: Level | None, level: Level | None, measure: Measure = "lift", order: int = 2
) -> Criterion:
    """Return what every report must keep.

    masses : counts of the secrets, all positive. low_level, level : ratios (p, q), p ≥ q > 0, of the lower and the
    upper side, None where it is not promised. measure : one of MEASURES; ldp has one level, `level`. order : α for
    `alpha`, a whole number from 2 to 1000; as α grows, it becomes `lift`.

    Raises InvalidInput: unsupported for another measure; eps_out_of_range for levels or orders that promise nothing.
    """
    if measure not in MEASURES:
        raise InvalidInput(Problem.UNSUPPORTED, f"the measures are {', '.join(MEASURES)}", "measure")
    for name, ratio in (("low_level", low_level), ("level", level)):
        if ratio is not None and not ratio[0] >= ratio[1] > 0:
            raise InvalidInput(Problem.EPS_OUT_OF_RANGE, "a level is a ratio p/q of at least 1", name)
    if measure == "ldp":
        if level is None or low_level is not None:
            raise InvalidInput(Problem.EPS_OUT_OF_RANGE, "ldp has one level, the upper one", "low_level")
        return SecretLdp(tuple(masses), None, level)
    if level is None and low_level is None:
        raise InvalidInput(Problem.EPS_OUT_OF_RANGE, "two infinite levels promise nothing", "low_level")
    if measure == "lift":
        return Lift(tuple(masses), low_level, level)
    if type(order) is not int or not 2 <= order <= MAX_ORDER:
        words = f"the order α is a whole number from 2 to {MAX_ORDER}"
        raise InvalidInput(Problem.EPS_OUT_OF_RANGE, words, "order")
    return AverageLift(tuple(masses), low_level, level, measure, order)
