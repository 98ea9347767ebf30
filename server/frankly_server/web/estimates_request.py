# SPDX-License-Identifier: Apache-2.0
"""Estimates requests in query strings: OpenAPI parameters and parser, from declared fields."""

from collections.abc import Callable, Mapping
from dataclasses import Field
from typing import Any, Final

from frankly_analyst.request import FIELDS, KINDS, SCALES, SHARES, WANTED, as_text
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.web import reading
from frankly_server.web.openapi import Query


def read(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of an estimates request from query parameters; ignore other parameters.

    Raises InvalidInput: confidence_range, field_type, targets_invalid.
    """
    return {name: _value(name, text) for name, text in texts.items() if name in FIELDS}


def _value(name: str, text: str) -> Any:
    reader = _READERS_BY_NAME.get(name) or _READERS.get(KINDS[name])
    return text if reader is None else reader(text, name)


def _parameter(item: Field[Any]) -> Query:
    """Return the OpenAPI parameter of a field, with allowed values and default as texts."""
    choices = ["true", "false"] if KINDS[item.name] is bool else item.metadata.get("choices")
    schema = {"type": "string", **item.metadata.get("schema", {})}
    schema |= {"enum": list(choices)} if choices else {}
    schema |= {} if item.default is None else {"default": as_text(item.name, item.default)}
    return Query(item.name, schema, item.metadata["description"])


PARAMETERS: Final = tuple(map(_parameter, FIELDS.values()))


def _targets(text: str, _name: str) -> Any:
    # Three values are words; all others are JSON.
    if text in (WANTED, SHARES, SCALES):
        return text
    try:
        return parse_json(text.encode(), max_bytes=reading.MAX_QUERY_BYTES, decimals=True)
    except (InvalidInput, UnicodeEncodeError):
        raise InvalidInput(
            Problem.TARGETS_INVALID,
            'write wanted, shares, scales, or JSON such as ["smokes","drinks"] or {"smokes": {"yes minus no": '
            '{"yes": 1, "no": -1}}}',
            "targets",
        ) from None


_READERS: Final[Mapping[Any, Callable[[str, str], Any]]] = {
    float: reading.level,
    bool: reading.flag,
    int: reading.whole,
    Any: _targets,
}
_READERS_BY_NAME: Final[Mapping[str, Callable[[str, str], Any]]] = {
    "denial": reading.denial,
    "equivalence": reading.positive,
}
