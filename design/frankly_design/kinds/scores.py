# SPDX-License-Identifier: Apache-2.0
"""Scores (decoded values of single reports) of a target, and their law."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from frankly_design.numeric.arrays import FloatArray

Ends = tuple[float, float]

SAME = 1e-9
"""Neighbouring values within this fraction of a row's range form one group.

Weights are multiples of 2^-48, so a design that is symmetric in theory decodes to values that
differ in the last bits. 1e-9 is far larger than such differences and far smaller than relevant
ones.
"""
MOST_LAWS = 1 << 22
"""Largest targets × answers × reports for listing laws of scores; more would take seconds."""


@dataclass(frozen=True, slots=True)
class TwoValues:
    """Score whose values form two groups, each represented by its least and largest value.

    count : number of reports in the group `high`.

    The two ends of a group differ only by rounding (`SAME`); intervals use the outer ends.
    """

    low: Ends
    high: Ends
    count: int


@dataclass(frozen=True, slots=True)
class ScoreLaw:
    """Law (probability distribution) of a score.

    low, high : ends of the groups of values, increasing, shape (groups,).
    chances : probability of each group given the answer, shape (answers, groups).
    """

    low: FloatArray
    high: FloatArray
    chances: FloatArray

    def mirrored(self) -> "ScoreLaw":
        """Return the law of the negative score."""
        return ScoreLaw(-self.high[::-1], -self.low[::-1], self.chances[:, ::-1])


@dataclass(frozen=True, slots=True)
class Score:
    """Observed and possible scores of the reports for one target.

    mean : mean over the reports.
    reach : least and largest possible score.
    two : the two groups of values, if there are two.
    law : None if it is not listed.
    informative : number of reports whose score is not the most common one; None if the scores of
        single reports are unknown.
    of_bit : True if `two` and `informative` refer to another unbiased score, which uses only the
        answer's own bit of a unary report; mean and reach refer to the score that uses all bits.
    """

    mean: float
    reach: Ends
    two: TwoValues | None = None
    law: ScoreLaw | None = None
    informative: int | None = None
    of_bit: bool = False


def groups_of(values: FloatArray) -> NDArray[np.intp]:
    """Return the group of each value, numbered from 0 upwards.

    A gap above `SAME` starts a new group.
    """
    order = np.argsort(values)
    # The gap is relative to the range: under strong privacy, scores and their rounding errors are
    # large.
    gaps = np.diff(values[order]) > SAME * np.ptp(values)
    groups = np.empty(len(values), dtype=np.intp)
    groups[order] = np.concatenate([[0], np.cumsum(gaps)])
    return groups


def listed_score(
    mean: float | Fraction | None,
    values: FloatArray,
    counts: Sequence[int] | None,
    law: FloatArray | None,
) -> Score:
    """Return the score that decodes report y to `values[y]`.

    counts : number of each report, None if not stored.
    law : Q, shape (answers, reports), None if too large.
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
    # Two groups have exact intervals, which need no law.
    listed = None if law is None or two is not None else ScoreLaw(low, high, _summed(law, groups))
    differing = None if counts is None else informative(groups, counts)
    return Score(float(mean or 0), (float(low[0]), float(high[-1])), two, listed, differing)


def informative(groups: NDArray[np.intp], counts: Sequence[int]) -> int:
    """Return the number of reports outside the most common group."""
    # An estimate with few such reports is flagged few_informative.
    sizes = np.bincount(groups, weights=np.array(counts, dtype=np.float64))
    return int(sizes.sum() - sizes.max())


def _summed(law: FloatArray, groups: NDArray[np.intp]) -> FloatArray:
    """Return the columns of the law summed by group."""
    # Columns are sorted by group, so that reduceat sums all groups in one pass.
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    return np.asarray(np.add.reduceat(law[:, order], starts, axis=1), dtype=np.float64)
