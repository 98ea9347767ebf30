# SPDX-License-Identifier: Apache-2.0
"""Declarations of notions: the registry knows those of the protocol, and each claims its own name."""

from fractions import Fraction

import pytest
from frankly_design.notions.declared.notion import Asked
from frankly_design.notions.declared.registry import DECLARED, ONE_SIDED
from frankly_design.notions.prior import Prior
from frankly_design.requests.levels import LEVELS
from frankly_protocol.audit import NOTIONS, PRIOR_BASED, Claim

ASKED = Asked(
    [Prior.from_rows([[3, 1], [2, 4]])],
    2,
    epsilon=Fraction(1),
    low=Fraction(1),
    high=Fraction(2),
    dpv=Fraction(9, 10),
    epsilons=[[None, Fraction(1)], [Fraction(2), None]],
    attributes=[2],
    ball=(2, 1000, "0.05"),
)


def test_the_registry_has_the_protocols_notions_in_its_order() -> None:
    assert tuple(DECLARED) == (*NOTIONS, *ONE_SIDED)
    assert {name for name in NOTIONS if DECLARED[name].is_prior_based} == set(PRIOR_BASED)


@pytest.mark.parametrize("name", DECLARED)
def test_claims_have_the_declared_notion_and_levels(name: str) -> None:
    notion = DECLARED[name]
    assert notion.levels <= LEVELS
    (claim,) = notion.claims(ASKED)
    assert claim.notion == ("alip" if name in ONE_SIDED else name)
    assert claim.name == name
    assert (claim.low_level is not None) == (notion.has_sides or name == "pmc")
    assert (claim.levels is not None) == notion.has_pair_levels


@pytest.mark.parametrize("name", [name for name in DECLARED if DECLARED[name].has_cone])
def test_rows_are_over_the_answers(name: str) -> None:
    answers = 4 if DECLARED[name].has_pairs else 2
    (claim,) = DECLARED[name].claims(ASKED)
    assert all(len(row) == answers for row in DECLARED[name].rows(claim, answers))


def test_rows_need_a_cone_and_a_level() -> None:
    (claim,) = DECLARED["dp"].claims(ASKED)
    with pytest.raises(ValueError, match="dp has no cone"):
        DECLARED["dp"].rows(claim, 2)
    with pytest.raises(ValueError, match="ldp needs a level"):
        list(DECLARED["ldp"].rows(Claim("ldp", None), 2))
