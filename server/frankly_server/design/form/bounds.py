# SPDX-License-Identifier: Apache-2.0
"""Lower bounds on the value of a form, over all mechanisms of its level (docs/maths/forms.md).

Let g_i be the posterior of question i divided by its prior p_i, minus 1, and P_i the projection of
L²(p_i) onto the row space of the question's centred targets W_i. An unbiased estimator has at least
the value Σ_i ω_i·ν_i²/J_i: ω_i is the importance, ν_i the nuclear norm of W_i, J_i = E‖P_i g_i‖².
For any c ≥ 0 this is at least (Σ √ω_i·c_i·ν_i)²/I, where I is the largest Σ c_i²‖P_i g_i‖² of a
column. Columns have two values: E on a set of measure μ, otherwise 1. Four bounds on I:

- Parseval: Σ_i ‖g_i‖² ≤ ((E−1)/(1+(E−1)μ))² · μ(1−μ).
- Entropy: Σ_i KL(posterior_i ‖ p_i) ≤ KL(posterior), also after a constant below 1 is taken off the
  column, and ‖P_i g_i‖² ≤ ψ_i(KL).
- Alone: ‖P_i g_i‖² is at most its maximum if question i is asked alone at the whole level.
- Tails: for yes/no questions, Σ c_i²‖g_i‖² ≤ ((E−1)/(1+(E−1)μ))²·T(μ)² (`tails`).

The bound on I is the maximum over μ of the smallest of them. Each wanted pair adds its least
variance if it is asked alone at the whole level.
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

from frankly_server.design.api.engine import DesignRequest, design
from frankly_server.design.form.request import FormQuestion, FormRequest, shares_of
from frankly_server.design.form.tails import MOST_QUESTIONS, TailBound
from frankly_server.design.notions.prior import Prior
from frankly_server.design.tables.linear import FloatArray

_INTERVALS: Final = 600
"""Number of intervals of ln(1 + (E−1)μ); the loss is at most ε/600 nats of entropy."""
_FINE_INTERVALS: Final = 4800
"""Number of intervals with tails, whose bound is determined by a single μ."""
_POINTS: Final = 4000
"""Number of points of a curve of ψ, or of all curves whose maximum bounds ψ."""
_OFFSETS: Final = 24
_ROUNDS: Final = 5
_SAFE: Final = 1 - 1e-9  # rounding of the float arithmetic
_MOST_JOINT: Final = 16
"""Largest number of joint answers for which the bound of `design` is used too."""


@dataclass(frozen=True, slots=True, eq=False)
class _GainCurve:
    """Bounds for one question: ν, points (KL, ‖P g‖²) above ψ, and the largest ‖P g‖² alone."""

    nuclear: float
    entropies: FloatArray
    squares: FloatArray
    alone: float

    @classmethod
    def of(cls, question: FormQuestion, ratio: float) -> "_GainCurve":
        p = shares_of(question.prior)
        targets = question.target_matrix
        centred = (targets - (targets @ p)[:, None]) * np.sqrt(p)
        values = np.linalg.svd(centred, compute_uv=False)
        # For two choices the only contrast spans all contrasts.
        if len(p) == 2 or np.count_nonzero(values > 1e-9 * values[0]) > 1:
            return cls.of_all_contrasts(p, float(values.sum()), ratio)
        scores = targets[0] - float(targets[0] @ p)
        return cls._of_one(p, scores / np.sqrt(float(p @ scores**2)), float(values[0]), ratio)

    @classmethod
    def of_all_contrasts(cls, p: FloatArray, nuclear: float, ratio: float) -> "_GainCurve":
        """ψ is attained by densities r on a set of measure s, q elsewhere; both axes rise in s."""
        least = float(p.min())
        if np.ptp(p) < 1e-12:
            low = high = np.arange(1, len(p)) / len(p)
            steps = _POINTS
        else:
            steps = _POINTS // 10
            # With uneven shares every measure from the smallest share to 1 minus it may occur.
            odds = np.geomspace(least / (1 - least), (1 - least) / least, 200)
            low, high = odds[:-1] / (1 + odds[:-1]), odds[1:] / (1 + odds[1:])
        entropies, squares = [], []
        for s, upper in zip(low, high, strict=True):
            r = 1 + (1 / s - 1) * np.linspace(0, 1, steps) ** 2
            entropies.append(_entropy(s, r)[:-1])
            squares.append(np.minimum((r - 1) ** 2 * upper / (1 - upper), 1 / least - 1)[1:])
        # The measure of the agreeing answers that is best for one question.
        best = min(max(1 / (1 + ratio), least), 1 - least)
        alone = (ratio - 1) ** 2 * best * (1 - best) / (1 + (ratio - 1) * best) ** 2
        return cls(nuclear, *_hull(np.concatenate(entropies), np.concatenate(squares)), alone)

    @classmethod
    def _of_one(
        cls, p: FloatArray, scores: FloatArray, nuclear: float, ratio: float
    ) -> "_GainCurve":
        """ψ is attained by exponential tilting of the prior, in either direction."""
        entropies, squares, alone = [], [], 0.0
        for direction in (scores, -scores):
            tilts = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 2 * _POINTS)])
            exponents = tilts[:, None] * (direction - direction.max())
            weights = p * np.exp(exponents)
            total = weights.sum(axis=1)
            means = weights @ direction / total
            # KL = tilt · mean − ln E exp(tilt · score).
            entropy = tilts * (means - direction.max()) - np.log(total)
            entropies.append(np.maximum(entropy, 0))
            squares.append(np.append(means[1:], direction.max()) ** 2)
            # The best column for one contrast cuts the answers at a score.
            order = np.argsort(-direction)
            share, gain = np.cumsum(p[order])[:-1], np.cumsum((p * direction)[order])[:-1]
            alone = max(alone, float(((ratio - 1) * gain / (1 + (ratio - 1) * share)).max() ** 2))
        return cls(nuclear, *_hull(np.concatenate(entropies), np.concatenate(squares)), alone)


def lower_bound(request: FormRequest, ratio: float, variances: Sequence[float]) -> float:
    """Return a lower bound on the value of every mechanism of this level.

    ratio : agree/disagree. variances : of the questions in some design; good weights c follow.
    """
    if ratio <= 1:
        return 0.0
    places: dict[FormQuestion, list[int]] = {}
    for i, question in enumerate(request.questions):
        places.setdefault(question, []).append(i)
    classes = [
        _Class(
            shares_of(q.prior),
            _GainCurve.of(q, ratio),
            float(q.importance),
            len(found),
            variances[found[0]],
        )
        for q, found in places.items()
    ]
    # Two starts: equal weights, and weights from the variances of the given design.
    best, c = max(
        _searched(classes, start, ratio) for start in ([1.0] * len(classes), _of(classes))
    )
    best = max(best, _by_tails(classes, c, ratio))
    bound = (max(best, sum(one.alone for one in classes)) + _of_pairs(request, ratio)) * _SAFE
    return max(bound, _of_joint_answers(request))


@dataclass(frozen=True, slots=True, eq=False)
class _Class:
    """Equal questions.

    shares : of the choices. number : of questions. variance : of each question in some design.
    """

    shares: FloatArray
    curve: _GainCurve
    importance: float
    number: int
    variance: float

    @property
    def alone(self) -> float:
        """Least value of these questions if each is asked alone at the whole level."""
        return self.number * self.importance * self.curve.nuclear**2 / self.curve.alone


def _of(classes: Sequence[_Class]) -> list[float]:
    """Return the c that would be best if the design were optimal."""
    return [one.importance**0.5 * one.variance / one.curve.nuclear for one in classes]


def _searched(
    classes: Sequence[_Class], start: Sequence[float], ratio: float
) -> tuple[float, list[float]]:
    """Return the best bound of a search from `start`, one class after the other, and its c.

    Every c gives a bound, so the search only has to be short.
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
    """Return the bound with T; 0 if there are too many questions or one has over two choices."""
    if (
        any(len(one.shares) > 2 for one in classes)
        or sum(one.number for one in classes) > MOST_QUESTIONS
    ):
        return 0.0
    every = [
        (one, factor) for one, factor in zip(classes, c, strict=True) for _ in range(one.number)
    ]
    tails = TailBound.of(
        [float(one.shares[0]) for one, _ in every], [factor for _, factor in every]
    )
    return _bound(classes, c, ratio, tails)


def _bound(
    classes: Sequence[_Class], c: Sequence[float], ratio: float, tails: TailBound | None = None
) -> float:
    gain = sum(
        one.number * one.importance**0.5 * factor * one.curve.nuclear
        for one, factor in zip(classes, c, strict=True)
    )
    columns = [(one.curve, f**2, one.number) for one, f in zip(classes, c, strict=True)]
    return float(gain**2 / _information(columns, ratio, tails))


def _of_joint_answers(request: FormRequest) -> float:
    """Return the bound that `design` proves over the joint answers; 0 if there are too many.

    It holds for every mechanism over the joint answers, and so for forms.
    """
    sizes = [question.choices for question in request.questions]
    # With wanted pairs `design` takes long, and rarely closes the gap.
    if prod(sizes) > _MOST_JOINT or request.cross_tables:
        return 0.0
    answers = list(product(*map(range, sizes)))
    rows = [
        # Rounded down, so that the bound holds for the importance itself.
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
    try:
        found = design(
            DesignRequest(
                prior=Prior.from_rows([prior]),
                claims=(Claim("ldp", level_for(request.epsilon)),),
                targets=tuple(map(tuple, rows)),
                accept_unidentifiable=True,
                limits=request.limits,
            )
        )
    except FranklyError:  # numbers that the engine refuses, or no time
        return 0.0
    return 0.0 if found.bound is None else found.bound * _SAFE


def _of_pairs(request: FormRequest, ratio: float) -> float:
    """Return the least value of the wanted pairs if each is asked alone at the whole level."""
    total = 0.0
    for a, b in request.cross_tables:
        first, second = (shares_of(request.questions[i].prior) for i in (a, b))
        p = np.outer(first, second).reshape(-1)
        centred = (np.eye(len(p)) - p) * np.sqrt(p)
        nuclear = float(np.linalg.svd(centred, compute_uv=False).sum())
        total += nuclear**2 / _GainCurve.of_all_contrasts(p, nuclear, ratio).alone
    return total


def _information(
    classes: Sequence[tuple[_GainCurve, float, int]], ratio: float, tails: TailBound | None
) -> float:
    """Return an upper bound on Σ c_i²‖P_i g_i‖² over all columns with values 1 and `ratio`.

    classes : curve, c² and number of questions. tails : T for these c.
    """
    most = _together(classes)
    count = _INTERVALS if tails is None else _FINE_INTERVALS
    ends = np.exp(np.linspace(0, np.log(ratio), count + 1))
    # A column less a constant has the same contrasts and less entropy; every offset gives a bound.
    offsets = 1 - np.geomspace(1e-6, 1, _OFFSETS)
    low, high = ends[:-1], ends[1:]
    # `low` and `high` are the ends of the intervals of N = 1 + (E−1)μ.
    per_offset = []
    for offset in offsets:
        entropy_most = np.maximum(
            _linear(low, offset, ratio) / (low - offset),
            _linear(high, offset, ratio) / (high - offset),
        ) - np.log(low - offset)
        per_offset.append((1 - offset / high) ** 2 * np.interp(entropy_most, *most))
    largest = max(square for _, square, _ in classes)
    by_parseval = largest * _level_one(low, high, ratio)
    each = np.minimum(np.min(per_offset, axis=0), by_parseval)
    if tails is not None:
        tail = tails.between((low - 1) / (ratio - 1), (high - 1) / (ratio - 1))
        each = np.minimum(each, ((ratio - 1) * tail / low) ** 2)
    together = float(each.max())
    return min(together, sum(number * square * curve.alone for curve, square, number in classes))


def _level_one(low: FloatArray, high: FloatArray, ratio: float) -> FloatArray:
    """Return the largest ((E−1)/N)²μ(1−μ) = (N−1)(E−N)/N² on each interval of N."""
    at_ends = [(N - 1) * (ratio - N) / N**2 for N in (low, high)]
    top = 2 * ratio / (ratio + 1)  # the function rises up to here and falls beyond
    inside = (low <= top) & (top <= high)
    result: FloatArray = np.where(inside, (top - 1) * (ratio - top) / top**2, np.maximum(*at_ends))
    return result


def _linear(N: FloatArray, offset: float, ratio: float) -> FloatArray:
    """Return Σ of value · ln value over a column less `offset`; its mean was N = 1 + (E−1)μ."""
    share = (N - 1) / (ratio - 1)
    low = 1 - offset
    result: FloatArray = share * (ratio - offset) * np.log(ratio - offset) + (
        (1 - share) * low * np.log(low) if low > 0 else 0.0
    )
    return result


def _together(classes: Sequence[tuple[_GainCurve, float, int]]) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the largest Σ c²ψ(d) over Σ d ≤ D, as a function of D.

    It is concave, so the steepest pieces of all curves come first.
    """
    steps = [
        (number * np.diff(curve.entropies), number * square * np.diff(curve.squares))
        for curve, square, number in classes
    ]
    widths, heights = (np.concatenate(parts) for parts in zip(*steps, strict=True))
    with np.errstate(divide="ignore"):
        order = np.argsort(-heights / widths)
    # Pieces of width 0 come first; their heights add up to the value at D = 0.
    jump = float(heights[widths == 0].sum())
    order = order[widths[order] > 0]
    return (
        np.concatenate([[0.0], np.cumsum(widths[order])]),
        jump + np.concatenate([[0.0], np.cumsum(heights[order])]),
    )


def _entropy(s: float, r: FloatArray) -> FloatArray:
    """Return the KL of densities r on a set of measure s and q elsewhere, s·r + (1−s)·q = 1."""
    q = np.maximum(1 - s * r, 0) / (1 - s)
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where(q > 0, (1 - s) * q * np.log(q), 0.0)
    result: FloatArray = np.maximum(s * r * np.log(r) + rest, 0)
    return result


def _hull(entropies: FloatArray, squares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the smallest concave function above the points and above (0, 0)."""
    order = np.lexsort((-squares, entropies))
    corners: list[tuple[float, float]] = [(0.0, 0.0)]
    for x, y in zip(entropies[order].tolist(), squares[order].tolist(), strict=True):
        if y <= corners[-1][1]:
            continue
        while len(corners) > 1 and _turns_left(corners[-2], corners[-1], (x, y)):
            corners.pop()
        corners.append((x, y))
    found = np.array(corners)
    return found[:, 0], found[:, 1]


def _turns_left(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) >= (b[1] - a[1]) * (c[0] - a[0])
