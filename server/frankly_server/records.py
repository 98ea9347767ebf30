# SPDX-License-Identifier: Apache-2.0
"""Reading JSON objects that other tools send: known keys only, right types, errors that name the field."""

from collections.abc import Mapping, Set
from decimal import Decimal
from typing import Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem


def record(
    value: Any, required: Set[str], optional: Set[str] = frozenset(), field: str | None = None
) -> dict[str, Any]:
    """Return `value` as a dict with all `required` keys and no others than `optional` ones.

    Raises InvalidInput: field_type, field_unknown or field_missing.
    """
    if not isinstance(value, Mapping):
        raise InvalidInput(Problem.FIELD_TYPE, "give a JSON object", field)
    prefix = f"{field}." if field else ""
    for key in value:
        if key not in required | optional:
            words = f"the fields are {', '.join(sorted(required | optional))}"
            raise InvalidInput(Problem.FIELD_UNKNOWN, words, f"{prefix}{key}")
    for key in sorted(required - set(value)):
        raise InvalidInput(Problem.FIELD_MISSING, "this field is needed", f"{prefix}{key}")
    return dict(value)


def flag(value: Any, field: str) -> bool:
    """Return a JSON boolean. Raises InvalidInput(field_type)."""
    if not isinstance(value, bool):
        raise InvalidInput(Problem.FIELD_TYPE, "give true or false", field)
    return value


def whole(value: Any, field: str) -> int:
    """Return a whole number; true and 1.0 are none. Raises InvalidInput(field_type)."""
    if type(value) is not int:
        raise InvalidInput(Problem.FIELD_TYPE, "give a whole number", field)
    return value


def number(value: Any, field: str) -> Decimal:
    """Return a finite number, exactly as written. Raises InvalidInput(field_type)."""
    read = Decimal(repr(value)) if isinstance(value, float) else value
    if isinstance(read, bool) or not isinstance(read, int | Decimal) or not Decimal(read).is_finite():
        raise InvalidInput(Problem.FIELD_TYPE, "give a finite number", field)
    return Decimal(read)


def table(value: Any, field: str) -> list[list[Any]]:
    """Return a list of at least one row, all of the same length ≥ 1. Raises InvalidInput(field_type)."""
    rows = (
        [list(row) if isinstance(row, list | tuple) else [] for row in value] if isinstance(value, list | tuple) else []
    )
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise InvalidInput(Problem.FIELD_TYPE, "give a list of rows, all of the same length", field)
    return rows
