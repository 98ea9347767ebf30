# SPDX-License-Identifier: Apache-2.0
"""Questions asked for a plan: closed under rules and boxes, and counted exactly."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest
from frankly_protocol.asking import Asking
from frankly_protocol.blocks import Block
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.mechanisms.agreement import Component, Cover, Plan, Pool
from frankly_protocol.questions import AskIf, Choice, Question, require_rules
from frankly_sdk.answer import Answer
from frankly_sdk.errors import UnknownChoice

from tests.frankly_protocol.asked import QUESTIONS, box, form
from tests.frankly_protocol.mechanisms.laws import plans_of
from tests.frankly_protocol.samples import question

NOT_ASKED = Choice("skipped", {"en": "Does not apply"}, role="not_applicable")


def block(name: str, questions: tuple[Question, ...], mechanism: object) -> Block:
    """Return a stand-in with what asking depends on; its promises play no part in it."""
    drawn = mechanism if isinstance(mechanism, AgreementMechanism) else None
    return cast(
        "Block",
        SimpleNamespace(
            id=name, questions=questions, mechanism=mechanism, form=drawn, asks_drawn=True
        ),
    )


def drawing(questions: tuple[Question, ...], rng: Random) -> AgreementMechanism:
    """Return a form with random pools, of which one or two parts are drawn."""
    parts = list(range(len(questions)))
    sizes = tuple(len(one.choices) for one in questions)
    components, chances = [], rng.choice(((16,), (5, 11), (2, 6, 8)))
    for chance in chances:
        by_size: dict[int, list[int]] = {}
        for part in (
            parts if chance == chances[-1] else rng.sample(parts, rng.randint(1, len(parts)))
        ):
            by_size.setdefault(sizes[part], []).append(part)
        pools = tuple(
            Pool(tuple(sorted(chosen)), rng.randint(1, min(2, len(chosen))), Cover(size, 1))
            for size, chosen in sorted(by_size.items())
        )
        components.append(Component(chance, 1, pools))
    return AgreementMechanism(4, 3, 1, sizes, tuple((part,) for part in parts), tuple(components))


def random_blocks(rng: Random) -> tuple[Block, ...]:
    """Return blocks of both kinds with questions, boxes and rules that cross blocks."""
    made: list[Question] = []
    for i in range(rng.randint(3, 7)):
        earlier = [one for one in made if one.box is None]
        rule = None
        if earlier and rng.random() < 0.6:
            source = rng.choice(earlier)
            ids = [choice.id for choice in source.choices]
            rule = AskIf(source.id, tuple(rng.sample(ids, rng.randint(1, len(ids)))))
        if rng.random() < 0.3:
            names = [("a", None), ("b", None), ("none", "not_applicable")]
            made += [box(f"g{i}", name, role, rule) for name, role in names]
        else:
            plain = question(f"q{i}", *"xyz"[: rng.randint(2, 3)])
            choices = plain.choices + ((NOT_ASKED,) if rule else ())
            made.append(replace(plain, choices=choices, ask_if=rule))
    require_rules(made)
    blocks: list[Block] = []
    start = 0
    while start < len(made):
        size = rng.randint(1, 4)
        # A group is never divided between blocks.
        while start + size < len(made) and made[start + size].box and made[start + size - 1].box:
            size += 1
        chosen = tuple(made[start : start + size])
        start += size
        mechanism = drawing(chosen, rng) if rng.random() < 0.6 else None
        blocks.append(block(f"b{len(blocks)}", chosen, mechanism))
    return tuple(blocks)


def every_plan(asking: Asking) -> Iterator[tuple[dict[str, Plan], Fraction]]:
    forms = [(form.id, plans_of(mechanism).items()) for form, mechanism in asking.forms]
    for chosen in product(*(plans for _, plans in forms)):
        chance = Fraction(1)
        for _, one in chosen:
            chance *= one
        yield {name: plan for (name, _), (plan, _) in zip(forms, chosen, strict=True)}, chance


def group(one: Question) -> str:
    return one.box.of if one.box else one.id


def needed(asking: Asking, plans: dict[str, Plan]) -> list[str]:
    """Return the ids of the questions asked, by repeating the two rules until nothing is added."""
    every = [question for one in asking.blocks for question in one.questions]
    names: set[str] = set()
    for one in asking.blocks:
        if isinstance(one.mechanism, AgreementMechanism):
            parts = [one.mechanism.parts[part] for part in plans[one.id].parts]
            names |= {one.questions[i].id for part in parts for i in part}
        else:
            names |= {question.id for question in one.questions}
    while True:
        groups = {group(one) for one in every if one.id in names}
        more = {one.id for one in every if group(one) in groups}
        more |= {one.ask_if.question for one in every if one.id in names and one.ask_if}
        if more <= names:
            return [one.id for one in every if one.id in names]
        names |= more


@pytest.mark.parametrize("seed", range(50))
def test_asked_questions_and_their_numbers_equal_those_of_every_plan(seed: int) -> None:
    asking = Asking(random_blocks(Random(seed)))
    mean, most, fewest = Fraction(0), 0, 10**6
    for plans, chance in every_plan(asking):
        asked = asking.asked(plans)
        assert [one.id for one in asked] == needed(asking, plans)
        shown = len({group(one) for one in asked})
        mean, most, fewest = mean + chance * shown, max(most, shown), min(fewest, shown)
    assert asking.mean == mean
    assert most <= asking.most <= asking.groups
    assert len(asking.always) <= fewest


def test_without_rules_and_boxes_the_largest_number_is_reached() -> None:
    questions = tuple(question(f"q{i}", "no", "yes") for i in range(6))
    mechanism = AgreementMechanism(
        4, 3, 1, (2,) * 6, tuple((i,) for i in range(6)),
        (Component(4, 1, (Pool((0, 1, 2), 2, Cover(2, 1)), Pool((3,), 1, Cover(2, 1)))),
         Component(12, 1, (Pool((3, 4, 5), 1, Cover(2, 1)),))),
    )  # fmt: skip
    asking = Asking([block("form", questions, mechanism)])
    assert (asking.most, asking.mean, asking.groups) == (3, Fraction(4 * 3 + 12, 16), 6)


def test_what_is_asked_always_is_counted_once() -> None:
    """A question of another block, on which one of the form's depends."""
    source, free = question("source", "no", "yes"), question("free", "no", "yes")
    plain = question("next", "no", "yes")
    follower = replace(plain, choices=(*plain.choices, NOT_ASKED), ask_if=AskIf("source", ("yes",)))
    asking = Asking([block("other", (source,), None), form(follower, free, drawn=True)])
    assert asking.always == {"source"}
    assert (
        asking.most
        == max(len(asking.asked(plans)) for plans, _ in every_plan(asking))
        == 2
        < asking.groups
    )


def test_a_question_brings_what_it_depends_on_and_boxes_come_together() -> None:
    """On the document with every kind of question, each asked alone by its own component."""
    asking = Asking([form(*QUESTIONS, drawn=True)])
    [(_, mechanism)] = asking.forms
    boxes = [one.id for one in QUESTIONS if one.box and one.box.of == "signs"]
    expected = {
        "age": ["age"],
        "work": ["work"],
        "stress": ["work", "stress"],
        "signs-pain": ["work", "stress", *boxes],
        "drugs-weed": ["drugs-beer", "drugs-weed"],
    }
    for name, asked in expected.items():
        number = [one.id for one in QUESTIONS].index(name)
        plan = Plan(number, (number,))
        assert mechanism.can_draw(plan)
        assert [one.id for one in asking.asked({"form": plan})] == asked
    assert (asking.always, asking.groups, asking.most) == (frozenset(), 5, 3)


def test_answers_to_the_questions_asked_settle_as_among_all() -> None:
    """A device may drop every other answer before it converts the answers."""
    asking = Asking([form(*QUESTIONS, drawn=True)])
    questions = {one.id: one for one in QUESTIONS}
    rng = Random(7)
    compared = 0
    for _ in range(300):
        given = {
            "age": rng.choice([18, 44, 70, "silent"]),
            "work": rng.choice(["no", "yes"]),
            "stress": rng.choice(["calm", "mixed", "hard", "none"]),
            "signs": rng.choice([[], ["pain"], ["sleep", "pain"], ["untold"], ["skipped"]]),
            "drugs": rng.choice([[], ["beer"], ["beer", "weed"]]),
        }
        everything = Answer(given).settled(questions)
        assert not isinstance(everything, UnknownChoice)
        for plans, _ in every_plan(asking):
            asked = {one.id: one for one in asking.asked(plans)}
            kept = {
                name: answer for name, answer in given.items() if name in map(group, asked.values())
            }
            settled = Answer(kept).settled(asked)
            assert not isinstance(settled, UnknownChoice)
            assert settled.revealed() == {name: everything.revealed()[name] for name in asked}
            compared += 1
    assert compared == 300 * len(QUESTIONS)
