# SPDX-License-Identifier: Apache-2.0
"""PolyOpt with tighter polyhedra D_s than the simplices {R ≥ L(·|s)}  [Robust §5, before (42)]: bounds on both sides.

D_s = {L ≤ R ≤ U} encloses the ball's projection as well, and is smaller. A mechanism keeps ε-RLDP over such polyhedra
iff it keeps ε-LDP of the secret under every prior whose conditionals are vertices of them: P(·|s) and P(·|t) vary on
their own, and what is linear in each is largest at vertices. So the promise is a finite set of priors, which every
verifier knows already, and the engine designs for it as for any intersection.
"""

from fractions import Fraction
from itertools import product
from math import lcm

from frankly_protocol.audit import Claim, level_for
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.design.robust.balls import Ball
from frankly_server.design.robust.bounds import BITS, Bounds, ball_bounds, complement_bounds

MAX_VALUES = 6
MAX_PRIORS = 4096

Point = tuple[Fraction, ...]


def upper_bounds(ball: Ball) -> Bounds:
    """Return U[s][u] = (k, 2^48) with k/2^48 ≥ max P(u|s) over the ball: what the other values must keep is not u's."""
    return tuple(tuple(((1 << BITS) - k, d) for k, d in row) for row in complement_bounds(ball))


def vertices(low: tuple[tuple[int, int], ...], high: tuple[tuple[int, int], ...]) -> list[Point]:
    """Return the vertices of {low ≤ R ≤ high, ΣR = 1}, exactly: all values but one are at a bound.

    low, high : ratios, one pair per value; at most 6 values. Raises InvalidInput(optimiser_limit) for more.
    """
    if len(low) > MAX_VALUES:
        words = (
            f"polyhedra of more than {MAX_VALUES} values have too many corners: use rldp, whose polytopes are simplices"
        )
        raise InvalidInput(Problem.OPTIMISER_LIMIT, words, "robust")
    sides = [(Fraction(*bottom), Fraction(*top)) for bottom, top in zip(low, high, strict=True)]
    found: dict[Point, None] = {}
    for free, (bottom, top) in enumerate(sides):
        for others in product(*(side for i, side in enumerate(sides) if i != free)):
            rest = 1 - sum(others, Fraction(0))
            if bottom <= rest <= top:
                found[(*others[:free], rest, *others[free:])] = None
    return list(found)


def box_claims(ball: Ball, epsilon: Fraction) -> tuple[Claim, ...]:
    """Return the claims that together are ε-RLDP over the boxes of the ball, for answers (s, u) row-major.

    Raises InvalidInput(optimiser_limit) where there are more than 4096 priors.
    """
    corners = [vertices(*sides) for sides in zip(ball_bounds(ball), upper_bounds(ball), strict=True)]
    chosen = _covering([len(points) for points in corners])
    if len(chosen) > MAX_PRIORS:
        words = f"these polyhedra make {len(chosen)} priors, more than {MAX_PRIORS}: leave polyhedra at simplex"
        raise InvalidInput(Problem.OPTIMISER_LIMIT, words, "robust")
    level = level_for(epsilon)
    return tuple(
        Claim("secret-ldp", level, _joint([points[i] for points, i in zip(corners, choice, strict=True)]))
        for choice in chosen
    )


def _covering(sizes: list[int]) -> list[tuple[int, ...]]:
    """Return choices of one corner per secret in which every two corners of two secrets meet."""
    found: dict[tuple[int, ...], None] = {}
    for s, t in product(range(len(sizes)), repeat=2):
        for i, j in product(range(sizes[s]), range(sizes[t])) if s < t else ():
            # the others take turns, so that most of their corners have met when their own turn comes
            found[tuple(i if r == s else j if r == t else (i + j) % size for r, size in enumerate(sizes))] = None
    return list(found)


def _joint(conditionals: list[Point]) -> tuple[tuple[int, ...], ...]:
    """Return counts whose conditionals these are; secrets' shares do not matter to secret-ldp."""
    width = len(conditionals[0])
    rows = []
    for s, point in enumerate(conditionals):
        common = lcm(*(v.denominator for v in point))
        whole = [int(v * common) for v in point]
        rows.append((0,) * (s * width) + tuple(whole) + (0,) * ((len(conditionals) - s - 1) * width))
    return tuple(rows)
