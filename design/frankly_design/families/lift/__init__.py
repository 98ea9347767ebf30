# SPDX-License-Identifier: Apache-2.0
"""Watchdog mechanisms of the Lift paper, which change only answers that break a lift bound.

`complete_merging` loses the most information, `merging` less and `subset_rr` the least.
"""
