# SPDX-License-Identifier: Apache-2.0
"""LDP of the secret: under a prior, or under every distribution of polytopes D_s = {R ≥ L(·|s)}."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import comb, lcm
from typing import Final

from frankly_protocol.audit import Claim, level_for
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.notions.ball_bounds import Bounds, ball_bounds
from frankly_design.notions.balls import confidence_ball
from frankly_design.notions.boxes import box_claims
from frankly_design.notions.declared.notion import (
    Asked,
    Level,
    Lifted,
    Notion,
    Row,
    Told,
    around_threshold,
    inequality,
    level_of,
    nats,
    number,
    under_each,
)
from frankly_design.notions.prior import protected


def robust(lower_bounds: Bounds, epsilon: Fraction, *, diagonal: bool) -> Claim:
    """Return (ε, F)-RLDP over the polytopes D_s = {R ≥ L(·|s)}  [Robust Def 1, Thm 2]."""
    return Claim("rldp", level_for(epsilon), lower_bounds=lower_bounds, diagonal=diagonal)


def _secret_rows(claim: Claim, _: int) -> Iterator[Row]:
    """Yield P(y|s) ≤ E·P(y|t) for all s ≠ t  [Funnel Def 1, eq. 5]."""
    joint = claim.joint or ()
    masses = [sum(row) for row in joint]
    for s, t in product(range(len(joint)), repeat=2):
        if s != t:
            yield inequality(level_of(claim), joint[s], masses[s], joint[t], masses[t])


def _lifted(claim: Claim, answers: int) -> tuple[list[Lifted], int]:
    averages = [(list(row), sum(row)) for row in claim.joint or ()]
    return around_threshold(claim, averages, _secret_rows(claim, answers))


def _most_rays(claim: Claim, a: int) -> int:
    # A ray with k nonzero entries has k − 1 tight rows: k secrets have the largest or the smallest
    # P(y|s), with at least one of each.
    c = len(claim.joint or ())
    return sum(comb(a, k) * comb(c, k) * (2**k - 2) for k in range(2, min(a, c) + 1))


def _of_secrets(claim: Claim, told: Told) -> str:
    # Counts that nobody asked for are those of a corner of a ball.
    if told.priors and claim.joint not in told.priors:
        return _of_ball(claim, told)
    return f"{nats(claim.level)}-LDP of the secret: whatever is sent, it was {_likely(claim)}, {told.known}."


def _of_ball(claim: Claim, _: Told) -> str:
    return (
        f"{nats(claim.level)}-RLDP: under every distribution of the ball around the counts, whatever is "
        f"sent was {_likely(claim)}."
    )


def _likely(claim: Claim) -> str:
    said = "at most … times as likely from one secret as from any other"
    return said.replace("…", number(claim.level))


def _robust_claims(asked: Asked) -> list[Claim]:
    """Return the claim over simplices, or the secret-ldp claims of boxes."""
    # The ball around the counts takes the role of additional priors.
    if len(asked.priors) > 1:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "the uncertainty of rldp comes from robust, not from a list of priors",
            "priors",
        )
    ball = confidence_ball(asked.priors[0].joint, *asked.ball)
    if not asked.has_boxes:
        return [robust(ball_bounds(ball), asked.epsilon, diagonal=asked.diagonal)]
    # Boxes compare only different secrets.
    if asked.diagonal:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "diagonal is allowed only with the polyhedra simplex",
            asked.field + "diagonal",
        )
    return list(box_claims(ball, asked.epsilon))


def _robust_rows(claim: Claim, answers: int) -> Iterator[Row]:
    """Yield A·q ≤ E·B·q for vertices A of D_s, B of D_s'  [Robust Def 3, Thm 2; erratum 9.11]."""
    corners = [_corners(row) for row in claim.lower_bounds or ()]
    for s, t in product(range(len(corners)), repeat=2):
        # The guarantee holds without the rows s = s' (docs/maths/errata.md, 11).
        if s == t and not claim.diagonal:
            continue
        for (above, d), (below, e) in product(corners[s], corners[t]):
            left, right = _padded(above, s, answers), _padded(below, t, answers)
            yield inequality(level_of(claim), left, d, right, e)


def _around_extremes(claim: Claim, answers: int) -> Iterator[Lifted]:
    """Yield m_s ≤ q_su ≤ M_s and U_s ≤ E·W_t, with U and W as in `_robust_rows` but of M_s and m_t.

    M_s is (3E+1)/(2E+2) times its variable 2s, m_s is (E+3)/(2E+2) times its variable 2s + 1.
    """
    p, q = level_of(claim)
    unit, above, below = 2 * (p + q), 3 * p + q, p + 3 * q
    bounds = claim.lower_bounds or ()
    averages = []
    for s, row in enumerate(bounds):
        lower, d = _whole(row)
        averages.append((_padded(lower, s, answers), d - sum(lower), d))
        for x in range(s * len(row), (s + 1) * len(row)):
            unit_row = [unit * int(i == x) for i in range(answers)]
            yield [-n for n in unit_row], {2 * s: above}
            yield unit_row, {2 * s + 1: -below}
    for s, t in product(range(len(bounds)), repeat=2):
        if s != t or claim.diagonal:
            (upper, free, d), (lower, rest, e) = averages[s], averages[t]
            yield (
                [unit * (p * d * n - q * e * m) for m, n in zip(upper, lower, strict=True)],
                {2 * s: -q * e * free * above, 2 * t + 1: p * d * rest * below},
            )


def _whole(bounds: Sequence[Level]) -> tuple[list[int], int]:
    """Return bounds as integers and their common denominator."""
    d = lcm(*(v for _, v in bounds))
    return [n * (d // v) for n, v in bounds], d


def _corners(bounds: Sequence[Level]) -> list[tuple[list[int], int]]:
    """Return the vertices of {R ≥ L, ΣR = 1} as integers over a common denominator."""
    # The vertices are L + (1 − ΣL)·e_u, one for each value u.
    lower, d = _whole(bounds)
    free = d - sum(lower)
    return [([v + free * (u == i) for i, v in enumerate(lower)], d) for u in range(len(bounds))]


def _padded(values: Sequence[int], s: int, answers: int) -> Row:
    """Return values at the answers (s, u), and 0 at all others."""
    before = s * len(values)
    return [0] * before + list(values) + [0] * (answers - before - len(values))


SECRET_LDP: Final = Notion(
    name="secret-ldp",
    claims=under_each(
        lambda prior, asked: Claim("secret-ldp", level_for(asked.epsilon), protected(prior))
    ),
    rows=_secret_rows,
    sentence=_of_secrets,
    is_prior_based=True,
    bounds="odds",
    lifted=_lifted,
    most_rays=_most_rays,
)
ROBUST_LDP: Final = Notion(
    name="rldp",
    claims=_robust_claims,
    rows=_robust_rows,
    sentence=_of_ball,
    required=("epsilon", "robust"),
    optional=("diagonal",),
    is_prior_based=True,
    bounds="odds",
    has_many_rows=True,
    has_pairs=True,
    lifted=lambda claim, answers: (
        list(_around_extremes(claim, answers)),
        2 * len(claim.lower_bounds or ()),
    ),
)
