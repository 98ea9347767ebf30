# SPDX-License-Identifier: Apache-2.0
"""How somebody who answers at random answers: the law that corrected figures assume.

Without a stated law every choice of a question is as likely as any other, and of a question with
boxes every allowed set of ticks. Skip rules apply: who is not asked a question has the choice of
skipped ones, so the laws of questions under rules depend on those of the questions before.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby, product
from math import prod
from typing import Final

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.questions import NO, YES, Question

Stated = Mapping[str, Mapping[str, Fraction]]
"""Weights of choices, by question; they need not sum to 1."""
Pattern = tuple[str, ...]

MOST_ANSWERS: Final = 1 << 14
"""Largest number of joint answers of some questions, and those their rules name, that is enumerated."""


def random_law(
    document: SurveyDocument, questions: Sequence[Question], stated: Stated
) -> tuple[Fraction, ...] | None:
    """Return the chances of the joint answers to some questions, row-major, the last one fastest.

    None if there are too many joint answers, or if a question has a stated law without any weight on
    the choices that it has in this document.
    """
    # An arm may ask some of them in the clear; no rule names these.
    clear = (question for question in questions if question.id not in document.questions)
    known = {**document.questions, **{question.id: question for question in clear}}
    needed = {question.id for question in questions}
    for question in reversed(list(known.values())):
        if question.id in needed and question.ask_if is not None:
            needed.add(question.ask_if.question)
    asked = [question for question in known.values() if question.id in needed]
    stated = {
        q.id: {c.id: stated[q.id].get(c.id, Fraction(0)) for c in q.choices}
        for q in asked
        if q.id in stated
    }
    is_empty = any(not any(weights.values()) for weights in stated.values())
    if is_empty or prod(len(question.choices) for question in asked) > MOST_ANSWERS:
        return None
    chances: dict[Pattern, Fraction] = {(): Fraction(1)}
    names: list[str] = []
    for unit in _units(asked):
        following: dict[Pattern, Fraction] = defaultdict(Fraction)
        law = list(_law(unit, known, stated))
        skipped = (
            [(tuple(question.skipped for question in unit), Fraction(1))] if _rule(unit) else []
        )
        for chosen, chance in chances.items():
            given = dict(zip(names, chosen, strict=True))
            for pattern, share in law if _is_asked(unit, given) else skipped:
                following[chosen + pattern] += chance * share
        chances = following
        names += [question.id for question in unit]
    places = [names.index(question.id) for question in questions]
    totals: dict[Pattern, Fraction] = defaultdict(Fraction)
    for chosen, chance in chances.items():
        totals[tuple(chosen[place] for place in places)] += chance
    cells = product(*([choice.id for choice in question.choices] for question in questions))
    return tuple(totals[cell] for cell in cells)


def _units(asked: Sequence[Question]) -> Iterator[list[Question]]:
    """Yield the questions one by one, and those boxes together that are of one question."""
    for of, group in groupby(asked, lambda question: question.box and question.box.of):
        questions = list(group)
        yield from [questions] if of is not None else [[question] for question in questions]


def _rule(unit: Sequence[Question]) -> bool:
    return unit[0].ask_if is not None


def _is_asked(unit: Sequence[Question], given: Mapping[str, str]) -> bool:
    rule = unit[0].ask_if
    return rule is None or given[rule.question] in rule.choices


def _law(
    unit: Sequence[Question], known: Mapping[str, Question], stated: Stated
) -> Iterator[tuple[Pattern, Fraction]]:
    """Yield the choices of a question, or of some boxes of one, that are asked, with their chances."""
    if unit[0].box is None:
        (question,) = unit
        weights = stated.get(question.id) or {c.id: Fraction(1) for c in question.choices}
        for choice, weight in weights.items():
            yield (choice,), weight / sum(weights.values())
        return
    if any(question.id in stated for question in unit):
        laws = [dict(_law_of_box(question, known, stated)) for question in unit]
        for pattern in product((NO, YES), repeat=len(unit)):
            yield (
                pattern,
                prod((law[c] for law, c in zip(laws, pattern, strict=True)), start=Fraction(1)),
            )
        return
    sets = {p: _sets(unit, p, known) for p in product((NO, YES), repeat=len(unit))}
    for pattern, number in sets.items():
        yield pattern, Fraction(number, sum(sets.values()))


def _law_of_box(
    question: Question, known: Mapping[str, Question], stated: Stated
) -> Iterator[tuple[str, Fraction]]:
    sets = {c: Fraction(_sets([question], (c,), known)) for c in (NO, YES)}
    weights = stated.get(question.id) or sets
    for choice in (NO, YES):
        yield choice, weights.get(choice, Fraction(0)) / sum(weights.values())


def _sets(unit: Sequence[Question], pattern: Pattern, known: Mapping[str, Question]) -> int:
    """Return how many allowed sets of ticks agree with these boxes; a box with a role is alone."""
    of = unit[0].box and unit[0].box.of
    boxes = [question.box for question in known.values() if question.box and question.box.of == of]
    others = len(boxes) - len(unit)
    exclusive = sum(box.role is not None for box in boxes)
    exclusive_here = [
        question.box is not None and question.box.role is not None for question in unit
    ]
    ticked = [alone for alone, choice in zip(exclusive_here, pattern, strict=True) if choice == YES]
    if any(ticked):
        return int(len(ticked) == 1)
    alone_elsewhere = 0 if ticked else exclusive - sum(exclusive_here)
    return (1 << others - (exclusive - sum(exclusive_here))) + alone_elsewhere
