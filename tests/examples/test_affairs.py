# SPDX-License-Identifier: Apache-2.0
"""Demo of affairs: its data, the priors in its survey file, and its verdict."""

from dataclasses import replace
from math import comb

import pytest
from frankly_analyst import Estimate

from examples.affairs.data import PILOT, counts, people, split
from examples.demo.results import Asked, Compared, Question, compare, verdict
from examples.demo.surveys import SURVEYS
from tests.examples.rows import estimate
from tests.narrowing import present


def test_the_data_are_the_6366_women_of_statsmodels() -> None:
    everyone = people()
    assert len(everyone) == 6366
    assert sum(person["affair"] == "yes" for person in everyone) == 2053
    pilot, respondents = split()
    assert (len(pilot), len(respondents)) == (PILOT, 4866)
    assert [*pilot, *respondents] == everyone
    # The file lists all people with affairs first, so the rows must be shuffled.
    assert 0.2 < sum(p["affair"] == "yes" for p in pilot) / len(pilot) < 0.45


def test_the_survey_files_priors_are_the_pilots_counts() -> None:
    pilot, _ = split()
    for block in SURVEYS["affairs"].definition.blocks:
        (question,) = block.questions
        choices = [choice.id for choice in question.choices]
        assert block.prior is not None
        if block.prior.secrets is None:
            expected = [counts(pilot, question.id, choices)]
        else:
            expected = [
                counts(pilot, question.id, choices, affair=secret) for secret in block.prior.secrets
            ]
        assert [[int(cell) for cell in row] for row in block.prior.joint] == expected


def compared(question: str, truths: list[bool]) -> Question:
    row = estimate(question)
    return Question(
        question,
        "?",
        tuple(
            Compared(row, present(row.low) if inside else present(row.high) + 0.01)
            for inside in truths
        ),
    )


VERDICTS = [
    ([[True] * 6, [True] * 5], 11, 11, 1.0),
    ([[True, True], [True] * 6], 7, 7, 1.0),
    ([[False, False], [True] * 6], 6, 7, 1 - 0.95**7),
    (
        [[False] * 6, [True] * 6],
        6,
        12,
        sum(comb(12, k) * 0.95**k * 0.05 ** (12 - k) for k in range(7)),
    ),
]


@pytest.mark.parametrize(("truths", "inside", "checked", "chance"), VERDICTS)
def test_the_verdict_is_binomial_and_counts_complementary_shares_once(
    truths: list[list[bool]], inside: int, checked: int, chance: float
) -> None:
    found = verdict([compared(f"q{i}", row) for i, row in enumerate(truths)])
    assert found[:2] == (inside, checked)
    assert found[2] == pytest.approx(chance)


def test_six_misses_of_twelve_fail_the_demo_and_two_do_not() -> None:
    assert verdict([compared("q", [False] * 6 + [True] * 6)])[2] < 1e-3
    assert verdict([compared("q", [False] * 2 + [True] * 10)])[2] > 1e-3


def test_truth_is_counted_among_those_who_answered() -> None:
    _, respondents = split()
    rows: list[Estimate] = [replace(estimate("affair"), choice=choice) for choice in ("no", "yes")]
    (question,) = compare(rows, respondents, {"affair": Asked("?", ("no", "yes"))})
    assert [line.truth for line in question.rows] == [3300 / 4866, 1566 / 4866]
