# SPDX-License-Identifier: Apache-2.0
"""Forms in requests: many questions under one level (`frankly design --json`, spec 1.10).

Survey files also use the fields of a question's wanted estimates.
"""

from collections.abc import Sized
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Final, Literal

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

from frankly_design.estimate.scales import DesignRows, Figure, mean, up_to_each
from frankly_design.form import FormDesign, FormQuestion, FormRequest, design_form
from frankly_design.form.comparisons import (
    FewQuestions,
    few_questions,
    one_question,
    separate_blocks,
)
from frankly_design.form.joint_tables import (
    estimable_pairs,
    excess_in_words,
    gain_in_words,
    joint_tables_in_words,
)
from frankly_design.form.request import check
from frankly_design.kinds.parts import chance_shown
from frankly_design.requests.faults import named
from frankly_design.requests.fields import ClosedModel, Epsilon, Number, Positive, custom, whole
from frankly_design.requests.measure import finite
from frankly_design.tables.limits import Limits

_MOST_CHOICES = 64
_NEEDED_BY: Final = {"scores": "mean", "contrast": "contrast"}
ALL_EQUAL: Final = "the numbers are all equal: nothing would be left to estimate"


class Wanted(ClosedModel):
    """Wanted estimates of a question; a subclass adds `choices`, a list of them or their number.

    wanted : the estimates that the design makes precise. shares : of every choice. mean : of the
    scores. distribution : the share of every choice together with those before it, for choices in
    order. contrast : the sum of the shares times the numbers in `contrast`, one for each choice, in
    their order. importance : weight of the question's variance in the design.
    """

    wanted: Literal["shares", "mean", "distribution", "contrast"] = "shares"
    # Defaults are validated, so that the error for missing numbers has the right field.
    contrast: tuple[Number, ...] | None = Field(None, validate_default=True)
    importance: Positive = "1"

    @field_validator("contrast")
    @classmethod
    def _one_for_each_choice(
        cls, numbers: tuple[str, ...] | None, info: ValidationInfo
    ) -> tuple[str, ...] | None:
        return _checked_numbers(numbers, info)


def _checked_numbers(
    numbers: tuple[str, ...] | None, info: ValidationInfo
) -> tuple[str, ...] | None:
    """Return the numbers of a wanted figure; raises unless they are given exactly if it needs them."""
    needed_by = _NEEDED_BY[str(info.field_name)]
    if numbers is None:
        if info.data.get("wanted") == needed_by:
            raise custom(
                Problem.FIELD_MISSING,
                "the field wanted needs this: one number for each choice, in order",
            )
        return None
    if info.data.get("wanted", needed_by) != needed_by:
        raise custom(Problem.UNSUPPORTED, f"these are used only with wanted: {needed_by}")
    require_one_each(numbers, info)
    if len({Decimal(text) for text in numbers}) == 1:
        raise ValueError(ALL_EQUAL)
    return numbers


def require_one_each(numbers: Sized, info: ValidationInfo) -> None:
    """Raise ValueError unless there is one number per choice; skipped for invalid choices."""
    choices = info.data.get("choices")
    if choices is None:
        return
    wanted = choices if isinstance(choices, int) else len(choices)
    # Scores are of answers only; a contrast and expected counts are of all choices.
    if info.field_name == "scores":
        wanted -= info.data.get("roles", 0)
    if len(numbers) != wanted:
        raise ValueError(f"give one number for each choice: {wanted} numbers, not {len(numbers)}")


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
    """A question of a form: its choices and its wanted estimates.

    roles : number of choices, the last ones, that are no answers ("prefer not to say"); a mean and a
    distribution are of the people who gave an answer. scores : the numbers of a wanted mean, one for
    each answer, in their order.
    """

    roles: Annotated[int, Strict(), Field(ge=0, le=2)] = 0
    scores: tuple[Number, ...] | None = Field(None, validate_default=True)

    @field_validator("roles")
    @classmethod
    def _with_answers_left(cls, roles: int, info: ValidationInfo) -> int:
        choices = info.data.get("choices")
        size = choices if isinstance(choices, int) else len(choices or ())
        # A single answer has no mean and no distribution among those who gave one.
        least = 2 if info.data.get("wanted") in ("mean", "distribution") else 1
        if choices is not None and size - roles < least:
            raise ValueError("leave two choices that are answers, or want shares")
        return roles

    @field_validator("scores")
    @classmethod
    def _score_for_each_choice(
        cls, numbers: tuple[str, ...] | None, info: ValidationInfo
    ) -> tuple[str, ...] | None:
        return _checked_numbers(numbers, info)

    @property
    def question(self) -> FormQuestion:
        """The question as an object of the form designer."""
        wanted = DesignRows.of(self._figures(), self.prior)
        importance = Fraction(self.importance) * wanted.weight
        return FormQuestion(self.prior, wanted.rows, importance, wanted.denominators)

    def _figures(self) -> tuple[Figure, ...]:
        size, answers = len(self.prior), len(self.prior) - self.roles
        over = tuple(Fraction(int(x < answers)) for x in range(size)) if self.roles else None
        if self.contrast is not None:
            return (Figure(self.wanted, tuple(map(Fraction, self.contrast))),)
        if self.scores is not None:
            return (mean((*map(Fraction, self.scores), *[Fraction(0)] * self.roles), over),)
        if self.wanted == "shares":
            return ()
        return up_to_each(range(answers), list(map(str, range(size))), over)


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


def design_form_json(form: FormFields, limits: Limits) -> dict[str, Any]:
    """Design a form from a JSON request: {"form": …}, and optionally limits.

    Keys of `form`: questions, each with choices (their number, or expected counts), roles (how many of
    the last choices are no answers), wanted (shares, mean, distribution, contrast), scores or
    contrast, and importance; epsilon, nats for all answers
    together; cross_tables, pairs of positions.
    Keys of the response: kind, bits, params, level [p, q]; value and bound of the objective at
    n = 1, and excess, an upper bound on value/optimum − 1; questions and cross_tables, each with
    its variance at n = 1 and the share of reports that show it; joint_tables, the pairs that can
    be estimated; few_questions, one_question and separate_blocks, the value of known methods for the
    same questions; notes, sentences.

    Raises InvalidInput, naming the field.
    """
    request = form.request(form.epsilon, limits)
    designed = design_form(request)
    mechanism, pairs = designed.mechanism, estimable_pairs(designed.mechanism)
    few, one, blocks = few_questions(request), one_question(request), separate_blocks(request)
    has_bound = designed.bound > 0
    body = {
        "kind": mechanism.kind,
        "bits": mechanism.bits,
        "params": mechanism.params_json(),
        "level": [mechanism.agree, mechanism.disagree],
        "value": designed.value,
        "bound": designed.bound if has_bound else None,
        "excess": designed.excess if has_bound else None,
        "questions": [
            finite({"variance": variance, "shown": shown_share(designed, (i,))})
            for i, variance in enumerate(designed.variances)
        ],
        "cross_tables": [
            {"questions": list(pair)}
            | finite({"variance": variance, "shown": shown_share(designed, pair)})
            for pair, variance in zip(request.cross_tables, designed.pair_variances, strict=True)
        ],
        "joint_tables": [list(pair) for pair in pairs],
        "few_questions": {"value": few.value, "drawn": few.drawn},
        "one_question": {"value": one.value, "chances": list(one.chances)},
        "separate_blocks": {"value": blocks.value, "levels": list(blocks.levels)},
        "notes": _notes(designed, request, pairs, few),
    }
    return finite(body)


def shown_share(designed: FormDesign, questions: tuple[int, ...]) -> float:
    """Return the share of reports that estimates about these questions use."""
    return float(chance_shown(designed.mechanism, parts_about(designed, questions)))


def parts_about(designed: FormDesign, questions: tuple[int, ...]) -> tuple[int, ...]:
    """Return the parts from which questions are estimated; `analysis` selects the same parts.

    The result is the smallest part with all questions or, if there is none, the smallest part for
    each question.
    """
    parts = designed.mechanism.parts
    by_size = sorted(range(len(parts)), key=lambda part: len(parts[part]))
    for part in by_size:
        if set(questions) <= set(parts[part]):
            return (part,)
    return tuple(
        next(part for part in by_size if question in parts[part]) for question in questions
    )


def _notes(
    designed: FormDesign, request: FormRequest, pairs: list[tuple[int, int]], few: FewQuestions
) -> list[str]:
    names = [str(i) for i in range(len(request.questions))]
    notes = [joint_tables_in_words(pairs, names)] if len(names) > 1 else []
    if designed.bound > 0:
        notes.append(excess_in_words(designed.value, designed.bound))
    return notes + compared_in_words(designed, few)


def compared_in_words(designed: FormDesign, few: FewQuestions) -> list[str]:
    """Return what a form gains over the best known method as sentences, or that time ran out.

    Nothing for a single question, and nothing for joint tables, for which better methods are known
    (docs/maths/forms.md).
    """
    # The comparisons are computed last, so a time limit affects them first.
    if designed.request.limits.out_of_time():
        return ["The time ran out: a longer search may lower every one of these values."]
    if len(designed.request.questions) == 1 or designed.request.cross_tables:
        return []
    return [gain_in_words(designed.value, few.value, few.drawn)]
