# SPDX-License-Identifier: Apache-2.0
"""Field types of requests and survey files, each with its check, error message and JSON Schema.

Values are texts in YAML, and texts, numbers and booleans in JSON; the same strict rules apply to
both. Levels and shares are stored as texts, exactly as written.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Final, Self

from frankly_protocol.audit import parse_nats
from frankly_protocol.audit.bounds import MAX_EPSILON, MIN_EPSILON
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.schema import ID, REQUEST
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError, core_schema

from frankly_design.requests.faults import faults_of, invalid

NUMERAL: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,30})?", re.ASCII)
_WHOLE: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
_DECIMAL: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,60})?", re.ASCII)
# Limit of exponents: the exact fraction of 1e999999999 would fill the memory.
_MAX_EXPONENT: Final = 60


def _without_empty_defaults(schema: dict[str, Any]) -> None:
    # None and () mean that a field was left out; most field types refuse them as values.
    for field in schema.get("properties", {}).values():
        if field.get("default", ...) in (None, []):
            del field["default"]


class ClosedModel(BaseModel):
    """A frozen object; unknown fields are refused."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        json_schema_extra=_without_empty_defaults,
    )


class RequestModel(ClosedModel):
    """A request: a JSON object."""

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Parse a value of `parse_json(..., decimals=True)`. Raises InvalidInput with the field."""
        # Checked first, because pydantic's error would not list the existing fields.
        unknown = sorted(set(value) - set(cls.model_fields)) if isinstance(value, Mapping) else []
        if unknown:
            raise InvalidInput(
                Problem.FIELD_UNKNOWN,
                f"the fields are {', '.join(sorted(cls.model_fields))}",
                unknown[0],
            )
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise invalid(faults_of(error, Problem.FIELD_TYPE)) from None


def fraction(
    value: Any, field: str, largest: int = _MAX_EXPONENT, problem: Problem = Problem.FIELD_TYPE
) -> Fraction:
    """Return a number of a request exactly: a whole number, a decimal, or in Python a fraction.

    largest : of the decimal exponent's size. Raises InvalidInput(field_type), or `problem` for an
    exponent beyond it.
    """
    if isinstance(value, Fraction):
        return value
    number = REQUEST.number(value, field)
    if number and abs(number.adjusted()) > largest:
        raise InvalidInput(problem, "the number is too large or too small", field)
    return Fraction(number)


def require_only(request: RequestModel, fields: Collection[str], kind: str) -> None:
    """Raise InvalidInput(field_unknown) for a field outside `fields`."""
    foreign = sorted(request.model_fields_set - set(fields))
    if foreign:
        raise InvalidInput(
            Problem.FIELD_UNKNOWN, f"this field does not belong to a {kind}", foreign[0]
        )


def custom(problem: Problem, message: str) -> PydanticCustomError:
    """Return the error that a validator raises; `faults_of` turns it into `problem`."""
    # Braces would be read as placeholders of pydantic's message template.
    return PydanticCustomError(problem.code, "{message}", {"message": message})


@contextmanager
def errors_at_the_path() -> Iterator[None]:
    """Convert an InvalidInput into a validator error, to which pydantic adds the path."""
    try:
        yield
    except InvalidInput as error:
        raise custom(error.problem, error.detail) from None


@dataclass(frozen=True, slots=True)
class OneOf:
    """Annotation for a field with the allowed values `names`. kind : plural noun for the values."""

    kind: str
    names: tuple[str, ...]

    def _read(self, value: Any) -> str:
        if not isinstance(value, str) or value not in self.names:
            raise custom(Problem.UNSUPPORTED, f"the {self.kind} are {', '.join(self.names)}")
        return value

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self._read)

    def __get_pydantic_json_schema__(self, _schema: Any, _handler: Any) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.names)}


def slug(value: Any) -> str:
    """Return `value` if it is an id; raises definition_invalid for other values."""
    if not isinstance(value, str) or not ID.fullmatch(value):
        raise custom(
            Problem.DEFINITION_INVALID,
            "an id is 1 to 64 of a-z, 0-9, - and _, beginning with a-z or 0-9",
        )
    return value


def whole(value: Any, least: int = 1) -> int:
    """Return a whole number from `least` to 10^9; raises field_type for other values."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    # type() instead of isinstance, because bool is a subclass of int.
    if type(value) is not int or not least <= value <= 10**9:
        raise custom(Problem.FIELD_TYPE, f"write a whole number from {least} to 1000000000")
    return value


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    # yes, on and 1 are refused, although other YAML parsers read them as true.
    if value not in ("true", "false"):
        raise custom(Problem.FIELD_TYPE, "write true or false")
    return bool(value == "true")


def nats(field: str, low: Fraction, high: Fraction) -> Callable[[Any], str]:
    """Return a validator of nats in [low, high]; it returns the text unchanged."""

    def read(value: Any) -> str:
        # This is only a check. The text is stored, and parsed without rounding where it is used.
        with errors_at_the_path():
            parse_nats(value, field, low, high)
        return str(value)

    return read


_nats: Final = nats("epsilon", MIN_EPSILON, MAX_EPSILON)
# Levels that increase with the distance between two answers may be as large as a ceiling.
_pair_nats: Final = nats("epsilons", MIN_EPSILON, 2 * MAX_EPSILON)


def _side(value: Any) -> str:
    # null in JSON and inf in files both mean that this side is not promised.
    return "inf" if value is None or value == "inf" else _nats(value)


def _pair_level(value: Any) -> str:
    return "inf" if value is None or value == "inf" else _pair_nats(value)


def cell(value: Any) -> str:
    """Return a count or a share as written; raises prior_value for other values."""
    # Floats are refused, because a share must preserve the digits that its author wrote.
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not NUMERAL.fullmatch(text):
        raise custom(
            Problem.PRIOR_VALUE,
            "a cell is a count such as 120, or a share such as 0.125; never negative",
        )
    return text


def _decimal(value: Any) -> str:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return value
    with errors_at_the_path():
        number = REQUEST.number(value, "")
    # Checked first: for an exponent of a billion, the text below would have a billion digits.
    if number and abs(number.adjusted()) > _MAX_EXPONENT:
        raise custom(Problem.FIELD_TYPE, "the number is too large or too small")
    return f"{number:f}"


def _positive(text: str) -> str:
    if Decimal(text) <= 0:
        raise custom(Problem.FIELD_TYPE, "give a number above 0")
    return text


def _probability(text: str) -> str:
    if not 0 <= Decimal(text) <= 1:
        raise custom(Problem.FIELD_TYPE, "a probability lies between 0 and 1")
    return text


def _delta(text: str) -> str:
    if not 0 <= Decimal(text) < 1:
        raise custom(Problem.EPS_OUT_OF_RANGE, "delta is at least 0 and less than 1")
    return text


def _joint(value: Any) -> Any:
    return REQUEST.record(value, "prior", {"joint"})["joint"]


def json_schema(
    description: str, type_: str | list[str] = "string", **keywords: Any
) -> WithJsonSchema:
    """Return the JSON Schema of a field. type_ : the JSON types that are accepted."""
    return WithJsonSchema({"type": type_, "description": description, **keywords})


def anchored(pattern: re.Pattern[str]) -> str:
    """Return the pattern with anchors, which JSON Schema needs (Python's fullmatch does not)."""
    return f"^({pattern.pattern})$"


def whole_schema(description: str, least: int) -> WithJsonSchema:
    """Return the JSON Schema of whole numbers from `least` to 10^9, as numbers or texts."""
    return json_schema(
        description, ["integer", "string"], minimum=least, maximum=10**9, pattern=anchored(_WHOLE)
    )


NUMBER: Final = ["string", "number"]
_LEAST: Final = f"{float(MIN_EPSILON):g}"
Slug = Annotated[str, BeforeValidator(slug), json_schema("An id.", pattern=anchored(ID))]
Whole = Annotated[int, BeforeValidator(whole), whole_schema("A whole number.", 1)]
Flag = Annotated[
    bool,
    BeforeValidator(_flag),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "string", "enum": ["true", "false"]}]}),
]
Epsilon = Annotated[
    str, BeforeValidator(_nats), json_schema(f"Nats, {_LEAST} to {MAX_EPSILON}.", NUMBER)
]
Side = Annotated[
    str | None,
    BeforeValidator(_side),
    json_schema("Nats, or inf for a side that is not promised.", NUMBER),
]
PairLevel = Annotated[
    str | None,
    BeforeValidator(_pair_level),
    json_schema("Nats, or inf for a pair without a promise.", NUMBER),
]
Ceiling = Annotated[
    str,
    BeforeValidator(nats("ceiling_cap", MIN_EPSILON, 2 * MAX_EPSILON)),
    json_schema(f"Nats, {_LEAST} to {2 * MAX_EPSILON}.", NUMBER),
]
Number = Annotated[str, BeforeValidator(_decimal), json_schema("A decimal number.", NUMBER)]
Positive = Annotated[
    Number, AfterValidator(_positive), json_schema("A decimal number above 0.", NUMBER)
]
Probability = Annotated[
    Number, AfterValidator(_probability), json_schema("A probability, 0 to 1.", NUMBER)
]
Delta = Annotated[Number, AfterValidator(_delta), json_schema("At least 0, less than 1.", NUMBER)]
Cell = Annotated[
    str,
    BeforeValidator(cell),
    json_schema("A count such as 120, or a share such as 0.125.", NUMBER),
]


def rows_schema(**cell: Any) -> dict[str, Any]:
    """Return the JSON Schema of a table. cell : the schema of its cells."""
    return {
        "type": "array",
        "minItems": 1,
        "items": {"type": "array", "minItems": 1, "items": cell},
    }


JointRows = Annotated[
    Any,
    PlainValidator(_joint),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {"joint": rows_schema(type="number", minimum=0)},
            "required": ["joint"],
            "additionalProperties": False,
        }
    ),
]
"""Rows of {"joint": …}, unchecked; `Prior.from_rows` parses them."""
