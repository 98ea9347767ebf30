# SPDX-License-Identifier: Apache-2.0
"""Estimates corrected for people who answer at random (docs/maths/validity.md).

A share λ of the people answers every question at random, whatever is true of them, with a known law;
κ = 1 − λ. An instructed item tells λ: they choose one of its k choices at random, and so pass it with
a chance of 1/k. All others pass. So the share of reports that fail estimates λ(1 − 1/k). Questions
with known shares tell it too (`estimate.anchors`). An estimate t of a figure whose true value is θ,
and whose value under the random law is ρ, has the mean κθ + λρ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, hypot, sqrt
from typing import Final

import numpy as np

from frankly_design.estimate.chernoff import Ends
from frankly_design.estimate.intervals import Variance, score
from frankly_design.estimate.pooling import pseudo_inverse
from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special

SHOWN: Final = 0.25
"""Largest relative standard error of κ̂ at which corrected figures are shown."""
BY_GROUP: Final = 0.12
"""Largest relative standard error of κ̂ at which a group is corrected by its own κ̂."""
LEAST_TESTED: Final = 30
"""Least number of reports known to have failed at which the random law is tested: with fewer, the
size of the test is off (docs/maths/validity.md)."""
_SHARE: Final = Variance(0, 1, 1)  # n times the variance of a share θ: θ − θ²


class Attention:
    """An estimate κ̂ of the share of attentive people.

    n : reports among which it is an estimate, ≥ 1. random : λ̂ = 1 − κ̂, the estimated share of people
    who answer at random; unbiased, may be below 0 or above 1. variance : the estimated variance of κ̂.
    """

    __slots__ = ()
    n: int

    @property
    def random(self) -> float:
        """Return λ̂."""
        raise NotImplementedError

    @property
    def variance(self) -> float:
        """Return the estimated variance of κ̂."""
        raise NotImplementedError

    def ends(self, z: float) -> Ends:
        """Return the score interval of λ. z : normal quantile of its level."""
        raise NotImplementedError

    @property
    def attentive(self) -> float:
        """κ̂ = 1 − λ̂."""
        return 1 - self.random

    @property
    def _judged(self) -> tuple[float, float]:
        """κ̂ and its variance, for judging whether it is precise enough."""
        return self.attentive, self.variance

    def within(self, limit: float) -> bool:
        """Return True if the relative standard error of κ̂ is at most `limit`."""
        kept, variance = self._judged
        return kept > 0 and sqrt(variance) <= limit * kept

    @property
    def missing(self) -> int | None:
        """About how many more reports make κ̂ precise enough; None if no number does, as κ̂ ≤ 0."""
        kept, variance = self._judged
        if kept <= 0:
            return None
        needed = ceil(self.n * variance / (SHOWN * kept) ** 2)
        return max(0, needed - self.n)


@dataclass(frozen=True, slots=True)
class Item(Attention):
    """Results of an instructed item: `failed` of `n` ≥ 1 reports, with `choices` ≥ 2 choices."""

    n: int
    failed: int
    choices: int

    @property
    def _factor(self) -> float:
        return self.choices / (self.choices - 1)

    @property
    def random(self) -> float:
        """Return λ̂, never below 0."""
        return self.failed / self.n * self._factor

    @property
    def variance(self) -> float:
        """Return the estimated variance of κ̂."""
        share = self.failed / self.n
        return share * (1 - share) / self.n * self._factor**2

    def ends(self, z: float) -> Ends:
        """Return the score interval of λ. z : normal quantile of its level."""
        low, high = score(self.failed / self.n, self.n, _SHARE, z)
        return low * self._factor, high * self._factor


@dataclass(frozen=True, slots=True)
class Observed:
    """Estimates of a figure a/b in the reports of one document; of a share or mean, b is 1.

    values, covariance : the estimates (a, b), shape (2,), and their covariance for independent
        draws, shape (2, 2). random : (a, b) of somebody who answers at random. item : κ̂ among the
        reports of the document, or of more reports. weight : of this document among several.
        sides : variances of a to use for the lower and the upper end, such as those of its score
        interval; None for that of the covariance. beside : covariance of (a, b) with λ̂, shape (2,);
        None if the item or the anchors are in other blocks.
    """

    values: FloatArray
    covariance: FloatArray
    random: FloatArray
    item: Attention
    weight: float = 1.0
    sides: tuple[float, float] | None = None
    beside: FloatArray | None = None

    @property
    def with_share(self) -> FloatArray:
        """The covariance of (a, b) with λ̂, shape (2,)."""
        if self.beside is not None:
            return self.beside
        return with_share(self.values, self.random, self.item)

    @property
    def excess(self) -> FloatArray:
        """How much the variances for the two ends are above that of the covariance, shape (2,)."""
        known = float(self.covariance[0, 0])
        return self.weight**2 * (np.array(self.sides or (known, known)) - known)


def with_share(values: FloatArray, random: FloatArray, item: Attention) -> FloatArray:
    """Return the covariance of estimates with λ̂ by an item, or by anchors in other blocks.

    Noise is drawn apart in each block, and the item and the anchors do not depend on other answers.
    So one report's scores and its value for κ̂ have the covariance λκ(θ − ρ), which needs no count of
    both together. values, random : the estimates and their values under the random law.
    """
    return -item.random * (values - random) / item.n


def moments_of(parts: Sequence[Observed]) -> tuple[FloatArray, FloatArray]:
    """Return κ·(a, b), as estimated by (a, b) − λ̂·(random a, random b), and its covariance.

    parts : one or more documents of different people, with one λ̂ of them all.
    """
    item = parts[0].item
    values, random, beside = (
        np.sum([part.weight * vector for part, vector in zip(parts, vectors, strict=True)], axis=0)
        for vectors in zip(
            *((one.values, one.random, one.with_share) for one in parts), strict=True
        )
    )
    covariance = np.sum([part.weight**2 * part.covariance for part in parts], axis=0)
    across = np.outer(beside, random)
    covariance = covariance - across - across.T + item.variance * np.outer(random, random)
    return values - item.random * random, covariance


def without_noise_of(
    failed: int, mean: FloatArray, spread: FloatArray, random: FloatArray, n: int
) -> tuple[FloatArray, FloatArray]:
    """Return estimates and their covariance if `failed` of `n` reports are known to have failed.

    Their scores have the mean `random` whatever they sent, so this takes their place: the estimates
    have the same mean and less noise, and depend less on the law of those who passed by chance.

    mean, spread : of the other reports' scores, the mean, shape (t,), and the mean of
        (d − mean)(d − mean)ᵀ, shape (t, t). n ≥ 2.
    """
    others = n - failed
    values = (others * mean + failed * random) / n
    off, known = mean - values, random - values
    total = others * (spread + np.outer(off, off)) + failed * np.outer(known, known)
    return values, total / (n * (n - 1))


@dataclass(frozen=True, slots=True)
class Corrected:
    """A corrected figure. ends : None if the interval is unbounded. se : by the delta method."""

    value: float
    se: float
    ends: Ends | None


def corrected(parts: Sequence[Observed], z: float) -> Corrected | None:
    """Return the figure corrected for random answers; None if its denominator is estimated as 0.

    parts : one per document, of different people; those with one λ̂ have the same object. The interval
    is Fieller's [Fieller 1954]: a − θb has the mean 0 at the true θ; with `sides` each end has its own
    variance, as score intervals have. It is approximate, and contains the figure. z : normal quantile
    of its level.
    """
    by_share: dict[int, list[Observed]] = {}
    for part in parts:
        by_share.setdefault(id(part.item), []).append(part)
    moments = [moments_of(alike) for alike in by_share.values()]
    a, b = (float(v) for v in sum((mean for mean, _ in moments), np.zeros(2)))
    covariance = sum((matrix for _, matrix in moments), np.zeros((2, 2)))
    if b == 0:
        return None
    value = a / b
    aa, ab, bb = (float(covariance[i]) for i in ((0, 0), (0, 1), (1, 1)))
    se = sqrt(max(0.0, aa - 2 * value * ab + value**2 * bb)) / abs(b)
    # {θ : (a − θb)² ≤ z²(aa − 2θ·ab + θ²·bb)}, a quadratic in θ.
    square, half = b**2 - z**2 * bb, a * b - z**2 * ab
    if square <= 0:
        return Corrected(value, se, None)
    ends = []
    for sign, excess in zip(
        (-1, 1), sum((part.excess for part in parts), np.zeros(2)), strict=True
    ):
        # With few reports the variance at `value` is estimated as 0 or less; the set then is `value`.
        wide = max(aa + float(excess), 2 * value * ab - value**2 * bb)
        reach = sqrt(max(0.0, half**2 - square * (a**2 - z**2 * wide)))
        ends.append((half + sign * reach) / square)
    # rounding: the set contains the figure in exact arithmetic
    return Corrected(value, se, (min(ends[0], value), max(ends[1], value)))


def law_test(values: FloatArray, covariance: FloatArray) -> tuple[float, int, float] | None:
    """Return (statistic, degrees of freedom, p) of the test that figures have the mean 0.

    values : estimates from those who failed, less the values of the random law, shape (t,).
    covariance : at that law, shape (t, t), perhaps singular. None if nothing can be tested.
    """
    # Divided by the standard errors, as the rank of the covariance is decided by size.
    scale = np.sqrt(np.diagonal(covariance))
    scale = np.where(scale > 0, scale, 1.0)
    inverse, freedom = pseudo_inverse(covariance / np.outer(scale, scale))
    if not freedom:
        return None
    off = values / scale
    statistic = float(off @ inverse @ off)
    return statistic, freedom, float(special.chdtrc(freedom, statistic))


def same_share(items: Sequence[Item]) -> float | None:
    """Return the p-value of Pearson's test that groups fail equally often.

    None if all or none do, or if their items have different numbers of choices.
    """
    n, failed = sum(item.n for item in items), sum(item.failed for item in items)
    if len(items) < 2 or not 0 < failed < n or len({item.choices for item in items}) > 1:
        return None
    share = failed / n
    off = [(item.failed - item.n * share) / sqrt(item.n * share * (1 - share)) for item in items]
    return float(special.chdtrc(len(items) - 1, hypot(*off) ** 2))
