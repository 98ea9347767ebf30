# SPDX-License-Identifier: Apache-2.0
"""Figures of every mechanism kind: the listed table, its rank, and levels with and without a table."""

import random
from fractions import Fraction
from math import nan
from typing import Any

import numpy as np
import pytest
from frankly_design.engine import measured
from frankly_design.estimate import SetCounts, estimate
from frankly_design.kinds.registry import kind_of
from frankly_design.measures import measure
from frankly_design.numeric import rational
from frankly_protocol.mechanisms import (
    Mechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
    columns,
)

from tests.frankly_design.maths import random_mechanism, random_prior

RNG = random.Random(2)
KINDS: dict[str, Mechanism] = {
    "dense": random_mechanism(RNG, 4, 5, bits=8),
    "unary": UnaryMechanism(8, 5, 200, 31),
    "unary, never together": UnaryMechanism(8, 4, 128, 0),
    "subset": SubsetMechanism(8, 6, 2, 180),
    "subset without information": SubsetMechanism(8, 4, 2, 128),
    "product": ProductMechanism(
        (random_mechanism(RNG, 2, 3, bits=8), random_mechanism(RNG, 3, 3, bits=8))
    ),
    "product of rank two": ProductMechanism(
        (random_mechanism(RNG, 2, 3, bits=8), random_mechanism(RNG, 3, 1, bits=8))
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_table_is_the_mechanism_and_has_its_rank(name: str) -> None:
    mechanism = KINDS[name]
    rows = kind_of(mechanism).rows
    assert rows is not None
    total = sum(rows[0])
    listed = [list(column) for column in zip(*columns(mechanism).values(), strict=True)]
    assert [[Fraction(w, total) for w in row] for row in rows] == listed
    assert {sum(row) for row in rows} == {total}
    assert kind_of(mechanism).rank == rational.rank(rows)
    estimable = measured.estimable_in_words(mechanism, kind_of(mechanism).rank)
    assert len(estimable) == kind_of(mechanism).rank


@pytest.mark.parametrize("name", ["unary", "unary, never together", "subset"])
def test_variances_of_sets_equal_those_of_the_estimator(name: str) -> None:
    """The test lists all sets; each set decodes to the estimate from a single report of that set."""
    mechanism: Any = KINDS[name]
    rng = random.Random(6)
    prior = random_prior(rng, mechanism.answers, 2)
    p = np.array(prior.probabilities(), dtype=float)
    targets = [[Fraction(rng.randint(-2, 3)) for _ in range(mechanism.answers)] for _ in range(3)]
    chances, values = [], []
    for y in mechanism.symbols():
        chances.append(
            sum(p[x] * float(mechanism.probability(y, x)) for x in range(mechanism.answers))
        )
        single = SetCounts.of_symbols(mechanism.answers, {int(y): 1})
        values.append(
            [estimate(mechanism, single, targets=t).unbiased for t in ("shares", targets)]
        )
    for i, requested in enumerate((None, targets)):
        d = np.array([value[i] for value in values], dtype=float)
        expected = chances @ d**2 - (chances @ d) ** 2
        assert kind_of(mechanism).variances(prior, requested) == pytest.approx(expected, rel=1e-9)
    assert measured.measures(mechanism, prior)["variance"] == pytest.approx(
        sum(kind_of(mechanism).variances(prior, None))
    )


@pytest.mark.parametrize("name", KINDS)
def test_levels_without_a_table_equal_those_of_the_table(name: str) -> None:
    mechanism, rng = KINDS[name], random.Random(4)
    prior = random_prior(rng, mechanism.answers, 3)
    rows = kind_of(mechanism).rows
    assert rows is not None
    whole = measure(rows, prior)
    for key, value in measured.levels(mechanism, prior).items():
        assert value == whole[key], key


def test_mechanisms_too_large_for_a_table() -> None:
    rng = random.Random(5)
    unary = UnaryMechanism(8, 60, 200, 31)
    prior = random_prior(rng, 60, 2)
    assert kind_of(unary).rows is None
    p, q = 200 / 256, 31 / 256
    chances = [q + float(v) * (p - q) for v in prior.probabilities()]
    # The expected value is the variance of separate bits, minus the part that spreading Σd − 1
    # evenly removes.
    alone, lacking = sum(v * (1 - v) for v in chances), p * (1 - p) + 59 * q * (1 - q)
    assert sum(kind_of(unary).variances(prior, None)) == pytest.approx(
        (alone - lacking / 60) / (p - q) ** 2
    )
    assert {"variance", "target_variances", "lip"} <= set(measured.measures(unary, prior))
    factors = tuple(random_mechanism(rng, 2, 70, bits=12) for _ in range(2))
    product = ProductMechanism(factors)
    assert kind_of(product).rows is None
    assert kind_of(product).variances(random_prior(rng, 4, 2), None) == pytest.approx(
        [nan] * 4, nan_ok=True
    )
    assert "variance" not in measured.measures(product, random_prior(rng, 4, 2))
    assert set(measured.levels(product, random_prior(rng, 4, 2))) == {"answer_ldp", "ceiling"}
    assert kind_of(product).rank == 4
