# SPDX-License-Identifier: Apache-2.0
"""Upper bound of the mean of a sum over an event: E[1_S·h] ≤ T(P(S)) (docs/maths/forms.md).

h is Σ c_i·√v_i·X_i over the questions i, with Σ v_i ≤ 1. X_i has mean 0 and variance 1 and depends
only on the answer to question i. Then

    T(μ) = min over t of t·μ + U(−t),   U(y) = max over v and X of E(y + h)₊.

If v_i and X_i may depend on the answers before i, U can only grow; dynamic programming computes
this larger U. Equal questions may be taken in order of decreasing v, which limits the growth:
U_j(y, κ), for j questions each with at most the share κ of the variance, is the largest
√(1−v)·E U_{j−1}((y + c·√v·X) / √(1−v), v / (1−v)) over v ≤ κ and X.

X and (√v, √(1−v)) range over unit spheres. E U is convex in both and increases with their length,
so it is enough to evaluate the corners of a polytope around the sphere (claim 6).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import sparse

MOST_VALUES: Final = 8000
"""Largest number of values of all corners of all questions, which takes about 3 s; 10 questions
of 5 choices have 2,410 values."""
_MOST_CHOICES: Final = 7
_LEAST_LOSS, _LOSS_AWAY, _MOST_LOSS = 0.002, 0.8, 0.1
"""Largest distance between the hull of a cell and the sphere: at a step, per 1 − cosine from it,
and overall."""
_STEP: Final = 0.02
_Y: Final = np.arange(-4.5, 4 + _STEP / 2, _STEP)
_PARTS: Final = [slice(i, i + 64) for i in range(0, len(_Y), 64)]
"""Chunks of the grid, small enough for the arrays to stay in the processor's cache."""
_ARCS: Final = 64
"""Number of arcs of (√v, √(1−v)); each question loses a factor 1/cos of half an arc."""
_ANGLES: Final = np.linspace(0, np.pi / 2, _ARCS + 1)
_V: Final = np.sin(_ANGLES) ** 2
_SAFE: Final = 1 + 1e-7  # margin for float rounding, also when equal values are merged


@dataclass(frozen=True, slots=True, eq=False)
class Corners:
    """Functions X of an answer whose hull, with all permutations, contains those of variance 1.

    values : all values of all functions, shape (m,).
    chances : probability of each value, one function per row, shape (n, m).
    """

    values: FloatArray
    chances: "sparse.csr_array"

    @classmethod
    def of(cls, shares: FloatArray, targets: FloatArray) -> "Corners | None":
        """Return the corners in the span of a question's targets, shape (t, k), or around it.

        Returns None except for a single contrast (such as yes/no) and for up to 7 even shares.
        """
        centred = targets - (targets @ shares)[:, None]
        sizes, directions = np.linalg.svd(centred * np.sqrt(shares), full_matrices=False)[1:]
        if np.count_nonzero(sizes > 1e-9 * sizes[0]) == 1:
            X = directions[0] / np.sqrt(shares)
            return cls._with_values(shares, np.array([X, -X]))
        if len(shares) > _MOST_CHOICES or np.ptp(shares) > 1e-12:
            return None
        return cls._with_values(shares, _even_corners(len(shares)))

    @classmethod
    def _with_values(cls, shares: FloatArray, X: FloatArray) -> "Corners":
        """Return the corners for functions with values X, shape (n, k), one per answer."""
        # The order does not matter, and values that differ only by rounding are merged.
        _, places, where = np.unique(
            np.round(X, 9).reshape(-1), return_index=True, return_inverse=True
        )
        ends = np.arange(len(X) + 1) * len(shares)
        chances = sparse.csr_array(
            (np.tile(shares, len(X)), where, ends), shape=(len(X), len(places))
        )
        return cls(X.reshape(-1)[places], chances)


@cache
def _even_corners(k: int) -> FloatArray:
    """Return corners around all X_1 ≥ … ≥ X_k of mean 0 and mean square 1, shape (n, k).

    These functions are the combinations of k − 1 steps, which are high on the first w answers and
    low on the others. Their cone is split at the longest edge until the hull of each cell's unit
    vectors is close enough to the sphere; then the vectors are scaled until the hull is outside.
    The largest E U is usually at a step, so cells near a step are small.
    """
    w = np.arange(1, k)[:, None]
    steps = np.where(np.arange(k) < w, np.sqrt((k - w) / w), -np.sqrt(w / (k - w)))
    open_, vectors, outwards = [steps], [], []
    while open_:
        part = open_.pop()
        products = part @ part.T / k
        # The plane through the vectors is at distance 1/√(1ᵀG⁻¹1) from the centre.
        radius = float(np.linalg.solve(products, np.ones(k - 1)).sum()) ** -0.5
        away = 1 - float(np.max(part @ steps.T / k))
        if 1 - radius <= min(_LEAST_LOSS + _LOSS_AWAY * away, _MOST_LOSS):
            vectors.append(part)
            outwards.append(np.full(k - 1, 1 / radius))
            continue
        i, j = np.unravel_index(np.argmin(products), products.shape)
        middle = part[i] + part[j]
        middle /= np.sqrt(np.mean(middle**2))
        for end in (i, j):
            half = part.copy()
            half[end] = middle
            open_.append(half)
    # Cells share vectors, whose copies differ only by rounding; each is scaled by its largest
    # factor.
    every = np.vstack(vectors)
    _, places, copies = np.unique(
        np.round(every, 9), axis=0, return_index=True, return_inverse=True
    )
    factors = np.zeros(len(places))
    np.maximum.at(factors, copies.reshape(-1), np.concatenate(outwards))
    return np.asarray(every[places] * factors[:, None], dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class TailBound:
    """Values of U at −t for the thresholds t, both of shape (thresholds,)."""

    thresholds: FloatArray
    excesses: FloatArray

    @classmethod
    def of(cls, classes: Sequence[tuple[Corners, float, int]]) -> "TailBound":
        """Return the bound for classes of equal questions.

        classes : corners, factor c > 0 and number of questions of each class.
        """
        largest = max(factor for _, factor, _ in classes)
        U = np.maximum(_Y, 0)
        for corners, factor, number in classes:
            U = _with_class(U, corners, factor / largest, number)
        return cls(-_Y * largest, U * largest * _SAFE)

    def between(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return an upper bound of T over each interval [low, high] of P(S)."""
        # t·μ + U(−t) is linear in μ, so it is largest at an end.
        at_ends = np.maximum(self.thresholds * low[:, None], self.thresholds * high[:, None])
        bounds: FloatArray = np.min(at_ends + self.excesses, axis=1)
        return bounds


def _with_class(without: FloatArray, corners: Corners, factor: float, number: int) -> FloatArray:
    """Return U at every y of the grid after adding a class of equal questions in front."""
    # Row i of `table` has v ≤ _V[i] for the next question of the class.
    table = np.tile(without, (_ARCS + 1, 1))
    # A question has at most the variance of the previous one: its largest share of the remainder.
    with np.errstate(divide="ignore"):
        caps = np.minimum(np.append(_V[1:], 1.0) / (1 - np.append(_V[1:], 1.0)), 1.0)
    rows = np.searchsorted(_V, caps - 1e-12)
    outwards = 1 / np.cos(_ANGLES[1] / 2)
    for _ in range(number):
        at_ends = np.array(
            [
                _mean(table[row], corners, factor * outwards * np.sin(angle), outwards * rest)
                for row, angle, rest in zip(rows, _ANGLES, np.cos(_ANGLES), strict=True)
            ]
        )
        on_arcs = np.maximum(at_ends[:-1], at_ends[1:])
        table = np.maximum.accumulate(np.vstack([without, on_arcs]))
    return np.asarray(table[-1], dtype=np.float64)


def _mean(U: FloatArray, corners: Corners, step: float, rest: float) -> FloatArray:
    """Return the largest rest·E U((y + step·X)/rest) over the corners X, at every y of the grid."""
    if rest <= 1e-9:
        above = np.maximum(_Y + step * corners.values[:, None], 0) + rest
        return np.asarray(np.max(corners.chances @ above, axis=0), dtype=np.float64)
    # Linear between the points of the grid is above U, which is convex; after the last it rises by
    # at most 1 per unit of y, and before the first it is at most its value there.
    rises = np.append(np.diff(U), _STEP)
    places = (_Y / rest - _Y[0]) / _STEP
    moves = (step / rest / _STEP) * corners.values[:, None]
    best = np.empty(len(_Y))
    for part in _PARTS:
        # Most of the time of a design goes into these lines: they make few new arrays.
        place = places[part] + moves
        np.maximum(place, 0, out=place)
        left = np.minimum(place.astype(np.intp), len(_Y) - 1)
        place -= left
        place *= rises.take(left)
        place += U.take(left)
        best[part] = np.max(corners.chances @ place, axis=0)
    return rest * best
