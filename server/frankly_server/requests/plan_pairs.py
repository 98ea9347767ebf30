# SPDX-License-Identifier: Apache-2.0
"""Plans under metric-ldp, with a factor on the levels of all pairs instead of ε."""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from frankly_protocol.audit.bounds import MAX_EPSILON, MIN_EPSILON
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

_LEAST, _LARGEST = MIN_EPSILON, 2 * MAX_EPSILON
_OPEN: Final = "inf"

PairLevels = Sequence[Sequence[str | None]]


def factor_range(epsilons: PairLevels) -> tuple[int, int]:
    """Return the least and the largest factor, in thousandths, with all levels in 0.01 to 20 nats.

    If there is no level, the factor is 1, and the design refuses the request.
    """
    levels = [Fraction(e) for row in epsilons for e in row if e is not None and e != _OPEN]
    if not levels:
        return 1000, 1000
    low = math.ceil(1000 * _LEAST / min(levels))
    return max(1, low), math.floor(1000 * _LARGEST / max(levels))


def scaled(epsilons: PairLevels, factor: str) -> tuple[tuple[str | None, ...], ...]:
    """Return the levels times a factor, to 28 digits; None for a pair without a level."""
    by = Decimal(factor)
    return tuple(
        tuple(None if e is None or e == _OPEN else _text(Decimal(e) * by) for e in row)
        for row in epsilons
    )


def no_factor(n: int, largest: int) -> InvalidInput:
    """Return the error for a margin that no factor reaches. largest : in thousandths."""
    return InvalidInput(
        Problem.UNSUPPORTED,
        f"no factor up to {_text(Decimal(largest) / 1000)} on the levels, which makes the largest 20 nats, "
        f"gives this margin with {n} reports: collect more",
        "margin",
    )


def _text(number: Decimal) -> str:
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
