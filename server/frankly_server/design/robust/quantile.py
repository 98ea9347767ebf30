# SPDX-License-Identifier: Apache-2.0
"""Quantiles of the χ² distribution, rounded up with proof: the radius of a confidence ball (DESIGN §9.6). No floats.

With a = df/2 and z = x/2 the distribution function is F(x) = z^a·e^(−z)/Γ(a+1) · Σ_i z^i/((a+1)…(a+i)). All terms are
positive, so cutting the series, and rounding every factor down, gives a number that F(x) provably reaches.
"""

from fractions import Fraction
from functools import lru_cache
from math import factorial, isqrt

from frankly_protocol.audit import exp_upper

_BITS = 256
_ONE = 1 << _BITS
_STEP = 2**40
_PI_UP = Fraction(31415926535897932384626433832795028841971693993751058209749445924, 10**64)
_EXP_CHUNK = 64


@lru_cache(maxsize=256)
def chi_square_quantile(degrees: int, beta: Fraction) -> Fraction:
    """Return the least multiple q of 2^-40 for which F(q) ≥ 1 − β is proved; F has `degrees` degrees of freedom.

    degrees : 1 or more. beta : in (0, 1), at least 10^-30 away from either end.
    """
    low, high = 0, _STEP
    while _reached(degrees, Fraction(high, _STEP)) < 1 - beta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _reached(degrees, Fraction(middle, _STEP)) < 1 - beta:
            low = middle
        else:
            high = middle
    return Fraction(high, _STEP)


def _reached(degrees: int, x: Fraction) -> Fraction:
    """Return a lower bound of F(x)."""
    z = x / 2
    power = Fraction(_root_down(z**degrees), _ONE)
    return power * _down(1 / _exp_up(z)) * _down(1 / _gamma_up(degrees)) * _series_down(degrees, z)


def _series_down(degrees: int, z: Fraction) -> Fraction:
    total = term = _ONE
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
    odd = 1
    for k in range(1, degrees + 1, 2):
        odd *= k
    return Fraction(odd * (_root_down(_PI_UP) + 1), _ONE << (degrees + 1) // 2)


def _exp_up(z: Fraction) -> Fraction:
    parts = z.numerator // z.denominator // _EXP_CHUNK + 1
    return exp_upper(z / parts, _BITS) ** parts


def _root_down(value: Fraction) -> int:
    """Return ⌊√value · 2^256⌋."""
    return isqrt((value.numerator << 2 * _BITS) // value.denominator)


def _down(value: Fraction) -> Fraction:
    """Shorten a number to 256 significant bits, rounded down."""
    shift = max(0, _BITS + value.denominator.bit_length() - value.numerator.bit_length())
    return Fraction((value.numerator << shift) // value.denominator, 1 << shift)
