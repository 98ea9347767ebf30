# SPDX-License-Identifier: Apache-2.0
"""Designs of forms that ask a question twice: both copies are one part, of which a report says equal or not."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest
from frankly_design.estimate.anchors import AnchorScore
from frankly_design.form import FormQuestion, FormRequest, design_form
from frankly_design.form.comparisons import few_questions, one_question, separate_blocks
from frankly_design.form.request import Rows
from frankly_design.kinds.decoder import decoder
from frankly_design.kinds.parts import PartTable, chance_shown, part_table
from frankly_protocol.audit import exp_upper, level_for
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.agreement import Cover

from tests.frankly_design.form.rows import distribution
from tests.refusals import refusal

designed = cache(design_form)
YES_NO, THREE = FormQuestion((1, 1)), FormQuestion((5, 3, 2))
REQUESTS = {
    "two": FormRequest((YES_NO, YES_NO, YES_NO), Fraction(1), repeats=((0, 1),)),
    "alone": FormRequest((THREE, THREE), Fraction(2), repeats=((0, 1),)),
    "more equal ones": FormRequest((YES_NO,) * 7, Fraction(4), repeats=((2, 5),)),
    "importance": FormRequest(
        (THREE, YES_NO, replace(THREE, importance=Fraction(3))), Fraction(3), repeats=((0, 2),)
    ),
    "a joint table": FormRequest(
        (THREE, YES_NO, THREE), Fraction(2), ((0, 1),), repeats=((0, 2),)
    ),
    "a distribution": FormRequest(
        (FormQuestion((1,) * 4, distribution(4)), FormQuestion((1,) * 4), YES_NO), Fraction(1), repeats=((0, 1),)
    ),
    "two of them": FormRequest(
        (YES_NO, YES_NO, THREE, THREE, YES_NO), Fraction(2), repeats=((0, 1), (2, 3))
    ),
}  # fmt: skip


def equal_answers(choices: int) -> list[bool]:
    """Return, for each joint answer of both copies, whether they are equal."""
    return [first == second for first in range(choices) for second in range(choices)]


@pytest.mark.parametrize("name", REQUESTS)
def test_both_copies_are_one_part_with_the_sets_equal_and_different(name: str) -> None:
    request = REQUESTS[name]
    mechanism = designed(request).mechanism
    assert mechanism.level == Fraction(*level_for(request.epsilon)) <= exp_upper(request.epsilon)
    for repeat in request.repeats:
        assert [part for part in mechanism.parts if repeat[1] in part] == [repeat]
        k, number = request.questions[repeat[0]].choices, mechanism.parts.index(repeat)
        equal = sum(1 << x for x, is_equal in enumerate(equal_answers(k)) if is_equal)
        cover = Cover(k * k, None, ((equal, 1), ((1 << k * k) - 1 - equal, 1)))
        pools = [pool for one in mechanism.components for pool in one.pools]
        assert {pool.cover for pool in pools if number in pool.parts} == {cover}


def variance(table: PartTable, rows: Rows, prior: tuple[int, ...]) -> Fraction:
    """Return the summed variance of the best unbiased estimates from one report of the table."""
    shares = [Fraction(n, sum(prior)) for n in prior]
    total = Fraction(0)
    for row, values in zip(rows, decoder(table, rows, prior).rows, strict=True):
        assert values is not None
        law = [
            sum((p * table.probability(y, x) for x, p in enumerate(shares)), Fraction(0))
            for y in range(len(values))
        ]
        total += sum(p * v * v for p, v in zip(law, values, strict=True))
        total -= sum(p * weight for p, weight in zip(shares, row, strict=True)) ** 2
    return total


@pytest.mark.parametrize("name", [name for name in REQUESTS if name != "a joint table"])
def test_the_value_is_that_of_the_published_law(name: str) -> None:
    request = REQUESTS[name]
    design, first_of = designed(request), {second: first for first, second in request.repeats}
    mechanism, total = design.mechanism, 0.0
    for i, question in enumerate(request.questions):
        if i in first_of:
            part = mechanism.parts.index((first_of[i], i))
            k, counts = question.choices, request.questions[first_of[i]].prior
            equal = equal_answers(k)
            # 9/10 on the diagonal in the shares of the first copy, 1/10 on all joint answers.
            prior = tuple(
                9 * k * k * counts[x // k] * is_equal + sum(counts)
                for x, is_equal in enumerate(equal)
            )
            rows: Rows = (tuple(map(Fraction, equal)),)
        else:
            part = mechanism.parts.index((i,))
            rows, prior = question.targets, question.prior
        of_one = variance(part_table(mechanism, (part,)), rows, prior)
        found = float(of_one / chance_shown(mechanism, (part,)))
        assert design.variances[i] == pytest.approx(found, rel=1e-6)
        total += float(question.importance) * found
    assert design.value == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("name", REQUESTS)
def test_the_bound_is_below_the_value_and_above_that_without_the_second_copies(name: str) -> None:
    request = REQUESTS[name]
    design = designed(request)
    assert 0 < designed(request.without_repeats()).bound * 0.99 < design.bound <= design.value


def score(table: PartTable, known: list[Fraction]) -> AnchorScore:
    cells = table.answers
    found = AnchorScore.of(table, known, [Fraction(1, cells)] * cells)
    assert found is not None
    return found


def test_a_repeated_yes_no_question_tells_as_much_as_one_that_nobody_answers_with_yes() -> None:
    request = FormRequest((YES_NO, YES_NO, THREE), Fraction(1), repeats=((0, 1),))
    mechanism = designed(request).mechanism
    assert all(len(component.slots) == 1 for component in mechanism.components)
    repeated = part_table(mechanism, (mechanism.parts.index((0, 1)),))
    constant = designed(FormRequest((YES_NO, THREE), Fraction(1))).mechanism
    assert all(len(component.slots) == 1 for component in constant.components)
    alone = part_table(constant, (constant.parts.index((0,)),))
    first = score(repeated, [Fraction(int(equal), 2) for equal in equal_answers(2)])
    other = score(alone, [Fraction(1), Fraction(0)])
    for attentive in (1.0, 0.9, 0.5, 0.0):
        assert first.variance(attentive) == pytest.approx(other.variance(attentive), rel=1e-9)


GOOD = FormRequest((YES_NO, YES_NO, THREE, THREE), Fraction(1), repeats=((0, 1),))
LARGE = FormQuestion((1,) * 17)
BAD: dict[str, tuple[FormRequest, str, str]] = {
    "itself": (replace(GOOD, repeats=((0, 0),)), "repeats[0]", "two different"),
    "no question": (replace(GOOD, repeats=((0, 4),)), "repeats[0]", "two different"),
    "a negative place": (replace(GOOD, repeats=((-1, 1),)), "repeats[0]", "two different"),
    "other choices": (replace(GOOD, repeats=((0, 1), (0, 2))), "repeats[1]", "same choices"),
    "many choices": (replace(GOOD, questions=(LARGE, LARGE)), "repeats[0]", "at most 16"),
    "in a joint table": (replace(GOOD, cross_tables=((1, 2),)), "repeats[0]", "first one there"),
    "twice": (replace(GOOD, repeats=((0, 1), (0, 1))), "repeats[0]", "repeats one question"),
    "a repeated copy": (
        replace(GOOD, questions=(YES_NO,) * 3, repeats=((0, 1), (1, 2))),
        "repeats[1]",
        "is not repeated itself",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_repeats(name: str) -> None:
    request, field, words = BAD[name]
    error = refusal(InvalidInput, design_form, request)
    assert error.field == field
    assert words in error.detail


def test_nothing_is_compared_with_a_form_that_asks_twice() -> None:
    for compare in (separate_blocks, one_question, few_questions):
        assert refusal(InvalidInput, compare, GOOD).field == "repeats"
