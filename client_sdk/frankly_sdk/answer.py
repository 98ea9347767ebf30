# SPDX-License-Identifier: Apache-2.0
"""The true answers, which go from the app to the sampler and are never shown or logged.

Only answers to public questions leave the device unchanged.
"""

from collections.abc import Collection, Mapping
from typing import Never

from frankly_protocol.blocks import Block, Question
from frankly_protocol.mechanisms.agreement import Truth
from frankly_protocol.questions import NO, YES, Box

from frankly_sdk.errors import UnknownChoice

Given = str | int | Collection[str]
"""What an app passes for a question: a choice id, a number, or the ids of the ticked boxes."""
_MISSING = "this question has no answer"
_SHAPE = "pass the answers as a mapping of question id to choice id"


class Answer:
    """Answers by question id; the repr shows none of them.

    An answer is a choice id; a whole number, for a question that asks for one; or the ids of the
    ticked boxes, for a question with boxes. An app may wrap answers itself,
    ``Answer({"q1": "yes"})``, to keep them out of its own logs and crash reports. Pickling or
    copying raises TypeError.

    Checks return their error instead of raising it: a traceback keeps the local variables of every
    frame that it passes, and crash reporters may upload them.
    """

    __slots__ = ("_given",)

    @classmethod
    def of(cls, given: object) -> "Answer":
        """Return `given` as an `Answer`; an `Answer` is returned unchanged."""
        return given if isinstance(given, cls) else cls(given)

    def __init__(self, given: object) -> None:
        # Copied, so that the answers cannot change between the check and their use.
        self._given = dict(given) if isinstance(given, Mapping) else None

    def settled(
        self, questions: Mapping[str, Question], *, partial: bool = False
    ) -> "Answer | UnknownChoice":
        """Return the answers as one choice id for each of `questions`, or the error.

        Numbers become the choice of their range, and ticked boxes a yes or no for every box. A
        question that a rule skips gets its choice for skipped questions, even if the app passed
        another. The error lists the valid values.

        partial : questions may have no answer, and then no choice; see `only`.
        """
        if self._given is None:
            return UnknownChoice(None, list(questions), _SHAPE)
        given, chosen = dict(self._given), dict[str, str]()
        for name, question in questions.items():
            rule, box = question.ask_if, question.box
            earlier = None if rule is None else chosen.get(rule.question)
            if rule is not None and earlier is not None and earlier not in rule.choices:
                chosen[name] = question.skipped
            elif not partial or not given.keys().isdisjoint(_names(question)):
                choice = (
                    _chosen(question, given)
                    if box is None
                    else _ticked(question, box, given, questions)
                )
                if isinstance(choice, UnknownChoice):
                    return choice
                chosen[name] = choice
        fault = _alone(questions, chosen)
        if fault is not None:
            return fault
        if set(given) - set(questions) - {q.box.of for q in questions.values() if q.box}:
            return UnknownChoice(
                None, list(questions), "there is an answer to a question that is not in the survey"
            )
        return Answer(chosen)

    def only(self, questions: Mapping[str, Question]) -> "Answer | UnknownChoice":
        """Return settled answers to these questions alone, or the error if one is missing.

        questions : with each question, those that it needs (`frankly_protocol.asking`); then the
            choices are those of all questions' answers.
        """
        chosen = self.revealed()
        for name, question in questions.items():
            if name not in chosen:
                return _unknown(question, _MISSING)
        return Answer({name: chosen[name] for name in questions})

    def without(self, names: Collection[str]) -> "Answer":
        """Return the answers without those given under these names, whatever they are."""
        if self._given is None:
            return self
        return Answer({name: given for name, given in self._given.items() if name not in names})

    def row(self, block: Block) -> int | Truth:
        """Return the block's true answer in the form that its mechanism accepts.

        Call it only on the result of `settled`.
        """
        return block.truth(self.revealed())

    def or_else(self, name: str, choice: str) -> "Answer":
        """Return the answers with this one to a question that has none."""
        return self if self._given is None else Answer({name: choice} | self._given)

    def get(self, name: str) -> object:
        """Return the answer to one question as it was given, None if there is none."""
        return (self._given or {}).get(name)

    def revealed(self) -> Mapping[str, str]:
        """Return the true choices of settled answers.

        Only for the sampler, and for public questions, whose answers are sent in the clear.
        """
        return self._given or {}

    def __repr__(self) -> str:
        return "Answer(…)"

    def __reduce__(self) -> Never:
        raise TypeError("an Answer cannot be copied or pickled")


def _names(question: Question) -> tuple[str, ...]:
    """Return the names under which an app may pass the answer to a question."""
    return (question.id,) if question.box is None else (question.id, question.box.of)


def _chosen(question: Question, given: Mapping[str, object]) -> str | UnknownChoice:
    """Return the choice given for a question, by its id or by a number."""
    if question.id not in given:
        return _unknown(question, _MISSING)
    answer = given[question.id]
    # Exact types: a bool is an int in Python, and a subclass of str could compare equal to one
    # choice now and to another later. JavaScript's integers are exact up to 2^53, and both SDKs
    # must accept the same answers.
    if type(answer) is int and question.asks_number and abs(answer) < 2**53:
        choice = question.of_number(answer)
        return choice or _unknown(question, "the number is below the smallest range")
    if type(answer) is not str:
        number = ", or as a whole number" if question.asks_number else ""
        return _unknown(question, f"a choice is given by its id, a string{number}")
    if question.index(answer) is None:
        return _unknown(question, "the answer is not one of the choices")
    return answer


def _ticked(
    question: Question, box: Box, given: Mapping[str, object], questions: Mapping[str, Question]
) -> str | UnknownChoice:
    """Return yes or no for a box, from the list of its question or from the box's own answer."""
    if box.of not in given:
        return _chosen(question, given)
    ticked = given[box.of]
    boxes = [q.box_id for q in questions.values() if q.box is not None and q.box.of == box.of]
    if isinstance(ticked, str | Mapping) or not isinstance(ticked, Collection):
        return UnknownChoice(box.of, boxes, "ticked boxes are given as a list of their ids")
    if any(type(one) is not str or one not in boxes for one in ticked):
        return UnknownChoice(box.of, boxes, "a ticked box is not one of the question's boxes")
    if question.id in given:
        return UnknownChoice(box.of, boxes, "the boxes are given both as a list and one by one")
    return YES if question.box_id in ticked else NO


def _alone(questions: Mapping[str, Question], chosen: Mapping[str, str]) -> UnknownChoice | None:
    """Return the error if a box that excludes the others is ticked together with one of them."""
    ticked: dict[str, list[Box]] = {}
    for name, question in questions.items():
        if question.box is not None and chosen.get(name) == YES:
            ticked.setdefault(question.box.of, []).append(question.box)
    for of, boxes in ticked.items():
        if len(boxes) > 1 and any(box.role for box in boxes):
            ids = [q.box_id for q in questions.values() if q.box is not None and q.box.of == of]
            return UnknownChoice(
                of, ids, "a box that excludes the others is ticked together with another"
            )
    return None


def _unknown(question: Question, detail: str) -> UnknownChoice:
    return UnknownChoice(question.id, [choice.id for choice in question.choices], detail)
