# SPDX-License-Identifier: Apache-2.0
"""Strengths in words: the certainty and the factor that the wizard states for a level."""

from fractions import Fraction
from itertools import product

import pytest
from frankly_protocol.audit import exp_lower
from frankly_server.surveys.definition import parse_value
from frankly_server.surveys.editing import new_draft
from frankly_server.surveys.preview import LEVELS, margins_by_level
from frankly_server.surveys.strengths import meaning, strengths

# Known by hand: e = 2.718…, so that even odds become e : 1, and under LIP e² : 1.
KNOWN = [
    ("1", "ldp", ("74", "2.8")),
    ("1", "lip", ("89", "7.4")),
    ("0.25", "secret-ldp", ("57", "1.3")),
    ("0.25", "srlip", ("63", "1.7")),
    ("4", "rldp", ("99", "54.6")),
    ("4", "lip", ("100", "2981.0")),
    # One side, a δ or several levels: e^ε bounds neither the belief nor the odds.
    ("1", "pml", (None, None)),
    ("1", "dp", (None, None)),
    ("1", "alip", (None, None)),
    ("1", None, (None, None)),
]


@pytest.mark.parametrize(("epsilon", "notion", "meant"), KNOWN)
def test_the_meaning_of_a_level(
    epsilon: str, notion: str | None, meant: tuple[str | None, str | None]
) -> None:
    assert meaning(epsilon, notion) == meant


@pytest.mark.parametrize("epsilon", LEVELS)
def test_no_report_makes_anybody_surer(epsilon: str) -> None:
    """Over a grid of two-valued channels at the level, the largest posterior of even odds.

    Under LIP the counts may say anything else of the two values.
    """
    (ldp, ldp_odds), (lip, lip_odds) = (
        (Fraction(str(sure)) / 100, Fraction(str(odds)))
        for sure, odds in (meaning(epsilon, notion) for notion in ("ldp", "lip"))
    )
    e = exp_lower(Fraction(epsilon))
    grid = [Fraction(k, 40) for k in range(41)]
    for p, q in product(grid, grid):  # the report's probability under either answer
        if not p + q:
            continue
        posterior = p / (p + q)
        if p <= e * q:
            assert posterior <= ldp
            assert p <= ldp_odds * q
        marginals = [p * held + q * (1 - held) for held in (Fraction(k, 20) for k in range(1, 20))]
        if any(all(m <= e * side and side <= e * m for side in (p, q)) for m in marginals):
            assert posterior <= lip
            assert p <= lip_odds * q


def test_margins_are_those_of_the_planned_number() -> None:
    block = parse_value(new_draft("A", "a", "en", "B?", ["No", "Yes"])).blocks[0]
    few, many = (strengths(block, margins_by_level(block, n)) for n in (100, 10_000))
    margins = [strength.margin for strength in few if strength.margin is not None]
    assert margins == pytest.approx([10 * (strength.margin or 0) for strength in many])
    assert margins == sorted(margins, reverse=True)
