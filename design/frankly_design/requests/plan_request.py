# SPDX-License-Identifier: Apache-2.0
"""Model of plan requests (`frankly plan --json`, `POST /v1/plan`), and levels as texts."""

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Final, Literal

from frankly_protocol.audit.bounds import MAX_EPSILON, MIN_EPSILON
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.agreement import MAX_QUESTIONS
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST
from pydantic import AfterValidator, BeforeValidator, Field, Strict, ValidationInfo, WithJsonSchema
from pydantic.config import JsonDict

from frankly_design.estimate.margins import require_level
from frankly_design.estimate.planner import Setting
from frankly_design.requests.design_fields import DesignFields
from frankly_design.requests.design_form import (
    ChoiceFields,
    FormFields,
    FormQuestionFields,
    within_a_form,
)
from frankly_design.requests.fields import (
    Epsilon,
    RequestModel,
    custom,
    errors_at_the_path,
    require_only,
)
from frankly_design.requests.mechanism import MechanismFields
from frankly_design.requests.targets import Targets


def exact_number(value: Any) -> float:
    """Validator: return a JSON number as a float."""
    # Runs before pydantic, which would accept texts and booleans as numbers.
    with errors_at_the_path():
        return float(REQUEST.number(value, ""))


def _people(size: int) -> int:
    if size < 2:
        raise InvalidInput(
            Problem.COUNTS_INVALID, "a population is at least two people", "population"
        )
    return size


_LEAST, _LARGEST = MIN_EPSILON, 2 * MAX_EPSILON
_OPEN: Final = "inf"
_PairLevels = Sequence[Sequence[str | None]]
_Whole = Annotated[int, Strict()]
_People: JsonDict = {"minimum": 1, "maximum": 10**12}
_NOT_OF_FORMS = {"epsilon", "targets", "frontier", "guess"}
_NOT_OF_BLOCKS = {"targets", "frontier", "guess"}
_MOST_BLOCKS = 20
_Chance = Annotated[float, Field(ge=0, le=1), BeforeValidator(exact_number)]
_Share = Annotated[float, Field(gt=0, le=1), BeforeValidator(exact_number)]

Margin = Annotated[float, Field(ge=1e-12, lt=1e13), BeforeValidator(exact_number)]


class PlanQuestion(RequestModel):
    """The quantity to solve for, the two that are given, and the settings of margins."""

    solve_for: Literal["n", "epsilon", "margin"]
    n: _Whole | None = Field(None, description="Reports.", json_schema_extra=_People)
    epsilon: Epsilon | None = None
    margin: Margin | None = Field(None, description="Half-width: 0.03 for ±3 points.")
    level: Annotated[float, BeforeValidator(require_level)] = 0.95
    method: Literal["clt", "chebyshev", "simultaneous"] = "clt"
    population: Annotated[_Whole, AfterValidator(_people)] | None = None
    subgroup: _Share = Field(1.0, description="Share of the respondents.")
    response_rate: _Share = 1.0
    power: Annotated[float, Field(ge=0.5, lt=1), BeforeValidator(exact_number)] | None = Field(
        None, description="Chance at which a two-sided test at 1 − level detects the margin."
    )
    against: Literal["groups", "value"] = Field(
        "groups",
        description="With power: a difference of two groups or waves of n reports each, or from a value.",
    )
    guess: tuple[_Chance, ...] | None = Field(
        None,
        description="Guessed shares of the answers, which sum to 1. In forms and blocks by question.",
    )
    targets: Targets = "shares"
    frontier: Annotated[_Whole, Field(ge=2, le=50)] | None = Field(
        None, description="Number of levels; needs a design input."
    )


def _is_distribution(guess: tuple[float, ...]) -> bool:
    # rounding: decimal shares sum to 1 only approximately as floats
    return abs(sum(guess) - 1) <= 1e-9


def _guess_of_choices(
    guess: tuple[float, ...] | None, info: ValidationInfo
) -> tuple[float, ...] | None:
    # If `choices` is invalid, only its own error is reported.
    if guess is None or "choices" not in info.data:
        return guess
    choices = info.data["choices"]
    count = choices if isinstance(choices, int) else len(choices)
    if len(guess) != count:
        raise custom(Problem.PRIOR_SHAPE, f"guess a share for each of the {count} choices")
    if not _is_distribution(guess):
        raise custom(Problem.PRIOR_SUM, "guessed shares sum to 1")
    return guess


_Guess = Annotated[tuple[_Chance, ...] | None, AfterValidator(_guess_of_choices)]


class PlannedQuestion(FormQuestionFields):
    """A question of a form to plan.

    margin : its wanted half-width, by default the plan's. guess : guessed shares of the choices.
    """

    margin: Margin | None = None
    guess: _Guess = None


class PlannedForm(FormFields):
    """A form to plan; without epsilon if that is solved for."""

    questions: Annotated[
        tuple[PlannedQuestion, ...],
        AfterValidator(within_a_form),
        Field(json_schema_extra={"minItems": 1, "maxItems": MAX_QUESTIONS}),
    ]


class PlannedBlock(ChoiceFields):
    """A question of a separate block. guess : guessed shares of the choices."""

    guess: _Guess = None


def guessed_shares(
    questions: Sequence[PlannedQuestion | PlannedBlock],
) -> list[tuple[float, ...]] | None:
    """Return each question's guessed, else expected, shares; None if no question has a guess."""
    if all(question.guess is None for question in questions):
        return None
    return [
        question.guess or tuple(count / sum(question.prior) for count in question.prior)
        for question in questions
    ]


def _some_blocks(blocks: tuple[PlannedBlock, ...]) -> tuple[PlannedBlock, ...]:
    if not 2 <= len(blocks) <= _MOST_BLOCKS:
        raise custom(Problem.FIELD_TYPE, f"give 2 to {_MOST_BLOCKS} blocks")
    return blocks


class PlanRequest(PlanQuestion, DesignFields, MechanismFields):
    """A design input, a mechanism, a form or several blocks, with `solve_for` and two of n, epsilon and margin.

    A mechanism: kind, with weights and bits or with params, and design_prior. A form contains its
    epsilon, and optionally a margin for each question. Blocks share epsilon, divided so that their
    margins are equal.
    """

    form: PlannedForm | None = None
    blocks: (
        Annotated[
            tuple[PlannedBlock, ...],
            AfterValidator(_some_blocks),
            Field(json_schema_extra={"minItems": 2, "maxItems": _MOST_BLOCKS}),
        ]
        | None
    ) = None

    design_prior: Annotated[Any, WithJsonSchema({"type": "array", "items": {}})] = None

    @property
    def has_mechanism(self) -> bool:
        """True if the request has a mechanism, whose level is fixed."""
        return bool(self.model_fields_set & {"weights", "params"})

    def require_one_source(self) -> None:
        """Raise InvalidInput(field_unknown) if a mechanism, a design input and a form are mixed."""
        mechanism = {*MechanismFields.model_fields, "design_prior"}
        if self.has_mechanism:
            allowed, kind = {*PlanQuestion.model_fields, *mechanism}, "mechanism"
        else:
            allowed, kind = (
                set(PlanRequest.model_fields) - mechanism - {"form", "blocks"},
                "design input",
            )
        if self.form is not None:
            allowed, kind = {*PlanQuestion.model_fields, "form", "limits"} - _NOT_OF_FORMS, "form"
        elif self.blocks is not None:
            allowed = {*PlanQuestion.model_fields, "blocks", "limits", "mechanism"}
            allowed -= _NOT_OF_BLOCKS
            kind = "plan of blocks"
        # Fields of other kinds of plans are refused, because they would have no effect.
        require_only(self, allowed, kind)

    @property
    def setting(self) -> Setting:
        """The settings for computing margins."""
        return Setting(
            self.level,
            self.method,
            self.population,
            self.subgroup,
            self.response_rate,
            self.power,
            self.against,
        )

    def require_coherent(self) -> None:
        """Raise InvalidInput for settings that contradict each other."""
        if self.power is not None and self.method == "chebyshev":
            raise InvalidInput(
                Problem.UNSUPPORTED,
                "tests use the normal approximation: leave the method or the power out",
                "method",
            )
        if self.power is None and "against" in self.model_fields_set:
            raise InvalidInput(
                Problem.FIELD_MISSING,
                "a difference is tested with some power: give it, such as 0.8",
                "power",
            )
        if self.guess is not None and not _is_distribution(self.guess):
            raise InvalidInput(Problem.PRIOR_SUM, "guessed shares sum to 1", "guess")

    def require_two(self, needed: Sequence[str], within: str | None = None) -> None:
        """Raise InvalidInput unless the request has all needed quantities but the one to solve for.

        within : path of the quantity to solve for within a form, None if it is not there.
        """
        others = [name for name in needed if name != self.solve_for]
        for name in others:
            if getattr(self, name) is None:
                raise InvalidInput(
                    Problem.FIELD_MISSING,
                    f"to solve for {self.solve_for}, give {' and '.join(others)}",
                    name,
                )
        field = within if getattr(self, self.solve_for) is None else self.solve_for
        if field is not None:
            raise InvalidInput(Problem.UNSUPPORTED, "leave out the quantity to solve for", field)
        if self.solve_for != "n" and not 1 <= (self.n or 0) <= (self.population or 10**12):
            raise InvalidInput(
                Problem.COUNTS_INVALID, "give 1 report or more, at most one per person", "n"
            )


def nats(thousandths: int) -> str:
    """Return a level in nats as a decimal text."""
    return f"{thousandths // 1000}.{thousandths % 1000:03d}"


def factor_range(epsilons: _PairLevels) -> tuple[int, int]:
    """Return the least and the largest factor, in thousandths, with all levels in 0.01 to 20 nats.

    If there is no level, the factor is 1, and the design refuses the request.
    """
    levels = [Fraction(e) for row in epsilons for e in row if e is not None and e != _OPEN]
    if not levels:
        return 1000, 1000
    low = math.ceil(1000 * _LEAST / min(levels))
    return max(1, low), math.floor(1000 * _LARGEST / max(levels))


def scaled(epsilons: _PairLevels, factor: str) -> tuple[tuple[str | None, ...], ...]:
    """Return the levels times a factor, to 28 digits; None for a pair without a level."""
    by = Decimal(factor)
    return tuple(
        tuple(None if e is None or e == _OPEN else plain(Decimal(e) * by) for e in row)
        for row in epsilons
    )


def plain(number: Decimal) -> str:
    """Return a number without exponent and trailing zeros."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
