# SPDX-License-Identifier: Apache-2.0
"""Readers of JSON values from other tools: unknown keys are refused, errors name the field."""

from collections.abc import Mapping, Set
from decimal import Decimal
from typing import Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem


def record(
    value: Any,
    required: Set[str],
    optional: Set[str] = frozenset(),
    field: str | None = None,
) -> dict[str, Any]:
    """Return `value` as a dict with all `required` keys and no others except `optional` ones.

    Raises InvalidInput: field_type, field_unknown or field_missing.
    """
    if not isinstance(value, Mapping):
        raise InvalidInput(Problem.FIELD_TYPE, "give a JSON object", field)
    prefix = f"{field}." if field else ""
    for key in value:
        if key not in required | optional:
            message = f"the fields are {', '.join(sorted(required | optional))}"
            raise InvalidInput(Problem.FIELD_UNKNOWN, message, f"{prefix}{key}")
    for key in sorted(required - set(value)):
        raise InvalidInput(Problem.FIELD_MISSING, "this field is needed", f"{prefix}{key}")
    return dict(value)


def flag(value: Any, field: str) -> bool:
    """Return a JSON boolean. Raises InvalidInput(field_type)."""
    if not isinstance(value, bool):
        raise InvalidInput(Problem.FIELD_TYPE, "give true or false", field)
    return value


def whole(value: Any, field: str) -> int:
    """Return a whole number; true and 1.0 are refused. Raises InvalidInput(field_type)."""
    if type(value) is not int:  # not isinstance: bool is a subclass of int
        raise InvalidInput(Problem.FIELD_TYPE, "give a whole number", field)
    return value


def number(value: Any, field: str) -> Decimal:
    """Return a finite number, exactly as written. Raises InvalidInput(field_type)."""
    # repr is the shortest text of a float; Decimal(0.1) would have 55 digits.
    decimal = Decimal(repr(value)) if isinstance(value, float) else value
    if (
        isinstance(decimal, bool)
        or not isinstance(decimal, int | Decimal)
        or not Decimal(decimal).is_finite()
    ):
        raise InvalidInput(Problem.FIELD_TYPE, "give a finite number", field)
    return Decimal(decimal)


def table(value: Any, field: str) -> list[list[Any]]:
    """Return a list of at least one row, all of the same length ≥ 1.

    Raises InvalidInput(field_type).
    """
    lines = value if isinstance(value, list | tuple) else ()
    rows = [list(row) if isinstance(row, list | tuple) else [] for row in lines]
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise InvalidInput(Problem.FIELD_TYPE, "give a list of rows, all of the same length", field)
    return rows
