# SPDX-License-Identifier: Apache-2.0
"""The score of a target, which is what one report decodes to, and its law; the guaranteed intervals rest on these."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Ends = tuple[float, float]

SAME = 1e-9
"""Neighbouring values within this fraction of a row's range are one group.

Weights are whole multiples of 2^-48, so a design that is symmetric on paper decodes to values that differ in the last
bits. 1e-9 is far above that and far below any difference that matters.
"""
MOST_LAWS = 1 << 22
"""Targets times answers times reports of a mechanism whose score laws are listed; beyond that it takes seconds."""


@dataclass(frozen=True, slots=True)
class TwoValues:
    """A score whose values form two groups, each given by its least and largest value; `count` reports are in `high`.

    The two ends of a group are equal but for rounding (`SAME`); intervals take the outer ones.
    """

    low: Ends
    high: Ends
    count: int


@dataclass(frozen=True, slots=True)
class ScoreLaw:
    """low, high : ends of the groups of values, increasing. chances : Q by group, shape (answers, groups)."""

    low: FloatArray
    high: FloatArray
    chances: FloatArray

    def mirrored(self) -> "ScoreLaw":
        """Return the law of the negative score."""
        return ScoreLaw(-self.high[::-1], -self.low[::-1], self.chances[:, ::-1])


@dataclass(frozen=True, slots=True)
class Score:
    """What the reports' scores for one target are and can be.

    mean : over the reports. reach : least and largest possible score. two : if there are two groups. law : if it is
    listed. informative : reports whose score is not the commonest; None where scores of single reports are not known.
    of_bit : `two` and `informative` are of another unbiased score, the one that looks at the answer's own bit of a
    unary report; mean and reach are of the one that looks at all bits.
    """

    mean: float
    reach: Ends
    two: TwoValues | None = None
    law: ScoreLaw | None = None
    informative: int | None = None
    of_bit: bool = False


def groups_of(values: FloatArray) -> NDArray[np.intp]:
    """Return the group of each value, numbered upwards from 0: a new one starts after a gap above `SAME`."""
    order = np.argsort(values)
    gaps = np.diff(values[order]) > SAME * np.ptp(values)
    groups = np.empty(len(values), dtype=np.intp)
    groups[order] = np.concatenate([[0], np.cumsum(gaps)])
    return groups


def listed_score(
    mean: float | Fraction | None, values: FloatArray, counts: Sequence[int] | None, law: FloatArray | None
) -> Score:
    """Return the score that decodes report y to `values[y]`.

    counts : per report, None where they were not kept. law : Q, shape (answers, reports), None where it is too large.
    """
    groups = groups_of(values)
    number = int(groups.max()) + 1
    low, high = np.full(number, np.inf), np.full(number, -np.inf)
    np.minimum.at(low, groups, values)
    np.maximum.at(high, groups, values)
    two = None
    if number == 2 and counts is not None:
        in_high = sum(int(c) for c, group in zip(counts, groups, strict=True) if group)
        two = TwoValues((float(low[0]), float(high[0])), (float(low[1]), float(high[1])), in_high)
    listed = None if law is None or two is not None else ScoreLaw(low, high, _summed(law, groups))
    differing = None if counts is None else informative(groups, counts)
    return Score(float(mean or 0), (float(low[0]), float(high[-1])), two, listed, differing)


def informative(groups: NDArray[np.intp], counts: Sequence[int]) -> int:
    """Return how many reports are not in the commonest group."""
    sizes = np.bincount(groups, weights=np.array(counts, dtype=np.float64))
    return int(sizes.sum() - sizes.max())


def _summed(law: FloatArray, groups: NDArray[np.intp]) -> FloatArray:
    """Return the columns of the law added up by group."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    return np.asarray(np.add.reduceat(law[:, order], starts, axis=1), dtype=np.float64)
