# SPDX-License-Identifier: Apache-2.0
"""Lift and its measures, computed from the definitions with fractions, without the tested code."""

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction

from frankly_design.notions.lift_criteria import Measure
from frankly_design.notions.prior import Prior
from frankly_protocol.audit import level_for

from tests.narrowing import present

Level = tuple[int, int]


def random_counts(seed: int, secrets: int, answers: int, *, zeros: float = 0.0) -> Prior:
    """Return counts without empty answers or secrets; `zeros` is the expected share of empty cells."""
    rng = random.Random(seed)
    top = rng.choice([9, 1000, 10**9])
    while True:
        joint = [
            [0 if rng.random() < zeros else rng.randint(1, top) for _ in range(answers)]
            for _ in range(secrets)
        ]
        if all(map(any, joint)) and all(map(any, zip(*joint, strict=True))):
            return Prior.from_rows(joint)


def lifts(column: Sequence[int], prior: Prior) -> list[Fraction]:
    """Return P(s|y)/P(s) for the report with weights `column`, by Bayes' rule, cell by cell."""
    weighted = [[Fraction(n * w) for n, w in zip(row, column, strict=True)] for row in prior.joint]
    total = sum(map(sum, weighted))
    return [
        sum(row) / total / Fraction(sum(row_weight), prior.total)
        for row, row_weight in zip(weighted, prior.joint, strict=True)
    ]


def keeps(
    column: Sequence[int],
    prior: Prior,
    low: Level | None,
    high: Level | None,
    measure: str,
    order: int,
) -> bool:
    """Return True if one report satisfies the levels  [Lift Defs 1-3, 5, 6, §6.2]."""
    column_lifts, p = lifts(column, prior), [Fraction(sum(row), prior.total) for row in prior.joint]
    M, m = (Fraction(*level) if level else None for level in (high, low))
    if measure == "ldp":
        return all(u <= present(M) * v for u in column_lifts for v in column_lifts)
    if measure == "lift":
        return (M is None or max(column_lifts) <= M) and (m is None or min(column_lifts) * m >= 1)
    if measure == "alpha":
        bound, term = (lambda e: e**order), (lambda v: v**order)
    elif measure == "l1":
        bound, term = (lambda e: e - 1), (lambda v: abs(v - 1))
    else:
        bound, term = (lambda e: (e - 1) ** 2), (lambda v: (v - 1) ** 2)
    above = M is None or sum(w * term(v) for w, v in zip(p, column_lifts, strict=True)) <= bound(M)
    return above and (
        m is None
        or (
            all(column_lifts)
            and sum(w * term(1 / v) for w, v in zip(p, column_lifts, strict=True)) <= bound(m)
        )
    )


def asked(
    epsilon: Fraction, share: Fraction = Fraction(1, 2)
) -> Iterator[tuple[Level | None, Level | None, Measure, int]]:
    """Yield (low, high, measure, order) of requests: every measure, with one or both sides promised."""
    low, high = level_for(share * epsilon), level_for((1 - share) * epsilon)
    yield low, high, "lift", 2
    yield None, high, "lift", 2
    yield low, None, "lift", 2
    yield None, level_for(epsilon), "ldp", 2
    yield low, high, "l1", 2
    yield low, high, "chi2", 2
    yield low, high, "alpha", 2
    yield None, high, "alpha", 10
