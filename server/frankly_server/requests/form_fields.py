# SPDX-License-Identifier: Apache-2.0
"""Forms in requests of `frankly design` and `frankly plan`: questions with one level for all."""

from fractions import Fraction
from typing import Annotated, Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.agreement import MAX_QUESTIONS
from frankly_protocol.problems import Problem
from pydantic import (
    AfterValidator,
    Field,
    PlainValidator,
    Strict,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from frankly_server.design.form import FormQuestion, FormRequest
from frankly_server.design.form.request import check
from frankly_server.design.tables.limits import Limits
from frankly_server.faults import named
from frankly_server.requests.fields import ClosedModel, Epsilon, custom, whole
from frankly_server.requests.wanted import NEEDED_BY, Wanted

_MOST_CHOICES = 64


def _choices(value: Any) -> int | tuple[int, ...]:
    number = value if type(value) is int else len(value) if isinstance(value, list | tuple) else 0
    if not 2 <= number <= _MOST_CHOICES:
        raise custom(
            Problem.CHOICES_COUNT,
            f"give the number of choices, 2 to {_MOST_CHOICES}, or a count for each of them",
        )
    return number if type(value) is int else tuple(map(whole, value))


def within_a_form(questions: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the questions; raises field_type if there are none, or too many for a form."""
    if not 1 <= len(questions) <= MAX_QUESTIONS:
        raise custom(
            Problem.FIELD_TYPE,
            f"a form has 1 to {MAX_QUESTIONS} questions; this one has {len(questions)}",
        )
    return questions


_Place = Annotated[int, Strict(), Field(ge=0, lt=MAX_QUESTIONS)]
_COUNT = {"type": "integer", "minimum": 1}


class ChoiceFields(ClosedModel):
    """The choices of a question: their number, or a count for each of them."""

    choices: Annotated[
        int | tuple[int, ...],
        PlainValidator(_choices),
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "integer", "minimum": 2, "maximum": _MOST_CHOICES},
                    {"type": "array", "minItems": 2, "maxItems": _MOST_CHOICES, "items": _COUNT},
                ],
                "description": "The number of choices, or the expected count of each.",
            }
        ),
    ]

    @property
    def prior(self) -> tuple[int, ...]:
        """The expected counts; all equal if the request states only the number of choices."""
        return (1,) * self.choices if isinstance(self.choices, int) else self.choices


# The choices are the first field, because the validators of other fields need their number.
class FormQuestionFields(Wanted, ChoiceFields):
    """A question of a form: its choices and its wanted estimates."""

    @field_validator("scores", "contrast")
    @classmethod
    def _if_wanted(
        cls, numbers: tuple[str, ...] | None, info: ValidationInfo
    ) -> tuple[str, ...] | None:
        needed_by = NEEDED_BY[str(info.field_name)]
        if numbers is not None and info.data.get("wanted", needed_by) != needed_by:
            raise custom(Problem.UNSUPPORTED, f"these are used only with wanted: {needed_by}")
        return numbers

    @property
    def question(self) -> FormQuestion:
        """The question as an object of the form designer."""
        numbers = self.scores or self.contrast
        return FormQuestion(
            prior=self.prior,
            wanted=self.wanted,
            scores=None if numbers is None else tuple(map(Fraction, numbers)),
            importance=Fraction(self.importance),
        )


class FormFields(ClosedModel):
    """A form: its questions, the level ε of all answers together, and pairs of positions.

    cross_tables : pairs of questions, numbered from 0, whose joint shares are wanted too.
    """

    questions: Annotated[
        tuple[FormQuestionFields, ...],
        AfterValidator(within_a_form),
        Field(json_schema_extra={"minItems": 1, "maxItems": MAX_QUESTIONS}),
    ]
    epsilon: Epsilon | None = None
    cross_tables: Annotated[tuple[tuple[_Place, _Place], ...], Field(max_length=60)] = ()

    def request(self, epsilon: str | None, limits: Limits) -> FormRequest:
        """Return the designer's request at a level in nats; raises InvalidInput with the field."""
        if epsilon is None:
            raise InvalidInput(
                Problem.FIELD_MISSING, "give the level of the whole form, in nats", "form.epsilon"
            )
        request = FormRequest(
            tuple(question.question for question in self.questions),
            Fraction(epsilon),
            self.cross_tables,
            limits,
        )
        with named("form"):
            check(request)
        return request
