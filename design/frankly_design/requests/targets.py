# SPDX-License-Identifier: Apache-2.0
"""Targets of a request: rows W of exact numbers, one per answer, or "shares"."""

from fractions import Fraction
from typing import Annotated, Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.base import MAX_REPORTS
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST
from pydantic import WithJsonSchema

from frankly_design.requests.fields import fraction, rows_schema

Targets = Annotated[
    Any, WithJsonSchema({"anyOf": [{"const": "shares"}, rows_schema(type="number")]})
]


def read_targets(value: Any, answers: int) -> tuple[tuple[Fraction, ...], ...] | None:
    """Return the rows W as exact numbers, None for all shares. Raises targets_invalid."""
    if value == "shares":
        return None
    rows = REQUEST.table(value, "targets")
    if len(rows) > MAX_REPORTS or len(rows[0]) != answers:
        raise InvalidInput(
            Problem.TARGETS_INVALID,
            f'give rows of {answers} numbers, one per answer, or "shares"',
            "targets",
        )
    places = [[f"targets[{t}][{x}]" for x in range(answers)] for t in range(len(rows))]
    targets = tuple(tuple(map(_exact, row, place)) for row, place in zip(rows, places, strict=True))
    for t, row in enumerate(targets):
        if not any(row):
            raise InvalidInput(
                Problem.TARGETS_INVALID, "a target needs a number other than zero", f"targets[{t}]"
            )
    if all(len(set(row)) == 1 for row in targets):
        raise InvalidInput(
            Problem.TARGETS_INVALID,
            "the numbers are the same for every answer, so nothing is to be estimated: give different numbers",
            "targets",
        )
    return targets


def _exact(value: Any, field: str) -> Fraction:
    # Exact arithmetic with numbers of very different sizes is slow, and targets do not need it.
    return fraction(value, field, 12, Problem.TARGETS_INVALID)
