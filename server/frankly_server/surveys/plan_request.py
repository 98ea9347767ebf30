# SPDX-License-Identifier: Apache-2.0
"""What is asked of the plan of a survey file (`frankly plan --survey`, `POST /v1/plan/survey`)."""

from typing import Annotated, Any, Final, Literal

from frankly_design.estimate.margins import require_level
from frankly_design.estimate.planner import MOST
from frankly_design.requests.faults import named
from frankly_design.requests.fields import Flag, RequestModel, Slug, custom
from frankly_design.requests.plan_request import exact_number
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from pydantic import AfterValidator, BeforeValidator, Field, Strict, WithJsonSchema

from frankly_server.surveys.definition import SurveyDefinition, parse_value, written

POWER: Final = 0.8
"""Power of a difference without one."""
_SUM: Final = 1e-9


def _level(value: Any) -> float:
    level = require_level(value)
    if level < 0.5:
        raise custom(Problem.CONFIDENCE_RANGE, "the level is at least 0.5: use 0.95")
    return level


def _shares_of_groups(groups: dict[str, tuple[float, ...]]) -> dict[str, tuple[float, ...]]:
    if len(groups) != 1:
        raise custom(Problem.FIELD_TYPE, "name one public question, with the shares of its choices")
    for shares in groups.values():
        # rounding: decimal shares sum to 1 only approximately as floats
        if abs(sum(shares) - 1) > _SUM:
            raise custom(Problem.PRIOR_SUM, "the shares of the groups sum to 1")
    return groups


_Share = Annotated[float, Field(ge=1e-6, le=1), BeforeValidator(exact_number)]
_Margin = Annotated[float, Field(ge=1e-6, lt=1), BeforeValidator(exact_number)]
_Random = Annotated[float, Field(ge=0, le=0.9), BeforeValidator(exact_number)]
_Power = Annotated[float, Field(ge=0.5, le=0.9999), BeforeValidator(exact_number)]
_People = Annotated[int, Strict(), Field(ge=2, le=MOST)]


class SurveyPlanFields(RequestModel):
    """A margin to reach or a number of reports, and what is assumed of the people.

    A margin is a half-width in shares: 0.03 for ±3 points, and for a mean 3 % of the distance between its
    lowest and highest score.
    """

    margin: _Margin | None = Field(
        None, description="Wanted half-width of every question's figure; this, or n."
    )
    n: Annotated[int, Strict(), Field(ge=1, le=MOST)] | None = Field(None, description="Reports.")
    level: Annotated[float, BeforeValidator(_level)] = 0.95
    response_rate: _Share = 1.0
    population: _People | None = Field(
        None, description="People who can answer, each at most once; null for many."
    )
    group_share: _Share | None = Field(
        None, description="Share of the smallest group in which the margin is wanted."
    )
    groups: (
        Annotated[
            dict[Slug, Annotated[tuple[_Share, ...], Field(min_length=2)]],
            AfterValidator(_shares_of_groups),
        ]
        | None
    ) = Field(
        None, description="Instead: one public question, with the guessed shares of its choices."
    )
    random: _Random = Field(0.0, description="Guessed share of people who answer at random.")
    shares: Literal["expected", "any"] = Field(
        "expected",
        description="expected: at the file's expected shares, where it has some; any: for all true shares.",
    )
    difference: _Share | None = Field(
        None, description="Difference between two arms to find, of everybody, in shares."
    )
    power: _Power | None = Field(
        None, description="Chance at which the difference is found, by default 0.8."
    )
    strengths: Flag = Field(
        False, description="Also the reports at the next stronger and weaker protection."
    )

    def require_coherent(self) -> None:
        """Raise InvalidInput for fields that contradict each other."""
        if (self.margin is None) == (self.n is None):
            raise _refused(
                "give the margin to reach or the number of reports, not both", "margin", self.n
            )
        if self.n is not None and self.n > (self.population or MOST):
            raise InvalidInput(Problem.COUNTS_INVALID, "give at most one report per person", "n")
        if self.group_share is not None and self.groups is not None:
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "the groups have a smallest share: leave this out",
                "group_share",
            )
        if self.power is not None and self.difference is None:
            raise InvalidInput(Problem.FIELD_MISSING, "give the difference to find", "difference")

    def group(self, definition: SurveyDefinition) -> float:
        """Return the share of the smallest group, 1 without one. Raises InvalidInput."""
        if self.groups is None:
            return 1.0 if self.group_share is None else self.group_share
        ((name, shares),) = self.groups.items()
        question = next((one for one in definition.strata if one.id == name), None)
        only_some = {one for arm in definition.arms for one in arm.strata}
        if question is None or name in only_some:
            known = ", ".join(q.id for q in definition.strata if q.id not in only_some) or "none"
            raise InvalidInput(
                Problem.UNSUPPORTED,
                f"results are by public questions that everybody is asked: this survey has {known}",
                "groups",
            )
        if len(shares) != len(question.choices):
            raise InvalidInput(
                Problem.PRIOR_SHAPE,
                f"guess a share for each of the {len(question.choices)} choices of {name}",
                "groups",
            )
        return min(shares)


def _refused(detail: str, field: str, other: object) -> InvalidInput:
    return InvalidInput(
        Problem.FIELD_MISSING if other is None else Problem.UNSUPPORTED, detail, field
    )


class SurveyPlanRequest(SurveyPlanFields):
    """A survey file, as JSON, and what is asked of its plan."""

    survey: Annotated[dict[str, Any], WithJsonSchema({"type": "object"})]

    @property
    def definition(self) -> SurveyDefinition:
        """The survey file. Raises InvalidInput with the path below `survey`."""
        with named("survey"):
            return parse_value(written(self.survey))
