# SPDX-License-Identifier: Apache-2.0
"""Explicit mechanisms: generalised randomised response and Warner's, at a level exactly met."""

from collections.abc import Callable

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.problems import Problem

from frankly_server.design.cones import Level

BITS = 48


def grr(answers: int, level: Level, bits: int = BITS) -> DenseMechanism:
    """Return generalised randomised response: the truth with probability E/(E+a−1), else another answer at random.

    For two answers this is the ε-optimal binary mechanism [Thesis Thm 6.2]. The off-diagonal weight is rounded up, so
    rounding only ever lowers the level: on/off ≤ p/q exactly.
    """
    p, q = level
    denominator = 1 << bits
    off = -(-denominator * q // (p + (answers - 1) * q))
    on = denominator - (answers - 1) * off
    return DenseMechanism(bits, tuple(tuple(on if x == y else off for y in range(answers)) for x in range(answers)))


def warner(answers: int, level: Level, bits: int = BITS) -> DenseMechanism:
    """Return Warner's randomised response for a yes/no question at its ε-optimal p_w = E/(E+1)  [Thesis Thm 6.2].

    Raises InvalidInput(unsupported) unless there are exactly two answers.
    """
    if answers != 2:
        raise InvalidInput(Problem.UNSUPPORTED, "warner is for two answers: use grr or optimal", "mechanism")
    return grr(2, level, bits)


FAMILIES: dict[str, Callable[[int, Level], DenseMechanism]] = {"grr": grr, "warner": warner}
"""All of them promise ε-LDP of the answer (the notion ldp)."""
