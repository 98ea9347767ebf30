# SPDX-License-Identifier: Apache-2.0
"""Parts of a form as separate tables: laws checked by enumeration, counts of reports, and estimates."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import gcd
from random import Random

import pytest
from frankly_design.estimate.estimator import estimate
from frankly_design.kinds.decoder import shares
from frankly_design.kinds.parts import (
    PartTable,
    chance_shown,
    counted_blocks,
    counted_symbols,
    estimated_blocks,
    part_blocks,
    part_table,
)
from frankly_protocol.audit import Claim
from frankly_protocol.blocks import Block, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_server.analysis.part import Part
from frankly_server.store import NO_NUMBER, Layout

from tests.frankly_protocol.audit.definitions import agreement_table
from tests.frankly_protocol.audit.worlds import agreement as random_form
from tests.frankly_protocol.mechanisms.test_agreement import EQUAL, FORM
from tests.frankly_protocol.samples import ldp_block, question, survey
from tests.refusals import refusal

FORMS = [
    FORM,
    EQUAL,
    *(random_form(Random(seed), sizes) for seed in range(8) for sizes in ((2, 3), (2, 2, 2))),
]


def form_block(form: AgreementMechanism = FORM) -> Block:
    """Return a block with a form."""
    return Block(
        "form",
        tuple(question(f"q{i}", *map(str, range(n))) for i, n in enumerate(form.choices)),
        form,
        (Promise(Claim("ldp", form.level.as_integer_ratio())),),
        (1,) * sum(form.choices),
        form.level,
        "agreement",
        None,
    )


def document(form: AgreementMechanism = FORM) -> SurveyDocument:
    """Return a survey with a form between two ordinary blocks."""
    blocks = (ldp_block("before"), form_block(form), ldp_block("after"))
    return replace(survey(), blocks=blocks)


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_tables_of_parts_have_the_law_of_the_reports_that_show_them(
    form: AgreementMechanism,
) -> None:
    law = agreement_table(form)
    truths = list(product(*map(range, form.choices)))
    groups: list[tuple[int, ...]] = [(i,) for i in range(len(form.parts))]
    groups += list(combinations(range(len(form.parts)), 2))
    for parts in groups:
        shown = [y for y in law if set(parts) <= set(y[1::2])]
        if not shown:
            assert refusal(InvalidInput, part_table, form, parts).code == "not_identifiable"
            continue
        table = part_table(form, parts)
        chance = sum((law[y][0] for y in shown), Fraction(0))
        assert chance == chance_shown(form, parts)
        for row, truth in enumerate(truths):
            x = 0
            for part in parts:
                x = x * form.answers_of(part) + form.answer_of(part, truth)
            expected = [Fraction(0)] * table.reports
            for y in shown:
                column = table.column(y)
                assert column is not None
                expected[column] += law[y][row] / chance
            assert [table.probability(y, x) for y in range(table.reports)] == expected
        for y in set(law) - set(shown):
            assert table.column(y) is None


def test_columns_name_component_and_sets() -> None:
    table = part_table(FORM, (1,))
    for y in range(table.reports):
        component, sets = table.shown(y)
        assert table.column_of(component, sets) == y


def test_questions_of_two_parts_are_not_one_table() -> None:
    assert refusal(InvalidInput, part_table, FORM, (0, 3)).code == "not_identifiable"


def test_counted_blocks_are_the_blocks_and_the_parts() -> None:
    survey_document = document()
    counted = counted_blocks(survey_document)
    ids = [[q.id for q in block.questions] for block in counted]
    assert ids == [["before"], ["q0", "q1", "q2"], ["q0"], ["q1"], ["q2"], ["q0", "q2"], ["after"]]
    assert [isinstance(block.mechanism, PartTable) for block in counted] == [
        *(False, False),
        *(True,) * 4,
        False,
    ]
    assert counted_blocks(replace(survey_document, blocks=survey_document.blocks[:1])) == (
        survey_document.blocks[0],
    )
    parts = [(block.questions[0].id, share) for block, share in estimated_blocks(survey_document)]
    assert parts == [
        ("before", 1),
        ("q0", Fraction(9, 16)),
        ("q1", Fraction(12, 16)),
        ("q2", Fraction(4, 16)),
        ("q0", Fraction(3, 16)),
        ("after", 1),
    ]


def test_reports_count_in_the_parts_that_they_show() -> None:
    layout = Layout.of(document())
    numbers = layout.numbers([1, [0, 0, 2, 1, 3], 0])
    # Parts 0 and 1 both begin with component 0.
    assert numbers == [1, NO_NUMBER, 2, 3, None, None, 0]
    assert layout.numbers([0, [1, 2, 1], 1]) == [0, NO_NUMBER, None, None, 1, None, 1]
    pairs = dict(layout.pairs_of([1, [0, 0, 2, 1, 3], 0], numbers))
    assert pairs[2, 3] == ((2, 3),)
    assert (2, 4) not in layout.pairs
    assert (3, 5) in layout.pairs
    assert (3, 5) not in pairs


def exact_estimates(
    form: AgreementMechanism, parts: tuple[int, ...], population: list[int]
) -> None:
    """Check that estimates from a population's expected counts are exactly its shares."""
    law, table = agreement_table(form), part_table(form, parts)
    counts = [Fraction(0)] * table.reports
    truths = list(product(*map(range, form.choices)))
    for y, column in law.items():
        place = table.column(y)
        if place is not None:
            counts[place] += sum(n * c for n, c in zip(population, column, strict=True))
    scale = 1
    for count in counts:
        scale = scale * count.denominator // gcd(scale, count.denominator)
    result = estimate(table, [int(count * scale) for count in counts])
    expected: Counter[int] = Counter()
    for n, truth in zip(population, truths, strict=True):
        x = 0
        for part in parts:
            x = x * form.answers_of(part) + form.answer_of(part, truth)
        expected[x] += n
    for x, value in enumerate(result.unbiased):
        if value is not None:
            assert value == pytest.approx(expected[x] / sum(population), abs=1e-12)


@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_estimates_are_unbiased_for_all_joint_answers(form: AgreementMechanism) -> None:
    rng = Random(5)
    truths = list(product(*map(range, form.choices)))
    for _ in range(3):
        population = [rng.choice((0, 0, 1, 5, 20)) for _ in truths]
        population[0] += 1
        for part in range(len(form.parts)):
            exact_estimates(form, (part,), population)
    for parts in combinations(range(len(form.parts)), 2):
        questions = [question for part in parts for question in form.parts[part]]
        if chance_shown(form, parts) and len(set(questions)) == len(questions):
            exact_estimates(form, parts, population)


def test_two_parts_of_a_form_are_estimated_together() -> None:
    blocks = part_blocks(form_block(EQUAL))[:2]
    rng = Random(3)
    form = EQUAL
    symbols = [form.sample((0, 1, 2, 0), rng.getrandbits) for _ in range(4000)]
    pairs: Counter[tuple[int, ...]] = Counter()
    for symbol in symbols:
        counted = counted_symbols([form, *(block.mechanism for block in blocks)], [symbol])
        if None not in counted:
            pairs[tuple(counted[1:])] += 1
    part = Part(blocks, sum(pairs.values()), dict(pairs), shares(9), (), len(symbols))
    assert part.respondents == len(symbols)
    assert isinstance(part.mechanism, PartTable)
    assert part.mechanism.parts == (0, 1)
    result = estimate(part.mechanism, part.counts, design_prior=part.design_prior)
    best = max(range(9), key=lambda x: result.unbiased[x] or 0)
    assert best == 1  # answer 0 to the first question, 1 to the second


def test_fakes_and_censuses_of_reports_that_show_a_part() -> None:
    part = Part(part_blocks(form_block(EQUAL))[:1], 50, {}, shares(3), (), 100)
    assert part.fake_share(Fraction(1, 100)) == Fraction(1, 50)
    assert part.fake_share(Fraction(1, 2)) is None
    assert part.frame(None, census=True) == (100, False)
    assert part.frame(1000, census=False) == (1000, False)
    everybody = replace(part, received=None)
    assert everybody.frame(None, census=True) == (None, True)
    assert everybody.fake_share(Fraction(1, 100)) == Fraction(1, 100)
