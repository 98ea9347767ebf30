# SPDX-License-Identifier: Apache-2.0
"""Scores: groups of equal values, informative reports, and the law from each kind of evidence."""

import random
from collections import Counter
from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import pytest
from frankly_design.estimate import Joint, SetCounts, estimate
from frankly_design.estimate.estimator import evidence_of
from frankly_design.kinds.decoder import decoder, shares
from frankly_design.kinds.scores import SAME, ScoreLaw, groups_of, listed_score
from frankly_protocol.mechanisms import (
    DenseMechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)

from tests.frankly_design.estimate.published import UNARY
from tests.frankly_design.maths import random_mechanism

GRR = DenseMechanism(4, ((10, 3, 3), (3, 10, 3), (3, 3, 10)))
SUBSET = SubsetMechanism(4, 4, 2, 11)


def uneven(answers: int, epsilon: float, seed: int) -> DenseMechanism:
    """Return randomised response whose weights differ in the last bits, like those of a quantised optimum."""
    rng, denominator = random.Random(seed), 1 << 48
    off = int(denominator / (exp(epsilon) + answers - 1))
    rows = [[off + rng.randrange(-2, 3) for _ in range(answers)] for _ in range(answers)]
    for x, row in enumerate(rows):
        row[x] = denominator - sum(row) + row[x]
    return DenseMechanism(48, tuple(map(tuple, rows)))


def test_values_within_a_billionth_of_the_range_are_one_group() -> None:
    assert list(groups_of(np.array([3.0, 1.0, 3.0, 2.0]))) == [2, 0, 2, 1]
    assert list(groups_of(np.array([0.0, 0.9 * SAME, 1.0]))) == [0, 0, 1]
    assert list(groups_of(np.array([0.0, 1.1 * SAME, 1.0]))) == [0, 1, 2]
    assert list(groups_of(np.array([5.0, 5.0]))) == [0, 0]


@pytest.mark.parametrize("answers", [4, 16])
def test_uneven_last_bits_leave_two_groups_of_outer_values(answers: int) -> None:
    mechanism = uneven(answers, 1.0, answers)
    rows = decoder(mechanism, shares(answers), None).rows
    assert any(row is not None and len(set(row)) > 2 for row in rows), (
        "some row must have three values"
    )
    counts = [10 + y for y in range(answers)]
    for x, score in enumerate(evidence_of(mechanism, counts, shares(answers), None).scores()):
        row = rows[x]
        assert row is not None
        assert score.two is not None
        below, above = sorted(set(row) - {row[x]}), row[x]
        assert score.two.low == pytest.approx((float(below[0]), float(below[-1])), rel=1e-15)
        assert score.two.high == (float(above), float(above))
        assert score.two.count == counts[x]
    result = estimate(mechanism, counts)
    assert result.margins.exact is not None
    assert None not in result.margins.exact


def reference(score_of: dict[int, Fraction], counts: list[int]) -> int:
    """Count the reports whose score is not the most common one, from exact values."""
    tally: Counter[Fraction] = Counter()
    for y, n in enumerate(counts):
        tally[score_of[y]] += n
    return sum(counts) - max(tally.values())


def test_informative_reports_have_another_than_the_most_common_score() -> None:
    rng = random.Random(5)
    for _ in range(10):
        mechanism = random_mechanism(rng, 3, 4)
        counts = [rng.randrange(6) for _ in range(4)]
        counts[0] += 1
        rows = decoder(mechanism, shares(3), None).rows
        expected = tuple(
            None if row is None else reference(dict(enumerate(row)), counts) for row in rows
        )
        assert estimate(mechanism, counts).informative == expected
    assert estimate(GRR, [90, 6, 4]).informative == (10, 6, 4)
    assert estimate(GRR, [0, 0, 0]).informative == (None, None, None)


def symbols(mechanism: UnaryMechanism | SubsetMechanism, n: int, seed: int) -> dict[int, int]:
    rng = random.Random(seed)
    return dict(Counter(rng.choice(list(mechanism.symbols())) for _ in range(n)))


@pytest.mark.parametrize("mechanism", [UNARY, SUBSET])
def test_a_set_scores_two_values_for_one_answer_and_more_for_several(
    mechanism: UnaryMechanism | SubsetMechanism,
) -> None:
    answers = mechanism.answers
    first_share, second_share = Fraction(1), Fraction(2)
    first = (first_share,) + (Fraction(0),) * (answers - 1)
    minus = (-second_share,) + (Fraction(0),) * (answers - 1)
    contrast = (first_share, -second_share) + (Fraction(0),) * (answers - 2)
    symbol_counts = symbols(mechanism, 40, 3)
    evidence = evidence_of(
        mechanism, SetCounts.of_symbols(answers, symbol_counts), (first, minus, contrast), None
    )
    single, negative, several = evidence.scores()
    held = sum(n for mask, n in symbol_counts.items() if mask & 1)
    assert single.two is not None
    assert negative.two is not None
    assert (single.two.count, negative.two.count) == (held, 40 - held)
    assert single.informative == negative.informative == min(held, 40 - held)
    assert several.two is None
    assert several.law is not None
    # The law lists every set; its mean given each answer is the target's weight.
    middle = (several.law.low + several.law.high) / 2
    assert several.law.chances @ middle == pytest.approx(evidence.W[2])
    assert several.law.chances.sum(axis=1) == pytest.approx(np.ones(answers))
    for score, ends in zip((single, negative, several), evidence.ends(), strict=True):
        assert score.reach == pytest.approx(tuple(map(float, ends)))


def test_laws_of_tables_products_and_joint_tables_decode_to_their_weights() -> None:
    rng = random.Random(11)
    tables = random_mechanism(rng, 2, 3), random_mechanism(rng, 2, 4)
    lone = evidence_of(tables[1], [3, 0, 2, 5], shares(2), None)
    product_of = evidence_of(ProductMechanism(tables), [1] * 12, shares(4), None)
    joint = Joint((tables[0], UnaryMechanism(4, 2, 9, 4)))
    tally: dict[tuple[int, ...], int] = {
        (y, mask): 1 + mask for y, mask in product(range(3), range(4))
    }
    for evidence in (lone, product_of, evidence_of(joint, tally, shares(4), None)):
        for w, score, ends in zip(evidence.W, evidence.scores(), evidence.ends(), strict=True):
            assert score.reach == pytest.approx(tuple(map(float, ends)))
            assert score.law is not None
            middle = (score.law.low + score.law.high) / 2
            assert score.law.chances @ middle == pytest.approx(w, abs=1e-9)
            assert score.law.chances @ middle**2 == pytest.approx(
                evidence.truth_moments()[int(np.argmax(w))], rel=1e-9
            )


def test_joint_tables_too_large_to_list_have_a_range_and_informative_reports() -> None:
    joint = Joint((UnaryMechanism(4, 6, 9, 4), UnaryMechanism(4, 5, 9, 4)))
    same, different = (0b000001, 0b00001), (0b000011, 0b00001)
    evidence = evidence_of(joint, {same: 50, different: 3}, shares(30), None)
    scores = evidence.scores()
    assert all(score.law is None and score.two is None for score in scores)
    assert [score.informative for score in scores] == [3] * 30
    assert [score.reach for score in scores] == [
        tuple(map(float, ends)) for ends in evidence.ends()
    ]


def test_informative_reports_are_the_rarer_of_those_with_and_without_the_answer() -> None:
    target = ((Fraction(1), Fraction(0), Fraction(0)),)
    for held in (3, 37):
        set_counts = SetCounts.of_symbols(3, {0b001: held, 0b010: 40 - held})
        assert [
            score.informative for score in evidence_of(UNARY, set_counts, target, None).scores()
        ] == [3]


def test_without_counts_of_single_reports_only_the_law_is_known() -> None:
    score = listed_score(0.5, np.array([0.0, 1.0, 1.0]), None, np.array([[0.5, 0.3, 0.2]]))
    assert (score.two, score.informative) == (None, None)
    assert score.law is not None
    np.testing.assert_allclose(score.law.chances, [[0.5, 0.5]])


def test_the_groups_of_a_negative_score_are_the_negative_groups() -> None:
    law = ScoreLaw(np.array([0.0, 1.0]), np.array([0.25, 1.5]), np.array([[0.9, 0.1], [0.3, 0.7]]))
    mirrored = law.mirrored()
    groups = list(zip(mirrored.low.tolist(), mirrored.high.tolist(), strict=True))
    assert groups == [(-1.5, -1.0), (-0.25, 0.0)]
    assert mirrored.chances.tolist() == [[0.1, 0.9], [0.7, 0.3]]
