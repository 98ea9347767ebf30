# SPDX-License-Identifier: Apache-2.0
"""Claims for PolyOpt over boxes D_s = {L ≤ R ≤ U}, tighter than the simplices {R ≥ L(·|s)}.

Like the simplices, the boxes enclose the ball's projection. A mechanism is ε-RLDP over them iff it
is ε-LDP of the secret under every prior whose conditionals are vertices of the boxes, because
P(·|s) and P(·|t) vary independently, and an expression that is linear in each is largest at
vertices. So the promise is a finite set of secret-ldp claims. Every verifier supports these, and
the engine handles them like any intersection of notions  [Robust §5, before (42)].
"""

from fractions import Fraction
from itertools import product
from math import lcm

from frankly_protocol.audit import Claim, level_for
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.notions.ball_bounds import BITS, Bounds, ball_bounds, complement_bounds
from frankly_design.notions.balls import Ball

# A box of m values has up to m·2^(m−1) candidate vertices, and a prior combines one per secret.
MAX_VALUES = 6
MAX_PRIORS = 4096

Point = tuple[Fraction, ...]


def upper_bounds(ball: Ball) -> Bounds:
    """Return U[s][u] = (k, 2^48) with k/2^48 ≥ max P(u|s) over the ball.

    Each is 1 minus the lower bound of the other values together.
    """
    return tuple(tuple(((1 << BITS) - k, d) for k, d in row) for row in complement_bounds(ball))


def vertices(low: tuple[tuple[int, int], ...], high: tuple[tuple[int, int], ...]) -> list[Point]:
    """Return the exact vertices of {low ≤ R ≤ high, ΣR = 1}: all values but one are at a bound.

    low, high : ratios, one pair per value; at most 6 values.

    Raises InvalidInput(optimiser_limit) for more.
    """
    if len(low) > MAX_VALUES:
        raise InvalidInput(
            Problem.OPTIMISER_LIMIT,
            f"polyhedra of more than {MAX_VALUES} values have too many corners: use rldp, whose "
            "polytopes are simplices",
            "robust",
        )
    sides = [(Fraction(*bottom), Fraction(*top)) for bottom, top in zip(low, high, strict=True)]
    # A dict removes duplicates and preserves the order, so that documents are reproducible.
    corners: dict[Point, None] = {}
    for free, (bottom, top) in enumerate(sides):
        for fixed in product(*(side for i, side in enumerate(sides) if i != free)):
            remainder = 1 - sum(fixed, Fraction(0))
            if bottom <= remainder <= top:
                corners[(*fixed[:free], remainder, *fixed[free:])] = None
    return list(corners)


def box_claims(ball: Ball, epsilon: Fraction) -> tuple[Claim, ...]:
    """Return claims that together promise ε-RLDP over the ball's boxes; answers (s, u) row-major.

    Raises InvalidInput(optimiser_limit) for more than 6 values or 4096 priors.
    """
    corners = [
        vertices(*sides) for sides in zip(ball_bounds(ball), upper_bounds(ball), strict=True)
    ]
    choices = _covering([len(points) for points in corners])
    if len(choices) > MAX_PRIORS:
        raise InvalidInput(
            Problem.OPTIMISER_LIMIT,
            f"these polyhedra make {len(choices)} priors, more than {MAX_PRIORS}: leave polyhedra at simplex",
            "robust",
        )
    level = level_for(epsilon)
    return tuple(
        Claim(
            "secret-ldp",
            level,
            _joint([points[i] for points, i in zip(corners, choice, strict=True)]),
        )
        for choice in choices
    )


def _covering(sizes: list[int]) -> list[tuple[int, ...]]:
    """Return choices of one corner per secret that together cover all pairs of corners."""
    choices: dict[tuple[int, ...], None] = {}
    for s, t in product(range(len(sizes)), repeat=2):
        for i, j in product(range(sizes[s]), range(sizes[t])) if s < t else ():
            # The other secrets cycle through their corners, which covers most of their pairs too,
            # so fewer choices suffice.
            choice = [(i + j) % size for size in sizes]
            choice[s], choice[t] = i, j
            choices[tuple(choice)] = None
    return list(choices)


def _joint(conditionals: list[Point]) -> tuple[tuple[int, ...], ...]:
    """Return counts with these conditionals; secret-ldp does not depend on the secrets' shares."""
    width = len(conditionals[0])
    rows = []
    for s, point in enumerate(conditionals):
        common = lcm(*(v.denominator for v in point))
        numerators = [int(v * common) for v in point]
        rows.append(
            (0,) * (s * width) + tuple(numerators) + (0,) * ((len(conditionals) - s - 1) * width)
        )
    return tuple(rows)
