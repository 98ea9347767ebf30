# SPDX-License-Identifier: Apache-2.0
"""Lift's watchdog as printed, as a baseline; defined in `papers`, which draws it too."""

from papers.printed.lift import (
    Printed,
    Risk,
    complete_merging,
    subset_merging,
    sum_of_changes,
    sum_of_lifts,
    watched,
)

__all__ = [
    "Printed",
    "Risk",
    "complete_merging",
    "subset_merging",
    "sum_of_changes",
    "sum_of_lifts",
    "watched",
]
