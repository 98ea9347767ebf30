# SPDX-License-Identifier: Apache-2.0
"""Translation of pydantic's errors: field path and message, without the rejected value."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "bool_type": "expected true or false",
}
_LENGTH: Final = re.compile(r"\w+ should have (at (?:least|most) \d+ items?)")
_KEY: Final = "[key]"
"""Last part of a location in pydantic if the key of a map is refused, not its value."""
_COMMA: Final = "a text with a comma within { } needs quotes"
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
    values = [(one, _fault(one, default)) for one in details if _KEY not in one["loc"]]
    keys = [(one["loc"][:-1], _fault(one, default)) for one in details if _KEY in one["loc"]]
    wrong = {place for place, _ in keys}
    faults = [fault for one, fault in values if one["loc"] not in wrong]
    # A wrong key, such as a language, is wrong in the same way wherever it occurs.
    said = {fault.detail for fault in faults}
    for _, fault in keys:
        if fault.detail not in said:
            said.add(fault.detail)
            comma = f"; {_COMMA}" if "language" in fault.detail else ""
            faults.append(replace(fault, detail=fault.detail + comma))
    # A list whose entries are refused has too few entries as well, which is not a second mistake.
    fields = sorted({fault.field for fault in [*faults, *(fault for _, fault in keys)]})
    return [fault for fault in faults if not _contains_any(fault.field, fields)]


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


def _contains_any(outer: str, fields: Sequence[str]) -> bool:
    """Return True if one of the sorted paths is within `outer`."""
    # Paths with the same beginning follow one another. A body of 32 kB can have 40,000 faults, too
    # many to compare all pairs.
    for beginning in (f"{outer}.", f"{outer}["):
        place = bisect_left(fields, beginning)
        if place < len(fields) and fields[place].startswith(beginning):
            return True
    return False


def _fault(detail: ErrorDetails, default: Problem) -> Fault:
    kind = detail["type"]
    problem = _PROBLEMS.get(kind) or Problem.from_code(kind)
    if problem is None:
        # Pydantic's codes for values of the wrong type have these suffixes: int_type, int_parsing.
        problem = Problem.FIELD_TYPE if kind.endswith(("_type", "_parsing")) else default
    length = _LENGTH.match(detail["msg"])
    words = f"give {length[1]}" if length else detail["msg"].removeprefix("Value error, ")
    words = words.replace("Input should be", "expected", 1)
    # Any text can be a key, so the field of a wrong key is the map.
    place = detail["loc"][:-2] if _KEY in detail["loc"] else detail["loc"]
    return Fault(problem, field_path(place), _MESSAGES.get(kind) or words)
