# SPDX-License-Identifier: Apache-2.0
"""A draw in two steps: the plan before any answer, then the answer from the plan's questions alone."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from random import Random

import pytest
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.mechanisms.agreement import Component, Cover, Plan, Pool

from tests.frankly_protocol.audit.definitions import agreement_table
from tests.frankly_protocol.audit.worlds import agreement as random_form
from tests.frankly_protocol.mechanisms.laws import draw_numbers, law, plans_of

SIZES = [(2,), (3,), (2, 2), (2, 3), (3, 2), (2, 2, 2)]
# A pool of four parts of which two are drawn, a joint part, a listed cover, scores up to 3.
WIDE = AgreementMechanism(
    4,
    7,
    2,
    (2, 2, 2, 2),
    ((0,), (1,), (2,), (3,), (0, 3)),
    (
        Component(11, 2, (Pool((0, 1, 2, 3), 2, Cover(2, 1)),)),
        Component(5, 3, (Pool((1, 2), 1, Cover(2, 1), 1), Pool((4,), 1, Cover(4, None, ((5, 2), (10, 2))), 3))),
    ),
)  # fmt: skip


class Asked(Mapping[int, int]):
    """The true answers to some questions; the others cannot be read."""

    def __init__(self, truth: tuple[int, ...], asked: tuple[int, ...]) -> None:
        self._truth, self._asked = truth, asked

    def __getitem__(self, question: int) -> int:
        assert question in self._asked, "an answer was read that nobody gave"
        return self._truth[question]

    def __iter__(self) -> Iterator[int]:
        raise AssertionError("the answers may only be read one by one")

    def __len__(self) -> int:
        raise AssertionError("the number of answers may not be read")


def forms(count: int) -> list[AgreementMechanism]:
    return [random_form(Random(seed), SIZES[seed % len(SIZES)]) for seed in range(count)]


@pytest.mark.parametrize("number", range(50))
def test_the_law_is_that_of_one_draw_and_unasked_answers_are_not_read(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claims A and B: the same law for every truth; the level holds for whoever knows the plan."""
    draw_numbers(monkeypatch)
    mechanism = [*forms(49), WIDE][number]
    expected = agreement_table(mechanism)
    plans = law(mechanism.plan)
    assert plans == plans_of(mechanism)
    columns: dict[tuple[int, ...], list[Fraction]] = defaultdict(list)
    for truth in product(*map(range, mechanism.choices)):
        drawn: dict[tuple[int, ...], Fraction] = {}
        for plan, chance in plans.items():
            asked = mechanism.questions_of(plan)
            answers = law(
                lambda source, truth=truth, plan=plan, asked=asked: mechanism.answer(
                    Asked(truth, asked), plan, source
                )
            )
            drawn |= {symbol: chance * share for symbol, share in answers.items()}
        for symbol in expected:
            columns[symbol].append(drawn.pop(symbol))
        assert drawn == {}
    assert columns == expected
    # The chance of the plan is the same for every truth, so ratios given the plan are these.
    for plan in plans:
        ratios = [
            max(column) / min(column)
            for symbol, column in expected.items()
            if (symbol[0], symbol[1::2]) == (plan.component, plan.parts)
        ]
        assert max(ratios) == min(ratios) == mechanism.level


def test_both_steps_draw_the_bits_of_one_draw_in_the_same_order() -> None:
    for seed, mechanism in enumerate([*forms(20), WIDE]):
        truth = tuple(Random(seed).randrange(n) for n in mechanism.choices)
        for draw in range(20):
            at_once, in_steps = Random(f"{seed} {draw}"), Random(f"{seed} {draw}")
            plan = mechanism.plan(in_steps.getrandbits)
            symbol = mechanism.answer(truth, plan, in_steps.getrandbits)
            assert symbol == mechanism.sample(truth, at_once.getrandbits)
            assert at_once.getstate() == in_steps.getstate()
            assert (plan.component, plan.parts) == (symbol[0], symbol[1::2])


def test_a_coin_that_is_drawn_before_asking_would_break_the_level() -> None:
    """Claim C: what a report does not show must not be decided before the answers are known.

    Yes/no at e^ε = 3: the set may be drawn without any answer with chance 2 · 1/4. Whoever sees that
    a question was asked knows that this coin fell the other way, and the set then is the truth.
    """
    mechanism = AgreementMechanism(
        4, 3, 1, (2,), ((0,),), (Component(16, 1, (Pool((0,), 1, Cover(2, 1)),)),)
    )
    table = agreement_table(mechanism)
    unasked = sum(min(column) for column in table.values())
    assert unasked == Fraction(1, 2)
    asked = {
        symbol: [chance - min(column) for chance in column] for symbol, column in table.items()
    }
    assert all(0 in column and max(column) > 0 for column in asked.values())


def test_only_plans_that_can_be_drawn_are_accepted() -> None:
    for mechanism in [*forms(20), WIDE]:
        valid = set(plans_of(mechanism))
        numbers = range(len(mechanism.parts) + 1)
        for component in range(len(mechanism.components) + 1):
            for length in range(4):
                for parts in product(numbers, repeat=length):
                    plan = Plan(component, parts)
                    assert mechanism.can_draw(plan) == (plan in valid)


def test_a_plan_is_not_shown() -> None:
    assert f"{Plan(7, (7,))} {[Plan(7, (7, 8))]}" == "Plan(…) [Plan(…)]"


def test_the_number_of_random_bits_of_an_answer_depends_on_the_plan_alone() -> None:
    for seed in range(100):
        plan = WIDE.plan(Random(seed).getrandbits)
        requested = set()
        for truth in product(range(2), repeat=4):
            sizes: list[int] = []
            source = Random(-seed)

            def bits(n: int, source: Random = source, sizes: list[int] = sizes) -> int:
                sizes.append(n)
                return source.getrandbits(n)

            WIDE.answer(truth, plan, bits)
            requested.add(tuple(sizes))
        assert len(requested) == 1
