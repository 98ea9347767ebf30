# SPDX-License-Identifier: Apache-2.0
"""The true answers, between app and sampler: never shown, stored or put into an error."""

from collections.abc import Mapping
from typing import Never

from frankly_protocol.blocks import Block, Question

from frankly_sdk.errors import UnknownChoice


class Answer:
    """Question id → choice id as the app gave them, redacted wherever Python would show them.

    An app may wrap answers at once, ``Answer({"q1": "yes"})``, so that its own logs and crash
    reports stay clean; in a repr, a format, a traceback's variables it shows nothing, and pickling
    or copying it is a TypeError.

    Checks return their error instead of raising it: a traceback keeps every local variable of the
    frames it passed, and crash reporters send those away.
    """

    __slots__ = ("_choices",)

    @classmethod
    def of(cls, given: object) -> "Answer":
        """Return an `Answer` of `given`; one that is an `Answer` already is returned itself."""
        return given if isinstance(given, cls) else cls(given)

    def __init__(self, given: object) -> None:
        # Copied: a mapping that changes between check and use must not get past the checks.
        self._choices = dict(given) if isinstance(given, Mapping) else None

    def fault(self, questions: Mapping[str, Question]) -> UnknownChoice | None:
        """Return the fault with the valid values.

        Returns None if exactly `questions` are answered by their choices.
        """
        choices = self._choices
        if choices is None:
            return UnknownChoice(
                None,
                list(questions),
                "answers are given as a mapping of question id to choice id",
            )
        for name, question in questions.items():
            if name not in choices:
                return _unknown(question, "this question has no answer")
            # A subclass of str could compare equal to one choice now and to another later.
            if type(choices[name]) is not str:
                return _unknown(question, "a choice is named by its id, a string")
            if question.index(choices[name]) is None:
                return _unknown(question, "the answer is not one of the choices")
        if len(choices) != len(questions):
            return UnknownChoice(
                None,
                list(questions),
                "there is an answer to a question that the survey does not ask",
            )
        return None

    def row(self, block: Block) -> int:
        """Return the block's true row; call it after `fault` found nothing."""
        return block.truth(self.revealed())

    def revealed(self) -> Mapping[str, str]:
        """Return the true choices, for the sampler and for public questions alone.

        Public questions are sent in the clear.
        """
        return self._choices or {}

    def __repr__(self) -> str:
        return "Answer(…)"

    def __reduce__(self) -> Never:
        raise TypeError("answers are not copied, stored or sent")


def _unknown(question: Question, detail: str) -> UnknownChoice:
    return UnknownChoice(question.id, [choice.id for choice in question.choices], detail)
