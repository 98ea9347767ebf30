# SPDX-License-Identifier: Apache-2.0
"""Validation errors of pydantic in our words: a field path, what is wrong, the way out; never the rejected value."""

from dataclasses import dataclass
from typing import Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from pydantic import ValidationError
from pydantic_core import ErrorDetails

_PROBLEMS = {"extra_forbidden": Problem.FIELD_UNKNOWN, "missing": Problem.FIELD_MISSING}
_WORDS = {"extra_forbidden": "this field is not known here; check its spelling", "missing": "this field is missing"}
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with an input; ``field`` is a path such as ``blocks[0].prior.joint``."""

    problem: Problem
    field: str
    detail: str


def faults_of(error: ValidationError, default: Problem) -> list[Fault]:
    """Return every fault pydantic found; an unclassified one gets `default` as its problem.

    A validator names its own problem by raising ``PydanticCustomError(problem.code, words)``.
    """
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return [_fault(detail, default) for detail in details]


def invalid(faults: list[Fault]) -> InvalidInput:
    """Return one error for all faults: the first one's problem and field, the others in the detail."""
    first, *others = faults
    detail = first.detail
    if others:
        more = "; ".join(f"{fault.field}: {fault.detail}" for fault in others[:_SHOWN])
        left = len(others) - _SHOWN
        detail += f" (also {more}{f'; and {left} more' if left > 0 else ''})"
    return InvalidInput(first.problem, detail, first.field or None)


def field_path(parts: tuple[Any, ...]) -> str:
    """Return ``("blocks", 0, "id")`` as ``blocks[0].id``."""
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path


def _fault(detail: ErrorDetails, default: Problem) -> Fault:
    kind = detail["type"]
    problem = _PROBLEMS.get(kind) or Problem.from_code(kind)
    if problem is None:
        problem = Problem.FIELD_TYPE if kind.endswith(("_type", "_parsing")) else default
    words = _WORDS.get(kind) or detail["msg"].removeprefix("Value error, ")
    return Fault(problem, field_path(detail["loc"]), words)
