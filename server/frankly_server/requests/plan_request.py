# SPDX-License-Identifier: Apache-2.0
"""Plan requests (`frankly plan --json`, `POST /v1/plan`): the model of their fields."""

from typing import Annotated, Any, Literal

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.agreement import MAX_QUESTIONS
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    Strict,
    WithJsonSchema,
)
from pydantic.config import JsonDict

from frankly_server.estimate.margins import require_level
from frankly_server.estimate.planner import Setting
from frankly_server.requests.design_fields import DesignFields
from frankly_server.requests.fields import Epsilon, RequestModel, errors_at_the_path, require_only
from frankly_server.requests.form_fields import FormFields, FormQuestionFields, within_a_form
from frankly_server.requests.mechanism import MechanismFields
from frankly_server.requests.targets import Targets


def _number(value: Any) -> float:
    # Parsed here, before pydantic, which would accept texts and booleans as numbers.
    with errors_at_the_path():
        return float(REQUEST.number(value, ""))


def _people(size: int) -> int:
    if size < 2:
        raise InvalidInput(
            Problem.COUNTS_INVALID, "a population is at least two people", "population"
        )
    return size


_Whole = Annotated[int, Strict()]
_People: JsonDict = {"minimum": 1, "maximum": 10**12}
_NOT_OF_FORMS = {"epsilon", "targets", "frontier"}
_Share = Annotated[float, Field(gt=0, le=1), BeforeValidator(_number)]

Margin = Annotated[float, Field(ge=1e-12, lt=1e13), BeforeValidator(_number)]


class PlanQuestion(RequestModel):
    """The quantity to solve for, the two that are given, and the settings of margins."""

    solve_for: Literal["n", "epsilon", "margin"]
    n: _Whole | None = Field(None, description="Reports.", json_schema_extra=_People)
    epsilon: Epsilon | None = None
    margin: Margin | None = Field(None, description="Half-width: 0.03 for ±3 points.")
    level: Annotated[float, BeforeValidator(require_level)] = 0.95
    method: Literal["clt", "chebyshev"] = "clt"
    population: Annotated[_Whole, AfterValidator(_people)] | None = None
    subgroup: _Share = Field(1.0, description="Share of the respondents.")
    response_rate: _Share = 1.0
    targets: Targets = "shares"
    frontier: Annotated[_Whole, Field(ge=2, le=50)] | None = Field(
        None, description="Number of levels; needs a design input."
    )


class PlannedQuestion(FormQuestionFields):
    """A question of a form to plan. margin : its wanted half-width, by default the plan's."""

    margin: Margin | None = None


class PlannedForm(FormFields):
    """A form to plan; without epsilon if that is solved for."""

    questions: Annotated[
        tuple[PlannedQuestion, ...],
        AfterValidator(within_a_form),
        Field(json_schema_extra={"minItems": 1, "maxItems": MAX_QUESTIONS}),
    ]


class PlanRequest(PlanQuestion, DesignFields, MechanismFields):
    """A design input, a mechanism or a form, with `solve_for` and two of n, epsilon and margin.

    A mechanism: kind, with weights and bits or with params, and design_prior. A form contains its
    epsilon, and optionally a margin for each question.
    """

    form: PlannedForm | None = None

    design_prior: Annotated[Any, WithJsonSchema({"type": "array", "items": {}})] = None

    @property
    def has_mechanism(self) -> bool:
        """True if the request has a mechanism, whose level is fixed."""
        return bool(self.model_fields_set & {"weights", "params"})

    def require_one_source(self) -> None:
        """Raise InvalidInput(field_unknown) if a mechanism, a design input and a form are mixed."""
        mechanism = {*MechanismFields.model_fields, "design_prior"}
        if self.has_mechanism:
            own, kind = {*PlanQuestion.model_fields, *mechanism}, "mechanism"
        else:
            own, kind = set(PlanRequest.model_fields) - mechanism - {"form"}, "design input"
        if self.form is not None:
            own, kind = {*PlanQuestion.model_fields, "form", "limits"} - _NOT_OF_FORMS, "form"
        require_only(self, own, kind)

    @property
    def setting(self) -> Setting:
        """The settings with which margins are computed."""
        return Setting(self.level, self.method, self.population, self.subgroup, self.response_rate)
