# SPDX-License-Identifier: Apache-2.0
"""Plan requests (`frankly plan --json`, `POST /v1/plan`): one model reads and describes them."""

from typing import Annotated, Any, Literal

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    Strict,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.config import JsonDict

from frankly_server.estimate.margins import require_level
from frankly_server.estimate.planner import Setting
from frankly_server.requests.design_fields import DesignFields
from frankly_server.requests.fields import Epsilon, RequestModel
from frankly_server.requests.mechanism import MechanismFields
from frankly_server.requests.targets import Targets


def _number(value: Any, info: ValidationInfo) -> float:
    # Read before pydantic does, because it would read texts and booleans as numbers.
    return float(REQUEST.number(value, str(info.field_name)))


def _people(size: int) -> int:
    if size < 2:
        raise InvalidInput(
            Problem.COUNTS_INVALID, "a population is at least two people", "population"
        )
    return size


_Whole = Annotated[int, Strict()]
_People: JsonDict = {"minimum": 1, "maximum": 10**12}
_Share = Annotated[float, Field(gt=0, le=1), BeforeValidator(_number)]


class PlanQuestion(RequestModel):
    """The quantity to solve for, the two that are given, and the settings of margins."""

    solve_for: Literal["n", "epsilon", "margin"]
    n: _Whole | None = Field(None, description="Reports.", json_schema_extra=_People)
    epsilon: Epsilon | None = None
    margin: Annotated[float, Field(ge=1e-12, lt=1e13), BeforeValidator(_number)] | None = Field(
        None, description="Half-width: 0.03 for ±3 points."
    )
    level: Annotated[float, BeforeValidator(require_level)] = 0.95
    method: Literal["clt", "chebyshev"] = "clt"
    population: Annotated[_Whole, AfterValidator(_people)] | None = None
    subgroup: _Share = Field(1.0, description="Share of the respondents.")
    response_rate: _Share = 1.0
    targets: Targets = "shares"
    frontier: Annotated[_Whole, Field(ge=2, le=50)] | None = Field(
        None, description="Number of levels; needs a design input."
    )


class PlanRequest(PlanQuestion, DesignFields, MechanismFields):
    """A design input, or a mechanism, with `solve_for` and the other two of n, epsilon and margin.

    A mechanism: kind, with weights and bits or with params, and design_prior.
    """

    design_prior: Annotated[Any, WithJsonSchema({"type": "array", "items": {}})] = None

    @property
    def has_mechanism(self) -> bool:
        """True if the request has a mechanism, whose level is fixed."""
        return bool(self.model_fields_set & {"weights", "params"})

    def require_one_source(self) -> None:
        """Raise InvalidInput(field_unknown) if a mechanism and a design input are mixed."""
        mechanism = {*MechanismFields.model_fields, "design_prior"}
        if self.has_mechanism:
            own, kind = {*PlanQuestion.model_fields, *mechanism}, "mechanism"
        else:
            own, kind = set(PlanRequest.model_fields) - mechanism, "design input"
        foreign = sorted(self.model_fields_set - own)
        if foreign:
            message = f"this field does not belong to a {kind}"
            raise InvalidInput(Problem.FIELD_UNKNOWN, message, foreign[0])

    @property
    def setting(self) -> Setting:
        """The settings with which margins are computed."""
        return Setting(self.level, self.method, self.population, self.subgroup, self.response_rate)
