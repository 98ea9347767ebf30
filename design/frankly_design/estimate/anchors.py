# SPDX-License-Identifier: Apache-2.0
"""The share of attentive people, by questions with known shares (docs/maths/validity.md).

The shares a of such a question, an *anchor*, are known among those who read; those who answer at
random have the law r. So the law of a report's symbol is κ·aQ + λ·rQ, with λ = 1 − κ alone unknown.
Each symbol has a value whose mean is 1 under aQ and 0 under rQ; the mean of these values over the
reports is κ̂, and is unbiased whatever κ is [Atsusaka and Stevenson 2023, for one mechanism].
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import hypot, sqrt
from typing import Final, Self

import numpy as np
from frankly_protocol.mechanisms import DenseMechanism

from frankly_design.estimate.chernoff import Ends
from frankly_design.estimate.intervals import Variance, score
from frankly_design.estimate.pooling import pseudo_inverse
from frankly_design.estimate.validity import Attention
from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special

TYPICAL: Final = Fraction(1, 10)
"""Share who answer at random for which the values of symbols have the least variance."""
Shares = Sequence[Fraction]


@dataclass(frozen=True, slots=True)
class AnchorScore:
    """Values of the symbols of an anchor, fixed before any report is seen.

    values : one for each symbol, shape (reports,). information : 1/variance of one report's value,
    if a share of `TYPICAL` answers at random. attentive, random : mean of the squared values of
    people who read, and of those who answer at random.
    """

    values: FloatArray
    information: float
    attentive: float
    random: float

    @classmethod
    def of(cls, mechanism: DenseMechanism, known: Shares, at_random: Shares) -> Self | None:
        """Return the values, or None if the anchor tells nothing: both laws of symbols are equal.

        They are those of least variance at `TYPICAL`, α + β·(aQ − rQ)/m for the law m of symbols
        there. known, at_random : the shares a and r of the choices.
        """
        read, guess = symbol_law(mechanism, known), symbol_law(mechanism, at_random)
        if read == guess:
            return None
        slopes = [
            (a - r) / ((1 - TYPICAL) * a + TYPICAL * r) if a or r else Fraction(0)
            for a, r in zip(read, guess, strict=True)
        ]
        offset = _mean(guess, slopes)
        information = _mean(read, slopes) - offset
        values = [(slope - offset) / information for slope in slopes]
        squares = [value**2 for value in values]
        return cls(
            np.array([float(value) for value in values]),
            float(information),
            float(_mean(read, squares)),
            float(_mean(guess, squares)),
        )

    def variance(self, attentive: float) -> float:
        """Return the variance of one report's value if this share of people reads, in [0, 1]."""
        return attentive * self.attentive + (1 - attentive) * self.random - attentive**2


def symbol_law(mechanism: DenseMechanism, shares: Shares) -> tuple[Fraction, ...]:
    """Return the exact chance of each symbol if the choices have these shares."""
    total = mechanism.denominator
    return tuple(
        sum((share * weight for share, weight in zip(shares, column, strict=True)), Fraction(0))
        / total
        for column in zip(*mechanism.weights, strict=True)
    )


def _mean(law: Shares, values: Shares) -> Fraction:
    return sum((p * v for p, v in zip(law, values, strict=True)), Fraction(0))


@dataclass(frozen=True, slots=True)
class Counted:
    """Reports that show one anchor. counts : of each symbol; at least 2 in all."""

    score: AnchorScore
    counts: FloatArray

    @property
    def n(self) -> int:
        """Number of these reports."""
        return int(self.counts.sum())

    @property
    def attentive(self) -> float:
        """κ̂ by this anchor alone."""
        return float(self.counts @ self.score.values) / self.n

    @property
    def variance(self) -> float:
        """Its estimated variance."""
        return self._of_one / (self.n - 1)

    @property
    def _of_one(self) -> float:
        off = self.score.values - self.attentive
        return float(self.counts @ off**2) / self.n

    def distances(self, z: float) -> Ends:
        """Return how far the ends of the score interval of κ lie below and above κ̂."""
        # The variance is the observed one at κ̂, and changes with κ as that of the model.
        slope, here = self.score.attentive - self.score.random, self.attentive
        constant = self._of_one + here**2 - slope * here
        low, high = score(here, self.n, Variance(constant, slope, 1.0), z)
        return here - low, high - here


@dataclass(frozen=True, slots=True)
class Stack:
    """Anchors in different blocks, in the same `n` reports, with the weight of each in κ̂."""

    n: int
    anchors: tuple[Counted, ...]
    weights: tuple[float, ...]

    @property
    def attentive(self) -> float:
        """κ̂."""
        return self._sum(anchor.attentive for anchor in self.anchors)

    @property
    def variance(self) -> float:
        """The estimated variance of κ̂."""
        return max(0.0, self._sum((one.variance for one in self.anchors), power=2) + self._pairs)

    def variance_at(self, kept: float) -> float:
        """Return the variance of κ̂ if the true share is `kept`, in [0, 1]."""
        each = (one.score.variance(kept) / one.n for one in self.anchors)
        return self._sum(each, power=2) + self._among * kept * (1 - kept) / self.n

    @property
    def _among(self) -> float:
        return 1 - sum(weight**2 for weight in self.weights)

    @property
    def _pairs(self) -> float:
        # Two values of one report have the mean κ if the person reads, and otherwise 0.
        return self._among * self.attentive * (1 - self.attentive) / self.n

    def distances(self, z: float) -> Ends:
        """Return how far the ends of κ's interval lie below and above κ̂."""
        apart = [anchor.distances(z) for anchor in self.anchors]
        squares = (self._sum((ends[side] ** 2 for ends in apart), power=2) for side in (0, 1))
        below, above = (sqrt(max(0.0, square + z**2 * self._pairs)) for square in squares)
        return below, above

    def _sum(self, values: Iterable[float], power: int = 1) -> float:
        return sum(w**power * value for w, value in zip(self.weights, values, strict=True))


@dataclass(frozen=True, slots=True)
class Anchored(Attention):
    """κ̂ from the anchors of one document's reports, or of several groups of different people.

    n : number of all their reports, whether they show the anchors or not.
    """

    n: int
    groups: tuple[Stack, ...]

    @classmethod
    def together(cls, parts: Sequence["Anchored"]) -> Self:
        """Return the estimate from the reports of all parts."""
        return cls(sum(part.n for part in parts), tuple(g for part in parts for g in part.groups))

    @property
    def shown(self) -> int:
        """Number of reports that show an anchor; of several, that show the rarest."""
        return sum(min(anchor.n for anchor in group.anchors) for group in self.groups)

    @property
    def random(self) -> float:
        """Return λ̂, weighted by reports."""
        return 1 - sum(group.n / self.n * group.attentive for group in self.groups)

    @property
    def variance(self) -> float:
        """Return the estimated variance of κ̂."""
        return sum((group.n / self.n) ** 2 * group.variance for group in self.groups)

    def variance_at(self, kept: float) -> float:
        """Return the variance of κ̂ if the true share is `kept`, in [0, 1]."""
        return sum((group.n / self.n) ** 2 * group.variance_at(kept) for group in self.groups)

    @property
    def _judged(self) -> tuple[float, float]:
        """κ̂ and its variance, for judging whether it is precise enough.

        By chance κ̂ is far above 1 if an anchor tells little, and the observed variance 0 if all reports
        are equal. So κ̂ counts as at most 1, and its variance is at least that of the model.
        """
        kept = min(1.0, self.attentive)
        return kept, max(self.variance, self.variance_at(max(0.0, kept)))

    def ends(self, z: float) -> Ends:
        """Return the interval of λ from the score intervals of the anchors."""
        apart = [(group.n / self.n, group.distances(z)) for group in self.groups]
        below, above = (hypot(*(part * ends[side] for part, ends in apart)) for side in (1, 0))
        return self.random - below, self.random + above


def anchor_weights(scores: Sequence[AnchorScore], shares: Sequence[float]) -> list[float]:
    """Return the weight of each anchor in κ̂: in proportion to the information of all reports.

    shares : share of the reports that show each. Nothing here depends on a report, so κ̂ is unbiased.
    """
    information = [score.information * share for score, share in zip(scores, shares, strict=True)]
    return [one / sum(information) for one in information]


def same_share_by_anchors(groups: Sequence[Anchored]) -> float | None:
    """Return the p-value of the χ² test that the same share answers at random in all groups.

    With the variances of the model at the common share, as their estimates are too small for extreme
    values. None for fewer than two groups, or if a variance is 0.
    """
    common = min(1.0, max(0.0, Anchored.together(groups).attentive)) if groups else 0.0
    variances = [group.variance_at(common) for group in groups]
    if len(groups) < 2 or not all(variances):
        return None
    precisions = [1 / variance for variance in variances]
    mean = sum(p * g.random for p, g in zip(precisions, groups, strict=True)) / sum(precisions)
    statistic = sum(p * (g.random - mean) ** 2 for p, g in zip(precisions, groups, strict=True))
    return float(special.chdtrc(len(groups) - 1, statistic))


def fit_test(
    off: FloatArray, direction: FloatArray, covariance: FloatArray
) -> tuple[float, int] | None:
    """Return (statistic, degrees of freedom) of the χ² test that `off` is a multiple of `direction`.

    off : estimated shares of the choices of all anchors, less those of the random law; direction :
    the known shares, less those. Then off has the mean κ·direction. covariance : of `off`, perhaps
    singular. None if nothing is left to be tested, as with one anchor of two choices.
    """
    inverse, rank = pseudo_inverse(covariance)
    along = float(direction @ inverse @ direction)
    if rank < 2 or along <= 0:
        return None
    explained = float(direction @ inverse @ off) ** 2 / along
    return max(0.0, float(off @ inverse @ off) - explained), rank - 1
