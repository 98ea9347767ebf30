# SPDX-License-Identifier: Apache-2.0
"""Quantiles of χ², rounded up to multiples of 2^-40, compared with scipy's."""

from fractions import Fraction

import pytest
from frankly_design.notions.quantile import chi_square_quantile
from scipy.stats import chi2


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 9, 40, 239, 255])
@pytest.mark.parametrize("beta", ["0.999", "0.5", "0.05", "0.001", "0.000000001"])
def test_the_quantile_is_scipys_rounded_up(degrees: int, beta: str) -> None:
    quantile = chi_square_quantile(degrees, Fraction(beta))
    expected = chi2.isf(float(beta), degrees)
    assert -1e-12 * (1 + expected) <= float(quantile) - expected <= 3e-12 * (1 + expected)


def test_two_degrees_have_a_logarithm_as_quantile() -> None:
    # F(x) = 1 − e^(−x/2), so the quantile is −2 ln β, here with 30 digits.
    twice_ln_20 = Fraction(5991464547107981986870447152285, 10**30)
    quantile = chi_square_quantile(2, Fraction("0.05"))
    assert twice_ln_20 <= quantile <= twice_ln_20 + Fraction(1, 2**40) + Fraction(1, 10**29)


def test_a_risk_of_1e_30_is_supported() -> None:
    assert float(chi_square_quantile(2, Fraction(1, 10**30))) == pytest.approx(
        138.15510557964274, rel=1e-12
    )
