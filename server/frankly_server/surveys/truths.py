# SPDX-License-Identifier: Apache-2.0
"""Plausible truths of a block in a survey file; `design` defines their meaning."""

from decimal import Decimal
from typing import Annotated, Any, Final

from frankly_design.engine.read_truths import MAX_TRUTHS
from frankly_design.requests.fields import cell, custom
from frankly_protocol.problems import Problem
from pydantic import PlainValidator, WithJsonSchema

_NAMES: Final = ("prior", "even")
_LEAST_ANSWERS: Final = 2
_BALL: Final = frozenset({"around", "radius"})
_FORMAT: Final = (
    "give a list of truths (prior; even, which is uniform; or a row of two or more counts or "
    "shares), or a map of around and radius"
)


def _truths(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) != _BALL:
            raise custom(Problem.DEFINITION_INVALID, _FORMAT)
        return {"around": _truth(value["around"]), "radius": cell(value["radius"])}
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MAX_TRUTHS:
        raise custom(Problem.DEFINITION_INVALID, _FORMAT)
    return tuple(map(_truth, value))


def _truth(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, list | tuple) and len(value) >= _LEAST_ANSWERS:
        return tuple(map(cell, value))
    if value not in _NAMES:
        raise custom(Problem.DEFINITION_INVALID, _FORMAT)
    return str(value)


def request_value(truths: Any) -> Any:
    """Return the truths of a survey file in the form that `read_truths` expects."""
    if isinstance(truths, dict):
        return {"around": _truth_value(truths["around"]), "radius": Decimal(truths["radius"])}
    # A list is a finite set of truths; the map above is a ball around a single truth.
    return [_truth_value(truth) for truth in truths]


def _truth_value(truth: str | tuple[str, ...]) -> Any:
    return (
        truth
        if isinstance(truth, str)
        else [Decimal(text) if "." in text else int(text) for text in truth]
    )


_CELL_SCHEMA: Final = {"type": ["string", "number"]}
_TRUTH_SCHEMA: Final = {
    "anyOf": [
        {"enum": list(_NAMES)},
        {"type": "array", "items": _CELL_SCHEMA, "minItems": _LEAST_ANSWERS},
    ]
}
_SCHEMA: Final = {
    "description": "Plausible truths: the design minimises the mechanism's largest variance over them.",
    "anyOf": [
        {"type": "array", "items": _TRUTH_SCHEMA, "minItems": 1, "maxItems": MAX_TRUTHS},
        {
            "type": "object",
            "properties": {"around": _TRUTH_SCHEMA, "radius": _CELL_SCHEMA},
            "required": sorted(_BALL),
            "additionalProperties": False,
        },
    ],
}
TruthsDefinition = Annotated[Any, PlainValidator(_truths), WithJsonSchema(_SCHEMA)]
