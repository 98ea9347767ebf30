# SPDX-License-Identifier: Apache-2.0
"""The kinds of fields a survey definition has, each with its own words when it is wrong.

Values come as texts from YAML and as texts, numbers and booleans from JSON; both are read the same way, strictly.
"""

import re
import unicodedata
from datetime import datetime
from typing import Annotated, Any, Final

from frankly_protocol.audit import parse_epsilon, parse_nats
from frankly_protocol.audit.bounds import MAX_EPSILON, MIN_EPSILON
from frankly_protocol.clock import format_time, parse_time
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.schema import unsafe_character
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", re.ASCII)
_WHOLE: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
_NUMERAL: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,30})?", re.ASCII)
_IGNORABLE: Final = "\u200c\u200d\ufe0e\ufe0f\u00ad"


class Part(BaseModel):
    """A closed, frozen object: a field that is not listed does not exist."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def custom(problem: Problem, words: str) -> PydanticCustomError:
    """Return the error a validator raises; `faults_of` turns it into that problem."""
    # Braces would be read as placeholders of pydantic's message template.
    return PydanticCustomError(problem.code, "{words}", {"words": words})


def folded(label: str) -> str:
    """Return what two labels share if people could take one for the other: case, width, accents' form, spacing."""
    shown = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label).casefold())
    return " ".join("".join(char for char in shown if char not in _IGNORABLE).split())


def _slug(value: Any) -> str:
    if not isinstance(value, str) or not _SLUG.fullmatch(value):
        raise custom(Problem.DEFINITION_INVALID, "an id is 1 to 64 of a-z, 0-9, - and _, beginning with a-z or 0-9")
    return value


def _language(value: Any) -> str:
    if not isinstance(value, str) or not _LANGUAGE.fullmatch(value):
        raise custom(Problem.DEFINITION_INVALID, "write a language tag such as en or pt-BR")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise custom(Problem.FIELD_TYPE, "write a text")
    if len(value) > 4000:
        raise custom(Problem.DEFINITION_INVALID, "a text has at most 4000 characters")
    found = unsafe_character(value)
    if found:
        raise custom(Problem.TEXT_CHARACTERS, f"the text holds {found}, which cannot be shown safely; remove it")
    return value


def _whole(value: Any, least: int = 1) -> int:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if type(value) is not int or not least <= value <= 10**9:
        raise custom(Problem.FIELD_TYPE, f"write a whole number from {least} to 1000000000")
    return value


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value not in ("true", "false"):
        raise custom(Problem.FIELD_TYPE, "write true or false")
    return bool(value == "true")


def _moment(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        return parse_time(value if isinstance(value, str) else "")
    except ValueError:
        raise custom(Problem.DEFINITION_INVALID, "write a UTC time as 2026-12-31T23:59:59Z") from None


def _nats(value: Any) -> str:
    return _level(lambda: parse_epsilon(value), value)


def _side(value: Any) -> str:
    return "inf" if value == "inf" else _nats(value)


def _ceiling(value: Any) -> str:
    return _level(lambda: parse_nats(value, "ceiling_cap", MIN_EPSILON, 2 * MAX_EPSILON), value)


def _budget(value: Any) -> str:
    return _level(lambda: parse_nats(value, "budget", MIN_EPSILON, 6 * MAX_EPSILON), value)


def _level(read: Any, value: Any) -> str:
    try:
        read()
    except InvalidInput as error:
        raise custom(error.problem, error.detail) from None
    return str(value)


def cell(value: Any) -> str:
    """Return a count or a share as it was written. Raises the error of a field that is neither."""
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not _NUMERAL.fullmatch(text):
        raise custom(Problem.PRIOR_VALUE, "a cell is a count such as 120, or a share such as 0.125; never negative")
    return text


def _shown(meaning: str, kind: str | list[str] = "string", **more: Any) -> WithJsonSchema:
    """Say how a field is written in a file; YAML's own numbers and booleans do as well as texts."""
    return WithJsonSchema({"type": kind, "description": meaning, **more})


def _whole_of(pattern: re.Pattern[str]) -> str:
    return f"^({pattern.pattern})$"


_NUMBER: Final = ["string", "number"]
_LEAST: Final = f"{float(MIN_EPSILON):g}"
Slug = Annotated[str, BeforeValidator(_slug), _shown("An id.", pattern=_whole_of(_SLUG))]
Language = Annotated[str, BeforeValidator(_language), _shown("A language tag.", pattern=_whole_of(_LANGUAGE))]
Text = Annotated[str, BeforeValidator(_text), _shown("A text.", minLength=1, maxLength=4000)]
Whole = Annotated[
    int,
    BeforeValidator(_whole),
    _shown("A whole number.", ["integer", "string"], minimum=1, maximum=10**9, pattern=_whole_of(_WHOLE)),
]
Reports = Annotated[
    int,
    BeforeValidator(lambda value: _whole(value, 2)),
    _shown(
        "A number of reports, at least 2.", ["integer", "string"], minimum=2, maximum=10**9, pattern=_whole_of(_WHOLE)
    ),
]
Flag = Annotated[bool, BeforeValidator(_flag), WithJsonSchema({"enum": [True, False, "true", "false"]})]
Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    PlainSerializer(format_time, return_type=str),
    _shown("A UTC time: 2026-12-31T23:59:59Z.", pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"),
]
Epsilon = Annotated[str, BeforeValidator(_nats), _shown(f"Nats, {_LEAST} to {MAX_EPSILON}.", _NUMBER)]
Side = Annotated[str, BeforeValidator(_side), _shown("Nats, or inf for a side that is not promised.", _NUMBER)]
Ceiling = Annotated[str, BeforeValidator(_ceiling), _shown(f"Nats, {_LEAST} to {2 * MAX_EPSILON}.", _NUMBER)]
Budget = Annotated[str, BeforeValidator(_budget), _shown(f"Nats, {_LEAST} to {6 * MAX_EPSILON}.", _NUMBER)]
Cell = Annotated[str, BeforeValidator(cell), _shown("A count such as 120, or a share such as 0.125.", _NUMBER)]
Words = Annotated[dict[Language, Text], AfterValidator(lambda said: dict(sorted(said.items())))]
