# SPDX-License-Identifier: Apache-2.0
"""Theorem 5's leakage of Independent Reporting, and its splits as tables and whole numbers [Robust §7].

The product bounds the leakage over a claim's polytopes instead (`ValueLeak.of_bounds`).
"""

import math
from collections.abc import Sequence
from itertools import permutations

import numpy as np
from frankly_design.families.robust.independent_reporting import (
    Matrix,
    Split,
    ValueLeak,
    best_split,
    grr_rows,
)
from frankly_design.notions.ball_bounds import Bounds
from frankly_design.notions.balls import Ball
from frankly_design.tables.quantise import Quantised, quantise
from frankly_protocol.audit import Claim
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

_SCALE_BITS = 60


def leak_of_distance(d: float) -> ValueLeak:
    """Return the leakage by Theorem 5: ‖P(·|s)−P(·|t)‖₁ ≤ d gives δ₂ = ln(1 + 2(e^ε₂−1)/d)."""
    return ValueLeak((d / 2,), (0.0,))


def leak_of_ball(ball: Ball) -> ValueLeak:
    """Return the leakage over a ball (not in the paper).

    Each P(u|s) lies between its least and greatest value in the ball. The leakage is never larger
    than that of Theorem 5.
    """
    secrets = range(len(ball.counts))
    return ValueLeak.of_intervals(
        [list(ball.least(s)) for s in secrets], [list(ball.greatest(s)) for s in secrets]
    )


def distance_bound(ball: Ball) -> float:
    """Return d = min(2, 2·max rad_s + max ‖P̂(·|s) − P̂(·|t)‖₁)  [Robust Thm 5, (62)]."""
    secrets = range(len(ball.counts))
    spreads = [ball.spread(s) for s in secrets]
    p = [ball.conditional(s) for s in secrets]
    gaps = [float(np.abs(p[s] - p[t]).sum()) for s, t in permutations(secrets, 2)]
    return min(2.0, 2 * max(spreads) + max(gaps))


def split_table(split: Split) -> Matrix:
    """Return Q[(s,u)][(s',u')], shape (a, a), row-major, factors of level 0 included."""
    return _product(grr_rows(split.secrets, split.eps1), grr_rows(split.values, split.delta2))


def weights(
    split: Split, claim: Claim, joint: Sequence[Sequence[int]], bits: int = 48
) -> Quantised:
    """Return the split's mechanism in whole numbers, verified exactly against the claim.

    A factor of level 0 would be pure noise, and is omitted. A split made with
    `ValueLeak.of_bounds(claim.lower_bounds)` and ε = ln(level) keeps its rldp claim. A split by
    Theorem 5 may leak more than ε over the claim's polytope, because the theorem is about the ball,
    which lies inside the polytope.

    Raises InvalidInput(mechanism_not_certified) if the claim does not hold.
    """
    first = grr_rows(split.secrets, split.eps1) if split.eps1 else np.ones((split.secrets, 1))
    second = grr_rows(split.values, split.delta2) if split.delta2 else np.ones((split.values, 1))
    # rounding: the exact verifier in `quantise` decides if the claim holds, not these floats.
    rows = [[int(q * 2.0**_SCALE_BITS) for q in row] for row in _product(first, second)]
    return quantise(rows, [claim], [n for row in joint for n in row], bits)


def independent_reporting(
    joint: Sequence[Sequence[int]], claim: Claim, bits: int = 48
) -> tuple[Split, Quantised]:
    """Return the best split under an rldp claim, and its verified whole numbers.

    Raises InvalidInput(unsupported) for another notion.
    """
    if claim.notion != "rldp" or claim.lower_bounds is None or claim.level is None:
        raise InvalidInput(
            Problem.UNSUPPORTED, "independent-reporting is for the notion rldp", "mechanism"
        )
    p, q = claim.level
    split = best_split(joint, math.log(p / q), ValueLeak.of_bounds(claim.lower_bounds))
    return split, weights(split, claim, joint, bits)


def no_bounds(secrets: int, values: int) -> Bounds:
    """Return the bounds L = 0 for every answer, which exclude no distribution."""
    return (((0, 1),) * values,) * secrets


def _product(first: Matrix, second: Matrix) -> Matrix:
    return np.kron(first, second).astype(np.float64)
