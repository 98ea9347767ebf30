# SPDX-License-Identifier: Apache-2.0
"""Lower bounds on the value of a form, over all mechanisms of its level (docs/maths/forms.md).

For shares under even priors: with u_i the posterior of question i minus 1/k_i, an unbiased estimator
has Σ_i c_i/J_i as its least value, where J_i = E‖u_i‖² and c_i = importance · ((k_i−1)/k_i)². For any
weights ω ≥ 0 this is at least (Σ √(c_i ω_i))² / I, I the largest Σ ω_i‖u_i‖² of a report's column.
A column has the value E on a set of measure μ and 1 elsewhere. Two bounds on I:

- Parseval: Σ_i k_i‖u_i‖² ≤ ((E−1)/(1+(E−1)μ))² · μ(1−μ).
- Entropy: Σ_i KL(posterior_i) ≤ KL(posterior) for an even prior, also after a constant below 1 is
  subtracted from the column, and ‖u‖² ≤ ψ(KL).

At each μ the smaller of the two is used, and the bound on I is the largest over μ.

For questions with other targets or priors no bound is claimed: they count as 0.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from frankly_server.design.form.request import FormRequest
from frankly_server.design.tables.linear import FloatArray

_INTERVALS: Final = 1500
"""Number of intervals of ln(1 + (E−1)μ); they loosen the bound by at most ε/1500 nats of entropy."""
_POINTS: Final = 4000
_OFFSETS: Final = 40
_SAFE: Final = 1 - 1e-9  # rounding: covers the errors of the float arithmetic


def lower_bound(request: FormRequest, ratio: float, variances: Sequence[float]) -> float:
    """Return a lower bound on the value of every mechanism of this level.

    ratio : agree/disagree. variances : of the questions in a design, from which the weights ω are
    computed; any weights give a valid bound, and those of the best design the largest.
    """
    counted = [
        (question.choices, float(question.importance), variance)
        for question, variance in zip(request.questions, variances, strict=True)
        if question.wanted == "shares" and len(set(question.prior)) == 1
    ]
    if not counted or ratio <= 1:
        return 0.0
    k = np.array([choices for choices, _, _ in counted], dtype=np.float64)
    own = ((k - 1) / k) ** 2
    c = own * np.array([importance for _, importance, _ in counted])
    spread = np.array([variance for _, _, variance in counted])
    bounds = []
    for weights in (c * spread**2 / own**2, k):
        normal = weights / weights.max()
        information = _information(k, normal, ratio)
        bounds.append(float(np.sqrt(c * normal).sum() ** 2) / information)
    return max(bounds) * _SAFE


def _information(k: FloatArray, weights: FloatArray, ratio: float) -> float:
    """Return an upper bound on Σ ω_i‖u_i‖² over all columns with values 1 and `ratio`."""
    classes: dict[tuple[int, float], int] = {}
    for choices, weight in zip(k, weights, strict=True):
        key = int(choices), round(float(weight), 12)
        classes[key] = classes.get(key, 0) + 1
    ends = np.exp(np.linspace(0, np.log(ratio), _INTERVALS + 1))
    multipliers = np.geomspace(1e-4, 1e4, 200)
    # max Σ ω_i ψ_i(d_i) with Σ d_i ≤ D is at most λ D + Σ max_d (ω_i ψ_i(d) − λ d) for any λ ≥ 0.
    duals = np.zeros(len(multipliers))
    for (choices, weight), number in classes.items():
        entropy, square = _psi(choices)
        gains = weight * square[None, :] - multipliers[:, None] * entropy[None, :]
        duals += number * np.maximum(gains.max(axis=1), 0)
    offsets = 1 - np.geomspace(1e-6, 1, _OFFSETS)
    low, high = ends[:-1], ends[1:]
    # N = 1 + (E−1)μ runs over the intervals [low, high].
    per_offset = []
    for offset in offsets:
        entropy_most = np.maximum(
            _linear(low, offset, ratio) / (low - offset),
            _linear(high, offset, ratio) / (high - offset),
        ) - np.log(low - offset)
        scale = (1 - offset / high) ** 2
        bound = (multipliers[None, :] * entropy_most[:, None] + duals[None, :]).min(axis=1)
        per_offset.append(scale * bound)
    by_parseval = float((weights / k).max()) * _level_one(low, high, ratio)
    return float(np.minimum(np.min(per_offset, axis=0), by_parseval).max())


def _level_one(low: FloatArray, high: FloatArray, ratio: float) -> FloatArray:
    """Return the largest ((E−1)/N)²μ(1−μ) = (N−1)(E−N)/N² on each interval of N."""
    at_ends = [(N - 1) * (ratio - N) / N**2 for N in (low, high)]
    top = 2 * ratio / (ratio + 1)  # the function rises up to here and falls beyond
    inside = (low <= top) & (top <= high)
    result: FloatArray = np.where(inside, (top - 1) * (ratio - top) / top**2, np.maximum(*at_ends))
    return result


def _linear(N: FloatArray, offset: float, ratio: float) -> FloatArray:
    """Return the mean of v · ln v over the values v of a column less `offset`; N is the column's mean."""
    share = (N - 1) / (ratio - 1)
    low = 1 - offset
    result: FloatArray = share * (ratio - offset) * np.log(ratio - offset) + (
        (1 - share) * low * np.log(low) if low > 0 else 0.0
    )
    return result


@lru_cache(maxsize=64)
def _psi(choices: int) -> tuple[FloatArray, FloatArray]:
    """Return points (KL, ‖posterior − even‖²) above the graph of ψ, from posteriors with two values.

    Each point pairs the smaller KL of two neighbours on the graph with the larger square, so that
    the graph between them lies below it.
    """
    entropies, squares = [], []
    for size in range(1, choices):
        # `size` choices share the mass t ≥ size/k evenly, and the others share the remainder.
        t = np.linspace(size / choices, 1, _POINTS)
        rest = choices - size
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = t * np.log(t * choices / size) + np.where(
                t < 1, (1 - t) * np.log((1 - t) * choices / rest), 0
            )
        square = t**2 / size + (1 - t) ** 2 / rest - 1 / choices
        entropies.append(entropy[:-1])
        squares.append(square[1:])
    return np.maximum(np.concatenate(entropies), 0), np.concatenate(squares)
