# SPDX-License-Identifier: Apache-2.0
"""Item 4, metric-ldp: a scale, against a geometric mechanism; sensitive answers, against LDP."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from frankly_design.notions.declared.answer import answer_ldp, between_pairs
from frankly_design.notions.prior import Prior
from frankly_design.tables import objectives

from _design.designs import designed, request
from _design.row import Progress, Row

ANSWERS, QUICK_ANSWERS = (4, 6, 8, 10, 12, 16), (4, 6)
STEP, LEVEL, SENSITIVE = Fraction("0.5"), Fraction(1), 2
LIMIT_S = 20.0
MOST_CERTIFIED = 10
_SEED = 41
_DENOMINATOR = 2**48
_OBJECTIVES = ("variance", "information")

Levels = list[list[Fraction | None]]
Table = Sequence[Sequence[int]]


def rows(quick: bool, progress: Progress) -> Iterator[Row]:
    """Yield a line for each choice of levels, objective and number of answers."""
    for answers in QUICK_ANSWERS if quick else ANSWERS:
        counts = np.random.default_rng([_SEED, answers]).integers(1, 400, answers)
        prior = Prior.from_rows([counts.tolist()])
        for objective in _OBJECTIVES:
            baseline = _value(geometric(answers), prior, objective)
            case = f"a scale of {answers}, {float(STEP)} a step, {objective}"
            yield _row(case, prior, scale(answers), objective, ("geometric", baseline, None))
            progress(case)
            ldp = designed(request(prior, [answer_ldp(LEVEL)], objective), LIMIT_S)
            case = f"{SENSITIVE} sensitive of {answers}, ε {float(LEVEL)}, {objective}"
            compared = ("LDP", ldp.design.value, ldp.seconds)
            yield _row(case, prior, high_low(answers), objective, compared)
            progress(case)


def scale(answers: int) -> Levels:
    """Return the levels of metric privacy: `STEP` nats for every step between two answers."""
    return [[None if x == z else STEP * abs(x - z) for z in range(answers)] for x in range(answers)]


def high_low(answers: int) -> Levels:
    """Return `LEVEL` for the first two answers against every other; other pairs have none."""
    return [
        [None if x == z or x >= SENSITIVE else LEVEL for z in range(answers)]
        for x in range(answers)
    ]


def geometric(answers: int) -> Table:
    """Return the truncated geometric mechanism, r = e^−STEP: r^|x−y|·(1−r)/(1+r), at both ends r^|x−y|/(1+r)."""
    r = math.exp(-STEP)
    Q = [
        [
            r ** abs(x - y) / (1 + r) * (1 if y in (0, answers - 1) else 1 - r)
            for y in range(answers)
        ]
        for x in range(answers)
    ]
    return [[round(v * _DENOMINATOR) for v in row] for row in Q]


def _value(table: Table, prior: Prior, objective: str) -> float:
    measure = objectives.variance if objective == "variance" else objectives.information
    return measure(table, prior.shares)


def _row(
    case: str,
    prior: Prior,
    levels: Levels,
    objective: str,
    compared: tuple[str, float, float | None],
) -> Row:
    name, value, seconds = compared
    claim = between_pairs(levels, prior.answers)
    run = designed(request(prior, [claim], objective), LIMIT_S)
    design = run.design
    sign = -1 if objective == "variance" else 1
    better = sign * design.value >= sign * value - 1e-6 * abs(value)
    must = prior.answers <= MOST_CERTIFIED
    return Row(
        item=4,
        case=case,
        value=design.value,
        bound=design.bound,
        gap=None if design.gap is None else design.gap / design.value,
        seconds=run.seconds,
        baseline=name,
        baseline_value=value,
        baseline_seconds=seconds,
        limit=f"certified in {LIMIT_S:g} s, no worse than {name}"
        if must
        else f"no worse than {name}",
        holds=better and (design.certified or not must),
    )
