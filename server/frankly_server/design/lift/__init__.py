# SPDX-License-Identifier: Apache-2.0
"""Lift measures of a report, and watchdog mechanisms, which blur only high-risk answers.

The lift P(s|y)/P(s) compares the belief in a secret after and before a report. `measures` and
`bounds` compute it; `criteria` decide in whole numbers whether a report keeps its bounds;
`watchdog`, `merging` and `subset_rr` blur the answers that break them, from the coarsest to the
finest method.
"""
