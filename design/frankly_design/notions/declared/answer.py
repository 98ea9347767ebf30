# SPDX-License-Identifier: Apache-2.0
"""Notions with the same level for all pairs of answers: ldp, and dp, which also has a δ."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import gcd
from typing import Final, NoReturn

from frankly_protocol.audit import Claim, level_for
from frankly_protocol.canonical import MAX_INT

from frankly_design.notions.declared.notion import (
    Level,
    Lifted,
    Notion,
    Row,
    Told,
    around_threshold,
    level_of,
    nats,
    number,
)
from frankly_design.numeric.rays import Ray


def answer_ldp(epsilon: Fraction) -> Claim:
    """Return ε-LDP of the answer; combined with a prior-based notion, it bounds the ceiling."""
    return Claim("ldp", level_for(epsilon))


def answer_rays(level: Level, answers: int) -> list[Ray]:
    """Return the 2^a − 2 extreme rays of the ε-LDP cone: entries q and p, at least one of each.

    Proof: docs/maths/cones.md, claim 2.
    """
    # Dividing by the common factor of p and q keeps the integers of later products short.
    common = gcd(*level)
    p, q = level[0] // common, level[1] // common
    return [
        tuple(p if mask >> x & 1 else q for x in range(answers))
        for mask in range(1, 2**answers - 1)
    ]


def differential(epsilon: Fraction, delta: Fraction) -> Claim:
    """Return (ε, δ)-DP of one answer over all sets of reports  [Thesis (6.13); erratum 9.4].

    delta : in [0, 1); rounded down to a multiple of 2^-48 if its integers do not fit into a
    document.
    """
    # A document contains integers below 2^53. Rounding δ down makes the guarantee stronger.
    if delta.numerator > MAX_INT or delta.denominator > MAX_INT:
        delta = Fraction(delta.numerator * 2**48 // delta.denominator, 2**48)
    return Claim("dp", level_for(epsilon), delta=delta.as_integer_ratio())


def _answer_rows(claim: Claim, answers: int) -> Iterator[Row]:
    p, q = level_of(claim)
    for x, x2 in product(range(answers), repeat=2):
        if x != x2:
            yield [p if i == x2 else -q if i == x else 0 for i in range(answers)]


def _without_rows(*_: object) -> NoReturn:
    raise ValueError("dp has no cone: δ bounds a sum over reports")


def _lifted(claim: Claim, answers: int) -> tuple[list[Lifted], int]:
    units = [([int(i == x) for i in range(answers)], 1) for x in range(answers)]
    return around_threshold(claim, units, _answer_rows(claim, answers))


def _of_answers(claim: Claim, _: Told) -> str:
    said = "at most … times as likely from one true answer as from any other"
    return f"{nats(claim.level)}-LDP: whatever is sent, it was {said.replace('…', number(claim.level))}."


def _of_sets(claim: Claim, _: Told) -> str:
    delta = number(claim.delta or (0, 1))
    return (
        f"({nats(claim.level)}, {delta})-DP: the chance that the report is in a set is under one answer "
        f"at most {number(claim.level)} times that under any other, plus {delta}."
    )


ANSWER_LDP: Final = Notion(
    name="ldp",
    claims=lambda asked: [answer_ldp(asked.epsilon)],
    rows=_answer_rows,
    sentence=_of_answers,
    bounds="odds",
    has_many_rows=True,
    lifted=_lifted,
    most_rays=lambda _, answers: (1 << answers) - 2,
    rays=lambda claim, answers: answer_rays(level_of(claim), answers),
)
DIFFERENTIAL: Final = Notion(
    name="dp",
    claims=lambda asked: [differential(asked.epsilon, asked.delta)],
    rows=_without_rows,
    sentence=_of_sets,
    required=("epsilon", "delta"),
    has_cone=False,
)
