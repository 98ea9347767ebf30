# SPDX-License-Identifier: Apache-2.0
"""Watchdog mechanisms of the Lift paper, which blur only answers that break a lift bound.

From the coarsest to the finest: `complete_merging`, `merging`, `subset_rr`.
"""
