# SPDX-License-Identifier: Apache-2.0
"""Joint tables that a form can estimate: their law has full rank, checked by enumerating reports."""

from fractions import Fraction
from itertools import combinations, product
from math import lcm, prod
from random import Random

import pytest
from frankly_design.form.joint_tables import (
    estimable_pairs,
    excess_in_words,
    gain_in_words,
    joint_tables_in_words,
)
from frankly_design.numeric import rational
from frankly_protocol.mechanisms import AgreementMechanism

from tests.frankly_protocol.audit.definitions import agreement_table
from tests.frankly_protocol.audit.worlds import agreement as random_form
from tests.frankly_protocol.mechanisms.test_agreement import EQUAL, FORM

FORMS = [
    FORM,
    EQUAL,
    *(random_form(Random(seed), sizes) for seed in range(10) for sizes in ((2, 3), (2, 2, 2))),
]


def is_estimable(form: AgreementMechanism, pair: tuple[int, int]) -> bool:
    """Return True if reports that show the pair determine all cells of its table."""
    law = agreement_table(form)
    truths = list(product(*map(range, form.choices)))
    whole = [p for p, questions in enumerate(form.parts) if set(pair) <= set(questions)]
    single = [form.parts.index((i,)) for i in pair if (i,) in form.parts]
    groups: list[tuple[int, ...]] = [(p,) for p in whole]
    if not groups and len(single) == 2:
        groups = [tuple(single)]
    for parts in groups:
        asked = sorted({i for part in parts for i in form.parts[part]})
        # Other parts of a report are left out, because they depend on other answers.
        shown: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for y in law:
            sets = dict(zip(y[1::2], y[2::2], strict=True))
            if set(parts) <= set(sets):
                shown.setdefault((y[0], *(sets[part] for part in parts)), []).append(y)
        rows: dict[tuple[int, ...], list[Fraction]] = {}
        for number, truth in enumerate(truths):
            row = [sum((law[y][number] for y in ys), Fraction(0)) for ys in shown.values()]
            rows.setdefault(tuple(truth[i] for i in asked), row)
        total = lcm(*(value.denominator for row in rows.values() for value in row))
        weights = [[int(value * total) for value in row] for row in rows.values()]
        if shown and rational.rank(weights) == prod(form.choices[i] for i in asked):
            return True
    return False


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_estimable_pairs_are_those_by_enumeration(form: AgreementMechanism) -> None:
    expected = [
        pair for pair in combinations(range(len(form.choices)), 2) if is_estimable(form, pair)
    ]
    assert estimable_pairs(form) == expected


NAMES = [f"q{i}" for i in range(6)]
EVERY = list(combinations(range(6), 2))


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (
            [],
            "No joint table of two questions can be estimated: name the pairs (“Compare two questions”, or "
            "cross_tables in the file).",
        ),
        (EVERY, "The joint table of any two questions can be estimated."),
        ([(0, 1)], "Of two questions, only these joint tables can be estimated: q0 × q1."),
        (EVERY[:10], "q1 × q4 and 2 more."),
    ],
)
def test_joint_tables_in_words(told: list[tuple[int, int]], words: str) -> None:
    assert joint_tables_in_words(told, NAMES).endswith(words)


@pytest.mark.parametrize(
    ("value", "percent"), [(1.0, "0 %"), (1.0001, "0.1 %"), (1.25, "25 %"), (3.0, "200 %")]
)
def test_the_excess_is_rounded_up(value: float, percent: str) -> None:
    assert f"at most {percent} above" in excess_in_words(value, 1.0)


@pytest.mark.parametrize(
    ("known", "drawn", "words"),
    [
        (1.0, 1.0, "the same, within 0.5 %, as with the best method"),
        (1.005, 1.004, "the same, within 0.5 %, as with the best method"),
        (0.9951, 1.0, "the same, within 0.5 %, as with the best method"),
        (0.999, 1.0, "one question drawn at random."),
        (1.0051, 1.06, "0.5 % lower than with the best method"),
        (2.0, 1.68, "50 % lower than with"),
        (3.0, 1.68, "66.6 % lower"),
        (3.0, 1.68, "1.7 questions drawn on average, and randomised together."),
        (0.994, 1.0, "0.7 % higher than with the best method"),
        (0.5, 1.0, "100 % higher than with the best method"),
    ],
)
def test_the_gain_over_a_known_method_is_rounded_against_the_form(
    known: float, drawn: float, words: str
) -> None:
    assert words in gain_in_words(1.0, known, drawn)
