# SPDX-License-Identifier: Apache-2.0
"""Watchdog with complete merging: all answers of high risk become one report  [Lift §3.1.1]."""

from collections.abc import Sequence

from frankly_design.families.lift.groups import Partition, Watched
from frankly_design.families.lift.mixture import Table
from frankly_design.notions.lift_criteria import Level, Measure


def watchdog(
    joint: Sequence[Sequence[int]],
    low_level: Level | None,
    level: Level | None,
    *,
    measure: Measure = "lift",
    order: int = 2,
) -> Table:
    """Return the mechanism as integers, row = truth, rows summing to 2^48.

    Every report meets the criterion. The merged report of the high-risk answers alone may break the
    criterion, which the paper overlooks. In that case low-risk answers are added, the safest first,
    until the report meets it (erratum 9.21). So a single high-risk answer is never sent unchanged.

    Parameters
    ----------
    joint : counts N[s][x] of secrets and answers, every answer and secret with mass.
    low_level, level : ratios (p, q) of the lower and the upper side; None for a side without a
        promise.
    measure, order : see `lift_criteria.criterion`.

    Raises
    ------
    InvalidInput: prior_shape, prior_value, prior_sum, choice_unprotected, secret_empty,
        unsupported, eps_out_of_range.
    """
    watched = Watched.of(joint, low_level, level, measure, order)
    return complete_merging(watched).merged(watched.prior.answers)


def complete_merging(watched: Watched) -> Partition:
    """Return the answers sent unchanged, and the remaining answers as one group."""
    low, high = watched.split()
    return watched.repaired(low, [tuple(high)] if high else [])
