# SPDX-License-Identifier: Apache-2.0
"""Laws of random answers equal those of all ways to answer at random, as a device converts them."""

from collections import Counter
from fractions import Fraction
from itertools import chain, combinations, groupby, product
from typing import Any

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.questions import AskIf, Box, Choice, Question
from frankly_sdk.answer import Answer
from frankly_server.analysis.random_law import random_law

from tests.frankly_protocol.samples import ldp_block, survey
from tests.frankly_server.analysis.samples import question

ROLES = (None, None, "not_applicable")


def boxes(of: str, roles: list[str | None], rule: AskIf | None = None) -> tuple[Question, ...]:
    plain = (Choice("no", {"en": "no"}), Choice("yes", {"en": "yes"}))
    return tuple(
        Question(
            f"{of}-{i}", {"en": f"{of}{i}"}, plain, Box(of, {"en": of}, {"en": str(i)}, role), rule
        )
        for i, role in enumerate(roles)
    )


def following(name: str, source: str, *choices: str) -> Question:
    plain = question(name, 3, role=ROLES)
    return Question(name, plain.text, plain.choices, None, AskIf(source, choices))


DOCUMENTS: dict[str, tuple[Question, ...]] = {
    "plain": (question("a", 3), question("b", 2)),
    "a rule": (question("a", 4), following("b", "a", "c1", "c3")),
    "a chain of rules": (
        question("a", 3),
        following("b", "a", "c0"),
        following("c", "b", "c0", "c1"),
    ),
    "boxes": boxes("m", [None, None, None]),
    "boxes, one of which excludes the others": boxes("m", [None, None, "no_answer"]),
    "boxes under a rule": (
        question("a", 2),
        *boxes("m", [None, None, "no_answer", "not_applicable"], AskIf("a", ("c1",))),
    ),
    "a rule of a box": (
        *boxes("m", [None, None]),
        Question(
            "b", {"en": "b"}, question("b", 3, role=ROLES).choices, None, AskIf("m-1", ("yes",))
        ),
    ),
}


def document_of(questions: tuple[Question, ...]) -> SurveyDocument:
    document = survey(ldp_block())
    # Only the questions matter, so the block is not one that a device would accept.
    object.__setattr__(document.blocks[0], "questions", questions)
    return document


def ways(group: list[Question]) -> list[tuple[str, Any]]:
    """Return every way to answer a question, or to tick the boxes of one, that a form allows."""
    box = group[0].box
    if box is None:
        return [(group[0].id, choice.id) for choice in group[0].choices]
    ids = [one.box_id for one in group]
    alone = {one.box_id for one in group if one.box and one.box.role}
    sets = chain.from_iterable(combinations(ids, n) for n in range(len(ids) + 1))
    return [(box.of, list(s)) for s in sets if len(s) < 2 or not alone & set(s)]


def of_everybody(document: SurveyDocument) -> Counter[tuple[str, ...]]:
    """Return how many of all ways to answer everything end in these choices."""
    known = document.questions
    groups = [
        list(group) for _, group in groupby(known.values(), lambda q: q.box.of if q.box else q.id)
    ]
    ends: Counter[tuple[str, ...]] = Counter()
    for given in product(*map(ways, groups)):
        settled = Answer(dict(given)).settled(known)
        assert isinstance(settled, Answer)
        ends[tuple(settled.revealed()[name] for name in known)] += 1
    return ends


@pytest.mark.parametrize("questions", DOCUMENTS.values(), ids=DOCUMENTS)
def test_the_law_is_that_of_all_ways_to_answer(questions: tuple[Question, ...]) -> None:
    document = document_of(questions)
    everybody = of_everybody(document)
    names = list(document.questions)
    for size in range(1, len(questions) + 1):
        for some in combinations(questions, size):
            law = random_law(document, some, {})
            cells = product(*([c.id for c in q.choices] for q in some))
            expected = [
                Fraction(
                    sum(
                        n
                        for end, n in everybody.items()
                        if all(end[names.index(q.id)] == c for q, c in zip(some, cell, strict=True))
                    ),
                    everybody.total(),
                )
                for cell in cells
            ]
            assert law is not None
            assert list(law) == expected


def test_a_stated_law_holds_among_those_who_are_asked() -> None:
    document = document_of(DOCUMENTS["a rule"])
    (a, b), half = DOCUMENTS["a rule"], Fraction(1, 2)
    stated = {"a": {"c1": Fraction(3), "c0": Fraction(1)}, "b": {"c0": half, "c1": half}}
    assert random_law(document, (a,), stated) == (Fraction(1, 4), Fraction(3, 4), 0, 0)
    assert random_law(document, (b,), stated) == (Fraction(3, 8), Fraction(3, 8), Fraction(1, 4))
    boxed = document_of(DOCUMENTS["boxes"])
    first, second, _ = DOCUMENTS["boxes"]
    tenth = {"m-0": {"yes": Fraction(1), "no": Fraction(9)}}
    assert random_law(boxed, (first,), tenth) == (Fraction(9, 10), Fraction(1, 10))
    assert random_law(boxed, (second, first), tenth) == tuple(Fraction(n, 20) for n in (9, 1, 9, 1))


def test_too_many_joint_answers_have_no_law() -> None:
    many = tuple(question(f"q{i}", 20) for i in range(4))
    assert random_law(document_of(many), many, {}) is None
    assert random_law(document_of(many), many[:1], {}) == (Fraction(1, 20),) * 20
