# SPDX-License-Identifier: Apache-2.0
"""Notions with levels of pairs of answers: ldp and dp with the same for all, and metric LDP."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import gcd
from typing import Final, NoReturn

from frankly_protocol.audit import Claim, level_for
from frankly_protocol.audit.ratios import listed_pairs
from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

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


def between_pairs(epsilons: Sequence[Sequence[Fraction | None]], answers: int) -> Claim:
    """Return Q(y|x) ≤ e^epsilons[x][z]·Q(y|z) for all pairs with a level: metric LDP.

    epsilons : nats; None for a pair without a level, and on the diagonal.

    Raises InvalidInput(field_type) unless there are a row and a column for every answer, the
    diagonal is None, and at least one pair has a level.
    """
    if len(epsilons) != answers or any(len(row) != answers for row in epsilons):
        raise InvalidInput(
            Problem.FIELD_TYPE,
            f"give {answers} rows of {answers} levels, one of every answer against every other",
            "epsilons",
        )
    if any(row[x] is not None for x, row in enumerate(epsilons)):
        raise InvalidInput(
            Problem.FIELD_TYPE,
            'an answer has no level against itself: write null or "inf" on the diagonal',
            "epsilons",
        )
    if not any(epsilon is not None for row in epsilons for epsilon in row):
        raise InvalidInput(
            Problem.EPS_OUT_OF_RANGE, "without a level for any pair nothing is promised", "epsilons"
        )
    levels = tuple(tuple(None if e is None else level_for(e) for e in row) for row in epsilons)
    return Claim("metric-ldp", (1, 1), levels=levels)


def _pair_rows(claim: Claim, answers: int) -> Iterator[Row]:
    p, q = level_of(claim)
    for x, z, n, d in listed_pairs(claim.levels or ()):
        yield [p * n if i == z else -q * d if i == x else 0 for i in range(answers)]


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
METRIC_LDP: Final = Notion(
    name="metric-ldp",
    claims=lambda asked: [between_pairs(asked.epsilons, asked.answers)],
    rows=_pair_rows,
    sentence=lambda *_: (
        "Metric LDP: a pair of answers with a level gives every report with chances whose ratio is at "
        "most e^level."
    ),
    required=("epsilons",),
    bounds="odds",
    is_implied=False,
    may_be_open=False,  # a design determines only a single level
    has_many_rows=True,
)
