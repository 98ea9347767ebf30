# SPDX-License-Identifier: Apache-2.0
"""Types of the public data that a claim carries."""

Ratio = tuple[int, int]
Joint = tuple[tuple[int, ...], ...]
LowerBounds = tuple[tuple[Ratio, ...], ...]
PairLevels = tuple[tuple[Ratio | None, ...], ...]
