# SPDX-License-Identifier: Apache-2.0
"""Exact verifier, compared with an oracle from the definitions, at its levels and just below."""

from fractions import Fraction
from math import gcd

import pytest
from frankly_protocol.audit import Claim, ceiling, is_endless, require_private, worst
from frankly_protocol.errors import DocumentRejected, UnsupportedDocument
from frankly_protocol.mechanisms import DenseMechanism
from hypothesis import given
from hypothesis import strategies as st

from tests.frankly_protocol.samples import joints, mechanisms, oracle
from tests.refusals import refusal


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
    error = refusal(DocumentRejected, require_private, mechanism, claim((p * scale - 1, q * scale)))
    assert error.reason == "privacy"


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
    error = refusal(DocumentRejected, require_private, WARNER, claim)
    assert (error.reason, error.field) == ("privacy", field)


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
