# SPDX-License-Identifier: Apache-2.0
"""Prior: public joint counts of secrets and answers, as integers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import numpy as np
from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.base import MAX_ANSWERS, MAX_SET_ANSWERS
from frankly_protocol.problems import Problem
from numpy.typing import NDArray

SUM_TOLERANCE = Fraction(1, 10**9)
# Counts that are rounded to fit into a document have about this total.
_SCALE = 2**52
# Limit of decimal exponents: an exponent of a million would make a fraction with a million digits,
# which could block the server.
_MAX_EXPONENT = 400


@dataclass(frozen=True, slots=True)
class Prior:
    """Joint counts N[s][x] of secrets (rows) and answers (columns): P(s, x) = N[s][x] / total.

    `from_rows` checks its input; the constructor does not.
    """

    joint: tuple[tuple[int, ...], ...]
    shares: tuple[int, ...] = field(init=False, compare=False, repr=False)
    """Counts of each answer over all secrets: P(x) = shares[x] / total."""

    def __post_init__(self) -> None:
        # A frozen dataclass does not allow ordinary assignments.
        object.__setattr__(self, "shares", tuple(map(sum, zip(*self.joint, strict=True))))

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[Any]], field: str = "prior.joint") -> "Prior":
        """Return a prior from counts, or from probabilities that sum to 1 within 1e-9.

        Probabilities become integers in the same proportions. Numbers are rounded only if they
        would not fit into a document. A single row means that the answer itself is the secret: the
        joint counts are then the diagonal matrix of the row.

        Raises InvalidInput: prior_shape, prior_value (naming row and column) or prior_sum (with the
        sum).
        """
        _check_shape(rows, field)
        counted = all(type(v) is int for row in rows for v in row)
        values = [
            [_value(v, f"{field}[{s}][{x}]") for x, v in enumerate(row)]
            for s, row in enumerate(rows)
        ]
        total = sum(v for row in values for v in row)
        if total == 0 or (not counted and abs(total - 1) > SUM_TOLERANCE):
            raise InvalidInput(
                Problem.PRIOR_SUM,
                f"the prior sums to {float(total):.12g}: give counts, or probabilities that sum to 1",
                field,
            )
        counts = _whole_counts(values)
        # The answer is its own secret, so P(s, x) is 0 unless s = x.
        if len(counts) == 1:
            counts = [
                [n if i == x else 0 for i in range(len(counts[0]))] for x, n in enumerate(counts[0])
            ]
        return cls(tuple(map(tuple, counts)))

    @property
    def answers(self) -> int:
        """Number of answers (columns)."""
        return len(self.joint[0])

    @property
    def secrets(self) -> int:
        """Number of secrets (rows)."""
        return len(self.joint)

    @property
    def total(self) -> int:
        """Sum of all counts."""
        return sum(self.shares)

    @property
    def masses(self) -> tuple[int, ...]:
        """Counts of each secret over all answers: P(s) = masses[s] / total."""
        return tuple(sum(row) for row in self.joint)

    def probabilities(self) -> NDArray[np.float64]:
        """Return P(x) as floats, shape (answers,)."""
        total = self.total
        return np.array([n / total for n in self.shares])

    def require_protection(self, field: str = "prior.joint") -> None:
        """Raise unless every answer and every secret has mass (spec 2.6).

        The rows of a prior-based notion do not constrain an answer or a secret without mass, so it
        would not protect them. Raises InvalidInput: choice_unprotected for an answer, secret_empty
        for a secret.
        """
        for x, n in enumerate(self.shares):
            if n == 0:
                raise InvalidInput(
                    Problem.CHOICE_UNPROTECTED,
                    f"answer {x} has no mass under the prior: smooth the counts, or protect the "
                    "answer itself (ldp)",
                    f"{field}[0][{x}]",
                )
        for s, n in enumerate(self.masses):
            if n == 0:
                raise InvalidInput(
                    Problem.SECRET_EMPTY,
                    f"secret {s} has no mass under the prior: remove it or give it mass",
                    f"{field}[{s}]",
                )


def protected(prior: Prior, field: str = "prior.joint") -> tuple[tuple[int, ...], ...]:
    """Return the prior's counts. Raises InvalidInput if some answer or secret has no mass."""
    prior.require_protection(field)
    return prior.joint


def pairs(prior: Prior) -> Prior:
    """Return the prior whose answers are the pairs (s, u), row-major; rldp needs it (spec 1.4)."""
    # P((s, u)) is in row s, in the columns of s; other secrets never have these answers.
    size = prior.answers
    rows = [
        tuple(n for t in range(prior.secrets) for n in (row if s == t else (0,) * size))
        for s, row in enumerate(prior.joint)
    ]
    return Prior(tuple(rows))


def _check_shape(rows: Any, field: str) -> None:
    if not isinstance(rows, list | tuple) or not 1 <= len(rows) <= MAX_ANSWERS:
        raise InvalidInput(
            Problem.PRIOR_SHAPE,
            f"give 1 to {MAX_ANSWERS} rows, one per secret, each with one number per answer",
            field,
        )
    width = len(rows[0]) if isinstance(rows[0], list | tuple) else 0
    # A single row is the prior of the answer itself; closed forms accept many answers.
    most = MAX_SET_ANSWERS if len(rows) == 1 else MAX_ANSWERS
    for s, row in enumerate(rows):
        if not isinstance(row, list | tuple) or len(row) != width or not 2 <= width <= most:
            raise InvalidInput(
                Problem.PRIOR_SHAPE,
                f"every row needs the same number of answers, 2 to {most}",
                f"{field}[{s}]",
            )


def _value(value: Any, field: str) -> Fraction:
    # A float means the shortest decimal that converts back to the same float: 0.1 is one tenth.
    number = Decimal(repr(value)) if isinstance(value, float) else value
    message = "a prior holds finite numbers, zero or more"
    if isinstance(number, bool) or not isinstance(number, int | Decimal | Fraction):
        raise InvalidInput(Problem.PRIOR_VALUE, message, field)
    if isinstance(number, Decimal) and (
        not number.is_finite() or abs(number.adjusted()) > _MAX_EXPONENT
    ):
        raise InvalidInput(Problem.PRIOR_VALUE, message, field)
    if number < 0 or (isinstance(number, int) and number > MAX_INT):
        raise InvalidInput(Problem.PRIOR_VALUE, message + ", counts below 2^53", field)
    return Fraction(number)


def _whole_counts(values: list[list[Fraction]]) -> list[list[int]]:
    """Return integers in the same proportions.

    If their total would not fit into a document (2^53), they are rounded to a total of about 2^52,
    and positive numbers to at least 1. The rounded counts then replace the prior everywhere.
    """
    scale = lcm(*(v.denominator for row in values for v in row))
    counts = [[v.numerator * (scale // v.denominator) for v in row] for row in values]
    common = gcd(*(n for row in counts for n in row))
    # Counts are not changed; probabilities are reduced to lowest terms.
    counts = [[n // common for n in row] for row in counts] if scale > 1 else counts
    total = sum(map(sum, counts))
    if total <= MAX_INT:
        return counts
    return [[max(1, (n * _SCALE + total // 2) // total) if n else 0 for n in row] for row in counts]
