# SPDX-License-Identifier: Apache-2.0
"""Watchdog mechanisms: the levels of all three hold, and information does not decrease from one to
the next."""

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from frankly_design.engine import DesignRequest, design
from frankly_design.families.lift.complete_merging import watchdog
from frankly_design.families.lift.groups import Watched
from frankly_design.families.lift.merging import subset_merging, subsets
from frankly_design.families.lift.mixture import Table, lazy_rays, rounded_inside
from frankly_design.families.lift.subset_rr import subset_random_response
from frankly_design.notions.prior import Prior
from frankly_design.numeric.rays import extreme_rays
from frankly_protocol.audit import Claim, level_for, require_private
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.problems import Problem
from scipy.optimize import linprog

from tests.frankly_design.families.lift.reference import asked, keeps, lifts, random_counts

FAMILY: list[Callable[..., Table]] = [watchdog, subset_merging, subset_random_response]


def identity(answers: int) -> list[tuple[int, ...]]:
    return [tuple(1 << 48 if x == y else 0 for y in range(answers)) for x in range(answers)]


def mutual(table: Table, prior: Prior) -> float:
    Q = np.array(table, dtype=float) / 2.0**48
    joint = np.array(prior.shares)[:, None] / prior.total * Q
    ratio = joint / (joint.sum(axis=0) * np.array(prior.shares)[:, None] / prior.total)
    return float(np.sum(joint[joint > 0] * np.log(ratio[joint > 0])))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILY)
def test_no_report_exceeds_its_lift_levels(family: Callable[..., Table], full: bool) -> None:
    """The test checks every report with fractions, from the definition; many tables are not the identity."""
    changed = 0
    for seed in range(200 if full else 12):
        rng = random.Random(seed)
        prior = random_counts(
            seed, rng.randint(2, 5), rng.randint(2, 12), zeros=rng.choice([0, 0, 0.25])
        )
        for low, high, measure, order in asked(
            Fraction(rng.choice([1, 3, 10, 40]), 10), Fraction(rng.randint(2, 8), 10)
        ):
            table = family(prior.joint, low, high, measure=measure, order=order)
            assert [sum(row) for row in table] == [1 << 48] * prior.answers
            for column in zip(*table, strict=True):
                assert any(column)
                assert keeps(column, prior, low, high, measure, order)
            changed += sorted(table, reverse=True) != identity(prior.answers)
    assert changed > 50


def test_the_exact_verifier_accepts_them(full: bool) -> None:
    for seed in range(50 if full else 6):
        prior = random_counts(seed, 4, 10)
        low, high = level_for(Fraction("0.65")), level_for(Fraction("0.35"))
        for family in FAMILY:
            mechanism = DenseMechanism(48, family(prior.joint, low, high))
            require_private(mechanism, Claim("alip", high, prior.joint, low))
            mechanism = DenseMechanism(48, family(prior.joint, None, high, measure="ldp"))
            require_private(mechanism, Claim("secret-ldp", high, prior.joint))


@pytest.mark.slow
def test_information_does_not_fall_from_one_mechanism_to_the_next(full: bool) -> None:
    """Subset merging refines the watchdog's group; a group's response contains its merged report.

    The first statement holds only if the group was not enlarged, because the two mechanisms add
    different answers.
    """
    compared = 0
    for seed in range(100 if full else 8):
        prior = random_counts(seed, 4, 9)
        for epsilon in ("0.8", "1.5", "3"):
            for low, high, measure, order in asked(Fraction(epsilon)):
                watched = Watched.of(prior.joint, low, high, measure, order)
                merging, response, optimum = (
                    family(prior.joint, low, high, measure=measure, order=order)
                    for family in FAMILY
                )
                assert mutual(response, prior) <= mutual(optimum, prior) + 1e-6
                if watched.keeps(watched.split()[1] or range(9)):
                    assert mutual(merging, prior) <= mutual(response, prior) + 1e-9
                    compared += mutual(merging, prior) < mutual(optimum, prior) - 1e-3
    assert compared > 10


def test_only_answers_of_low_risk_are_sent_unchanged() -> None:
    for seed in range(20):
        prior, level = random_counts(seed, 3, 8), level_for(Fraction("0.4"))
        units = [tuple(int(i == x) for i in range(8)) for x in range(8)]
        harmless = [x for x in range(8) if keeps(units[x], prior, level, level, "lift", 2)]
        for family in FAMILY:
            columns = list(zip(*family(prior.joint, level, level), strict=True))
            sent = [column.index(1 << 48) for column in columns if sum(map(bool, column)) == 1]
            assert set(sent) <= set(harmless)
        # If the merged answers of high risk satisfy the level, all others are sent unchanged.
        merged = [int(x not in harmless) for x in range(8)]
        if harmless and any(merged) and keeps(merged, prior, level, level, "lift", 2):
            columns = list(zip(*watchdog(prior.joint, level, level), strict=True))
            assert sorted(tuple(map(bool, column)) for column in columns) == sorted(
                [tuple(map(bool, units[x])) for x in harmless] + [tuple(map(bool, merged))]
            )


def test_a_single_answer_of_high_risk_is_merged_with_others() -> None:
    """By erratum 9.21, the watchdog as printed "merges" answer 0 with no other answer, so it sends
    answer 0 unchanged."""
    joint = [[30, 10, 10, 10, 10], [10, 11, 10, 9, 10]]
    level = level_for(Fraction("0.3"))
    prior = Prior.from_rows(joint)
    assert [
        x
        for x in range(5)
        if not keeps([int(i == x) for i in range(5)], prior, level, level, "lift", 2)
    ] == [0]
    for family in (watchdog, subset_merging):
        columns = list(zip(*family(joint, level, level), strict=True))
        (merged,) = [column for column in columns if column[0]]
        assert sum(map(bool, merged)) > 1
        assert max(lifts(merged, prior)) <= Fraction(*level)


def test_harmless_answers_are_sent_unchanged_and_level_one_hides_the_secret() -> None:
    joint = [[10, 11, 12], [11, 10, 12]]
    for family in FAMILY:
        assert family(joint, level_for(Fraction(1)), level_for(Fraction(1))) == tuple(identity(3))
    for family in FAMILY:  # at level one the secret must be independent of the report
        table = family([[5, 1, 2], [1, 5, 1]], (1, 1), (1, 1))
        assert all(
            lift == 1
            for column in zip(*table, strict=True)
            for lift in lifts(column, Prior.from_rows([[5, 1, 2], [1, 5, 1]]))
        )


def test_a_groups_response_is_its_optimum(full: bool) -> None:
    """The reference is the optimum over a group's polytope (25), from the vertices of all sets of
    tight rows, by scipy."""
    tried = 0
    for seed in range(60 if full else 12):
        prior = random_counts(seed, 3, 8)
        low, high = level_for(Fraction("0.35")), level_for(Fraction("0.25"))
        watched = Watched.of(prior.joint, low, high, "lift", 2)
        partition = subsets(watched)
        p, N = np.array(prior.shares) / prior.total, np.array(prior.joint, dtype=float)
        best = -sum(p[x] * np.log(p[x]) for x in partition.alone)
        if any(len(group) > 4 for group in partition.groups):
            continue
        for group in partition.groups:
            lift = (N / N.sum(axis=0) / (N.sum(axis=1, keepdims=True) / N.sum()))[:, group]
            rows = [*np.eye(len(group)), *(high[0] / high[1] - lift), *(lift - low[1] / low[0])]
            points = []
            for tight in combinations(rows, len(group) - 1):
                system = np.vstack([*tight, np.ones(len(group))])
                if abs(np.linalg.det(system)) > 1e-12:
                    v = np.linalg.solve(system, [0] * (len(group) - 1) + [1])
                    if min(row @ v for row in rows) > -1e-9:
                        points.append(np.clip(v, 0, None))
            # Minimise Σ β_k H(v_k) with Σ β_k v_k = P_X on the group; I is H(X) minus the minimum.
            cost = [-float(np.sum(v[v > 0] * np.log(v[v > 0]))) for v in points]
            solution = linprog(cost, A_eq=np.array(points).T, b_eq=p[list(group)])
            best += -sum(p[x] * np.log(p[x]) for x in group) - solution.fun
            tried += 1
        table = subset_random_response(prior.joint, low, high)
        assert mutual(table, prior) == pytest.approx(best, abs=1e-7)
    assert tried > 10


LARGE_GROUPS = [
    [[194, 32, 81, 122, 43, 82, 233, 344], [53, 1157, 76, 116, 71, 86, 335, 610],
     [539, 357, 1, 25, 7, 19, 231, 65], [67, 94, 108, 52, 277, 138, 62, 24]],
    [[255, 192, 155, 84, 95, 17, 27, 9, 56, 244], [196, 274, 153, 183, 291, 220, 191, 165, 170, 280],
     [86, 245, 202, 5, 121, 257, 168, 14, 230, 220], [254, 56, 31, 259, 11, 164, 28, 93, 146, 129]],
]  # fmt: skip
"""Joint counts for which all answers are one group."""


@pytest.mark.parametrize("counts", LARGE_GROUPS, ids=len)
def test_the_response_of_a_large_group_is_its_optimum(counts: list[list[int]]) -> None:
    """If all answers are one group, Algorithm 2 is the certified optimum under ALIP."""
    prior = Prior.from_rows(counts)
    low, high = level_for(Fraction("0.05")), level_for(Fraction(1))
    watched = Watched.of(prior.joint, low, high, "lift", 2)
    assert [len(group) for group in subsets(watched).groups] == [prior.answers]
    found = design(
        DesignRequest(
            prior,
            (Claim("alip", high, prior.joint, low_level=low),),
            objective="information",
            accept_identity=True,
            accept_unidentifiable=True,
        )
    )
    assert found.certified
    table = subset_random_response(prior.joint, low, high)
    assert mutual(table, prior) == pytest.approx(found.information, abs=2e-6)


def test_rays_of_few_rows_are_the_rays_of_all() -> None:
    for seed in range(15):
        prior = random_counts(seed, 5, 3 + seed % 2)
        for low, high, measure, _ in list(asked(Fraction("0.7")))[:4]:
            rows = Watched.of(prior.joint, low, high, measure, 2).criterion.rows(prior.joint)
            assert rows is not None
            assert lazy_rays(rows, prior.answers) == extreme_rays(rows, prior.answers)


def test_rounding_returns_none_if_no_table_passes() -> None:
    rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert rounded_inside(rows, [1, 1], lambda column: True, bits=4) == ((16, 0), (0, 16))
    assert rounded_inside(rows, [1, 1], lambda column: column[0] == column[1], bits=4) is None
    # 16 · (1/3, 2/3) is rounded down to (5, 10); the missing unit goes to the larger weight.
    thirds = np.array([[1 / 3, 2 / 3], [1 / 3, 2 / 3]])
    assert rounded_inside(thirds, [1, 1], lambda column: True, bits=4) == ((5, 11), (5, 11))


def test_two_hundred_answers_and_fifteen_secrets() -> None:
    """The size is that of Lift Figure 10; a bench measures the time."""
    rng = np.random.default_rng(10)
    prior = Prior.from_rows(rng.integers(1, 10**6, size=(15, 200)).tolist())
    level = level_for(Fraction(1))
    values = []
    for family in FAMILY:
        table = family(prior.joint, level, level)
        require_private(DenseMechanism(48, table), Claim("lip", level, prior.joint))
        values.append(mutual(table, prior))
    assert values == sorted(values)
    assert values[2] > values[1] + 0.1


@pytest.mark.parametrize("family", FAMILY)
@pytest.mark.parametrize(
    ("joint", "low", "high", "problem", "field"),
    [
        ([[1, 0, 2], [1, 0, 3]], (2, 1), (2, 1), Problem.CHOICE_UNPROTECTED, "joint[0][1]"),
        ([[1, 1], [0, 0]], (2, 1), (2, 1), Problem.SECRET_EMPTY, "joint[1]"),
        ([[1, 1], [1]], (2, 1), (2, 1), Problem.PRIOR_SHAPE, "joint[1]"),
        ([[1, -1], [1, 1]], (2, 1), (2, 1), Problem.PRIOR_VALUE, "joint[0][1]"),
        ([[1, 1], [1, 1]], None, None, Problem.EPS_OUT_OF_RANGE, "low_level"),
        ([[1, 1], [1, 1]], (1, 2), (2, 1), Problem.EPS_OUT_OF_RANGE, "low_level"),
    ],
)
def test_invalid_inputs_are_refused(
    family: Callable[..., Table],
    joint: list[list[int]],
    low: object,
    high: object,
    problem: Problem,
    field: str,
) -> None:
    with pytest.raises(InvalidInput) as caught:
        family(joint, low, high)
    assert (caught.value.problem, caught.value.field) == (problem, field)
