# SPDX-License-Identifier: Apache-2.0
"""Metric LDP: a level for each pair of answers."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from frankly_protocol.audit import Claim, level_for
from frankly_protocol.audit.ratios import listed_pairs
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.notions.declared.notion import Notion, Row, level_of


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


def _rows(claim: Claim, answers: int) -> Iterator[Row]:
    p, q = level_of(claim)
    for x, z, n, d in listed_pairs(claim.levels or ()):
        yield [p * n if i == z else -q * d if i == x else 0 for i in range(answers)]


METRIC_LDP: Final = Notion(
    name="metric-ldp",
    claims=lambda asked: [between_pairs(asked.epsilons, asked.answers)],
    rows=_rows,
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
