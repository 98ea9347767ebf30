# SPDX-License-Identifier: Apache-2.0
"""Translation of pydantic's errors: field path and message, without the rejected value."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from pydantic import ValidationError
from pydantic_core import ErrorDetails

_PROBLEMS = {"extra_forbidden": Problem.FIELD_UNKNOWN, "missing": Problem.FIELD_MISSING}
_MESSAGES = {
    "extra_forbidden": "this field is not known here; check its spelling",
    "missing": "this field is missing",
    # Pydantic's own messages would name types of Python.
    "model_type": "expected an object: a map of field names to values",
    "dict_type": "expected an object: a map of names to values",
    "tuple_type": "expected a list",
    "list_type": "expected a list",
    "string_type": "expected a text",
    "int_type": "expected a whole number",
    "bool_type": "expected true or false",
}
_LENGTH: Final = re.compile(r"\w+ should have (at (?:least|most) \d+ items?)")
_KEY: Final = "[key]"
"""Last part of a location in pydantic if the key of a map is refused, not its value."""
_MAX_LISTED = 5


@dataclass(frozen=True, slots=True)
class Fault:
    """One error of an input; ``field`` is a path such as ``blocks[0].prior.joint``."""

    problem: Problem
    field: str
    detail: str


def faults_of(error: ValidationError, default: Problem) -> list[Fault]:
    """Return the faults of a validation error; `default` is the problem of unclassified faults.

    A validator sets the problem by raising ``PydanticCustomError(problem.code, message)``.
    """
    # Without input and context, because these repeat the rejected value, which may be a secret.
    details = error.errors(include_url=False, include_context=False, include_input=False)
    everything = [_fault(detail, default) for detail in details]
    of_values = [
        fault for fault, one in zip(everything, details, strict=True) if _KEY not in one["loc"]
    ]
    of_keys = [fault for fault, one in zip(everything, details, strict=True) if _KEY in one["loc"]]
    # A wrong key, such as a language, is wrong in the same way wherever it occurs.
    said = {fault.detail for fault in of_values}
    distinct = {fault.detail: fault for fault in reversed(of_keys) if fault.detail not in said}
    # A list whose entries are refused has too few entries as well, which is not a second mistake.
    return [
        fault
        for fault in [*of_values, *distinct.values()]
        if not any(_is_within(other.field, fault.field) for other in everything)
    ]


def invalid(faults: list[Fault]) -> InvalidInput:
    """Return one error for all faults: problem and field of the first, the others in its detail."""
    first, *further = faults
    detail = first.detail
    if further:
        listed = "; ".join(f"{fault.field}: {fault.detail}" for fault in further[:_MAX_LISTED])
        unlisted = len(further) - _MAX_LISTED
        detail += f" (also {listed}{f'; and {unlisted} more' if unlisted > 0 else ''})"
    return InvalidInput(first.problem, detail, first.field or None)


@contextmanager
def named(field: str) -> Iterator[None]:
    """Prefix the field of an InvalidInput with the path of the object that contains it."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(
            error.problem, error.detail, f"{field}.{error.field}" if error.field else field
        ) from None


def field_path(parts: tuple[Any, ...]) -> str:
    """Return ``("blocks", 0, "id")`` as ``blocks[0].id``."""
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path


def _is_within(inner: str, outer: str) -> bool:
    return inner.startswith((f"{outer}.", f"{outer}["))


def _fault(detail: ErrorDetails, default: Problem) -> Fault:
    kind = detail["type"]
    problem = _PROBLEMS.get(kind) or Problem.from_code(kind)
    if problem is None:
        # Pydantic's codes for values of the wrong type have these suffixes: int_type, int_parsing.
        problem = Problem.FIELD_TYPE if kind.endswith(("_type", "_parsing")) else default
    length = _LENGTH.match(detail["msg"])
    words = f"give {length[1]}" if length else detail["msg"].removeprefix("Value error, ")
    place = tuple(part for part in detail["loc"] if part != _KEY)
    return Fault(problem, field_path(place), _MESSAGES.get(kind) or words)
