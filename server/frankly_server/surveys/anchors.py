# SPDX-License-Identifier: Apache-2.0
"""Anchors of survey files: what is known beforehand of the answers of all people to a question.

Reports about such a question show how many people answer at random, by which every estimate can be
corrected (docs/maths/validity.md). An anchor that could not show this is refused here: what the file
alone tells, when it is read; what depends on the designed mechanism, when the document is drafted.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

from frankly_protocol.blocks import Block
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism, DenseMechanism
from frankly_protocol.mechanisms.base import MAX_SET_ANSWERS
from frankly_protocol.problems import Problem
from pydantic import BeforeValidator, Field

from frankly_server.requests.fields import ClosedModel, whole, whole_schema
from frankly_server.surveys.fields import Text

if TYPE_CHECKING:
    from frankly_server.surveys.definition import FormDefinition, SurveyDefinition
    from frankly_server.surveys.question_definition import QuestionDefinition

_OF_EVERYBODY: Final = "this is known of the answers of everybody"
_WITH_OTHERS: Final = (
    "a person can be asked a single question of this form, and the one whose shares are known says "
    "nothing about people who are asked others: write ask: all, or give that question a block of its own"
)

Count = Annotated[
    int, BeforeValidator(lambda value: whole(value, 0)), whole_schema("A whole number.", 0)
]


class AnchorDefinition(ClosedModel):
    """Known answers of all people together to a question.

    counts : one for each choice, in their order; a choice's share is its count, divided by their sum.
    source : where these numbers are published.
    """

    counts: Annotated[tuple[Count, ...], Field(min_length=2, max_length=MAX_SET_ANSWERS)]
    source: Text


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
                path,
            )
    for path, question in anchored(definition):
        _require_answers(question, path)
        _require_shares(question, path)
        if definition.instructed is not None:
            raise _refused(
                "the item instructed shows already how many people answer at random: keep one of the two",
                path,
                Problem.UNSUPPORTED,
            )
    for i, block in enumerate(definition.blocks):
        for k, question in enumerate(block.questions):
            if question.anchor is not None and len(block.questions) > 1:
                raise _refused(
                    "a question whose shares are known is not randomised together with others: give it a "
                    "block of its own, or move it to the form",
                    f"blocks[{i}].questions[{k}]",
                )
    if definition.form is not None:
        _require_one(definition.form)


def _require_answers(question: "QuestionDefinition", path: str) -> None:
    """Raise InvalidInput unless everybody gives one answer to the question."""
    if getattr(question, "boxes", ()):
        raise _refused(
            f"{_OF_EVERYBODY} to one question, and each box is one: ask about one of the boxes as a "
            "question of the type yes-no",
            path,
        )
    if question.ask_if is not None:
        raise _refused(
            f"{_OF_EVERYBODY}, and ask_if leaves people out: remove one of the two", path
        )
    roles = sorted({choice.role for choice in question.choices if choice.role is not None})
    if roles:
        raise _refused(
            f"{_OF_EVERYBODY}, and nothing of those who give none: leave out {' and '.join(roles)}, "
            "or this",
            path,
        )


def _require_shares(question: "QuestionDefinition", path: str) -> None:
    """Raise InvalidInput unless the known shares differ from those of people who answer at random."""
    counts = () if question.anchor is None else question.anchor.counts
    if len(counts) != len(question.choices):
        raise InvalidInput(
            Problem.DEFINITION_INVALID,
            f"give one number for each choice: {len(question.choices)} numbers, not {len(counts)}",
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
    """Raise InvalidInput for a second anchor of a form, or one in a joint table."""
    paths = [
        (f"form.questions[{k}]", one.id)
        for k, one in enumerate(form.questions)
        if one.anchor is not None
    ]
    for path, _ in paths[1:]:
        raise _refused(
            "the form has another question whose shares are known: give this one a block of its own, or "
            "leave this out",
            path,
        )
    for path, name in paths:
        if any(name in pair for pair in form.cross_tables):
            raise _refused(
                "a question whose shares are known is in no joint table: remove its pairs from cross_tables",
                path,
            )


def require_together(blocks: Sequence[Block]) -> None:
    """Raise InvalidInput(unsupported) if a device that asks what is drawn may ask one part of a form with an anchor.

    Asked alone, such a question reads strangely, and it measures other people than those who are asked
    the other questions.
    """
    for block in blocks:
        form = block.mechanism
        if (
            block.asks_drawn
            and isinstance(form, AgreementMechanism)
            and any(question.anchor for question in block.questions)
            and any(len(component.slots) == 1 for component in form.components)
        ):
            raise InvalidInput(Problem.UNSUPPORTED, _WITH_OTHERS, "form.ask")


def require_telling(block: Block, field: str, way_out: str = "use optimal or grr") -> None:
    """Raise InvalidInput if reports of a block cannot tell its known shares from random answers.

    Decided on the integers of the table: with the known shares a and equal shares r of all choices, the
    laws a·Q and r·Q of the reports must differ. field, way_out : for the error.
    """
    anchor = block.questions[0].anchor if len(block.questions) == 1 else None
    if anchor is None:
        return
    table = block.numbered_mechanism
    if not isinstance(table, DenseMechanism):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"{block.mechanism_name} sends sets of answers, with which known shares are not compared: {way_out}",
            field,
        )
    total, answers = sum(anchor.counts), len(anchor.counts)
    # Both laws times total · answers · 2^bits, which are whole numbers.
    if all(
        answers * sum(n * w for n, w in zip(anchor.counts, column, strict=True))
        == total * sum(column)
        for column in zip(*table.weights, strict=True)
    ):
        raise InvalidInput(
            Problem.NOT_IDENTIFIABLE,
            f"reports could not tell the known shares of {block.questions[0].id} from random answers, because "
            f"its choices are merged: {way_out}, or ask about other choices",
            field,
        )


def _refused(detail: str, path: str, problem: Problem = Problem.DEFINITION_INVALID) -> InvalidInput:
    return InvalidInput(problem, detail, f"{path}.anchor")
