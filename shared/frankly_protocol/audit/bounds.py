# SPDX-License-Identifier: Apache-2.0
"""Rational bounds of e^r, and levels read exactly from decimal strings (spec 2.2)."""

import re
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

MIN_EPSILON, MAX_EPSILON = Fraction(1, 100), Fraction(10)
MAX_LEVEL_BITS = 48
_PLAIN = re.compile(r"[0-9]{1,6}(\.[0-9]{1,30})?", re.ASCII)
_NUMERAL = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,9})?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE | re.ASCII)
_GUARD_BITS = 64


def parse_epsilon(value: object, field: str = "epsilon") -> Fraction:
    """Return a privacy level in nats, read exactly.

    value : a plain decimal string such as "0.5"; an int or a Decimal is accepted too.

    Raises InvalidInput: eps_not_finite, eps_format, or eps_out_of_range outside [0.01, 10].
    """
    return parse_nats(value, field, MIN_EPSILON, MAX_EPSILON)


def parse_nats(value: object, field: str, low: Fraction, high: Fraction) -> Fraction:
    """Return a number of nats in [low, high], read exactly; raises the errors of `parse_epsilon`."""
    text = _text(value, field)
    if _NOT_FINITE.fullmatch(text):
        raise InvalidInput(Problem.EPS_NOT_FINITE, 'write a finite decimal such as "0.5"', field)
    if not _NUMERAL.fullmatch(text):
        raise InvalidInput(Problem.EPS_FORMAT, 'write a plain decimal string such as "0.5"', field)
    # The exponent is checked before conversion: Fraction would expand 1e999999999 into a billion
    # digits.
    number = Fraction(Decimal(text)) if abs(Decimal(text).adjusted()) <= 60 else None
    if number is None or not low <= number <= high:
        raise InvalidInput(Problem.EPS_OUT_OF_RANGE, _range_message(low, high), field)
    if not _PLAIN.fullmatch(text):
        raise InvalidInput(Problem.EPS_FORMAT, 'write a plain decimal string such as "0.5"', field)
    return number


def parse_chance(value: object, field: str) -> Fraction:
    """Return a chance in [0, 1), read exactly from a plain decimal string such as "0.000001".

    Raises InvalidInput: eps_not_finite, eps_format, or eps_out_of_range.
    """
    try:
        number = parse_nats(value, field, Fraction(0), Fraction(1))
    except InvalidInput as error:
        if error.problem is not Problem.EPS_OUT_OF_RANGE:
            raise
        # Values outside [0, 1] get the same message as 1.
        number = Fraction(1)
    if number == 1:
        raise InvalidInput(
            Problem.EPS_OUT_OF_RANGE, "a chance is at least 0 and less than 1", field
        )
    return number


def exp_lower(r: Fraction, bits: int = 128) -> Fraction:
    """Return a rational ≤ e^r within a relative error of 2^-bits.

    Raises ValueError unless 0 ≤ r ≤ 64.
    """
    return _exp(r, bits, up=False)


def exp_upper(r: Fraction, bits: int = 128) -> Fraction:
    """Return a rational ≥ e^r within a relative error of 2^-bits.

    Raises ValueError unless 0 ≤ r ≤ 64.
    """
    return _exp(r, bits, up=True)


def level_for(epsilon: Fraction) -> tuple[int, int]:
    """Return the largest p/q ≤ e^epsilon with p below 2^53 and q a power of 2 up to 2^48.

    Raises InvalidInput(eps_out_of_range) if e^epsilon is 2^53 or more.
    """
    bound = exp_lower(epsilon)
    # The largest denominator gives the tightest p/q, but p must stay below 2^53.
    for bits in range(MAX_LEVEL_BITS, -1, -1):
        p = (bound.numerator << bits) // bound.denominator
        if p <= MAX_INT:
            return p, 1 << bits
    raise InvalidInput(
        Problem.EPS_OUT_OF_RANGE, _range_message(MIN_EPSILON, MAX_EPSILON), "epsilon"
    )


def ln_up(level: Fraction | None, digits: int = 4) -> str:
    """Return ln(level) in nats as text, rounded up so that it is never understated.

    Returns "inf" for None, the infinite level.
    """
    if level is None:
        return "inf"
    with localcontext() as context:
        # With 60 digits, the rounding error of ln is far smaller than the last digit shown.
        context.prec = 60
        nats = (Decimal(level.numerator) / Decimal(level.denominator)).ln()
        return str(nats.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_CEILING))


def chance_up(chance: Fraction) -> str:
    """Return a chance with at most three significant digits, rounded up: it is never understated."""
    with localcontext() as context:
        context.prec, context.rounding = 3, ROUND_CEILING
        return f"{Decimal(chance.numerator) / Decimal(chance.denominator):f}"


def times(ratio: Fraction | None) -> str:
    """Return a ratio or factor with two decimals, rounded up; "∞" for None."""
    if ratio is None:
        return "∞"
    # Ceiling division: a factor is never shown too small.
    hundredths = -(-ratio.numerator * 100 // ratio.denominator)
    return f"{hundredths // 100}.{hundredths % 100:02}"


def _text(value: object, field: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**40:
        return str(value)
    if isinstance(value, Decimal):
        return str(value)
    raise InvalidInput(Problem.EPS_FORMAT, 'write a plain decimal string such as "0.5"', field)


def _range_message(low: Fraction, high: Fraction) -> str:
    return (
        f"choose a level from {float(low):g} to {float(high):g} nats: below, nothing could be learned; "
        "above, nothing would be protected"
    )


def _exp(r: Fraction, bits: int, *, up: bool) -> Fraction:
    if not 0 <= r <= 64:
        raise ValueError("exp bounds are for r in [0, 64]")
    halvings = max(0, (r.numerator // r.denominator).bit_length())  # r / 2^halvings ≤ 1
    # Each squaring doubles the relative error, at most 7 times here; the guard bits cover that and
    # the rounding.
    unit = 1 << (bits + _GUARD_BITS)
    total = _series(r / (1 << halvings), unit, up=up)
    for _ in range(halvings):
        total = _round(total * total, unit, up=up)
    return Fraction(total, unit)


def _series(r: Fraction, unit: int, *, up: bool) -> int:
    """Sum the Taylor series of e^r for r ≤ 1 in fixed point, every step rounded to one side."""
    total = term = unit
    i = 0
    while term > 1:
        i += 1
        term = _round(term * r.numerator, r.denominator * i, up=up)
        total += term
    # For r ≤ 1 the remainder is at most twice the next term, which is at most the last term.
    return total + 2 * (term + 1) if up else total


def _round(numerator: int, denominator: int, *, up: bool) -> int:
    return -(-numerator // denominator) if up else numerator // denominator
