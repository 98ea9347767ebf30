# SPDX-License-Identifier: Apache-2.0
"""Plan requests (`frankly plan --json`, `POST /v1/plan`): one model reads and describes them."""

from typing import Annotated, Any, Literal

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.json_schema import SkipJsonSchema

from frankly_server.estimate.margins import require_level
from frankly_server.estimate.planner import Setting
from frankly_server.faults import faults_of, invalid


def _number(value: Any, info: ValidationInfo) -> float:
    # Read before pydantic does: that would take texts and booleans for numbers.
    return float(REQUEST.number(value, str(info.field_name)))


def _people(size: int) -> int:
    if size < 2:
        raise InvalidInput(
            Problem.COUNTS_INVALID, "a population is at least two people", "population"
        )
    return size


def _without_null_defaults(schema: dict[str, Any]) -> None:
    # None marks a field that was left out; written out, null is refused by most readers.
    for field in schema["properties"].values():
        if field.get("default", ...) is None:
            del field["default"]


_ROWS = {"type": "array", "minItems": 1, "items": {"type": "array", "minItems": 1}}
_Whole = Annotated[int, Strict()]
_Share = Annotated[float, Field(gt=0, le=1), BeforeValidator(_number)]
# Read by the design or the mechanism, with messages of their own.
_Level = Annotated[Any, WithJsonSchema({"type": ["string", "number", "null"]})]
_Text = Annotated[Any, WithJsonSchema({"type": "string"})]
_Flag = Annotated[Any, WithJsonSchema({"type": "boolean"})]
_Integer = Annotated[Any, WithJsonSchema({"type": "integer"})]
_List = Annotated[Any, WithJsonSchema({"type": "array", "items": {}})]
_Object = Annotated[Any, WithJsonSchema({"type": "object"})]
_Rows = Annotated[Any, WithJsonSchema(_ROWS)]
_Targets = Annotated[Any, WithJsonSchema({"anyOf": [{"const": "shares"}, _ROWS]})]
_Truths = Annotated[Any, WithJsonSchema({"type": ["array", "object"]})]


class PlanQuestion(BaseModel):
    """What is solved for, from what, and how margins are computed."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=_without_null_defaults)

    solve_for: Literal["n", "epsilon", "margin"]
    n: _Whole | None = Field(None, description="Reports.")
    epsilon: _Level = Field(None, description="Nats, exactly as written.")
    margin: Annotated[float, Field(ge=1e-12, lt=1e13), BeforeValidator(_number)] | None = Field(
        None, description="Half-width: 0.03 for ±3 points."
    )
    level: Annotated[float, BeforeValidator(require_level)] = 0.95
    method: Literal["clt", "chebyshev"] = "clt"
    population: Annotated[_Whole, AfterValidator(_people)] | None = None
    subgroup: _Share = Field(1.0, description="Share of the respondents.")
    response_rate: _Share = 1.0
    targets: _Targets = "shares"
    frontier: Annotated[_Whole, Field(ge=2, le=50)] | None = Field(
        None, description="Number of levels; needs a design input."
    )


class PlanRequest(PlanQuestion):
    """A design input, or a mechanism, with `solve_for` and the other two of n, epsilon and margin.

    A mechanism: kind, with weights and bits or with params, and design_prior. All further fields
    are of a design input, as `frankly design --json` reads it.
    """

    kind: _Text = None
    bits: _Integer = None
    weights: _Rows = None
    params: _Object = None
    design_prior: _List = None
    prior: _Object = None
    priors: _List = None
    notion: _Text = None
    notions: _List = None
    epsilon_low: _Level = None
    epsilon_high: _Level = None
    delta: _Level = None
    dpv: _Level = None
    attributes: _List = None
    robust: _Object = None
    diagonal: _Flag = None
    sensitive: _Integer = None
    ceiling_cap: _Level = None
    mechanism: _Text = None
    p00: _Level = None
    p11: _Level = None
    alpha: _Level = None
    region: _Text = None
    lift_measure: _Text = None
    lift_order: _Integer = None
    objective: _Text = None
    criterion: _Text = None
    truths: _Truths = None
    variance_cap: _Level = None
    accept_identity: _Flag = None
    accept_unidentifiable: _Flag = None
    limits: SkipJsonSchema[Any] = None  # of the command; the server sets its own

    @classmethod
    def from_json(cls, value: Any) -> "PlanRequest":
        """Read a parsed JSON object. Raises InvalidInput, naming the field."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise invalid(faults_of(error, Problem.FIELD_TYPE)) from None

    @property
    def source(self) -> dict[str, Any]:
        """The fields of the design input or mechanism that were given."""
        return {
            name: getattr(self, name)
            for name in self.model_fields_set - set(PlanQuestion.model_fields)
        }

    @property
    def setting(self) -> Setting:
        """How margins are computed."""
        return Setting(self.level, self.method, self.population, self.subgroup, self.response_rate)
