# SPDX-License-Identifier: Apache-2.0
"""Baseline: Lift's watchdog as printed; defined in `papers`, which also plots it."""

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
