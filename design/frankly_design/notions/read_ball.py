# SPDX-License-Identifier: Apache-2.0
"""Parser for the parameters of a robust design: counts, Rényi order, sample size and risk."""

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.base import MAX_ANSWERS
from frankly_protocol.problems import Problem

# The precision proof of `ball_bounds` covers these orders. The limit of six decimals keeps the
# numerator and the denominator of the order small.
MIN_ORDER, MAX_ORDER = Fraction(1, 100), Fraction(100)
ORDER_STEP = Fraction(1, 10**6)
# `quantile` supports risks down to 10^-30, and up to 1 − 10^-30.
_DECIMAL = re.compile(r"[0-9]?\.[0-9]{1,30}", re.ASCII)

Counts = tuple[tuple[int, ...], ...]


def read_order(value: Any, field: str = "robust.order") -> Fraction:
    """Return a Rényi order in [0.01, 100] with at most six decimals. Raises InvalidInput."""
    message = (
        "give the order as a number from 0.01 to 100 with at most six decimals; 2 is the χ² ball"
    )
    # repr gives the shortest decimal that converts back to the same float, as a user would type it.
    number = Decimal(repr(value)) if isinstance(value, float) else value
    # bool is a subclass of int: without this check True would be read as order 1.
    if isinstance(number, bool) or not isinstance(number, int | Decimal | Fraction):
        raise InvalidInput(Problem.FIELD_TYPE, message, field)
    # Without this check, an exponent of a million would make a fraction with a million digits.
    if isinstance(number, Decimal) and (not number.is_finite() or abs(number.adjusted()) > 9):
        raise InvalidInput(Problem.FIELD_TYPE, message, field)
    order = Fraction(number)
    if not MIN_ORDER <= order <= MAX_ORDER or order % ORDER_STEP:
        raise InvalidInput(Problem.FIELD_TYPE, message, field)
    return order


def read_size(value: Any, field: str = "robust.n") -> int:
    """Return the number of people behind the estimate, 1 or more. Raises InvalidInput."""
    if type(value) is not int or not 1 <= value <= MAX_INT:
        raise InvalidInput(
            Problem.FIELD_TYPE,
            "give the number of people counted: a whole number, 1 or more",
            field,
        )
    return value


def read_beta(value: Any, field: str = "robust.beta") -> Fraction:
    """Return the risk β that the ball misses the truth, in (0, 1). Raises InvalidInput."""
    message = 'write the risk as a plain decimal string strictly between 0 and 1, such as "0.05"'
    text = f"{value:f}" if isinstance(value, Decimal) and abs(value.adjusted()) <= 30 else value
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text):
        raise InvalidInput(Problem.CONFIDENCE_RANGE, message, field)
    beta = Fraction(text)
    if not 0 < beta < 1:
        raise InvalidInput(Problem.CONFIDENCE_RANGE, message, field)
    return beta


def read_counts(rows: Sequence[Sequence[Any]], field: str = "prior.joint") -> Counts:
    """Return counts N[s][u]: two or more secrets, rows of equal length, at most 256 cells.

    Raises InvalidInput naming the field or the cell.
    """
    is_table = isinstance(rows, list | tuple) and all(isinstance(row, list | tuple) for row in rows)
    if not is_table or len(rows) < 2:
        raise InvalidInput(
            Problem.PRIOR_SHAPE, "give a row of counts for each of two or more secrets", field
        )
    width = len(rows[0])
    if not width or any(len(row) != width for row in rows) or len(rows) * width > MAX_ANSWERS:
        raise InvalidInput(
            Problem.PRIOR_SHAPE,
            f"give rows of equal length, at most {MAX_ANSWERS} counts in all",
            field,
        )
    for s, row in enumerate(rows):
        for u, n in enumerate(row):
            if type(n) is not int or not 0 <= n <= MAX_INT:
                raise InvalidInput(
                    Problem.PRIOR_VALUE,
                    "counts are whole numbers, zero or more, below 2^53",
                    f"{field}[{s}][{u}]",
                )
    if not any(map(any, rows)):
        raise InvalidInput(Problem.PRIOR_SUM, "all counts are 0: count at least one person", field)
    return tuple(tuple(row) for row in rows)
