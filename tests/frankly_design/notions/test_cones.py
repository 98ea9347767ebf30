# SPDX-License-Identifier: Apache-2.0
"""Cones and their extreme rays, in exact arithmetic."""

import random
from fractions import Fraction

import pytest
from frankly_design.notions.cones import Cone, answer_rays, rows_of
from frankly_design.notions.prior import Prior
from frankly_design.notions.promises import require_notion
from frankly_design.numeric.rays import extreme_rays
from frankly_protocol.audit import Claim, level_for
from frankly_protocol.errors import InvalidInput

from tests.frankly_design.maths import (
    admits_identity,
    claim_of,
    cone_of,
    random_epsilon,
    random_mechanism,
    random_prior,
)
from tests.frankly_protocol.samples import is_private

NOTIONS = ("ldp", "secret-ldp", "lip")


@pytest.mark.parametrize("answers", [2, 3, 4, 5, 6])
def test_the_rays_of_answer_ldp_equal_those_of_exact_enumeration(answers: int) -> None:
    for level in (level_for(Fraction(1)), level_for(Fraction(1, 100)), (3, 1)):
        assert sorted(answer_rays(level, answers)) == extreme_rays(
            rows_of(Claim("ldp", level), answers), answers
        )


@pytest.mark.parametrize("notion", NOTIONS)
def test_a_column_is_in_the_cone_iff_the_verifier_accepts_it(notion: str) -> None:
    # The rows and the verifier are separate code and must agree on every mechanism.
    rng = random.Random(11)
    verdicts = {True: 0, False: 0}
    for _ in range(300):
        answers, prior = 3, random_prior(rng, 3, 2)
        level = level_for(random_epsilon(rng, 0.1, 3.0))
        mechanism = random_mechanism(rng, answers, 3, bits=16)
        rows = cone_of(notion, level, prior).rows()
        inside = all(
            sum(r * w for r, w in zip(row, column, strict=True)) >= 0
            for column in zip(*mechanism.weights, strict=True)
            for row in rows
        )
        verdicts[inside] += 1
        assert inside == is_private(mechanism, claim_of(notion, level, prior))
    assert min(verdicts.values()) > 10


@pytest.mark.parametrize(
    "notions", [("ldp",), ("secret-ldp",), ("secret-ldp", "ldp"), ("lip", "ldp")]
)
def test_the_projection_of_lifted_rows_is_the_cone(notions: tuple[str, ...]) -> None:
    """Each auxiliary variable has an interval; all intervals are nonempty iff the column is in the cone."""
    rng = random.Random(5)
    for _ in range(100):
        prior = random_prior(rng, 5, 4)
        claims = tuple(
            claim_of(notion, level_for(random_epsilon(rng, 0.3, 2.0)), prior) for notion in notions
        )
        cone = Cone(claims, prior.answers)
        lifted = cone.lifted_rows()
        column = [rng.randint(20, 30 if rng.random() < 0.5 else 80) for _ in range(5)]
        verdicts = [
            sum(r * q for r, q in zip(row, column, strict=True)) >= 0 for row in cone.rows()
        ]
        low = [Fraction(0)] * (len(lifted[0]) - 5)
        high: list[Fraction | None] = [None] * len(low)
        fits = True
        for row in lifted:
            value = Fraction(sum(r * q for r, q in zip(row, column, strict=False)))
            places = [i for i, r in enumerate(row[5:]) if r]
            if not places:
                fits = fits and value >= 0
                continue
            (i,) = places
            end = -value / row[5 + i]
            if row[5 + i] > 0:
                low[i] = max(low[i], end)
            else:
                high[i] = end if high[i] is None else min(high[i], end)  # type: ignore[type-var]
        fits = fits and all(h is None or lo <= h for lo, h in zip(low, high, strict=True))
        assert fits == all(verdicts)


def test_claims_that_ldp_implies_are_left_out() -> None:
    prior = random_prior(random.Random(2), 5, 3)
    strict, loose = Claim("ldp", level_for(Fraction(1))), Claim("ldp", level_for(Fraction(2)))
    lip = claim_of("lip", level_for(Fraction(1)), prior)
    stricter = claim_of("lip", level_for(Fraction(99, 100)), prior)
    one_side = Claim("alip", None, prior.joint, low_level=level_for(Fraction(3)))
    claims = (loose, lip, strict, stricter, one_side)
    assert Cone.of(claims, 5).claims == (strict, stricter)
    assert set(Cone.of(claims, 5).rays()) == set(Cone(claims, 5).rays())
    assert Cone.of((lip, one_side), 5).claims == (lip, one_side)


@pytest.mark.parametrize("answers", [4, 9])
def test_lifted_rows_hold_strictly_at_the_constant_column(answers: int) -> None:
    prior = random_prior(random.Random(1), answers, 5)
    claims = tuple(
        claim_of(notion, level_for(Fraction(1, 10)), prior)
        for notion in ("ldp", "secret-ldp", "lip")
    )
    assert all(sum(row) > 0 for row in Cone(claims, answers).lifted_rows())


@pytest.mark.parametrize("notion", NOTIONS)
def test_every_ray_satisfies_the_published_level_exactly(notion: str) -> None:
    rng = random.Random(12)
    for _ in range(10):
        prior, level = random_prior(rng, 4, 3), level_for(random_epsilon(rng))
        rows = cone_of(notion, level, prior).rows()
        for ray in cone_of(notion, level, prior).rays():
            assert min(ray) >= 0
            assert all(sum(r * v for r, v in zip(row, ray, strict=True)) >= 0 for row in rows)


def test_the_identity_is_admitted_from_its_own_level_on() -> None:
    # Here P(s|x)/P(s) over all s, x is at most 1.5 and at least 1/2, so 2 is the least level.
    prior = Prior.from_rows([[3, 1], [1, 3]])
    assert not admits_identity("lip", (2**40 - 1, 2**39), prior)
    assert admits_identity("lip", (2, 1), prior)
    assert admits_identity(
        "lip", (1001, 1000), Prior.from_rows([[1, 2], [2, 4]])
    )  # independent of the secret
    assert not admits_identity("secret-ldp", (2, 1), prior)
    assert admits_identity("secret-ldp", (3, 1), prior)
    assert not admits_identity("ldp", (9007199254740991, 1), prior)


def test_zero_cells_rule_out_the_identity() -> None:
    assert not admits_identity("lip", (9007199254740991, 1), Prior.from_rows([[3, 0], [1, 3]]))


@pytest.mark.parametrize(
    ("notion", "answers", "secrets"),
    [("ldp", 13, 1), ("ldp", 256, 1), ("lip", 12, 12), ("secret-ldp", 30, 6)],
)
def test_sizes_beyond_enumeration_name_alternatives(
    notion: str, answers: int, secrets: int
) -> None:
    prior = random_prior(random.Random(0), answers, secrets)
    with pytest.raises(InvalidInput, match="grr") as caught:
        cone_of(notion, level_for(Fraction(1)), prior).rays()
    assert caught.value.code == "optimiser_limit"


@pytest.mark.parametrize("notion", ["pdp", "", None, 3, ["ldp"]])
def test_unknown_notions_are_refused_with_the_list(notion: object) -> None:
    with pytest.raises(InvalidInput, match="ldp, dp, secret-ldp, lip") as caught:
        require_notion(notion)
    assert (caught.value.code, caught.value.field) == ("unsupported", "notion")
