# SPDX-License-Identifier: Apache-2.0
"""Exact verifier, compared with an oracle from the definitions, at its levels and just below."""

from fractions import Fraction
from itertools import product
from math import gcd

import pytest
from frankly_protocol.audit import Claim, ceiling, is_endless, require_private, worst
from frankly_protocol.errors import DocumentRejected, UnsupportedDocument
from frankly_protocol.mechanisms import DenseMechanism
from hypothesis import given
from hypothesis import strategies as st

from tests.frankly_protocol.test_dense import mechanisms

Joint = tuple[tuple[int, ...], ...]


@st.composite
def joints(draw: st.DrawFn, answers: int) -> Joint:
    row = st.lists(st.integers(0, 9), min_size=answers, max_size=answers).filter(any)
    return tuple(tuple(r) for r in draw(st.lists(row, min_size=2, max_size=4)))


def oracle(mechanism: DenseMechanism, notion: str, joint: Joint) -> Fraction | None:
    """Check every pair of every column from the definitions, with Fractions."""
    total = sum(map(sum, joint))
    conditional = [[Fraction(n, sum(row)) for n in row] for row in joint]
    average = [Fraction(sum(column), total) for column in zip(*joint, strict=True)]
    points = [
        [Fraction(x == i) for x in range(mechanism.answers)] for i in range(mechanism.answers)
    ]
    pairs = {
        "ldp": list(product(points, points)),
        "secret-ldp": list(product(conditional, conditional)),
        "lip": [p for c in conditional for p in ((c, average), (average, c))],
    }[notion]
    ratio: Fraction | None = Fraction(1)
    for y in range(mechanism.reports):
        column = [mechanism.probability(y, x) for x in range(mechanism.answers)]
        for a, b in pairs:
            up, down = (sum(m * w for m, w in zip(side, column, strict=True)) for side in (a, b))
            if up > 0 == down:
                return None
            if down and ratio is not None:
                ratio = max(ratio, Fraction(up) / Fraction(down))
    return ratio


@given(mechanisms(bits=6), st.data(), st.sampled_from(["ldp", "secret-ldp", "lip"]))
def test_the_verifier_agrees_with_the_definitions(
    mechanism: DenseMechanism, data: st.DataObject, notion: str
) -> None:
    joint = data.draw(joints(mechanism.answers))
    verdict = worst(mechanism, Claim(notion, (1, 1), None if notion == "ldp" else joint))
    assert verdict.ratio == oracle(mechanism, notion, joint)


@given(mechanisms(bits=6), st.data(), st.sampled_from(["ldp", "secret-ldp", "lip"]))
def test_the_needed_level_is_accepted_and_slightly_less_is_refused(
    mechanism: DenseMechanism, data: st.DataObject, notion: str
) -> None:
    joint = data.draw(joints(mechanism.answers))
    ratio = oracle(mechanism, notion, joint)

    def claim(level: tuple[int, int]) -> Claim:
        return Claim(notion, level, None if notion == "ldp" else joint)

    if ratio is None:
        with pytest.raises(DocumentRejected):
            require_private(mechanism, claim((2**53 - 1, 1)))
        return
    p, q = ratio.as_integer_ratio()
    require_private(mechanism, claim((p, q)))
    scale = 10**6
    with pytest.raises(DocumentRejected) as caught:
        require_private(mechanism, claim((p * scale - 1, q * scale)))
    assert caught.value.reason == "privacy"


def test_the_identity_is_zero_lip_under_independence_without_a_ceiling() -> None:
    identity = DenseMechanism(4, ((16, 0), (0, 16)))
    assert worst(identity, Claim("lip", (1, 1), ((1, 1), (2, 2)))).ratio == 1
    assert ceiling(identity) is None


def test_a_weight_of_a_few_units_counts_as_a_zero() -> None:
    nearly = DenseMechanism(48, ((2**48 - 3, 3), (3, 2**48 - 3)))
    assert is_endless(ceiling(nearly))
    assert is_endless(None)
    assert not is_endless(Fraction(2**24))


WARNER = DenseMechanism(4, ((12, 4), (4, 12)))
BAD_CLAIMS = [
    (Claim("ldp", (3, 1)), None),
    (Claim("ldp", (29, 10)), "level"),
    (Claim("ldp", (0, 1)), "level"),
    (Claim("ldp", (1, 2)), "level"),
    (Claim("ldp", (3, 0)), "level"),
    (Claim("ldp", (2**53, 1)), "level"),
    (Claim("lip", (3, 1)), "prior"),
    (Claim("lip", (3, 1), ((1, 1, 1), (1, 1, 1))), "prior.joint[0]"),
    (Claim("lip", (3, 1), ((1, 1), (0, 0))), "prior.joint[1]"),
    (Claim("lip", (3, 1), ((1, -1), (1, 1))), "prior.joint[0]"),
]


@pytest.mark.parametrize(("claim", "field"), BAD_CLAIMS)
def test_claims_are_refused_by_the_field_at_fault(claim: Claim, field: str | None) -> None:
    if field is None:
        require_private(WARNER, claim)
        return
    with pytest.raises(DocumentRejected) as caught:
        require_private(WARNER, claim)
    assert (caught.value.reason, caught.value.field) == ("privacy", field)


def test_the_error_for_an_unknown_notion_suggests_an_update() -> None:
    with pytest.raises(UnsupportedDocument):
        worst(WARNER, Claim("trust-me", (1, 1)))


def test_the_decision_is_exact_where_floats_are_equal() -> None:
    """A 48-bit ratio and a level below it are the same float, but the level is refused."""
    n, d = 2**47 + 12345, 2**47 - 12345
    n, d = n // gcd(n, d), d // gcd(n, d)
    q = pow(n, -1, d)
    p = (n * q - 1) // d
    assert n * q - p * d == 1
    assert n / d == p / q
    mechanism = DenseMechanism(48, ((2**47 + 12345, 2**47 - 12345), (2**47 - 12345, 2**47 + 12345)))
    require_private(mechanism, Claim("ldp", (n, d)))
    with pytest.raises(DocumentRejected):
        require_private(mechanism, Claim("ldp", (p, q)))


def test_a_prior_with_a_single_secret_is_refused() -> None:
    identity = DenseMechanism(4, ((16, 0), (0, 16)))
    for notion in ("lip", "secret-ldp"):
        with pytest.raises(DocumentRejected, match="two or more secrets"):
            require_private(identity, Claim(notion, (1, 1), ((1, 1),)))
