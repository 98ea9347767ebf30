# SPDX-License-Identifier: Apache-2.0
"""Upper ends of shares if some people deny (docs/maths/validity.md, claim 24), and unknown figures."""

from fractions import Fraction
from itertools import product
from typing import Any, Final

import pytest
from frankly_design.estimate.denial import denied, highest

GRID: Final = [Fraction(k, 20) for k in range(-6, 27)]


@pytest.mark.parametrize("denial", [Fraction(0), Fraction(1, 5), Fraction(1, 2), Fraction(9, 10)])
def test_the_interval_covers_the_true_share_as_often(denial: Fraction) -> None:
    """Claim 24: whenever [low, high] contains the share that is said, this contains the true one."""
    shares = [share for share in GRID if 0 <= share <= 1]
    for low, high in product(GRID, repeat=2):
        end = highest(float(high), float(denial))
        if low > high:
            continue
        assert end >= float(high)
        # Not wider than it has to be.
        assert end <= max(float(high), 1.0)
        if 0 <= high <= 1:
            assert end == pytest.approx(min(1.0, float(high / (1 - denial))))
        for said in shares:
            if low <= said <= high:
                most = min(Fraction(1), said / (1 - denial))
                for true in (said, (said + most) / 2, most):
                    assert low <= true
                    assert float(true) <= end + 1e-12
    # A negative end, divided, would be lower than without denial.
    assert highest(-0.1, 0.5) == -0.1
    assert highest(1.2, 0.5) == 1.2


def test_unknown_figures_and_ends_stay_unknown() -> None:
    known = {"estimate": 0.1, "high": 0.2, "corrected": None, "corrected_high": None}
    cases: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
        ({}, (0.2, 0.4)),
        ({"high": None}, (0.2, None)),
        ({"estimate": None, "high": None}, (None, None)),
        # A corrected figure without ends does not take those of the uncorrected one.
        ({"corrected": 0.05}, (0.1, None)),
        ({"corrected": 0.0, "corrected_high": 0.1}, (0.0, 0.2)),
        ({"estimate": -0.1}, (-0.2, 0.4)),
    ]
    for changes, wanted in cases:
        assert tuple(denied(known | changes, 0.5).values()) == wanted
