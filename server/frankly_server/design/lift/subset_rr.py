# SPDX-License-Identifier: Apache-2.0
"""Subset random response: the optimal random response within each small group of answers of high risk.

Lift, Algorithm 2, after the prose of §5.1, on the groups of Algorithm 1. The paper asks whether a group's polytope (25)
is empty and then unites groups. What counts is whether (26) can be solved over it, which is so iff the merged group
keeps the levels, as every mechanism of the group averages to that one report (DESIGN §9.22). `merging.subsets` gives
only groups that keep them, so nothing is left to unite.

For the averages (l1, chi2, alpha) the columns that keep a group's criterion form no polytope, and for the inverses of
l1 and chi2 not even a convex set: there the paper has no random response. Ours lists columns on the boundary and takes
the best mixture of those. It keeps the criterion and tells at least as much as merging, without being the optimum.
"""

from collections.abc import Sequence

import numpy as np

from frankly_server.design.lift.criteria import Criterion, FloatArray, Joint, Level, Lift, Measure
from frankly_server.design.lift.groups import Group, Watched
from frankly_server.design.lift.inside import Table, best_mixture, lazy_rays, rounded_inside
from frankly_server.design.lift.merging import subsets
from frankly_server.design.quantise import BITS

MAX_LISTED = 6
"""Largest group whose extreme columns are all listed: a tenth of a second, at 15 secrets."""
_WIDENED = (1, 2, 4, 8)
_HALVINGS = 40
_DIGITS = 1e15


def subset_random_response(
    joint: Sequence[Sequence[int]],
    low_level: Level | None,
    level: Level | None,
    *,
    measure: Measure = "lift",
    order: int = 2,
) -> Table:
    """Return the mechanism as whole numbers, row = truth, every row summing to 2^48; every report keeps the criterion.

    Within a group: maximise I(X; Y) over mixtures of the extreme columns that keep the criterion  [Lift eqs. 25-28].
    Parameters and errors as `watchdog.watchdog`.
    """
    watched = Watched.of(joint, low_level, level, measure, order)
    partition, answers, total = subsets(watched), watched.prior.answers, watched.prior.total
    columns = [_placed([1 << BITS], [x], answers) for x in partition.alone]
    for group in partition.groups:
        columns += [_placed(column, group, answers) for column in zip(*_response(watched, group, total), strict=True)]
    return tuple(zip(*columns, strict=True))


def _placed(column: Sequence[int], group: Sequence[int], answers: int) -> list[int]:
    weights = dict(zip(group, column, strict=True))
    return [weights.get(x, 0) for x in range(answers)]


def _response(watched: Watched, group: Group, total: int) -> Table:
    """Return the random response of one group, one row per member; its single merged report where no other is found."""
    merged: Table = ((1 << BITS,),) * len(group)
    joint = [[row[x] for x in group] for row in watched.prior.joint]
    shares = [sum(column) for column in zip(*joint, strict=True)]

    def kept(column: Sequence[int]) -> bool:
        return watched.criterion.holds([sum(n * w for n, w in zip(row, column, strict=True)) for row in joint])

    told = np.array([[n / total for n in shares]])
    columns = [*_columns(watched.criterion, joint), (1,) * len(group)]
    return rounded_inside(best_mixture(columns, told), shares, kept) or merged


def _columns(criterion: Criterion, joint: Joint) -> list[tuple[int, ...]]:
    """Return columns that keep the criterion: all extreme ones where they are known, else some near the boundary.

    The latter are exact to float error only, which rounding makes good.
    """
    answers = len(joint[0])
    rows = criterion.rows(joint)
    if rows is not None and answers <= MAX_LISTED:
        return lazy_rays(rows, answers)
    outer = _one_or_two(answers)
    if answers <= MAX_LISTED:
        for factor in _WIDENED:
            wide = Lift(criterion.masses, _widened(criterion.low, factor), _widened(criterion.high, factor))
            rays = np.array(lazy_rays(wide.rows(joint), answers), dtype=float).reshape(-1, answers)
            outer = np.vstack([outer, rays / rays.max(axis=1, keepdims=True)])
    return [tuple(int(_DIGITS * v) for v in column) for column in _pulled_in(criterion, joint, outer).tolist()]


def _one_or_two(answers: int) -> FloatArray:
    """Return the columns of every answer and of every two."""
    one = np.eye(answers)
    return np.vstack([one, *(one[x] + one[:x] for x in range(answers))])


def _widened(level: Level | None, factor: int) -> Level | None:
    """Return 1 + factor·(level − 1)."""
    return None if level is None else (level[1] + factor * (level[0] - level[1]), level[1])


def _pulled_in(criterion: Criterion, joint: Joint, columns: FloatArray) -> FloatArray:
    """Return each column moved towards the constant, which keeps everything, until it keeps the criterion."""
    counts = np.array(joint, dtype=float)
    told, constant = columns @ counts.T, counts.sum(axis=1)
    low, high = np.zeros(len(columns)), np.ones(len(columns))
    for _ in range(_HALVINGS):
        middle = (low + high)[:, None] / 2
        kept = criterion.excess(middle * told + (1 - middle) * constant) <= 0
        low, high = np.where(kept, middle[:, 0], low), np.where(kept, high, middle[:, 0])
    return np.asarray(low[:, None] * columns + (1 - low[:, None]))
