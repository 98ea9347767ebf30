# SPDX-License-Identifier: Apache-2.0
"""Survey files as bodies of requests: YAML, or JSON with the same fields."""

from collections.abc import Mapping
from typing import Final

from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from pydantic import BaseModel

from frankly_server.surveys.definition import (
    SurveyDefinition,
    parse_definition,
    parse_value,
    written,
)
from frankly_server.surveys.searches import apart
from frankly_server.surveys.yaml import MAX_BYTES
from frankly_server.web import reading
from frankly_server.web.management import models
from frankly_server.web.management.operations import Call

YAML: Final = "application/yaml"
_PARSE_S: Final = 10.0
_SMALL: Final = 2**14
"""Largest file that is parsed in this process; others hold the interpreter too long."""
MOST_BYTES: Final = 2 * MAX_BYTES
"""A file as JSON may be longer than as YAML; its parser has a limit of its own."""
FILE: Final[Mapping[str, type[BaseModel]]] = {
    reading.JSON: models.SurveyFile,
    YAML: models.SurveyFile,
}
FILE_PROBLEMS: Final = (
    Problem.CHOICES_COLLIDE,
    Problem.CHOICES_COUNT,
    Problem.CHOICE_UNPROTECTED,
    Problem.DEFINITION_INVALID,
    Problem.EPS_FORMAT,
    Problem.EPS_NOT_FINITE,
    Problem.EPS_OUT_OF_RANGE,
    Problem.PRIOR_SHAPE,
    Problem.PRIOR_SMALL_CELLS,
    Problem.PRIOR_SUM,
    Problem.PRIOR_VALUE,
    Problem.SECRET_EMPTY,
    Problem.TEXT_CHARACTERS,
    Problem.TARGETS_INVALID,
    Problem.STRATA_INVALID,
    Problem.COUNTS_INVALID,
    Problem.WEIGHTS_INVALID,
    Problem.UNSUPPORTED,
)


def definition_of(call: Call) -> SurveyDefinition:
    """Parse the body, in a place. A large file is parsed in a process, where it delays no report."""
    parse = parse_definition if call.media_type == YAML else parse_json_file
    if len(call.data) <= _SMALL:
        return parse(call.data)
    try:
        return apart(
            parse, call.data, seconds=_PARSE_S, poll=call.services.managing.require_running
        )
    except InvalidInput as refused:
        if refused.problem is not Problem.OPTIMISER_LIMIT:
            raise
        raise InvalidInput(
            Problem.DEFINITION_INVALID, "the file takes too long to read: make it smaller"
        ) from None


def parse_json_file(data: bytes) -> SurveyDefinition:
    """Parse a survey file as JSON. Raises like `parse_value`, and InvalidInput(json_invalid)."""
    return parse_value(written(parse_json(data, max_bytes=MOST_BYTES, decimals=True)))
