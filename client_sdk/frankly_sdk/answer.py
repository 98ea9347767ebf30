# SPDX-License-Identifier: Apache-2.0
"""The true answers, on their way from the app to the sampler: never shown, stored or logged."""

from collections.abc import Mapping
from typing import Never

from frankly_protocol.blocks import Block, Question
from frankly_protocol.mechanisms.agreement import FormAnswers

from frankly_sdk.errors import UnknownChoice


class Answer:
    """Question id → choice id, redacted wherever Python would show them.

    An app may wrap answers itself, ``Answer({"q1": "yes"})``, to keep them out of its own logs and
    crash reports: the repr shows nothing, and pickling or copying raises TypeError.

    Checks return their error instead of raising it: a traceback keeps the local variables of every
    frame it passes, and crash reporters upload them.
    """

    __slots__ = ("_choices",)

    @classmethod
    def of(cls, given: object) -> "Answer":
        """Return `given` as an `Answer`; an `Answer` is returned unchanged."""
        return given if isinstance(given, cls) else cls(given)

    def __init__(self, given: object) -> None:
        # Copied: a mapping that changes between check and use must not get past the checks.
        self._choices = dict(given) if isinstance(given, Mapping) else None

    def fault(self, questions: Mapping[str, Question]) -> UnknownChoice | None:
        """Return the error, with the valid values, or None.

        None means that exactly `questions` are answered, each with one of its choices.
        """
        choices = self._choices
        if choices is None:
            return UnknownChoice(
                None,
                list(questions),
                "pass the answers as a mapping of question id to choice id",
            )
        for name, question in questions.items():
            if name not in choices:
                return _unknown(question, "this question has no answer")
            # A subclass of str could compare equal to one choice now and to another later.
            if type(choices[name]) is not str:
                return _unknown(question, "a choice is given by its id, a string")
            if question.index(choices[name]) is None:
                return _unknown(question, "the answer is not one of the choices")
        if len(choices) != len(questions):
            return UnknownChoice(
                None,
                list(questions),
                "there is an answer to a question that is not in the survey",
            )
        return None

    def row(self, block: Block) -> int | FormAnswers:
        """Return the block's true answer as its mechanism takes it; call it only after `fault` has returned None."""
        return block.truth(self.revealed())

    def revealed(self) -> Mapping[str, str]:
        """Return the true choices.

        Only for the sampler, and for public questions, whose answers are sent in the clear.
        """
        return self._choices or {}

    def __repr__(self) -> str:
        return "Answer(…)"

    def __reduce__(self) -> Never:
        raise TypeError("answers are not copied, stored or sent")


def _unknown(question: Question, detail: str) -> UnknownChoice:
    return UnknownChoice(question.id, [choice.id for choice in question.choices], detail)
