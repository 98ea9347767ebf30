# SPDX-License-Identifier: Apache-2.0
"""Quantiles of the χ² distribution without floats, provably not too small (erratum 9.6).

A quantile divided by the sample size is the threshold of a confidence ball. With df degrees of
freedom, a = df/2 and z = x/2, the distribution function is
F(x) = z^a·e^(−z)/Γ(a+1) · Σ_i z^i/((a+1)…(a+i)). All terms are positive, so cutting the series and
rounding every factor down gives a proven lower bound of F(x).
"""

from fractions import Fraction
from functools import lru_cache
from math import factorial, isqrt

from frankly_protocol.audit import exp_upper

# Working precision of the factors, far finer than the 2^-40 grid of the quantiles.
_BITS = 256
_ONE = 1 << _BITS
_STEP = 2**40
# π rounded up at its 64th decimal: it enters Γ as √π, and an upper bound of Γ makes F smaller.
_PI_UP = Fraction(31415926535897932384626433832795028841971693993751058209749445924, 10**64)
# Largest argument of an exponential series; for a larger z, e^z is computed as (e^(z/k))^k.
_EXP_CHUNK = 64


@lru_cache(maxsize=256)
def chi_square_quantile(degrees: int, beta: Fraction) -> Fraction:
    """Return the least multiple q of 2^-40 for which F(q) ≥ 1 − β is proved.

    degrees : degrees of freedom, 1 or more.
    beta : in (0, 1), at least 10^-30 from either end.
    """
    low, high = 0, _STEP
    while _distribution_down(degrees, Fraction(high, _STEP)) < 1 - beta:
        low, high = high, 2 * high
    # Invariant: 1 − β is proved at `high` and not at `low`.
    while high - low > 1:
        middle = (low + high) // 2
        if _distribution_down(degrees, Fraction(middle, _STEP)) < 1 - beta:
            low = middle
        else:
            high = middle
    return Fraction(high, _STEP)


def _distribution_down(degrees: int, x: Fraction) -> Fraction:
    """Return a lower bound of F(x)."""
    z = x / 2
    power = Fraction(_root_down(z**degrees), _ONE)
    return power * _down(1 / _exp_up(z)) * _down(1 / _gamma_up(degrees)) * _series_down(degrees, z)


def _series_down(degrees: int, z: Fraction) -> Fraction:
    total = term = _ONE
    # Integer division truncates each term to a multiple of 2^-256; the series ends at the first
    # zero.
    i = 0
    while term:
        i += 1
        # z/(a + i) = 2z/(df + 2i)
        term = term * 2 * z.numerator // (z.denominator * (degrees + 2 * i))
        total += term
    return Fraction(total, _ONE)


def _gamma_up(degrees: int) -> Fraction:
    """Return an upper bound of Γ(degrees/2 + 1)."""
    if degrees % 2 == 0:
        return Fraction(factorial(degrees // 2))
    # Γ(k/2 + 1) = √π·1·3·…·k / 2^((k+1)/2) for odd k.
    odd_product = 1
    for k in range(1, degrees + 1, 2):
        odd_product *= k
    return Fraction(odd_product * (_root_down(_PI_UP) + 1), _ONE << (degrees + 1) // 2)


def _exp_up(z: Fraction) -> Fraction:
    pieces = z.numerator // z.denominator // _EXP_CHUNK + 1
    return exp_upper(z / pieces, _BITS) ** pieces


def _root_down(value: Fraction) -> int:
    """Return ⌊√value · 2^256⌋."""
    return isqrt((value.numerator << 2 * _BITS) // value.denominator)


def _down(value: Fraction) -> Fraction:
    """Return the value rounded down to about 256 significant bits."""
    shift = max(0, _BITS + value.denominator.bit_length() - value.numerator.bit_length())
    return Fraction((value.numerator << shift) // value.denominator, 1 << shift)
