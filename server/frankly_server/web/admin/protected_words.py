# SPDX-License-Identifier: Apache-2.0
"""What a block of a draft protects, and how strongly, in plain words."""

from dataclasses import dataclass

from frankly_server.surveys.definition import BlockDefinition, SurveyDefinition
from frankly_server.surveys.protection import sensitive_answer
from frankly_server.surveys.strengths import strength_of

IN_NUMBERS = "set in numbers"
"""What is said instead of a strength that has no name."""


@dataclass(frozen=True, slots=True)
class Protected:
    """What a block protects.

    what : goes on after "Protected:". entry : id of the term that explains it, or "". strength : its name.
    """

    what: str
    entry: str
    strength: str


def protected_words(block: BlockDefinition, definition: SurveyDefinition) -> Protected:
    """Return what a block protects, in the words of the protection page."""
    language = definition.languages[0]
    sensitive = sensitive_answer(block)
    if sensitive is not None:
        choice, level = sensitive
        label = next(one.label[language] for one in block.questions[0].choices if one.id == choice)
        return Protected(
            f"only the answer “{label}”", "sensitive", strength_in_words(level, block.notion)
        )
    strength = strength_in_words(block.epsilon, block.notion)
    secret = block.prior.secret if block.prior else None
    if block.notions:
        return Protected("what the file says, in several ways", "", IN_NUMBERS)
    if secret is not None and block.protections[0].is_prior_based:
        texts = {question.id: question.text[language] for question in definition.questions}
        about = texts.get(secret, secret)
        return Protected(f"what the answer gives away about “{about}”", "gives-away", strength)
    several = len(block.questions) > 1
    return Protected("the answers themselves" if several else "the answer itself", "", strength)


def strength_in_words(level: str | None, notion: str | None) -> str:
    """Return the name of a level in nats, or that there is none."""
    return strength_of(level, notion) or IN_NUMBERS
