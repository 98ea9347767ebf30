# SPDX-License-Identifier: Apache-2.0
"""Lower bounds on the value of a form, over all mechanisms of its level (docs/maths/forms.md).

Let g_i be the posterior of question i divided by its prior p_i, minus 1, and P_i the projection of
L²(p_i) onto the row space of the question's centred targets W_i. An unbiased estimator has at least
the value Σ_i ω_i·ν_i²/J_i: ω_i is the importance, ν_i the nuclear norm of W_i, J_i = E‖P_i g_i‖².
For any c ≥ 0 this is at least (Σ √ω_i·c_i·ν_i)²/I, where I is the largest Σ c_i²‖P_i g_i‖² of a
column. A column has two values: E on a set of measure μ, otherwise 1. There are four bounds on I:

- Parseval: Σ_i ‖g_i‖² ≤ ((E−1)/(1+(E−1)μ))² · μ(1−μ).
- Entropy: Σ_i KL(posterior_i ‖ p_i) ≤ KL(posterior), also after subtracting a constant below 1 from
the column, and ‖P_i g_i‖² ≤ ψ_i(KL).
- Alone: ‖P_i g_i‖² is at most its maximum if question i alone is asked at the full level.
- Tails: for yes/no questions, means, and few even choices, Σ c_i²‖P_i g_i‖² ≤
  ((E−1)/(1+(E−1)μ))²·T(μ)² (`tails`).

The bound on I is the maximum over μ of the smallest of the four. Each requested pair, and each question
that is asked twice, adds its least variance if it alone is asked at the full level.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import isqrt, prod
from typing import Final

import numpy as np
from frankly_protocol.audit import Claim, level_for
from frankly_protocol.errors import FranklyError

from frankly_design.engine.engine import DesignRequest, design
from frankly_design.form.gain_curve import GainCurve, combined
from frankly_design.form.request import FormQuestion, FormRequest, shares_of
from frankly_design.form.tails import MOST_VALUES, Corners, TailBound
from frankly_design.notions.prior import Prior
from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.variance.many_answers import complete
from frankly_design.optimum.variance.objective import Objective
from frankly_design.optimum.variance.pair_bound import certified

_INTERVALS: Final = 600
"""Number of intervals of ln(1 + (E−1)μ); they loosen the bound by at most ε/600 nats of entropy."""
_FINE_INTERVALS: Final = 4800
"""Number of intervals for the bound with tails, which a single μ determines."""
_OFFSETS: Final = 24
_ROUNDS: Final = 5
_CLOSE: Final = 0.99
"""The slow bound with tails is skipped if another bound reaches this share of the value."""
_SAFE: Final = 1 - 1e-9  # margin for rounding errors in float arithmetic
_MOST_JOINT: Final = 16
"""Largest number of joint answers for which the bound of `design` is used too."""


def lower_bound(request: FormRequest, ratio: float, variances: Sequence[float]) -> float:
    """Return a lower bound on the value of every mechanism of this level.

    ratio : agree/disagree. variances : of the questions in some design; they yield good weights c.
    """
    if ratio <= 1:
        return 0.0
    if request.repeats:
        first = [v for i, v in enumerate(variances) if i not in request.seconds]
        repeats = (request.equality(repeat) for repeat in request.repeats)
        least = sum(_alone(float(q.importance), GainCurve.of(q, ratio)) for q in repeats)
        return lower_bound(request.without_repeats(), ratio, first) + least * _SAFE
    places: dict[FormQuestion, list[int]] = {}
    for i, question in enumerate(request.questions):
        places.setdefault(question, []).append(i)
    classes = [
        _Class(
            GainCurve.of(q, ratio),
            Corners.of(shares_of(q.prior), q.target_matrix),
            float(q.importance),
            len(members),
            variances[members[0]],
        )
        for q, members in places.items()
    ]
    # Two starts: equal weights, and weights from `variances`.
    best, c = max(
        _searched(classes, start, ratio) for start in ([1.0] * len(classes), _of(classes))
    )
    best, pairs = max(best, sum(group.alone for group in classes)), _of_pairs(request, ratio)
    value = sum(group.number * group.importance * group.variance for group in classes)
    if best + pairs < _CLOSE * (value + pairs) and not request.limits.out_of_time():
        best = max(best, _by_tails(classes, c, ratio))
    bound = (best + pairs) * _SAFE
    return max(bound, _of_joint_answers(request), _of_one_question(request, ratio))


@dataclass(frozen=True, slots=True, eq=False)
class _Class:
    """Class of equal questions.

    corners : None if `tails` has no corners. number : number of questions. variance : variance of
    each question in some design.
    """

    curve: GainCurve
    corners: Corners | None
    importance: float
    number: int
    variance: float

    @property
    def alone(self) -> float:
        """Least value of these questions if each alone is asked at the full level."""
        return self.number * _alone(self.importance, self.curve)


def _alone(importance: float, curve: GainCurve) -> float:
    """Return the least value of a question that alone is asked at the full level."""
    return importance * curve.nuclear**2 / curve.alone


def _of(classes: Sequence[_Class]) -> list[float]:
    """Return the c that would be best if the design were optimal."""
    return [group.importance**0.5 * group.variance / group.curve.nuclear for group in classes]


def _searched(
    classes: Sequence[_Class], start: Sequence[float], ratio: float
) -> tuple[float, list[float]]:
    """Return the best bound, with its c, of a search from `start` that varies one class at a time.

    Every c gives a valid bound, so a short search is enough.
    """
    c, step = list(start), 1.5
    best = _bound(classes, c, ratio)
    for _ in range(_ROUNDS if len(classes) > 1 else 0):
        before = best
        for i in range(len(c)):
            for factor in (step, 1 / step):
                moved = [*c[:i], c[i] * factor, *c[i + 1 :]]
                value = _bound(classes, moved, ratio)
                if value > best:
                    best, c = value, moved
        if best <= before * (1 + 1e-4):
            # A finer step on the logarithmic scale.
            step **= 0.5
    return best, c


def _by_tails(classes: Sequence[_Class], c: Sequence[float], ratio: float) -> float:
    """Return the bound with T; 0 where `tails` has no corners or too many."""
    every = [
        (group.corners, factor, group.number)
        for group, factor in zip(classes, c, strict=True)
        if group.corners is not None
    ]
    if len(every) < len(classes) or sum(len(X.values) * n for X, _, n in every) > MOST_VALUES:
        return 0.0
    return _bound(classes, c, ratio, TailBound.of(every))


def _bound(
    classes: Sequence[_Class], c: Sequence[float], ratio: float, tails: TailBound | None = None
) -> float:
    gain = sum(
        group.number * group.importance**0.5 * factor * group.curve.nuclear
        for group, factor in zip(classes, c, strict=True)
    )
    columns = [(group.curve, f**2, group.number) for group, f in zip(classes, c, strict=True)]
    return float(gain**2 / _information(columns, ratio, tails))


def _of_joint_answers(request: FormRequest) -> float:
    """Return the bound that `design` proves over the joint answers; 0 if there are too many.

    This bound holds for every mechanism over the joint answers, and therefore for forms.
    """
    sizes = [question.choices for question in request.questions]
    # With requested pairs `design` is slow, and rarely closes the gap.
    if prod(sizes) > _MOST_JOINT or request.cross_tables:
        return 0.0
    answers = list(product(*map(range, sizes)))
    rows = [
        # Rounded down, so that the bound holds for the exact importance.
        [
            row[answer[i]] * Fraction(isqrt(int(question.importance * 10**12)), 10**6)
            for answer in answers
        ]
        for i, question in enumerate(request.questions)
        for row in question.targets
    ]
    prior = [
        prod(q.prior[x] for q, x in zip(request.questions, answer, strict=True))
        for answer in answers
    ]
    return _bound_of_design(
        DesignRequest(
            prior=Prior.from_rows([prior]),
            claims=(Claim("ldp", level_for(request.epsilon)),),
            targets=tuple(map(tuple, rows)),
            accept_unidentifiable=True,
            limits=request.limits,
        )
    )


def _of_one_question(request: FormRequest, ratio: float) -> float:
    """Return the bound from moments of pairs of answers for a form of one question, else 0.

    For a single target all columns are priced instead.
    """
    question = request.questions[0]
    if len(request.questions) > 1 or question.choices <= _MOST_JOINT:
        return 0.0
    shares, targets = shares_of(question.prior), question.target_matrix
    if len(targets) == 1:
        return float(question.importance) * _bound_of_design(
            DesignRequest(
                prior=Prior.from_rows([list(question.prior)]),
                claims=(Claim("ldp", level_for(request.epsilon)),),
                targets=question.targets,
                accept_unidentifiable=True,
                limits=request.limits,
            )
        )
    objective = Objective(complete(targets), shares)
    prices = certified(objective, ratio, request.limits.out_of_time)
    variance = 0.0 if prices is None else max(0.0, prices.bound() - objective.constant())
    return float(question.importance) * variance * _SAFE


def _bound_of_design(request: DesignRequest) -> float:
    """Return the bound of `design`; 0 if it refuses the request or runs out of time."""
    try:
        designed = design(request)
    except FranklyError:
        return 0.0
    return 0.0 if designed.bound is None else designed.bound * _SAFE


def _of_pairs(request: FormRequest, ratio: float) -> float:
    """Return the least value of the requested pairs if each alone is asked at the full level."""
    total = 0.0
    for a, b in request.cross_tables:
        first, second = (shares_of(request.questions[i].prior) for i in (a, b))
        # A pair has the value of one question whose choices are the cells of its table.
        p = np.outer(first, second).reshape(-1)
        centred = (np.eye(len(p)) - p) * np.sqrt(p)
        nuclear = float(np.linalg.svd(centred, compute_uv=False).sum())
        total += nuclear**2 / GainCurve.of_all_contrasts(p, nuclear, ratio).alone
    return total


def _information(
    classes: Sequence[tuple[GainCurve, float, int]], ratio: float, tails: TailBound | None
) -> float:
    """Return an upper bound on Σ c_i²‖P_i g_i‖² over all columns with values 1 and `ratio`.

    classes : (curve, c², number of questions) of each class. tails : T for these c.
    """
    capacity = combined(classes)
    count = _INTERVALS if tails is None else _FINE_INTERVALS
    ends = np.exp(np.linspace(0, np.log(ratio), count + 1))
    # Subtracting a constant leaves a column's contrasts unchanged and reduces its entropy. Every
    # offset gives a bound.
    offsets = 1 - np.geomspace(1e-6, 1, _OFFSETS)
    low, high = ends[:-1], ends[1:]
    # `low` and `high` are the ends of the intervals of N = 1 + (E−1)μ.
    per_offset = []
    for offset in offsets:
        entropy_most = np.maximum(
            _linear(low, offset, ratio) / (low - offset),
            _linear(high, offset, ratio) / (high - offset),
        ) - np.log(low - offset)
        per_offset.append((1 - offset / high) ** 2 * np.interp(entropy_most, *capacity))
    largest = max(square for _, square, _ in classes)
    by_parseval = largest * _level_one(low, high, ratio)
    bounds = np.minimum(np.min(per_offset, axis=0), by_parseval)
    if tails is not None:
        tail = tails.between((low - 1) / (ratio - 1), (high - 1) / (ratio - 1))
        bounds = np.minimum(bounds, ((ratio - 1) * tail / low) ** 2)
    together = float(bounds.max())
    # No question can contribute more than it does alone at the full level.
    return min(together, sum(number * square * curve.alone for curve, square, number in classes))


def _level_one(low: FloatArray, high: FloatArray, ratio: float) -> FloatArray:
    """Return the largest ((E−1)/N)²μ(1−μ) = (N−1)(E−N)/N² on each interval of N."""
    at_ends = [(N - 1) * (ratio - N) / N**2 for N in (low, high)]
    top = 2 * ratio / (ratio + 1)  # maximum of the function
    inside = (low <= top) & (top <= high)
    result: FloatArray = np.where(inside, (top - 1) * (ratio - top) / top**2, np.maximum(*at_ends))
    return result


def _linear(N: FloatArray, offset: float, ratio: float) -> FloatArray:
    """Return Σ v·ln v over a column with mean N = 1 + (E−1)μ after subtracting `offset`."""
    share = (N - 1) / (ratio - 1)
    low = 1 - offset
    result: FloatArray = share * (ratio - offset) * np.log(ratio - offset) + (
        (1 - share) * low * np.log(low) if low > 0 else 0.0
    )
    return result
