# SPDX-License-Identifier: Apache-2.0
"""Exact claims of requested notions: levels are rounded down, and priors without mass are refused."""

import math
import random
from fractions import Fraction

import pytest
from frankly_design.notions import promises
from frankly_design.notions.declared.answer import answer_ldp
from frankly_design.notions.declared.belief import no_violation, side_channels, two_sided
from frankly_design.notions.prior import Prior, protected
from frankly_design.notions.prior import pairs as over_pairs
from frankly_protocol.audit import Claim
from frankly_protocol.errors import InvalidInput

from tests.frankly_design.maths import random_prior
from tests.refusals import code_and_field

PRIOR = Prior.from_rows([[3, 1, 2], [1, 1, 4]])


@pytest.mark.parametrize("epsilon", ["0.01", "0.7", "1", "9.99"])
def test_levels_are_just_below_the_requested_ones(epsilon: str) -> None:
    for notion in ("ldp", "secret-ldp", "lip"):
        claim = promises.promise(notion, PRIOR, Fraction(epsilon))
        E = Fraction(*(claim.level or (0, 1)))
        assert 0 <= float(epsilon) - math.log(E.numerator / E.denominator) < 1e-13
        assert claim.joint == (None if notion == "ldp" else PRIOR.joint)


def test_alip_has_a_level_for_each_promised_side() -> None:
    both = two_sided(PRIOR, Fraction(1, 2), Fraction(2))
    assert both.low_level is not None
    assert both.level is not None
    assert Fraction(*both.low_level) < Fraction(*both.level)
    assert two_sided(PRIOR, None, Fraction(2)).low_level is None
    assert two_sided(PRIOR, Fraction(2), None).level is None


@pytest.mark.parametrize("bound", ["1/3", "0.5", "0.41", "0.9999999999999999999", "1"])
def test_violation_bounds_round_down(bound: str) -> None:
    requested = Fraction(bound)
    prior = Prior.from_rows([[1, 1], [9, 3]])
    claim = no_violation(prior, requested, 0)
    assert claim.level is not None
    assert requested - Fraction(1, 2**48) < Fraction(*claim.level) <= requested


REFUSED = {
    "unknown notion": (lambda: promises.promise("dp", PRIOR, Fraction(1)), "unsupported", "notion"),
    "a notion of several levels": (
        lambda: promises.promise("alip", PRIOR, Fraction(1)),
        "unsupported",
        "notion",
    ),
    "two infinite sides": (lambda: two_sided(PRIOR, None, None), "eps_out_of_range", "epsilon_low"),
    "attributes": (lambda: side_channels(PRIOR, Fraction(1), [2, 2]), "field_type", "attributes"),
    "no attributes": (lambda: side_channels(PRIOR, Fraction(1), []), "field_type", "attributes"),
    "sensitive": (lambda: no_violation(PRIOR, Fraction(9, 10), 2), "field_type", "sensitive"),
    "at the share": (lambda: no_violation(PRIOR, Fraction(1, 2), 0), "eps_out_of_range", "dpv"),
    "below the share": (lambda: no_violation(PRIOR, Fraction(1, 3), 0), "eps_out_of_range", "dpv"),
    "above one": (lambda: no_violation(PRIOR, Fraction(11, 10), 0), "eps_out_of_range", "dpv"),
    "empty answer": (
        lambda: protected(Prior.from_rows([[1, 0], [1, 0]])),
        "choice_unprotected",
        "prior.joint[0][1]",
    ),
    "empty secret": (
        lambda: protected(Prior.from_rows([[1, 1], [0, 0]]), "priors[3].joint"),
        "secret_empty",
        "priors[3].joint[1]",
    ),
}


@pytest.mark.parametrize(("ask", "code", "field"), REFUSED.values(), ids=REFUSED)
def test_invalid_promises_are_refused(ask: "object", code: str, field: str) -> None:
    assert callable(ask)
    assert code_and_field(InvalidInput, ask) == (code, field)


def test_pairs_keep_the_joint_distribution() -> None:
    prior = random_prior(random.Random(1), 3, 2)
    pairs = over_pairs(prior)
    assert pairs.shares == tuple(n for row in prior.joint for n in row)
    assert pairs.masses == prior.masses
    for s, row in enumerate(pairs.joint):
        assert all(n == 0 for x, n in enumerate(row) if x // 3 != s)


def test_the_backstop_is_ldp_of_the_answer() -> None:
    assert answer_ldp(Fraction(1)) == Claim(
        "ldp", promises.promise("ldp", PRIOR, Fraction(1)).level
    )
