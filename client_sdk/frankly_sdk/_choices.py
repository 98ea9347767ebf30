# SPDX-License-Identifier: Apache-2.0
"""Checking what the app passes as answers, without ever repeating it."""

from collections.abc import Mapping

from frankly_protocol.blocks import Question

from frankly_sdk.errors import UnknownChoice


def checked_choices(questions: Mapping[str, Question], given: object) -> dict[str, str]:
    """Return question id → choice id for exactly `questions`.

    Raises UnknownChoice, which lists what would be valid.
    """
    if not isinstance(given, Mapping):
        raise UnknownChoice(None, list(questions), "answers are given as a mapping of question id to choice id")
    found: dict[str, str] = {}
    for name, question in questions.items():
        valid = [choice.id for choice in question.choices]
        if name not in given:
            raise UnknownChoice(name, valid, "this question has no answer")
        value = given[name]
        if type(value) is not str:
            raise UnknownChoice(name, valid, "a choice is named by its id, a text")
        if value not in valid:
            raise UnknownChoice(name, valid, "the answer is not one of the choices")
        found[name] = value
    if len(given) != len(questions):
        raise UnknownChoice(None, list(questions), "there is an answer to a question that the survey does not ask")
    return found
