# SPDX-License-Identifier: Apache-2.0
"""Numbers of which the cost model of verification is made (`frankly_protocol.audit.work`)."""

from frankly_protocol.audit.data import LowerBounds

_FIRST_STEPS = 64
STEPS = 2
"""Step limit of all searches for the worst set together: a fixed part, and a part for each
search."""


def search_steps(searches: int) -> int:
    """Return the total step limit for this many searches for the worst set."""
    return _FIRST_STEPS + STEPS * searches


def scale_bits(bounds: LowerBounds) -> int:
    """Return an upper bound on the bits of the bounds' least common denominator."""
    return sum(d.bit_length() for d in {d for row in bounds for _, d in row})


def words(bits: int) -> int:
    """Return the number of words of 64 bits that hold this many bits."""
    return -(-bits // 64)
