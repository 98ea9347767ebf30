# SPDX-License-Identifier: Apache-2.0
"""Field types of survey definitions, each with its check, error message and JSON Schema.

Values are texts in YAML, and texts, numbers and booleans in JSON; both are read by the same strict
rules.
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
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", re.ASCII)
_WHOLE: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
_NUMERAL: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,30})?", re.ASCII)
# Joiners, variation selectors and the soft hyphen: people cannot see them.
_IGNORABLE: Final = "\u200c\u200d\ufe0e\ufe0f\u00ad"


class ClosedModel(BaseModel):
    """A frozen object without further fields: unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def custom(problem: Problem, message: str) -> PydanticCustomError:
    """Return the error that a validator raises; `faults_of` turns it into `problem`."""
    # Braces would be read as placeholders of pydantic's message template.
    return PydanticCustomError(problem.code, "{message}", {"message": message})


def folded(label: str) -> str:
    """Return a form that labels share if people could confuse them.

    Case, width, composition of accents, invisible characters and spacing are ignored.
    """
    # Normalised twice: casefold can produce text that is not in NFKC any more.
    normal = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label).casefold())
    return " ".join("".join(char for char in normal if char not in _IGNORABLE).split())


def _slug(value: Any) -> str:
    if not isinstance(value, str) or not _SLUG.fullmatch(value):
        raise custom(
            Problem.DEFINITION_INVALID,
            "an id is 1 to 64 of a-z, 0-9, - and _, beginning with a-z or 0-9",
        )
    return value


def _language(value: Any) -> str:
    if not isinstance(value, str) or not _LANGUAGE.fullmatch(value):
        raise custom(Problem.DEFINITION_INVALID, "write a language tag such as en or pt-BR")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise custom(Problem.FIELD_TYPE, "write some text")
    if len(value) > 4000:
        raise custom(Problem.DEFINITION_INVALID, "a text has at most 4000 characters")
    unsafe = unsafe_character(value)
    if unsafe:
        raise custom(
            Problem.TEXT_CHARACTERS,
            f"the text holds {unsafe}, which cannot be shown safely; remove it",
        )
    return value


def _whole(value: Any, least: int = 1) -> int:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    # type() instead of isinstance, because bool is a subclass of int.
    if type(value) is not int or not least <= value <= 10**9:
        raise custom(Problem.FIELD_TYPE, f"write a whole number from {least} to 1000000000")
    return value


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    # yes, on and 1 are refused, although other YAML readers take them for true.
    if value not in ("true", "false"):
        raise custom(Problem.FIELD_TYPE, "write true or false")
    return bool(value == "true")


def _moment(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        return parse_time(value if isinstance(value, str) else "")
    except ValueError:
        raise custom(
            Problem.DEFINITION_INVALID,
            "write a UTC time as 2026-12-31T23:59:59Z",
        ) from None


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
        # Only checked: the text is stored and parsed again where it is used, without rounding.
        read()
    except InvalidInput as error:
        raise custom(error.problem, error.detail) from None
    return str(value)


def cell(value: Any) -> str:
    """Return a count or a share as it was written; raises prior_value for other values."""
    # Floats are refused: a share must keep the digits that its author wrote.
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not _NUMERAL.fullmatch(text):
        raise custom(
            Problem.PRIOR_VALUE,
            "a cell is a count such as 120, or a share such as 0.125; never negative",
        )
    return text


def _json_schema(
    description: str,
    type_: str | list[str] = "string",
    **keywords: Any,
) -> WithJsonSchema:
    """Return the JSON Schema of a field. type_ : the JSON types that are accepted."""
    return WithJsonSchema({"type": type_, "description": description, **keywords})


def _anchored(pattern: re.Pattern[str]) -> str:
    # JSON Schema searches for a pattern; Python's fullmatch is anchored.
    return f"^({pattern.pattern})$"


_NUMBER: Final = ["string", "number"]
_LEAST: Final = f"{float(MIN_EPSILON):g}"
Slug = Annotated[str, BeforeValidator(_slug), _json_schema("An id.", pattern=_anchored(_SLUG))]
Language = Annotated[
    str,
    BeforeValidator(_language),
    _json_schema("A language tag.", pattern=_anchored(_LANGUAGE)),
]
Text = Annotated[str, BeforeValidator(_text), _json_schema("A text.", minLength=1, maxLength=4000)]
Whole = Annotated[
    int,
    BeforeValidator(_whole),
    _json_schema(
        "A whole number.",
        ["integer", "string"],
        minimum=1,
        maximum=10**9,
        pattern=_anchored(_WHOLE),
    ),
]
Reports = Annotated[
    int,
    BeforeValidator(lambda value: _whole(value, 2)),
    _json_schema(
        "A number of reports, at least 2.",
        ["integer", "string"],
        minimum=2,
        maximum=10**9,
        pattern=_anchored(_WHOLE),
    ),
]
Flag = Annotated[
    bool,
    BeforeValidator(_flag),
    WithJsonSchema({"enum": [True, False, "true", "false"]}),
]
Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    PlainSerializer(format_time, return_type=str),
    _json_schema("A UTC time: 2026-12-31T23:59:59Z.", pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"),
]
Epsilon = Annotated[
    str,
    BeforeValidator(_nats),
    _json_schema(f"Nats, {_LEAST} to {MAX_EPSILON}.", _NUMBER),
]
Side = Annotated[
    str,
    BeforeValidator(_side),
    _json_schema("Nats, or inf for a side that is not promised.", _NUMBER),
]
Ceiling = Annotated[
    str,
    BeforeValidator(_ceiling),
    _json_schema(f"Nats, {_LEAST} to {2 * MAX_EPSILON}.", _NUMBER),
]
Budget = Annotated[
    str,
    BeforeValidator(_budget),
    _json_schema(f"Nats, {_LEAST} to {6 * MAX_EPSILON}.", _NUMBER),
]
Cell = Annotated[
    str,
    BeforeValidator(cell),
    _json_schema("A count such as 120, or a share such as 0.125.", _NUMBER),
]
LocalisedText = Annotated[
    dict[Language, Text],
    AfterValidator(lambda texts: dict(sorted(texts.items()))),
]
