# SPDX-License-Identifier: Apache-2.0
"""Plausible truths of a block, as an admin writes them; `design` says what they mean."""

from decimal import Decimal
from typing import Annotated, Any, Final

from frankly_protocol.problems import Problem
from pydantic import PlainValidator, WithJsonSchema

from frankly_server.design.plausible import MAX_TRUTHS
from frankly_server.surveys.fields import cell, custom

_NAMED: Final = ("prior", "even")
_BALL: Final = frozenset({"around", "radius"})
_HOW: Final = "write a list of truths, each prior, even or a row of counts or shares, or a map of around and radius"


def _truths(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) != _BALL:
            raise custom(Problem.DEFINITION_INVALID, _HOW)
        return {"around": _truth(value["around"]), "radius": cell(value["radius"])}
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MAX_TRUTHS:
        raise custom(Problem.DEFINITION_INVALID, _HOW)
    return tuple(map(_truth, value))


def _truth(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, list | tuple) and value:
        return tuple(map(cell, value))
    if value not in _NAMED:
        raise custom(Problem.DEFINITION_INVALID, _HOW)
    return str(value)


def asked(truths: Any) -> Any:
    """Return truths as `design` reads them."""
    if isinstance(truths, dict):
        return {"around": _read(truths["around"]), "radius": Decimal(truths["radius"])}
    return [_read(truth) for truth in truths]


def _read(truth: str | tuple[str, ...]) -> Any:
    return truth if isinstance(truth, str) else [Decimal(text) if "." in text else int(text) for text in truth]


_CELL_SCHEMA: Final = {"type": ["string", "number"]}
_ONE: Final = {"anyOf": [{"enum": list(_NAMED)}, {"type": "array", "items": _CELL_SCHEMA, "minItems": 2}]}
_SCHEMA: Final = {
    "description": "Plausible truths: the mechanism's largest variance over them is the least possible.",
    "anyOf": [
        {"type": "array", "items": _ONE, "minItems": 1, "maxItems": MAX_TRUTHS},
        {
            "type": "object",
            "properties": {"around": _ONE, "radius": _CELL_SCHEMA},
            "required": sorted(_BALL),
            "additionalProperties": False,
        },
    ],
}
TruthsDefinition = Annotated[Any, PlainValidator(_truths), WithJsonSchema(_SCHEMA)]
