# SPDX-License-Identifier: Apache-2.0
"""Subset random response: the optimal random response within small groups of high-risk answers.

This is Algorithm 2 of the Lift paper as described in its §5.1, on the groups of Algorithm 1. The
paper merges two groups if a group's polytope (25) is empty. The right condition is that (26) has no
solution over this polytope. A solution exists iff the merged group meets the levels, because the
reports of every mechanism of the group average to the merged report (erratum 9.22).
`merging.subsets` returns only such groups, so no groups have to be merged here.

For the averages (l1, chi2, alpha) the columns that meet a group's criterion form no polytope, and
for the inverses of l1 and chi2 not even a convex set; the paper has no random response for them.
Instead, columns near the boundary are listed, and their best mixture is used. The result meets the
criterion and is at least as informative as merging, but need not be the optimum.
"""

from collections.abc import Sequence

import numpy as np

from frankly_design.families.lift.groups import Group, Watched
from frankly_design.families.lift.merging import subsets
from frankly_design.families.lift.mixture import Table, best_mixture, lazy_rays, rounded_inside
from frankly_design.notions.lift_criteria import Criterion, Joint, Level, Lift, Measure
from frankly_design.notions.walk import vertices
from frankly_design.numeric.arrays import FloatArray
from frankly_design.tables.quantise import BITS
from frankly_design.tables.spread import directions

MAX_LISTED = 6
"""Largest size of a group whose extreme columns are all listed exactly (0.1 s for 15 secrets)."""
# Largest number of extreme columns of a larger group, for which floats suffice.
_MOST_COLUMNS = 100_000
# For averages the search starts from the rays of ALIP cones with level − 1 multiplied by these.
_WIDENING_FACTORS = (1, 2, 4, 8)
# 40 halvings find the boundary to 2^-40; rounding with the exact test corrects the remainder.
_HALVINGS = 40
_COLUMN_SCALE = 1e15


def subset_random_response(
    joint: Sequence[Sequence[int]],
    low_level: Level | None,
    level: Level | None,
    *,
    measure: Measure = "lift",
    order: int = 2,
) -> Table:
    """Return the mechanism as integers, row = truth, rows summing to 2^48.

    Every report meets the criterion. Within a group, I(X; Y) is maximised over mixtures of columns
    that meet the criterion: all extreme ones [Lift eqs. 25-28], or those that `_columns` lists. If
    no rounding of the best mixture meets the criterion, the group is sent as its merged report.
    Parameters and errors as in `complete_merging.watchdog`.
    """
    watched = Watched.of(joint, low_level, level, measure, order)
    partition, answers, total = subsets(watched), watched.prior.answers, watched.prior.total
    columns = [_embedded([1 << BITS], [x], answers) for x in partition.alone]
    for group in partition.groups:
        columns += [
            _embedded(column, group, answers)
            for column in zip(*_response(watched, group, total), strict=True)
        ]
    return tuple(zip(*columns, strict=True))


def _embedded(column: Sequence[int], group: Sequence[int], answers: int) -> list[int]:
    weights = dict(zip(group, column, strict=True))
    return [weights.get(x, 0) for x in range(answers)]


def _response(watched: Watched, group: Group, total: int) -> Table:
    """Return a group's random response, one row per member, or its merged report as a fallback."""
    merged: Table = ((1 << BITS,),) * len(group)
    joint = [[row[x] for x in group] for row in watched.prior.joint]
    shares = [sum(column) for column in zip(*joint, strict=True)]

    def keeps_criterion(column: Sequence[int]) -> bool:
        return watched.criterion.holds(
            [sum(n * w for n, w in zip(row, column, strict=True)) for row in joint]
        )

    probabilities = np.array([[n / total for n in shares]])
    # The constant column meets every criterion, so there is always a mixture that sums to 1.
    columns = [*_columns(watched.criterion, joint), (1,) * len(group)]
    return rounded_inside(best_mixture(columns, probabilities), shares, keeps_criterion) or merged


def _columns(criterion: Criterion, joint: Joint) -> list[tuple[int, ...]]:
    """Return columns that meet the criterion.

    For a polyhedral criterion these are all extreme columns, computed in floats for groups of more
    than 6 answers. For other criteria, and for groups with more than 100,000 extreme columns, they
    are some columns near the boundary, so the response may not be the optimum. Float errors can put
    columns outside the criterion; rounding with the exact test corrects this.
    """
    answers = len(joint[0])
    rows = criterion.rows(joint)
    if rows is not None and answers <= MAX_LISTED:
        return lazy_rays(rows, answers)
    listed = None if rows is None else _extreme(rows, joint)
    candidates = _singles_and_pairs(answers) if listed is None else listed
    if rows is None and answers <= MAX_LISTED:
        for factor in _WIDENING_FACTORS:
            wide = Lift(
                criterion.masses, _widened(criterion.low, factor), _widened(criterion.high, factor)
            )
            rays = np.array(lazy_rays(wide.rows(joint), answers), dtype=float).reshape(-1, answers)
            candidates = np.vstack([candidates, rays / rays.max(axis=1, keepdims=True)])
    return [
        tuple(int(_COLUMN_SCALE * v) for v in column)
        for column in _shrunk_to_criterion(criterion, joint, candidates).tolist()
    ]


def _extreme(rows: Sequence[Sequence[int]], joint: Joint) -> FloatArray | None:
    """Return all extreme columns in floats, shape (n, answers); None if there are too many."""
    scaled = np.array([[r / max(map(abs, row)) for r in row] for row in rows])
    shares = np.array([sum(column) for column in zip(*joint, strict=True)], dtype=np.float64)
    generic = directions(0, 1, len(shares))[0]
    V = vertices(scaled, shares / shares.sum(), generic, _MOST_COLUMNS)
    return None if V is None else np.maximum(V, 0.0) / V.max(axis=1, keepdims=True)


def _singles_and_pairs(answers: int) -> FloatArray:
    """Return the indicator columns of every answer and of every pair of answers."""
    singles = np.eye(answers)
    return np.vstack([singles, *(singles[x] + singles[:x] for x in range(answers))])


def _widened(level: Level | None, factor: int) -> Level | None:
    """Return 1 + factor·(level − 1)."""
    return None if level is None else (level[1] + factor * (level[0] - level[1]), level[1])


def _shrunk_to_criterion(criterion: Criterion, joint: Joint, columns: FloatArray) -> FloatArray:
    """Return the columns, each moved towards the constant column until it meets the criterion."""
    joint_counts = np.array(joint, dtype=float)
    counts, constant = columns @ joint_counts.T, joint_counts.sum(axis=1)
    low, high = np.zeros(len(columns)), np.ones(len(columns))
    for _ in range(_HALVINGS):
        middle = (low + high)[:, None] / 2
        keeps = criterion.excess(middle * counts + (1 - middle) * constant) <= 0
        low, high = np.where(keeps, middle[:, 0], low), np.where(keeps, high, middle[:, 0])
    return np.asarray(low[:, None] * columns + (1 - low[:, None]))
