# SPDX-License-Identifier: Apache-2.0
"""Sums of counts in lanes of one integer, which never overflow into the next lane."""

from frankly_protocol.audit.ratios import _weighted


def test_lanes_hold_the_largest_sums_that_their_bits_allow() -> None:
    for room in (2, 15, 16, 17, 40, 53):
        most = (1 << room) - 1
        joint = ((most - 1, 1), (1, most - 1), (0, 1))
        for bits in range(1, 67):
            w = (1 << bits) - 1
            weighted = _weighted(joint)
            for column in ((w, w), (0, w), (w, 0), (w, 1)):
                assert weighted(column) == [
                    sum(n * one for n, one in zip(row, column, strict=True)) for row in joint
                ]
