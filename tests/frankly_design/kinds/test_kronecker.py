# SPDX-License-Identifier: Apache-2.0
"""Kronecker products, computed factor by factor, with the same results as the whole matrix."""

import random
from dataclasses import fields
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest
from frankly_design.estimate import Estimate, estimate
from frankly_design.kinds.kronecker import Kronecker
from frankly_design.kinds.likelihood import fit_p, likeliest
from frankly_protocol.mechanisms import DenseMechanism, ProductMechanism

from tests.frankly_design.maths import random_mechanism


def kron(*factors: np.ndarray) -> np.ndarray:
    """Return the Kronecker product of all factors, by definition."""
    return reduce(np.kron, factors[1:], factors[0])


SHAPES = [
    [(2, 2), (2, 2)],
    [(3, 4), (5, 2)],
    [(2, 3), (4, 4), (3, 2)],
    [(1, 5), (3, 3)],
    [(16, 16), (16, 17)],
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_products_with_vectors_equal_those_of_the_whole_matrix(
    shapes: list[tuple[int, int]],
) -> None:
    rng = np.random.default_rng(1)
    factors = [rng.normal(size=shape) for shape in shapes]
    held, full_matrix = Kronecker(factors), kron(*factors)
    p: Any = rng.normal(size=len(full_matrix))
    r: Any = rng.normal(size=full_matrix.shape[1])
    assert (held.shape, len(held)) == (full_matrix.shape, len(full_matrix))
    np.testing.assert_allclose(p @ held, p @ full_matrix, rtol=0, atol=1e-12)
    np.testing.assert_allclose(held @ r, full_matrix @ r, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(held.dense, full_matrix)


def test_whole_numbers_of_any_size_stay_exact() -> None:
    rng = random.Random(2)
    A, B = (
        [[rng.getrandbits(300) - (1 << 299) for _ in range(b)] for _ in range(a)]
        for a, b in ((2, 3), (4, 2))
    )
    held = Kronecker([np.array(A, dtype=object), np.array(B, dtype=object)])
    p, r = [rng.getrandbits(200) for _ in range(8)], [rng.getrandbits(200) for _ in range(6)]
    full_matrix = [
        [A[i][k] * B[j][m] for k in range(3) for m in range(2)] for i in range(2) for j in range(4)
    ]
    assert list(np.array(p, dtype=object) @ held) == [
        sum(p[x] * full_matrix[x][y] for x in range(8)) for y in range(6)
    ]
    assert list(held @ np.array(r, dtype=object)) == [
        sum(full_matrix[x][y] * r[y] for y in range(6)) for x in range(8)
    ]


def joint_table(product: ProductMechanism) -> DenseMechanism:
    """Return a product as one table of its joint symbols."""
    weights = reduce(
        np.kron, [np.array(factor.weights, dtype=object) for factor in product.factors]
    )
    return DenseMechanism(product.bits * len(product.factors), tuple(map(tuple, weights.tolist())))


def drawn(table: DenseMechanism, n: int, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(table.answers, 0.5))
    rates = p @ (np.array(table.weights) / table.denominator)
    return [int(c) for c in rng.multinomial(n, rates / rates.sum())]


CASES: dict[str, tuple[list[tuple[int, int]], int, dict[str, Any]]] = {
    "square, few reports": ([(3, 3), (4, 4)], 300, {}),
    "square, many reports": ([(3, 3), (4, 4)], 10_000_000, {}),
    "more symbols than answers": ([(2, 3), (3, 5)], 5_000, {}),
    "three factors": ([(2, 2), (3, 3), (2, 3)], 5_000, {}),
    "census": ([(3, 3), (2, 2)], 700, {"census": True}),
    "of a population": ([(3, 3), (2, 2)], 700, {"population": 2_000}),
    "one report": ([(3, 3), (2, 2)], 1, {}),
    "no reports": ([(3, 3), (2, 2)], 0, {}),
}
LIKELIEST = {"mle", "mle_gap", "fit_p"}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("targets", ["shares", "margins"])
def test_a_product_is_estimated_as_the_table_of_its_joint_symbols(case: str, targets: str) -> None:
    shapes, n, options = CASES[case]
    rng = random.Random(case)
    product = ProductMechanism(tuple(random_mechanism(rng, a, b, bits=10) for a, b in shapes))
    table = joint_table(product)
    counts = drawn(table, n, len(case))
    # If the prior is also a product, so is the optimal decoder.
    margins = [[rng.randint(1, 9) for _ in range(a)] for a, _ in shapes]
    prior = tuple(int(v) for v in kron(*map(np.array, margins)))
    if targets == "margins":
        other_answers = table.answers // shapes[0][0]
        options = options | {
            "targets": [
                [Fraction(int(x // other_answers == c), 3) for x in range(table.answers)]
                for c in range(shapes[0][0])
            ]
        }
    by_factors = estimate(product, counts, design_prior=prior, **options)
    by_table = estimate(table, counts, design_prior=prior, **options)
    if all(a == b for a, b in shapes):
        assert (
            by_factors.unbiased == by_table.unbiased
        )  # exact fractions on both sides, rounded once
    check_same(by_factors, by_table)


def check_same(actual: Estimate, expected: Estimate) -> None:
    for field in fields(Estimate):
        actual_value, expected_value = getattr(actual, field.name), getattr(expected, field.name)
        if field.name == "margins":
            for name in (f.name for f in fields(actual_value)):
                check_close(
                    getattr(actual_value, name), getattr(expected_value, name), f"margins.{name}"
                )
        elif field.name == "poisoning":
            check_close(
                (actual_value.up, actual_value.down),
                (expected_value.up, expected_value.down),
                "poisoning",
            )
        elif (
            field.name in LIKELIEST
        ):  # both are within 1e-9 nats per report of the maximum, at different points
            check_close(actual_value, expected_value, field.name, atol=2e-3)
        elif field.name in ("flags", "row_flags", "rank", "identifiable", "n", "level"):
            assert actual_value == expected_value, field.name
        else:
            check_close(actual_value, expected_value, field.name)


def check_close(actual: object, desired: object, name: str, atol: float = 1e-9) -> None:
    values, expected = (np.array(value, dtype=np.float64) for value in (actual, desired))
    np.testing.assert_allclose(values, expected, rtol=1e-7, atol=atol, err_msg=name)


def test_the_likeliest_shares_of_a_product_are_as_likely_as_the_whole_tables() -> None:
    rng = random.Random(5)
    product = ProductMechanism(tuple(random_mechanism(rng, 4, 5, bits=10) for _ in range(2)))
    table = joint_table(product)
    Q = np.array(table.weights) / table.denominator
    counts = np.array(drawn(table, 400, 3), dtype=np.float64)
    held = Kronecker([np.array(factor.weights) / factor.denominator for factor in product.factors])
    by_factors, by_table = likeliest(held, counts, None), likeliest(Q, counts, None)
    assert by_factors.converged
    values = [
        float(counts @ np.log(fit.shares @ Q)) / counts.sum() for fit in (by_factors, by_table)
    ]
    assert values[0] == pytest.approx(values[1], abs=2e-9)
    # The certificate, computed separately, shows that no share gains more than the gap.
    gradient = Q @ (counts / counts.sum() / (by_factors.shares @ Q))
    assert counts.sum() * (gradient.max() - 1) == pytest.approx(by_factors.gap, abs=1e-9)
    assert fit_p(held, counts, by_factors.shares, 16) == pytest.approx(
        fit_p(Q, counts, by_factors.shares, 16), rel=1e-9
    )
