# SPDX-License-Identifier: Apache-2.0
"""Verifier, compared with the definitions: levels, the place that an error names, claims just below
a level."""

import re
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import pytest
from frankly_protocol.audit import NOTIONS, PRIOR_BASED, Claim, require_private, worst
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import DenseMechanism, Mechanism
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frankly_protocol.audit.definitions import (
    ONE,
    cases,
    claims,
    excess,
    mechanisms_over,
    needed,
    places,
    ratio_at,
    structured_cases,
)

Case = tuple[Mechanism, Claim]
ANY = st.one_of(cases(), structured_cases())


def refusal(mechanism: Mechanism, *claims: Claim) -> DocumentRejected | None:
    try:
        require_private(mechanism, *claims)
    except DocumentRejected as error:
        assert error.reason == "privacy"
        return error
    return None


@pytest.mark.slow
@settings(max_examples=300)
@given(ANY)
def test_the_needed_level_follows_the_definition(case: Case) -> None:
    assert worst(*case).needed == needed(*case)


JOINTS = [rows for rows in product(product(range(3), repeat=2), repeat=2) if all(map(any, rows))]
BINARY = [
    DenseMechanism(4, ((u, 16 - u), (v, 16 - v)))
    for u, v in product((0, 3, 8, 15, 16), repeat=2)
    if 0 < u + v < 32
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "notion", [notion for notion in NOTIONS if notion in PRIOR_BASED and notion != "rldp"]
)
def test_all_small_priors_and_binary_mechanisms(notion: str) -> None:
    endless = 0
    for mechanism, joint in product(BINARY, JOINTS):
        claim = Claim(
            notion,
            ONE,
            joint,
            low_level=ONE if notion == "alip" else None,
            attributes=(2,) if notion == "srlip" else None,
            sensitive=1 if notion == "dpv" else None,
        )
        levels = needed(mechanism, claim)
        endless += None in levels.values()
        assert worst(mechanism, claim).needed == levels
    assert (endless > 0) == (notion != "dpv")


@pytest.mark.parametrize("diagonal", [False, True])
def test_all_small_lower_bounds(diagonal: bool) -> None:
    # In the last two cases, the range of P(y|s) of one secret contains that of the other, in either
    # order.
    mechanisms = [
        ((64, 0, 0), (36, 16, 12), (8, 52, 4), (20, 20, 24)),
        ((14, 50), (4, 60), (5, 59), (6, 58)),
        ((14, 50), (2, 62), (7, 57), (9, 55)),
    ]
    rows = [((a, 3), (b, 3)) for a, b in product(range(4), repeat=2) if a + b <= 3]
    for weights, bounds in product([*mechanisms, mechanisms[1][::-1]], product(rows, repeat=2)):
        mechanism = DenseMechanism(6, weights)
        claim = Claim("rldp", ONE, lower_bounds=bounds, diagonal=diagonal)
        assert worst(mechanism, claim).needed == needed(mechanism, claim)


@settings(max_examples=150)
@given(ANY)
def test_the_place_named_attains_the_ratio(case: Case) -> None:
    mechanism, claim = case
    verdict = worst(mechanism, claim)
    for side in filter(None, (verdict, verdict.other)):
        if side.ratio == (claim.notion not in ("dp", "dpv")):
            continue  # all probabilities are equal, so there is no place
        if claim.notion == "dp":
            assert excess(mechanism, claim, side.pair) == side.ratio
            continue
        place = (side.report, side.pair, side.condition)
        assert (side.field, place) in list(places(mechanism, claim))
        assert ratio_at(mechanism, claim, place) == (
            "endless" if side.ratio is None else side.ratio
        )


@pytest.mark.slow
@settings(max_examples=150)
@given(ANY)
def test_the_needed_level_is_accepted_and_slightly_less_is_refused(case: Case) -> None:
    mechanism, claim = case
    levels = needed(mechanism, claim)
    huge: Any = (2**53 - 1, 1)
    for field, ratio in levels.items():
        bounded = claim.notion in ("dp", "dpv")
        generous = claim if bounded else replace(claim, **dict.fromkeys(levels, huge))

        def at(p: int, q: int, field: str = field) -> dict[str, Any]:
            return {field: (p, q)}

        if ratio is None:
            error = refusal(mechanism, generous)
            assert error is not None
            continue
        if any(needed_ratio is None for needed_ratio in levels.values()):
            continue
        p, q = ratio.as_integer_ratio() if ratio else (0, 1)
        if field == "delta" and p == q:
            continue  # δ = 1 promises nothing
        if p or bounded:
            assert refusal(mechanism, replace(generous, **at(p, q))) is None
        if p > q or (p and bounded):
            error = refusal(mechanism, replace(generous, **at(10**6 * p - 1, 10**6 * q)))
            assert error is not None
            assert error.field == field
            assert re.match(f"{claim.notion}: report .+: {ratio} is needed, ", error.detail)


# Claims over four answers; the test below replaces each level by the needed level.
JOINT = ((5, 2, 1, 3), (1, 4, 2, 2), (2, 2, 6, 1))
ON_THE_LINE = [
    Claim("ldp", ONE),
    Claim("secret-ldp", ONE, JOINT),
    Claim("lip", ONE, JOINT),
    Claim("alip", ONE, JOINT, low_level=ONE),
    Claim("srlip", ONE, JOINT, attributes=(2, 2)),
    Claim("rldp", ONE, lower_bounds=(((1, 5), (1, 3)), ((1, 2), (1, 7)))),
    Claim("rldp", ONE, lower_bounds=(((1, 5), (1, 3)), ((1, 2), (1, 7))), diagonal=True),
    Claim("dpv", ONE, JOINT, sensitive=1),
    Claim("dp", (9, 8), delta=(0, 1)),
]


@pytest.mark.parametrize("claim", ON_THE_LINE, ids=lambda c: c.notion + "-diagonal" * c.diagonal)
def test_every_move_of_one_unit_of_weight_is_decided_exactly(claim: Claim) -> None:
    """The test moves a probability of 2^-48 between two reports of one answer."""
    unit = 1 << 44
    rows = [[w * unit for w in row] for row in ((9, 4, 3), (2, 13, 1), (6, 6, 4), (5, 5, 6))]
    mechanism = DenseMechanism(48, tuple(map(tuple, rows)))
    levels: Any = {
        field: Fraction(ratio or 0).as_integer_ratio()
        for field, ratio in needed(mechanism, claim).items()
    }
    claim = replace(claim, **levels)
    assert refusal(mechanism, claim) is None
    outcomes = set()
    for x, (y, z) in product(range(4), permutations(range(3), 2)):
        shifted = [list(row) for row in rows]
        shifted[x][y] += 1
        shifted[x][z] -= 1
        altered = DenseMechanism(48, tuple(map(tuple, shifted)))
        within_levels = all(
            r is not None and r <= Fraction(*levels[f]) for f, r in needed(altered, claim).items()
        )
        assert (refusal(altered, claim) is None) == within_levels
        outcomes.add(within_levels)
    assert outcomes == {True, False}


@given(mechanisms_over(4), claims((2, 2)), claims((2, 2)))
def test_an_intersection_holds_iff_each_part_does(
    mechanism: DenseMechanism, first: Claim, second: Claim
) -> None:
    for level in (ONE, (2, 1), (1000, 1)):
        members = [
            replace(c, delta=(1, level[0] + 1))
            if c.notion == "dp"
            else replace(
                c,
                level=(1, level[0]) if c.notion == "dpv" else level,
                low_level=c.low_level and level,
            )
            for c in (first, second)
        ]
        errors = [refusal(mechanism, claim) for claim in members]
        together = refusal(mechanism, *members)
        failing = [c.notion for c, error in zip(members, errors, strict=True) if error]
        assert (together is None) == (not failing)
        if together is not None:
            assert together.detail.startswith(failing[0] + ": ")
