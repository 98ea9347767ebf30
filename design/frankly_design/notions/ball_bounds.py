# SPDX-License-Identifier: Apache-2.0
"""Lower bounds L(u|s) of a confidence ball as exact rationals, never too high.

A bound L < ρ = P̂(u|s) is valid if the two-valued distribution (L, 1−L) lies on or outside the
surface of the ball of radius B_s around (ρ, 1−ρ): then the probability of u is at least L in the
whole ball. Every quantity that widens the ball is rounded up  [Robust (29), (33); erratum 9.7].
"""

from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import isqrt

import numpy as np

from frankly_design.notions.balls import Ball, confidence_ball, least

BITS = 48
# Square roots are precise to 2^-192, far finer than the 2^-48 of a bound.
_ROOT_BITS = 192
# With 100 digits every power has a relative error below 1e-94, and a limit below 1e-45; the
# margin of 1e-40 covers both (docs/maths/robust.md, claim 7).
_DIGITS = 100
_MARGIN = Decimal("1e-40")
_VANISHING = Decimal("1e-30")

Bounds = tuple[tuple[tuple[int, int], ...], ...]


def lower_bounds(joint: Sequence[Sequence[int]], order: object, n: object, beta: object) -> Bounds:
    """Return L[s][u] = (k, 2^48) with k/2^48 ≤ min P(u|s) over the confidence ball, for a Claim.

    For the orders 2 and 1/2 the proof uses integers. For other orders it uses decimals of 100
    digits, with a relative error below 1e-45 and a margin of 1e-40 (docs/maths/robust.md). The
    bound is 0 if a secret or value has no counts, or if the ball contains every distribution.

    Parameters and errors as in `confidence_ball`.
    """
    return ball_bounds(confidence_ball(joint, order, n, beta))


def ball_bounds(ball: Ball) -> Bounds:
    """Return the `lower_bounds` of an existing ball."""
    total = sum(map(sum, ball.counts))
    return tuple(
        _row_bounds(ball, s, Fraction(sum(row), total)) for s, row in enumerate(ball.counts)
    )


def complement_bounds(ball: Ball) -> Bounds:
    """Return (k, 2^48) with k/2^48 ≤ min (1 − P(u|s)) over the ball: mass of the other values."""
    total, rows = sum(map(sum, ball.counts)), []
    for s, row in enumerate(ball.counts):
        mass = Fraction(sum(row), total)
        bound = _bound_function(ball, s, mass) if mass else None
        complements = [Fraction(sum(row) - n, sum(row) or 1) for n in row]
        rows.append(tuple((bound(rho) if bound and rho else 0, 1 << BITS) for rho in complements))
    return tuple(rows)


def is_vacuous(bounds: Bounds) -> bool:
    """Return True if all bounds are 0.

    The claim then covers every distribution, because the radius is too large to exclude any.
    """
    return not any(k for row in bounds for k, _ in row)


def _row_bounds(ball: Ball, s: int, mass: Fraction) -> tuple[tuple[int, int], ...]:
    bound = _bound_function(ball, s, mass) if mass else None
    counted = sum(ball.counts[s])
    return tuple(
        (bound(Fraction(n, counted)) if bound and n else 0, 1 << BITS) for n in ball.counts[s]
    )


def _bound_function(ball: Ball, s: int, mass: Fraction) -> Callable[[Fraction], int] | None:
    """Return the function from ρ to k for one secret; None if every distribution is in the ball."""
    if ball.moment <= 0:
        return None
    if ball.order == 2:
        return _second_order(ball, mass)
    if ball.order == Fraction(1, 2):
        return _half_order(ball, mass)
    return _any_order(ball, s, mass)


def _second_order(ball: Ball, mass: Fraction) -> Callable[[Fraction], int]:
    """Return ρ ↦ L = (h − √(h² − 4Cρ²))/2C, h = C − 1 + 2ρ, C = e^B_s  [Proposition 2, (33)]."""
    # L decreases in C, so rounding C up gives a bound that is never too high.
    C = ((_root_up(ball.moment) - 1 + mass) / mass) ** 2

    def bound(rho: Fraction) -> int:
        h = C - 1 + 2 * rho
        return _floor((h - _root_up(h**2 - 4 * C * rho**2)) / (2 * C))

    return bound


def _half_order(ball: Ball, mass: Fraction) -> Callable[[Fraction], int] | None:
    """Return ρ ↦ L with √L = √(ρg) − √((1−ρ)(1−g)), g = e^−B_s; L = 0 if that is not positive.

    At order ½ the divergence is a function of the angle between the vectors of square roots.
    """
    g = (ball.moment**2 - 1 + mass) / mass
    if g <= 0:
        return None

    def bound(rho: Fraction) -> int:
        root = _root_down(rho * g) - _root_up((1 - rho) * (1 - g))
        return _floor(root**2) if root > 0 else 0

    return bound


def _any_order(ball: Ball, s: int, mass: Fraction) -> Callable[[Fraction], int] | None:
    limit = _limit(ball, mass)
    if limit is None:
        return None
    radius, alpha = ball.conditional_radius(s), ball.order

    def bound(rho: Fraction) -> int:
        # rounding: the float root is only a starting point; `_is_outside` decides.
        guess = int(float(least(np.array([float(rho)]), radius, float(alpha))[0]) * 2**BITS)
        low, high = _bracket(min(guess, _floor(rho)), lambda k: _is_outside(rho, k, alpha, limit))
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _is_outside(rho, middle, alpha, limit) else (low, middle)
        return low

    return bound


def _bracket(guess: int, is_outside: Callable[[int], bool]) -> tuple[int, int]:
    """Return (low, high) by doubling steps: low is outside or 0, high is not outside."""
    low = high = max(1, guess)
    step = 1
    if is_outside(low):
        while is_outside(high := low + step):
            low, step = high, 2 * step
        return low, high
    while not is_outside(low := max(0, high - step)) and low:
        high, step = low, 2 * step
    return low, high


def _limit(ball: Ball, mass: Fraction) -> Decimal | None:
    """Return B_s for α = 1, else e^((α−1)B_s) = ((A^(1/α) − 1 + P̂_s)/P̂_s)^α.

    Returns None if B_s is infinite.
    """
    with localcontext(_context()):
        if ball.order == 1:
            return _decimal(ball.threshold / 2 / mass)
        argument = (_power(_decimal(ball.moment), 1 / ball.order) - 1 + _decimal(mass)) / _decimal(
            mass
        )
        # An argument this small could be a rounding error; an infinite radius is safe.
        return _power(argument, ball.order) if argument > _VANISHING else None


def _is_outside(rho: Fraction, k: int, alpha: Fraction, limit: Decimal) -> bool:
    """Return True if D_α((ρ, 1−ρ) ‖ (L, 1−L)) ≥ B_s is proved for L = k/2^48."""
    L = Fraction(k, 1 << BITS)
    if not 0 < L < rho:
        return not L  # 0 is always a valid bound; L = ρ is not, as ρ is inside every ball
    with localcontext(_context()):
        # With ρ = 1 the second value has probability 0: its term is 0, but its logarithm is
        # undefined.
        pairs = [(_decimal(p), _decimal(r)) for p, r in ((rho, L), (1 - rho, 1 - L)) if p]
        if alpha == 1:
            divergence = sum((p * (p / r).ln() for p, r in pairs), Decimal(0))
            return divergence >= limit + _MARGIN * (1 + limit)
        moment = sum((_power(p, alpha) * _power(r, 1 - alpha) for p, r in pairs), Decimal(0))
        # D_α increases with the moment for α > 1 and decreases with it for α < 1.
        return moment >= limit * (1 + _MARGIN) if alpha > 1 else moment <= limit * (1 - _MARGIN)


def _context() -> Context:
    return Context(prec=_DIGITS, Emax=999999, Emin=-999999)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _power(base: Decimal, exponent: Fraction) -> Decimal:
    # Decimal rounds ln and exp correctly, but not general powers.
    return (base.ln() * _decimal(exponent)).exp()


def _floor(value: Fraction) -> int:
    return max(0, (value.numerator << BITS) // value.denominator)


def _root_down(value: Fraction) -> Fraction:
    return Fraction(
        isqrt((value.numerator << 2 * _ROOT_BITS) // value.denominator), 1 << _ROOT_BITS
    )


def _root_up(value: Fraction) -> Fraction:
    return _root_down(value) + Fraction(1, 1 << _ROOT_BITS)
