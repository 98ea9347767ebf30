# SPDX-License-Identifier: Apache-2.0
"""Products by attribute, compared with Definition 3 of Funnel, which this module computes in fractions."""

import math
import random
from fractions import Fraction
from itertools import product
from typing import Literal

import numpy as np
import pytest
from frankly_design.notions.prior import Prior
from frankly_design.tables.quantise import quantise
from frankly_protocol.audit import Claim, level_for, require_private
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from scipy.optimize import minimize

from papers.sequential import SPENDING, Product, Rows, best_product, most_informative, product_of

EQUAL = (Fraction(1, 2), Fraction(1, 2))


def random_joint(seed: int, attributes: tuple[int, ...], secrets: int = 2, least: int = 1) -> Prior:
    rng = random.Random(seed)
    return Prior.from_rows(
        [[rng.randint(least, 1000) for _ in range(math.prod(attributes))] for _ in range(secrets)]
    )


def side_channel_ratio(
    rows: list[list[int]], prior: Prior, attributes: tuple[int, ...]
) -> Fraction:
    """Return max P(y|s,x_J) / P(y|x_J) or its inverse, over every y, s, J and x_J that occur
    [Funnel Def 3]."""
    answers, total = list(product(*map(range, attributes))), sum(rows[0])
    worst = Fraction(1)
    for fixed in product(*((None, *range(size)) for size in attributes)):
        inside = [
            i
            for i, x in enumerate(answers)
            if all(k in (None, v) for k, v in zip(fixed, x, strict=True))
        ]
        everyone = sum(prior.joint[s][i] for s in range(prior.secrets) for i in inside)
        for y in range(len(rows[0])):
            by_secret = [sum(row[i] * rows[i][y] for i in inside) for row in prior.joint]
            if not any(by_secret):
                continue  # s does not occur with x_J
            average = Fraction(sum(by_secret), everyone * total)
            for s, row in enumerate(prior.joint):
                if mass := sum(row[i] for i in inside):
                    conditional = Fraction(by_secret[s], mass * total)
                    worst = max(worst, conditional / average, average / conditional)
    return worst


def mutual(rows: list[list[int]], prior: Prior) -> float:
    Q = np.array([[float(Fraction(w, sum(row))) for w in row] for row in rows])
    p = np.array(prior.shares) / prior.total
    joint = p[:, None] * Q
    return float(np.sum(joint[joint > 0] * np.log((joint / (p[:, None] * (p @ Q)))[joint > 0])))


@pytest.mark.parametrize("spending", SPENDING)
@pytest.mark.parametrize("epsilon", ["0.1", "0.7", "2"])
def test_the_product_keeps_definition_3_and_its_information_adds_up(
    spending: Literal["stepwise", "carried"], epsilon: str, full: bool
) -> None:
    for seed in range(20 if full else 3):
        for attributes in ((2, 2), (2, 3), (2, 2, 2)):
            prior = random_joint(seed, attributes, secrets=2 + seed % 2)
            shares = (Fraction(1, len(attributes)),) * len(attributes)
            order = tuple(random.Random(seed).sample(range(len(attributes)), len(attributes)))
            product = product_of(prior, attributes, Fraction(epsilon), shares, order, spending)
            rows = product.rows()
            assert len({sum(row) for row in rows}) == 1
            assert side_channel_ratio(rows, prior, attributes) <= Fraction(
                *level_for(Fraction(epsilon))
            )
            assert product.information == pytest.approx(mutual(rows, prior), abs=1e-9)


def test_level_left_by_earlier_outcomes_is_used() -> None:
    prior, epsilon = random_joint(5, (3, 3)), Fraction("0.5")
    stepwise, carried = (
        product_of(prior, (3, 3), epsilon, EQUAL, (0, 1), spending) for spending in SPENDING
    )
    ahead = product_of(prior, (3, 3), epsilon, (Fraction(1), Fraction(0)), (0, 1))
    level = Fraction(*level_for(epsilon))
    assert side_channel_ratio(ahead.rows(), prior, (3, 3)) <= level
    # The product uses the full level up to rounding; equal steps would leave much of the level
    # unused.
    assert float(side_channel_ratio(carried.rows(), prior, (3, 3))) == pytest.approx(
        float(level), rel=1e-9
    )
    assert side_channel_ratio(stepwise.rows(), prior, (3, 3)) < level
    assert stepwise.information < carried.information < ahead.information


def test_the_best_product_is_the_best_of_its_grid() -> None:
    prior, epsilon = random_joint(8, (2, 3)), Fraction(1)
    best = best_product(prior, (2, 3), epsilon)
    plans = [
        (shares, order, spending)
        for shares in (EQUAL, (Fraction(1), Fraction(0)))
        for order in ((0, 1), (1, 0))
        for spending in SPENDING
    ]
    tried = [product_of(prior, (2, 3), epsilon, *plan).information for plan in plans]
    assert best.information == pytest.approx(max(tried), abs=1e-12)
    assert side_channel_ratio(best.rows(), prior, (2, 3)) <= Fraction(*level_for(epsilon))


def test_a_factor_is_the_optimum_of_its_step() -> None:
    """For two values and two reports, feasible columns form a polygon, which scipy searches."""
    prior, epsilon = random_joint(3, (2, 2)), Fraction("0.3")
    steps: list[tuple[Rows, np.ndarray]] = []

    def remember(rows: Rows, conditionals: np.ndarray) -> tuple[tuple[int, ...], ...]:
        steps.append((rows, conditionals))
        return most_informative(rows, conditionals)

    product = product_of(prior, (2, 2), epsilon, EQUAL, (1, 0), factor=remember)
    terms = []
    for rows, conditionals in steps:

        def gain(q: np.ndarray, conditionals: np.ndarray = conditionals) -> float:
            Q = np.clip(np.column_stack([q, 1 - q]), 1e-12, None)
            return sum(
                float(row @ (Q * np.log(Q / (row / row.sum() @ Q))).sum(axis=1))
                for row in conditionals
                if row.sum() > 0
            )

        A = np.array([[r / max(map(abs, row)) for r in row] for row in rows]).reshape(-1, 2)
        inside = [
            {"type": "ineq", "fun": lambda q, A=A: A @ q},
            {"type": "ineq", "fun": lambda q, A=A: A @ (1 - q)},
        ]
        starts = [[0.2, 0.8], [0.8, 0.2], [0.45, 0.55], [0.6, 0.4], [0.1, 0.2], [0.9, 0.8]]
        runs = [
            minimize(
                lambda q: -gain(q),
                s,
                bounds=[(0, 1)] * 2,
                constraints=inside,
                options={"ftol": 1e-12},
            )
            for s in starts
        ]
        terms.append(
            max(
                -run.fun
                for run in runs
                if min(A @ run.x, default=0) > -1e-9 and min(A @ (1 - run.x), default=0) > -1e-9
            )
        )
    assert product.information == pytest.approx(sum(terms), abs=1e-6)


def test_the_whole_product_can_be_published() -> None:
    prior, epsilon = random_joint(2, (2, 3)), Fraction(1)
    product = product_of(prior, (2, 3), epsilon, EQUAL, (0, 1))
    claim = Claim("srlip", level_for(epsilon), prior.joint, attributes=(2, 3))
    published = quantise(product.rows(), [claim], prior.shares)
    require_private(published.mechanism, claim)
    assert mutual([list(row) for row in published.mechanism.weights], prior) == pytest.approx(
        product.information, abs=1e-6
    )


def test_exclusive_or_keeps_its_promised_level() -> None:
    """Erratum 9.15: for two fair bits with S as their XOR, each bit is independent of S, but both
    together are not."""
    prior = Prior.from_rows([[1, 0, 0, 1], [0, 1, 1, 0]])
    for spending in SPENDING:
        product = product_of(prior, (2, 2), Fraction(1), EQUAL, (0, 1), spending)
        assert side_channel_ratio(product.rows(), prior, (2, 2)) <= Fraction(
            *level_for(Fraction(1))
        )


def test_a_secret_that_cannot_occur_with_a_value_sets_no_condition() -> None:
    joint = [[5, 0, 3, 0], [0, 4, 6, 2]]
    prior = Prior.from_rows(joint)
    product = product_of(prior, (2, 2), Fraction(1), EQUAL, (0, 1))
    assert side_channel_ratio(product.rows(), prior, (2, 2)) <= Fraction(*level_for(Fraction(1)))


def test_a_level_of_one_sends_a_constant() -> None:
    prior = random_joint(1, (2, 2))
    product = product_of(prior, (2, 2), Fraction(0), EQUAL, (0, 1))
    assert product.information == 0
    assert side_channel_ratio(product.rows(), prior, (2, 2)) == 1


@pytest.mark.parametrize(
    ("change", "problem", "field"),
    [
        ({"attributes": (2, 3)}, Problem.FIELD_TYPE, "attributes"),
        ({"attributes": (4, 1)}, Problem.FIELD_TYPE, "attributes"),
        ({"order": (0, 0)}, Problem.FIELD_TYPE, "order"),
        ({"order": (0,)}, Problem.FIELD_TYPE, "order"),
        ({"shares": (Fraction(1),)}, Problem.FIELD_TYPE, "shares"),
        ({"shares": (Fraction(1, 2), Fraction(1, 3))}, Problem.FIELD_TYPE, "shares"),
        ({"shares": (Fraction(3, 2), Fraction(-1, 2))}, Problem.FIELD_TYPE, "shares"),
        (
            {"prior": Prior(((1, 0, 2, 3), (1, 0, 1, 1)))},
            Problem.CHOICE_UNPROTECTED,
            "prior.joint[0][1]",
        ),
        ({"prior": Prior(((1, 1, 2, 3), (0, 0, 0, 0)))}, Problem.SECRET_EMPTY, "prior.joint[1]"),
        (
            {"factor": lambda rows, conditionals: ((1, 0), (0, 1))},
            Problem.MECHANISM_NOT_CERTIFIED,
            "attributes",
        ),
    ],
)
def test_invalid_arguments_are_refused(
    change: dict[str, object], problem: Problem, field: str
) -> None:
    arguments: dict[str, object] = {
        "prior": random_joint(1, (2, 2)),
        "attributes": (2, 2),
        "epsilon": Fraction("0.1"),
        "shares": EQUAL,
        "order": (0, 1),
    }
    with pytest.raises(InvalidInput) as caught:
        product_of(**(arguments | change))  # type: ignore[arg-type]
    assert (caught.value.problem, caught.value.field) == (problem, field)


def test_a_product_lists_answers_and_reports_row_major() -> None:
    listed_product = Product((((1, 2), (3, 0)), ((1, 1), (2, 0))), EQUAL, (0, 1), "carried", 0.0)
    assert listed_product.rows() == [[1, 1, 2, 2], [2, 0, 4, 0], [3, 3, 0, 0], [6, 0, 0, 0]]
