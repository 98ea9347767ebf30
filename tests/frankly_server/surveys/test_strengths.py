# SPDX-License-Identifier: Apache-2.0
"""The stops of the slider: what each means under every notion, and the names of levels."""

from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest
from frankly_protocol.audit import exp_lower
from frankly_server.surveys.strengths import FACTORS, STOPS, WORDS, level_at, stop_of, strength_of

NAMED = [
    ("1", "ldp", "Strong"),
    ("0.5", "lip", "Strong"),  # two beliefs may each change by e^0.5
    ("1", "lip", "Moderate"),
    ("1.01", "ldp", "Fairly strong"),  # between two stops: the weaker one
    ("0.01", "metric-ldp", "Extremely strong"),
    ("10", "rldp", "Very weak"),
    # One side, a δ or two levels: no single number bounds the odds.
    ("1", "pml", None),
    ("1", "dp", None),
    ("1", "alip", None),
    (None, "dpv", None),
    ("1", None, None),
]


@pytest.mark.parametrize(("epsilon", "notion", "name"), NAMED)
def test_the_name_of_a_level(epsilon: str | None, notion: str | None, name: str | None) -> None:
    assert strength_of(epsilon, notion) == name


@pytest.mark.parametrize("stop", range(len(STOPS)))
def test_a_stop_means_the_same_under_every_notion(stop: int) -> None:
    """Over a grid of two-valued channels within the level, odds change by no more than the factor.

    Under LIP the counts may say anything of how common the two values are.
    """
    factor = Fraction(FACTORS[stop])
    assert Decimal(FACTORS[stop]) - Decimal(STOPS[stop]).exp() < Decimal("0.01")
    ldp, lip = (exp_lower(Fraction(level_at(stop, notion))) for notion in ("ldp", "lip"))
    grid = [Fraction(k, 40) for k in range(41)]
    for p, q in product(grid, grid):  # the report's probability under either answer
        if not p + q:
            continue
        if p <= ldp * q:
            assert p <= factor * q
        marginals = [p * held + q * (1 - held) for held in (Fraction(k, 20) for k in range(1, 20))]
        if any(all(m <= lip * side and side <= lip * m for side in (p, q)) for m in marginals):
            assert p <= factor * q


def test_a_stop_is_found_again() -> None:
    for stop, notion in product(range(len(STOPS)), ("ldp", "lip", "srlip", "rldp", "secret-ldp")):
        assert stop_of(level_at(stop, notion), notion) == stop
    assert len(STOPS) == len(WORDS) == len(FACTORS)
