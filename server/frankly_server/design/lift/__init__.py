# SPDX-License-Identifier: Apache-2.0
"""Lift: what a report tells of a secret, and the watchdog's mechanisms, which blur only the answers that tell too much.

`measures` and `bounds` say how much is told; `criteria` decide in whole numbers whether it is too much; `watchdog`,
`merging` and `subset_rr` are three ways to blur, from the coarsest to the finest.
"""
