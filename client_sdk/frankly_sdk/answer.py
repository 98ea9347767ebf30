# SPDX-License-Identifier: Apache-2.0
"""The true answers, on their way from the app to the sampler: never shown or logged.

Only the answers to public questions leave the device as they were given.
"""

from collections.abc import Mapping
from typing import Never

from frankly_protocol.blocks import Block, Question

from frankly_sdk.errors import UnknownChoice


class Answer:
    """Answers by question id, which Python never shows.

    An app may wrap answers itself, ``Answer({"q1": "yes"})``, to keep them out of its own logs and
    crash reports: the repr shows nothing, and pickling or copying raises TypeError.

    Checks return their error instead of raising it: a traceback keeps the local variables of every
    frame that it passes, and crash reporters may upload them.
    """

    __slots__ = ("_choices",)

    @classmethod
    def of(cls, given: object) -> "Answer":
        """Return `given` as an `Answer`; an `Answer` is returned unchanged."""
        return given if isinstance(given, cls) else cls(given)

    def __init__(self, given: object) -> None:
        # Copied, so that the answers that are used are those that were checked.
        self._choices = dict(given) if isinstance(given, Mapping) else None

    def fault(self, questions: Mapping[str, Question]) -> UnknownChoice | None:
        """Return None if exactly `questions` are answered, each with one of its choices.

        Otherwise returns the error, which lists the valid values.
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

    def row(self, block: Block) -> int:
        """Return the row of the block's true answer. Call it only after `fault` has returned None."""
        return block.truth(self.revealed())

    def revealed(self) -> Mapping[str, str]:
        """Return the true choices.

        Only for the sampler, and for public questions, whose answers are sent in the clear.
        """
        return self._choices or {}

    def __repr__(self) -> str:
        return "Answer(…)"

    def __reduce__(self) -> Never:
        raise TypeError("an Answer cannot be copied or pickled")


def _unknown(question: Question, detail: str) -> UnknownChoice:
    return UnknownChoice(question.id, [choice.id for choice in question.choices], detail)
