# SPDX-License-Identifier: Apache-2.0
"""Secret randomised response with integer weights."""

import math
import random
from fractions import Fraction

import pytest
from frankly_design.families.robust.secret_rr import secret_rr
from frankly_protocol.audit import Claim, level_for, require_private, worst
from frankly_protocol.errors import DocumentRejected, InvalidInput

from papers.value_leak import no_bounds


@pytest.mark.parametrize(
    ("secrets", "values"), [(2, 2), (2, 5), (5, 2), (3, 1), (42, 6), (15, 16), (2, 128)]
)
def test_the_level_holds_for_every_distribution(secrets: int, values: int) -> None:
    rng = random.Random(secrets)
    for _ in range(3):
        level = level_for(Fraction(rng.randint(10, 9999), 1000))
        mechanism = secret_rr(secrets, values, level)
        claim = Claim("rldp", level, lower_bounds=no_bounds(secrets, values))
        require_private(mechanism, claim)
        # The mechanism uses the full level, up to the rounding of the smallest weight.
        needed = worst(mechanism, claim).ratio
        assert needed is not None
        smallest = min(map(min, mechanism.weights))
        assert needed >= Fraction(*level) * (1 - Fraction(2 * (values + 1), smallest))
        if values > 1:
            with pytest.raises(DocumentRejected):
                require_private(mechanism, Claim("ldp", level))


def test_the_table_is_the_papers() -> None:
    level = level_for(Fraction(3, 2))
    E, total = math.exp(1.5), math.exp(1.5) + 2 * math.exp(-1.5) + 6  # (58) with a₁ = a₂ = 3
    rows = secret_rr(3, 3, level).weights
    for x, row in enumerate(rows):
        for y, w in enumerate(row):
            expected = E if x == y else 1 / E if x // 3 == y // 3 else 1
            assert w / 2**48 == pytest.approx(expected / total, rel=1e-13)


def test_few_bits_are_enough_or_refused() -> None:
    level = level_for(Fraction(1))
    for bits in range(6, 13):
        require_private(
            secret_rr(2, 2, level, bits), Claim("rldp", level, lower_bounds=no_bounds(2, 2))
        )
    with pytest.raises(InvalidInput):
        secret_rr(2, 128, level, 4)


@pytest.mark.parametrize(("secrets", "values"), [(1, 4), (2, 0), (2, 129)])
def test_unsupported_sizes_are_refused(secrets: int, values: int) -> None:
    with pytest.raises(InvalidInput) as refusal:
        secret_rr(secrets, values, (2, 1))
    assert refusal.value.field == "prior.joint"
