# SPDX-License-Identifier: Apache-2.0
"""What the cost model of verification (`frankly_protocol.audit.work`) is made of.

Costs are in nanoseconds per step, measured with `run.py bench verify`.
"""

from collections.abc import Sequence
from math import prod

from frankly_protocol.audit.data import Joint, LowerBounds
from frankly_protocol.mechanisms import DenseMechanism

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


def sizes_of(factors: Sequence[DenseMechanism]) -> tuple[int, int, int]:
    """Return the answers and reports of a product, and the size of a sum over a column."""
    size = 3 + words(factors[0].bits * len(factors))
    return prod(f.answers for f in factors), prod(f.reports for f in factors), size


def listed_work(factors: Sequence[DenseMechanism]) -> int:
    """Return the units of listing the columns of a product, or of a single table."""
    a, b, size = sizes_of(factors)
    return a * b * (40 if len(factors) == 1 else 40 * size)


def average_work(
    factors: Sequence[DenseMechanism], secrets: int, counts: int, cells: int = 1, margins: int = 0
) -> int:
    """Return the units of comparing averages over the answers, in every column.

    counts : of a prior, above 0. cells : what else may be known. margins : units for each column.
    """
    a, b, size = sizes_of(factors)
    around = cells * (secrets * 190 + 800) * size
    return listed_work(factors) + b * (secrets * a * 8 + counts * 20 * size + margins + around)


def positive(joint: Joint) -> int:
    """Return the number of counts above 0."""
    return sum(sum(map(bool, row)) for row in joint)
