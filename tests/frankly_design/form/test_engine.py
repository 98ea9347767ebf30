# SPDX-License-Identifier: Apache-2.0
"""Designs of forms: figures checked by enumeration, the best known values, bounds, and refused requests."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations
from random import Random
from typing import Any

import pytest
from frankly_design.form import FormDesign, FormQuestion, FormRequest, design_form
from frankly_design.form.comparisons import few_questions, one_question
from frankly_design.kinds.decoder import decoder
from frankly_design.kinds.parts import chance_shown, part_table
from frankly_protocol.audit import exp_upper, level_for
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism

from tests.frankly_design.form.rows import distribution

designed = cache(design_form)


def question(choices: int, **fields: Any) -> FormQuestion:
    """Return a question with a uniform prior."""
    return FormQuestion((1,) * choices, **fields)


def form(sizes: list[int], epsilon: str, **fields: Any) -> FormDesign:
    """Return the design for the shares of questions of these sizes."""
    return designed(FormRequest(tuple(map(question, sizes)), Fraction(epsilon), **fields))


BEST_KNOWN: list[tuple[list[int], str, float]] = [
    ([2, 2, 2], "2", 5.949),
    ([3, 3], "2", 5.7589),
    ([3, 3], "4", 1.8187),
    ([4, 4], "1", 33.225),
    ([5, 2], "1", 25.27),
    ([5, 2], "2", 6.365),
    ([5] * 10, "1", 1223),
    ([5] * 10, "2", 254.2),
    ([5] * 10, "4", 86.02),
    ([5] * 10, "6", 44.96),
    ([2] * 15, "2", 148.7),
    ([2] * 15, "4", 47.4),
    ([2] * 15, "6", 24.5),
    ([4] * 20, "2", 793.2),
    ([4] * 20, "4", 252.9),
    ([10] * 20, "1", 12002),
    ([10] * 20, "2", 2369),
    ([10] * 20, "4", 506.9),
]


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "epsilon", "best"), BEST_KNOWN)
def test_the_best_known_values_are_reached(sizes: list[int], epsilon: str, best: float) -> None:
    design = form(sizes, epsilon)
    assert design.value <= best * 1.005
    assert 0 < design.bound <= design.value
    assert sum(design.variances) == pytest.approx(design.value, rel=1e-9)


OPTIMA = [
    ([2, 2, 2], "2", 5.949),
    ([5, 2], "1", 25.273),
    ([5, 2], "2", 6.3648),
    ([3, 3], "2", 5.7589),
]


@pytest.mark.parametrize(("sizes", "epsilon", "optimum"), OPTIMA)
def test_bounds_are_below_certified_optima(sizes: list[int], epsilon: str, optimum: float) -> None:
    """The optima are certified on the joint alphabet, with the shares of all questions as targets."""
    assert form(sizes, epsilon).bound <= optimum * (1 + 1e-4)


def enumerated(mechanism: AgreementMechanism, number: int, request: FormRequest) -> Fraction:
    """Return the variance at n = 1 of a question's targets, by exact sums over the outcomes of its
    part.

    This is the variance given that a report shows the question, divided by the probability that a
    report shows it.
    """
    parts = [i for i, part in enumerate(mechanism.parts) if number in part]
    part = min(parts, key=lambda i: len(mechanism.parts[i]))
    table, members = part_table(mechanism, (part,)), mechanism.parts[part]
    question = request.questions[number]
    sizes = [request.questions[i].choices for i in members]
    answers = [[x] for x in range(sizes[0])]
    for size in sizes[1:]:
        answers = [[*answer, x] for answer in answers for x in range(size)]
    place = members.index(number)
    targets = tuple(
        tuple(Fraction(row[answer[place]]) for answer in answers) for row in question.targets
    )
    prior = tuple(
        _product(request.questions[i].prior[x] for i, x in zip(members, answer, strict=True))
        for answer in answers
    )
    shares = [Fraction(n, sum(prior)) for n in prior]
    total = Fraction(0)
    for row, weights in zip(decoder(table, targets, prior).rows, targets, strict=True):
        assert row is not None
        means = [
            sum(v * table.probability(y, x) for y, v in enumerate(row)) for x in range(len(answers))
        ]
        assert means == list(weights)
        second = sum(
            share * sum(v * v * table.probability(y, x) for y, v in enumerate(row))
            for x, share in enumerate(shares)
        )
        mean = sum(share * weight for share, weight in zip(shares, weights, strict=True))
        total += second - mean**2
    return total / chance_shown(mechanism, (part,))


def _product(values: Any) -> int:
    total = 1
    for value in values:
        total *= value
    return total


REQUESTS = {
    "equal": FormRequest((question(3),) * 3, Fraction(2)),
    "unequal": FormRequest((question(5), question(2), question(3)), Fraction(3)),
    "importance": FormRequest(
        (question(3, importance=Fraction(4)), question(2), question(2)), Fraction(2)
    ),
    "skewed": FormRequest((FormQuestion((7, 2, 1)), FormQuestion((1, 9))), Fraction(2)),
    "mean": FormRequest(
        (question(5, rows=(tuple(map(Fraction, range(5))),)), question(3)), Fraction(1)
    ),
    "distribution": FormRequest(
        (question(4, rows=distribution(4)), question(2)), Fraction(1)
    ),
    "contrast": FormRequest(
        (question(3, rows=((Fraction(1), Fraction(0), Fraction(-1)),)),),
        Fraction("0.5"),
    ),
    "pair": FormRequest((question(3), question(2), question(2)), Fraction(2), ((0, 1),)),
    "pairs": FormRequest((question(2),) * 4, Fraction(2), tuple(combinations(range(4), 2))),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", REQUESTS)
def test_variances_equal_those_of_the_published_law(name: str) -> None:
    request = REQUESTS[name]
    design = designed(request)
    mechanism = design.mechanism
    assert mechanism.level == Fraction(*level_for(request.epsilon))
    assert mechanism.level <= exp_upper(request.epsilon)
    for number, variance in enumerate(design.variances):
        assert float(enumerated(mechanism, number, request)) == pytest.approx(variance, rel=1e-6)
    weighted = sum(
        float(q.importance) * v for q, v in zip(request.questions, design.variances, strict=True)
    )
    assert weighted + sum(design.pair_variances) == pytest.approx(design.value, rel=1e-6)
    assert design.bound <= design.value


def test_the_variance_of_cross_tables_equals_that_of_the_published_law() -> None:
    for name in ("pair", "pairs"):
        request = REQUESTS[name]
        mechanism = designed(request).mechanism
        for pair, variance in zip(
            request.cross_tables, designed(request).pair_variances, strict=True
        ):
            parts = (
                (mechanism.parts.index(pair),)
                if pair in mechanism.parts
                else tuple(mechanism.parts.index((i,)) for i in pair)
            )
            table = part_table(mechanism, parts)
            cells = table.answers
            rows = decoder(table, _identity(cells), (1,) * cells).rows
            total = Fraction(0)
            for x, row in enumerate(rows):
                assert row is not None
                second = sum(
                    Fraction(1, cells) * v * v * table.probability(y, z)
                    for z in range(cells)
                    for y, v in enumerate(row)
                )
                total += second - Fraction(1, cells) ** 2
                del x
            assert float(total / chance_shown(mechanism, parts)) == pytest.approx(
                variance, rel=1e-6
            )


def _identity(size: int) -> tuple[tuple[Fraction, ...], ...]:
    return tuple(tuple(Fraction(int(i == j)) for j in range(size)) for i in range(size))


@pytest.mark.slow
def test_random_forms_are_never_worse_than_known_methods(full: bool) -> None:
    rng = Random(7)
    for _ in range(40 if full else 5):
        questions = tuple(
            question(rng.randint(2, 6), importance=Fraction(rng.randint(1, 9), 3))
            for _ in range(rng.randint(2, 5))
        )
        request = FormRequest(questions, Fraction(rng.choice(("0.5", "1", "2", "4"))))
        design = design_form(request)
        known = few_questions(request).value
        assert design.bound <= design.value <= known * (1 + 1e-6)
        assert known <= one_question(request).value * (1 + 1e-6)


def test_a_distribution_alone_is_near_the_certified_optimum() -> None:
    request = FormRequest((question(11, rows=distribution(11)),), Fraction(1))
    assert design_form(request).value <= 42.234 * 1.005


def test_the_mean_of_many_scores_is_estimable() -> None:
    scores = tuple(Fraction(x, 10) - 1 for x in range(21))
    request = FormRequest((question(21, rows=(scores,)),), Fraction(1, 2))
    assert design_form(request).value < 16.67  # Duchi's mechanism: ((e^ε+1)/(e^ε−1))²


def test_the_same_request_gives_the_same_mechanism() -> None:
    request = FormRequest((question(24), question(3)), Fraction(1))
    assert design_form(request).mechanism == design_form(request).mechanism


GOOD = FormRequest((question(3), question(2)), Fraction(1))
BAD: list[tuple[FormRequest, str]] = [
    (replace(GOOD, questions=()), "questions"),
    (replace(GOOD, questions=(question(2),) * 101), "questions"),
    (replace(GOOD, questions=(question(1),)), "questions[0].prior"),
    (replace(GOOD, questions=(question(2), question(65))), "questions[1].prior"),
    (replace(GOOD, questions=(FormQuestion((1, 0)),)), "questions[0].prior"),
    (replace(GOOD, questions=(question(2, rows=()),)), "questions[0].rows"),
    (replace(GOOD, questions=(question(2, rows=((Fraction(1),) * 2,)),)), "questions[0].rows[0]"),
    (
        replace(
            GOOD, questions=(question(2, rows=(*distribution(2), (Fraction(1), Fraction(2)) * 2)),)
        ),
        "questions[0].rows[1]",
    ),
    (replace(GOOD, questions=(question(2, importance=Fraction(0)),)), "questions[0].importance"),
    (replace(GOOD, cross_tables=((0, 0),)), "cross_tables[0]"),
    (replace(GOOD, cross_tables=((0, 2),)), "cross_tables[0]"),
    (replace(GOOD, cross_tables=((0, 1), (1, 0))), "cross_tables"),
    (
        replace(GOOD, questions=(question(17), question(16)), cross_tables=((0, 1),)),
        "cross_tables[0]",
    ),
]


@pytest.mark.parametrize(("request_", "field"), BAD)
def test_invalid_requests(request_: FormRequest, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        design_form(request_)
    assert caught.value.field == field
