# SPDX-License-Identifier: Apache-2.0
"""Rows of wanted figures."""

from fractions import Fraction


def distribution(choices: int) -> tuple[tuple[Fraction, ...], ...]:
    """Return the rows of the share of each choice but the last with all before it."""
    return tuple(
        tuple(Fraction(int(x <= last)) for x in range(choices)) for last in range(choices - 1)
    )
