# SPDX-License-Identifier: Apache-2.0
"""Comparisons of forms with known methods, checked with closed forms and known values."""

from fractions import Fraction
from itertools import combinations, product
from math import comb, exp, sqrt

import numpy as np
import pytest
from frankly_design.form import FormQuestion, FormRequest, design_form
from frankly_design.form.comparisons import _marginals, few_questions, one_question, separate_blocks
from frankly_design.form.problem import FormProblem, Pairs
from frankly_design.form.units import question_classes
from frankly_protocol.errors import InvalidInput


def asked(*choices: int) -> tuple[FormQuestion, ...]:
    return tuple(FormQuestion((1,) * number) for number in choices)


def total(k: int, epsilon: float) -> float:
    """Return the least total variance of k equal shares under ε-LDP, which subset selection of the
    best size attains."""
    E = exp(epsilon)
    found = []
    for d in range(1, k):
        inside = d * E / (d * E + k - d)  # the probability that the set contains the truth
        other = inside * (d - 1) / (k - 1) + (1 - inside) * d / (k - 1)
        # At equal shares, any particular answer is in the set with probability d/k.
        found.append(k * (d / k) * (1 - d / k) / (inside - other) ** 2)
    return min(found)


# (choices of the questions, ε, separate blocks, one question)
KNOWN = [
    ((2,) * 3, "2", 14.51, 7.76),
    ((5,) * 10, "1", 13090, 1223),
    ((5,) * 10, "2", 3223, 254.2),
    ((5,) * 10, "4", 789, 95.6),
    ((5,) * 10, "6", 348, 82.0),
    ((2,) * 15, "2", 1693, 194),
    ((2,) * 15, "4", 427, 121),
    ((2,) * 15, "6", 193, 114),
    ((4,) * 20, "2", 18030, 793),
    ((4,) * 20, "4", 4530, 346),
]


@pytest.mark.parametrize(("choices", "epsilon", "blocks", "one"), KNOWN)
def test_the_values_of_equal_questions(
    choices: tuple[int, ...], epsilon: str, blocks: float, one: float
) -> None:
    request = FormRequest(asked(*choices), Fraction(epsilon))
    apart, drawn = separate_blocks(request), one_question(request)
    assert apart.value == pytest.approx(blocks, rel=5e-3)
    assert drawn.value == pytest.approx(one, rel=5e-3)
    number = len(choices)
    assert apart.levels == pytest.approx([float(epsilon) / number] * number)
    assert drawn.chances == pytest.approx([1 / number] * number)
    assert apart.value == pytest.approx(number * total(choices[0], float(epsilon) / number))


def named(k: int, cells: int, epsilon: float) -> float:
    """Return the total variance of a question's k equal shares from randomised response on `cells`
    joint answers with others: each report has one cell, the true one E times as likely."""
    E = exp(epsilon)
    difference = (E - 1) / (E + cells - 1)
    return (k - 1) / k / difference**2


def capped(drawn: int, least: int, epsilon: float) -> float:
    """Return the same of one yes/no question if a report is a vector that agrees with the true
    answers to `drawn` questions in at least `least` places E times as likely as any other."""
    E = exp(epsilon)
    weights = [comb(drawn, i) * (E if i >= least else 1) for i in range(drawn + 1)]
    right = sum(w * i / drawn for i, w in enumerate(weights)) / sum(weights)
    return 1 / 2 / (2 * right - 1) ** 2


@pytest.mark.parametrize(("choices", "epsilon"), [entry[:2] for entry in KNOWN])
def test_few_equal_questions_have_the_values_of_published_methods(
    choices: tuple[int, ...], epsilon: str
) -> None:
    (k,), number, level = set(choices), len(choices), float(epsilon)
    values = [number**2 * total(k, level)]
    for drawn in range(1, number + 1):
        values.append(number**2 / drawn * named(k, k**drawn, level))
        if k == 2:
            values += [number**2 / drawn * capped(drawn, t, level) for t in range(1, drawn + 1)]
    request = FormRequest(asked(*choices), Fraction(epsilon))
    found = few_questions(request)
    assert found.value == pytest.approx(min(values), rel=1e-6)
    # The form of equal questions is not worse, and with even shares not better by more than a hair.
    assert found.value * 0.99 < design_form(request).value <= found.value * (1 + 1e-6)
    assert 1 <= found.drawn <= number


@pytest.mark.parametrize("epsilon", [2, 3, 4])
def test_few_questions_of_two_kinds_are_drawn_with_the_best_chances(epsilon: int) -> None:
    """Another algorithm: multiplicative steps for the chances of every number of each kind."""
    drawn = [(twos, fives) for twos, fives in product(range(5), range(5)) if twos + fives]
    variances = []
    for twos, fives in drawn:
        cells, alone = 2**twos * 5**fives, twos + fives == 1
        variances.append([total(k, epsilon) if alone else named(k, cells, epsilon) for k in (2, 5)])
    for twos in (2, 3, 4):
        for least in range(1, twos):
            drawn.append((twos, 0))
            variances.append([capped(twos, least, epsilon), 1])
    # The information about a question of each kind, of which there are four.
    gains = np.array(drawn) / 4 / np.array(variances)
    chances = np.full(len(gains), 1 / len(gains))
    for _ in range(20_000):
        slopes = gains @ (4 / (chances @ gains) ** 2)
        chances *= np.sqrt(slopes)
        chances /= chances.sum()
    request = FormRequest(asked(*[2] * 4, *[5] * 4), Fraction(epsilon))
    assert few_questions(request).value == pytest.approx(
        float((4 / (chances @ gains)).sum()), rel=1e-4
    )


def test_bits_of_questions_that_differ_are_drawn_together() -> None:
    """Ten yes/no questions of slightly different importance: a vector of all of them is best."""
    importances = [Fraction(1000 + i, 1000) for i in range(10)]
    questions = tuple(FormQuestion((1, 1), importance=one) for one in importances)
    found = few_questions(FormRequest(questions, Fraction(6)))
    values = [
        float(sum(importances)) * 10 / drawn * capped(drawn, least, 6)
        for drawn in range(1, 11)
        for least in range(1, drawn + 1)
    ]
    assert found.value == pytest.approx(min(values), rel=1e-6)


def test_marginals_of_uneven_questions_are_those_of_all_reports() -> None:
    """Every set of two of four questions with its joint law, by enumeration."""
    priors, importances, ratio = ((3, 7), (1, 1), (2, 1, 1), (9, 1)), (1, 2, 1, 3), exp(2)
    shares = [np.array(prior) / sum(prior) for prior in priors]
    informations = [np.zeros((len(prior),) * 2) for prior in priors]
    sets = list(combinations(range(4), 2))
    for drawn in sets:
        cells = list(product(*(range(len(priors[i])) for i in drawn)))
        law = np.full((len(cells),) * 2, 1.0) + (ratio - 1) * np.eye(len(cells))
        law /= ratio + len(cells) - 1
        for i in range(4):
            if i not in drawn:
                informations[i] += 1 / len(sets)
                continue
            place = drawn.index(i)
            # The estimate uses what the cell says of i, whatever the other answer is.
            rows = np.zeros((len(priors[i]),) * 2)
            for cell, row in zip(cells, law, strict=True):
                for named, chance in zip(cells, row, strict=True):
                    if cell[1 - place] == 0:
                        rows[cell[place], named[place]] += chance
            informations[i] += (rows / (shares[i] @ rows)) @ rows.T / len(sets)
    expected = sum(
        w * (np.trace(np.linalg.inv(information)) - (p**2).sum())
        for w, information, p in zip(importances, informations, shares, strict=True)
    )
    questions = tuple(
        FormQuestion(prior, importance=Fraction(w))
        for prior, w in zip(priors, importances, strict=True)
    )
    (problem,) = [
        FormProblem(tuple(question_classes(request)), Pairs({}), ratio)
        for request in (FormRequest(questions, Fraction(2)),)
    ]
    values = [one.value for one in _marginals(problem) if one.drawn == 2]
    assert values[0] == pytest.approx(expected, rel=1e-9)
    assert few_questions(FormRequest(questions, Fraction(2))).value <= min(values)


@pytest.mark.parametrize("number", [2, 5])
def test_one_bit_of_each_mean_is_a_known_method(number: int) -> None:
    """Each mean of −1, 0, 1 is rounded to a bit at random; vectors with enough true bits are likelier
    (Duchi, Jordan and Wainwright 2018). With t above the middle there may be a better one."""
    scores = (tuple(map(Fraction, (-1, 0, 1))),)
    request = FormRequest((FormQuestion((1, 1, 1), scores),) * number, Fraction(3))
    bits = [
        number**2 / drawn / (right - (1 - right)) ** 2 * 1.0
        for drawn in range(1, number + 1)
        for least in range(1, drawn + 1)
        for right in [0.5 + 1 / (2 * sqrt(2 * capped(drawn, least, 3)))]
    ]
    assert few_questions(request).value <= min(bits) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("questions", "epsilon"), [(asked(64, 64, 64), 1), (asked(5, 2, 2, 40), 2), (asked(3, 7), 3)]
)
def test_one_question_is_answered_by_a_set_of_the_best_size(
    questions: tuple[FormQuestion, ...], epsilon: int
) -> None:
    """Of 64 choices 17 are sent at ε = 1: too many sets to be listed in a form."""
    request = FormRequest(questions, Fraction(epsilon))
    known = sum(sqrt(total(question.choices, epsilon)) for question in questions) ** 2
    found = few_questions(request)
    assert found.value <= known * (1 + 1e-9)
    if questions[0].choices == 64:
        assert found.value == pytest.approx(known)
        assert found.value < one_question(request).value * 0.99


def test_the_best_split_beats_every_split_of_a_grid() -> None:
    request = FormRequest(asked(5, 2, 3), Fraction(2))
    found = separate_blocks(request)
    steps = [0.02 * i for i in range(1, 99)]
    grid = min(
        total(5, a * 2) + total(2, b * 2) + total(3, (1 - a - b) * 2)
        for a, b in product(steps, steps)
        if a + b < 0.99
    )
    assert sum(found.levels) == pytest.approx(2)
    assert found.value <= grid * (1 + 1e-9)
    own = sum(total(k, level) for k, level in zip((5, 2, 3), found.levels, strict=True))
    assert found.value == pytest.approx(own)


def test_one_question_is_drawn_by_neyman_allocation() -> None:
    """At equal shares, the total variance of question i is c_i/π_i, which is least at π ∝ √c_i."""
    request = FormRequest(asked(5, 2), Fraction(1))
    found = one_question(request)
    roots = [sqrt(total(k, 1)) for k in (5, 2)]
    assert found.chances == pytest.approx([root / sum(roots) for root in roots], rel=1e-3)
    assert found.value == pytest.approx(sum(roots) ** 2, rel=1e-6)
    assert found.value == pytest.approx(25.27, rel=1e-3)


def test_importance_moves_level_and_chances() -> None:
    questions = (FormQuestion((1, 1), importance=Fraction(4)), FormQuestion((1, 1)))
    request = FormRequest(questions, Fraction(2))
    levels, chances = separate_blocks(request).levels, one_question(request).chances
    assert levels[0] > levels[1]
    assert chances[0] == pytest.approx(2 / 3, rel=1e-3)


def test_pairs_are_estimated_from_two_blocks_or_drawn_as_one_question() -> None:
    request = FormRequest(asked(2, 3), Fraction(2), ((0, 1),))
    apart, drawn = separate_blocks(request), one_question(request)
    a, b = (total(k, level) for k, level in zip((2, 3), apart.levels, strict=True))
    joint = (a + 1 / 2) * (b + 1 / 3) - 1 / 6
    assert apart.value == pytest.approx(a + b + joint)
    # The pair is one question of six choices, so both questions are always drawn.
    assert drawn.chances == pytest.approx((1, 1))
    few = few_questions(request)
    assert design_form(request).value <= few.value * (1 + 1e-6)
    assert few.value <= drawn.value * (1 + 1e-6)


def test_joint_tables_of_many_pairs_are_estimated_from_few_questions() -> None:
    """All pairs of six yes/no questions: three are drawn, and one of their eight cells is named."""
    pairs = tuple((i, j) for j in range(6) for i in range(j))
    request = FormRequest(asked(*[2] * 6), Fraction(2), pairs)
    few, one = few_questions(request), one_question(request)
    assert design_form(request).value <= few.value * (1 + 1e-6)
    assert few.value < one.value
    assert 2 <= few.drawn <= 6


def test_an_empty_request_is_refused() -> None:
    request = FormRequest((), Fraction(1))
    for compare in (separate_blocks, one_question, few_questions):
        with pytest.raises(InvalidInput) as caught:
            compare(request)
        assert caught.value.field == "questions"
