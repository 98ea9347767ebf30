# SPDX-License-Identifier: Apache-2.0
"""Lift criteria at the boundary and just beyond it, compared with the definitions."""

import random
from fractions import Fraction

import numpy as np
import pytest
from frankly_design.notions.lift_criteria import MEASURES, Measure, criterion
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from tests.frankly_design.families.lift.reference import asked, keeps, random_counts
from tests.narrowing import present


def test_every_criterion_is_its_definition(full: bool) -> None:
    agreed = {True: 0, False: 0}
    for seed in range(300 if full else 60):
        rng = random.Random(seed)
        prior = random_counts(
            seed, rng.randint(2, 4), rng.randint(2, 5), zeros=rng.choice([0, 0.3])
        )
        epsilon = Fraction(rng.randint(1, 80), 10)
        for low, high, measure, order in asked(epsilon, Fraction(rng.randint(1, 9), 10)):
            rule = criterion(prior.masses, low, high, measure, order)
            column = [rng.choice([0, 1, rng.randint(1, 2**20)]) for _ in range(prior.answers)]
            if any(column):
                reported = [
                    sum(n * w for n, w in zip(row, column, strict=True)) for row in prior.joint
                ]
                expected = keeps(column, prior, low, high, measure, order)
                assert rule.holds(reported) is expected
                agreed[expected] += 1
                if abs(over := float(rule.excess(np.array([reported], dtype=float))[0])) > 1e-9:
                    assert (over < 0) is expected
    assert min(agreed.values()) > 50


# The two secrets have equal mass; a report with masses (t, u) has the lifts 2t/(t+u), 2u/(t+u).
@pytest.mark.parametrize(
    ("measure", "low", "high", "inside", "outside"),
    [
        ("lift", None, (3, 2), (3, 1), (3001, 999)),  # Λ = 3/2
        ("lift", (2, 1), None, (3, 1), (3001, 999)),  # Ψ = 1/2
        ("ldp", None, (3, 1), (3, 1), (3001, 999)),  # Γ = 3
        ("l1", None, (3, 2), (3, 1), (3001, 999)),  # ½|3/2−1| + ½|1/2−1| = 1/2
        ("l1", (5, 3), None, (3, 1), (3001, 999)),  # ½|2/3−1| + ½|2−1| = 2/3
        ("chi2", None, (3, 2), (3, 1), (3001, 999)),  # ½·¼ + ½·¼ = (1/2)²
        ("alpha", None, (5, 4), (7, 1), (7001, 999)),  # √(½(49/16 + 1/16)) = 5/4
    ],
)
def test_a_report_exactly_at_the_level_is_accepted(
    measure: Measure,
    low: tuple[int, int] | None,
    high: tuple[int, int] | None,
    inside: tuple[int, ...],
    outside: tuple[int, ...],
) -> None:
    rule = criterion((1, 1), low, high, measure)
    assert rule.holds(inside)
    assert not rule.holds(outside)


def test_a_level_on_either_side_of_an_irrational_one() -> None:
    """For the lifts 9/7 and 5/7, the inverse χ²-lift is ½(4/81 + 4/25), and the needed level is 1 +
    its square root."""
    line = float(Fraction(4, 81) + Fraction(4, 25)) / 2
    for step, holds in ((Fraction(1, 10**9), True), (Fraction(-1, 10**9), False)):
        level = (1 + Fraction(int(line**0.5 * 10**12), 10**12) + step).as_integer_ratio()
        assert criterion((1, 1), level, None, "chi2").holds([9, 5]) is holds


def test_a_secret_that_is_ruled_out() -> None:
    for measure in MEASURES:
        low = None if measure == "ldp" else (1000, 1)
        assert not criterion((1, 1), low, (1000, 1), measure).holds([1, 0])
        assert criterion((1, 1), low, (1000, 1), measure).holds([0, 0])
    assert criterion((1, 1), None, (2, 1)).holds([1, 0])
    assert not criterion((1, 1), None, (1999, 1000)).holds([1, 0])


def test_fewer_secrets_ruled_out_mean_less_risk() -> None:
    reported = np.array([[5.0, 0, 0], [9, 1, 0], [1, 1, 1], [3, 2, 1]])
    for measure in MEASURES:
        rule = criterion((1, 1, 1), None if measure == "ldp" else (2, 1), (2, 1), measure)
        assert np.argsort(-rule.risks(reported)).tolist() == [0, 1, 3, 2]


def test_rows_agree_with_holds(full: bool) -> None:
    for seed in range(200 if full else 40):
        rng = random.Random(seed)
        prior = random_counts(seed, 3, 4, zeros=0.2)
        for low, high, measure, order in asked(Fraction(rng.randint(1, 40), 10)):
            rule = criterion(prior.masses, low, high, measure, order)
            rows = rule.rows(prior.joint)
            if measure not in ("lift", "ldp"):
                assert rows is None
                continue
            column = [rng.randint(0, 2) * rng.randint(1, 1000) for _ in range(4)]
            reported = [sum(n * w for n, w in zip(row, column, strict=True)) for row in prior.joint]
            inside = all(
                sum(r * w for r, w in zip(row, column, strict=True)) >= 0 for row in present(rows)
            )
            assert inside is rule.holds(reported)


@pytest.mark.parametrize(
    ("low", "high", "measure", "order", "problem", "field"),
    [
        ((2, 1), (2, 1), "chi", 2, Problem.UNSUPPORTED, "measure"),
        (None, None, "lift", 2, Problem.EPS_OUT_OF_RANGE, "low_level"),
        ((1, 2), (2, 1), "lift", 2, Problem.EPS_OUT_OF_RANGE, "low_level"),
        ((2, 1), (1, 2), "lift", 2, Problem.EPS_OUT_OF_RANGE, "level"),
        ((2, 1), (2, 0), "lift", 2, Problem.EPS_OUT_OF_RANGE, "level"),
        ((2, 1), (2, 1), "ldp", 2, Problem.EPS_OUT_OF_RANGE, "low_level"),
        ((2, 1), None, "ldp", 2, Problem.EPS_OUT_OF_RANGE, "low_level"),
        ((2, 1), (2, 1), "alpha", 1, Problem.EPS_OUT_OF_RANGE, "order"),
        ((2, 1), (2, 1), "alpha", 2.5, Problem.EPS_OUT_OF_RANGE, "order"),
        ((2, 1), (2, 1), "alpha", True, Problem.EPS_OUT_OF_RANGE, "order"),
        ((2, 1), (2, 1), "alpha", 1001, Problem.EPS_OUT_OF_RANGE, "order"),
    ],
)
def test_invalid_criteria_are_refused(
    low: object, high: object, measure: str, order: object, problem: Problem, field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        criterion((1, 1), low, high, measure, order)  # type: ignore[arg-type]
    assert (caught.value.problem, caught.value.field) == (problem, field)
