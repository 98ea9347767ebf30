# SPDX-License-Identifier: Apache-2.0
"""Anchors of survey files: what is known beforehand of the answers of all people to a question.

Either their shares are known, or the question asks an earlier one again, so that both answers of
everybody who reads are equal. Reports about such a question show how many people answer at random, by
which every estimate can be corrected (docs/maths/validity.md). An anchor that could not show this is
refused here: what the file alone tells, when it is read; what depends on the designed mechanism, when
the document is drafted.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import isqrt
from typing import TYPE_CHECKING, Annotated, Any, Final

from frankly_design.kinds.dense import table_of
from frankly_design.requests.fields import ClosedModel, Slug, custom, whole, whole_schema
from frankly_protocol.blocks import Block
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.mechanisms.base import MAX_ANSWERS, MAX_SET_ANSWERS
from frankly_protocol.problems import Problem
from frankly_protocol.questions import Anchor
from pydantic import BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from frankly_server.surveys.fields import Text

if TYPE_CHECKING:
    from frankly_server.surveys.definition import FormDefinition, SurveyDefinition
    from frankly_server.surveys.question_definition import (
        FormQuestionDefinition,
        QuestionDefinition,
    )

_OF_EVERYBODY: Final = "this is known of the answers of everybody"
_WITH_OTHERS: Final = (
    "a person can be asked a single question of this form, and the one whose shares are known says "
    "nothing about people who are asked others: write ask: all, or give that question a block of its own"
)
_TWICE_WITHOUT_OTHERS: Final = (
    "a person can be asked a single question of this form, and the one that is asked twice says nothing "
    "about people who are asked others: write ask: all"
)
_MOST_CHOICES: Final = isqrt(MAX_ANSWERS)
"""Largest number of choices of an anchor: both copies of a question that is asked twice are randomised together."""

Count = Annotated[
    int, BeforeValidator(lambda value: whole(value, 0)), whole_schema("A whole number.", 0)
]


def _one_of_two(schema: dict[str, Any]) -> None:
    """State in the schema which fields belong together."""
    schema["oneOf"] = [
        {"required": ["counts", "source"], "maxProperties": 2},
        {"required": ["repeats"], "maxProperties": 1},
    ]
    for name in schema["properties"]:
        schema["properties"][name].pop("default", None)


class AnchorDefinition(ClosedModel):
    """Known answers of all people together to a question, or that it asks an earlier one again.

    repeats : id of an earlier question of the form with the same choices, instead of the other two.
    counts : one for each choice, in their order; a choice's share is its count, divided by their sum.
    source : where these numbers are published.
    """

    model_config = ConfigDict(json_schema_extra=_one_of_two)

    repeats: Slug | None = None
    # The defaults are validated, so that the error for a missing field has its path.
    counts: Annotated[tuple[Count, ...], Field(min_length=2, max_length=MAX_SET_ANSWERS)] | None = (
        Field(None, validate_default=True)
    )
    source: Text | None = Field(None, validate_default=True)

    @field_validator("counts", "source")
    @classmethod
    def _unless_repeated(cls, value: Any, info: ValidationInfo) -> Any:
        if "repeats" not in info.data:  # it has an error of its own
            return value
        is_repeated = info.data["repeats"] is not None
        if is_repeated and value is not None:
            raise custom(
                Problem.DEFINITION_INVALID,
                "of a question that is asked again no shares are known: leave this out, or repeats",
            )
        if not is_repeated and value is None:
            raise custom(
                Problem.FIELD_MISSING,
                "this is missing: an anchor has counts and source, or only repeats",
            )
        return value

    def for_devices(self) -> Anchor:
        """Return the anchor of the signed document."""
        if self.repeats is not None:
            return Anchor(repeats=self.repeats)
        return Anchor(self.counts or (), self.source or "")


def anchored(definition: "SurveyDefinition") -> "Iterator[tuple[str, QuestionDefinition]]":
    """Yield path and question for every randomised question with an anchor."""
    for i, block in enumerate(definition.blocks):
        for k, question in enumerate(block.questions):
            if question.anchor is not None:
                yield f"blocks[{i}].questions[{k}]", question
    for k, asked in enumerate(() if definition.form is None else definition.form.questions):
        if asked.anchor is not None:
            yield f"form.questions[{k}]", asked


def require_anchors(
    definition: "SurveyDefinition", public: "Iterable[tuple[str, QuestionDefinition]]"
) -> None:
    """Raise InvalidInput, with its path, for an anchor that could not correct anything.

    public : path and question of everything that is asked in the clear.
    """
    for path, question in public:
        if question.anchor is not None:
            raise _refused(
                "only answers that are randomised are compared with known ones: leave this out, or move "
                "the question to a block or to the form",
                f"{path}.anchor",
            )
    for path, question in anchored(definition):
        if not _repeats(question):
            _require_answers(question, path)
            _require_shares(question, path)
        if definition.instructed is not None:
            raise _refused(
                "the item instructed shows already how many people answer at random: keep one of the two",
                _field(question, path),
                Problem.UNSUPPORTED,
            )
    _require_alone(definition)
    if definition.form is not None:
        _require_one(definition.form)


def _require_alone(definition: "SurveyDefinition") -> None:
    """Raise InvalidInput for an anchor in a block with other questions, or a repetition in any block."""
    for i, block in enumerate(definition.blocks):
        for k, question in enumerate(block.questions):
            if _repeats(question):
                raise _refused(
                    "only in the form both answers are randomised together: move both questions there, or "
                    "leave this out",
                    f"blocks[{i}].questions[{k}].anchor.repeats",
                )
            if question.anchor is not None and any(one.is_prior_based for one in block.protections):
                raise _refused(
                    "the promise of this block rests on counts, which also say how people answer, and perhaps "
                    "something else: protect the answers themselves (ldp)",
                    f"blocks[{i}].questions[{k}].anchor",
                    Problem.UNSUPPORTED,
                )
            if question.anchor is not None and len(block.questions) > 1:
                raise _refused(
                    "a question whose shares are known is not randomised together with others: give it a "
                    "block of its own, or move it to the form",
                    f"blocks[{i}].questions[{k}].anchor",
                )


def _require_answers(question: "QuestionDefinition", path: str) -> None:
    """Raise InvalidInput unless everybody gives one answer to the question."""
    if getattr(question, "boxes", ()):
        raise _refused(
            f"{_OF_EVERYBODY} to one question, and each box is one: ask about one of the boxes as a "
            "question of the type yes-no",
            f"{path}.anchor",
        )
    if question.ask_if is not None:
        raise _refused(
            f"{_OF_EVERYBODY}, and ask_if leaves people out: remove one of the two",
            f"{path}.anchor",
        )
    roles = sorted({choice.role for choice in question.choices if choice.role is not None})
    if roles:
        raise _refused(
            f"{_OF_EVERYBODY}, and nothing of those who give none: leave out {' and '.join(roles)}, "
            "or this",
            f"{path}.anchor",
        )


def _require_shares(question: "QuestionDefinition", path: str) -> None:
    """Raise InvalidInput unless the known shares differ from those of people who answer at random."""
    counts = (question.anchor and question.anchor.counts) or ()
    if len(counts) != len(question.choices):
        raise InvalidInput(
            Problem.DEFINITION_INVALID,
            f"give one number for each choice: {len(question.choices)} numbers, not {len(counts)}",
            f"{path}.anchor.counts",
        )
    if len(counts) > _MOST_CHOICES:
        raise InvalidInput(
            Problem.DEFINITION_INVALID,
            f"a question whose shares are known has at most {_MOST_CHOICES} choices: ask for one of them, with "
            "yes or no",
            f"{path}.anchor.counts",
        )
    if not any(counts):
        raise InvalidInput(
            Problem.DEFINITION_INVALID,
            "the numbers are all 0: at least one choice is chosen by somebody",
            f"{path}.anchor.counts",
        )
    if len(set(counts)) == 1:
        raise InvalidInput(
            Problem.NOT_IDENTIFIABLE,
            "people who answer at random choose every choice equally often, too, so these numbers cannot "
            "show them: ask for one of the choices, such as “Were you born in January?” instead of the month",
            f"{path}.anchor.counts",
        )


def _require_one(form: "FormDefinition") -> None:
    """Raise InvalidInput for a second anchor of a form, one in a joint table, or a bad repetition."""
    found = [(k, one) for k, one in enumerate(form.questions) if one.anchor is not None]
    for k, one in found[1:]:
        way_out = "leave this out"
        if not _repeats(one):
            way_out = "give this one a block of its own, or leave this out"
        raise _refused(
            "the form has another question whose shares are known, or that is asked again: "
            + way_out,
            _field(one, f"form.questions[{k}]"),
        )
    for k, one in found:
        path = f"form.questions[{k}]"
        if _repeats(one):
            _require_repeatable(one, path)
            _require_first(form, k)
        if any(one.id in pair for pair in form.cross_tables):
            raise _refused(
                "a question that is asked again is in no joint table: name the first one in cross_tables"
                if _repeats(one)
                else "a question whose shares are known is in no joint table: remove its pairs from "
                "cross_tables",
                _field(one, path),
            )


def _require_repeatable(question: "FormQuestionDefinition", path: str) -> None:
    """Raise InvalidInput unless a second copy is asked of everybody, and nothing else is wanted of it."""
    if question.boxes:
        raise _refused(
            "boxes are not asked again: ask one of them again, as a question of the type yes-no",
            f"{path}.anchor.repeats",
        )
    if question.ask_if is not None:
        raise _refused(
            "everybody is asked again, and ask_if leaves people out: remove one of the two",
            f"{path}.anchor.repeats",
        )
    if question.wanted != "shares":
        raise _refused(
            "of a question that is asked again, only whether both answers are equal is estimated: leave "
            "this out",
            f"{path}.wanted",
        )
    if question.expected is not None:
        raise _refused(
            "the expected counts of the first question count for both: leave this out",
            f"{path}.expected",
        )
    if len(question.choices) > _MOST_CHOICES:
        raise _refused(
            f"a question that is asked again has at most {_MOST_CHOICES} choices, and this one has "
            f"{len(question.choices)}: ask one with fewer choices again",
            f"{path}.anchor.repeats",
            Problem.CHOICES_COUNT,
        )


def _require_first(form: "FormDefinition", k: int) -> None:
    """Raise InvalidInput unless question `k` repeats an earlier one of everybody, with its choices."""
    question = form.questions[k]
    ids = [choice.id for choice in question.choices]
    name = question.anchor and question.anchor.repeats
    fitting = [
        one.id
        for one in form.questions[:k]
        if not one.boxes and one.ask_if is None and [choice.id for choice in one.choices] == ids
    ]
    if name not in fitting:
        raise _refused(
            f"{question.id} is said to ask {name} again, which is no earlier question of the form that asks "
            "everybody, with the same choices in the same order and no boxes: "
            + (f"write {' or '.join(fitting)}" if fitting else "leave this out"),
            f"form.questions[{k}].anchor.repeats",
        )


def _repeats(question: "QuestionDefinition") -> bool:
    return question.anchor is not None and question.anchor.repeats is not None


def _field(question: "QuestionDefinition", path: str) -> str:
    """Return the path of what makes the question an anchor."""
    return f"{path}.anchor.repeats" if _repeats(question) else f"{path}.anchor"


def require_together(blocks: Sequence[Block]) -> None:
    """Raise InvalidInput(unsupported) if a device that asks what is drawn may ask one part of a form with an anchor.

    Asked alone, such a question reads strangely, and it measures other people than those who are asked
    the other questions.
    """
    for block in blocks:
        form = block.form
        known = [question.anchor for question in block.questions if question.anchor is not None]
        if (
            block.asks_drawn
            and form is not None
            and known
            and any(len(component.slots) == 1 for component in form.components)
        ):
            is_repeated = known[0].repeats is not None
            detail = _TWICE_WITHOUT_OTHERS if is_repeated else _WITH_OTHERS
            raise InvalidInput(Problem.UNSUPPORTED, detail, "form.ask")


def asks_again(part: Block) -> bool:
    """Return True if a part of a form consists of a question and its repetition."""
    if len(part.questions) != 2:
        return False
    first, second = part.questions
    return second.anchor is not None and second.anchor.repeats == first.id


def require_telling(block: Block, field: str, way_out: str = "use optimal or grr") -> None:
    """Raise InvalidInput if reports of a block cannot tell its known shares from random answers.

    Decided on the integers of the table: with the known shares a and equal shares r of all choices, the
    laws a·Q and r·Q of the reports must differ. Of a question that is asked twice, a is not known beside
    its support, the equal answers; so their rows must be equal, too. field, way_out : for the error.
    """
    if asks_again(block):
        _require_telling_twice(block, field)
        return
    anchor = block.questions[0].anchor if len(block.questions) == 1 else None
    if anchor is None or anchor.repeats is not None:
        return
    table = table_of(block.mechanism)
    if table is None:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"{block.mechanism_name} sends sets of answers, with which known shares are not compared: {way_out}",
            field,
        )
    if not _differ(table, anchor.counts):
        raise InvalidInput(
            Problem.NOT_IDENTIFIABLE,
            f"reports could not tell the known shares of {block.questions[0].id} from random answers, because "
            f"its choices are merged: {way_out}, or ask about other choices",
            field,
        )


def _require_telling_twice(part: Block, field: str) -> None:
    """Raise InvalidInput if reports about both copies cannot tell equal answers from random ones."""
    table, k = table_of(part.mechanism), len(part.questions[0].choices)
    counts = [int(x % (k + 1) == 0) for x in range(k * k)]
    if (
        table is None
        or len({row for row, is_equal in zip(table.weights, counts, strict=True) if is_equal}) > 1
        or not _differ(table, counts)
    ):
        raise InvalidInput(
            Problem.NOT_IDENTIFIABLE,
            f"reports could not tell whether both answers to {part.questions[0].id} are equal: raise the level, "
            f"or do not ask it again in {part.questions[1].id}",
            field,
        )


def _differ(table: DenseMechanism, counts: Sequence[int]) -> bool:
    """Return True if reports of these shares have another law than those of equal shares."""
    total, answers = sum(counts), len(counts)
    # Both laws times total · answers · 2^bits, which are whole numbers.
    return any(
        answers * sum(n * w for n, w in zip(counts, column, strict=True)) != total * sum(column)
        for column in zip(*table.weights, strict=True)
    )


def _refused(
    detail: str, field: str, problem: Problem = Problem.DEFINITION_INVALID
) -> InvalidInput:
    return InvalidInput(problem, detail, field)
