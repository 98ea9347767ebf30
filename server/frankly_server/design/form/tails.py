# SPDX-License-Identifier: Apache-2.0
"""Upper bound of the mean of a sum over an event: E[1_S·h] ≤ T(P(S)) (docs/maths/forms.md).

h is Σ c_i·√v_i·X_i over yes/no questions i, with Σ v_i ≤ 1. X_i has mean 0 and variance 1 and
depends on the answer to question i alone, so it has two values; its sign may be either. Then

    T(μ) = min over t of t·μ + U(−t),   U(y) = max over v of E(y + h)₊.

If each v_i may depend on earlier answers, U can only grow; dynamic programming computes this U:
U_0(y) = y₊ and U_n(y) = max over v in [0, 1] of √(1−v)·E U_{n−1}((y + c_n·√v·X_n) / √(1−v)).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from frankly_server.design.tables.linear import FloatArray

MOST_QUESTIONS: Final = 40
"""Largest number of questions; each takes about 0.03 s."""
_STEP: Final = 0.02
_Y: Final = np.arange(-4.5, 4 + _STEP / 2, _STEP)
_FIRST_ENDS: Final = np.append(0.0, np.geomspace(2e-3, 1, 24))
"""Ends of the first intervals of v; those that may contain the maximum are halved."""
_LOSS: Final = 1e-3
"""Relative error of U, over all questions together, at which halving stops."""
_HALVINGS: Final = 12
_SAFE: Final = 1 + 1e-9  # rounding of the float arithmetic


@dataclass(frozen=True, slots=True, eq=False)
class TailBound:
    """U at −t for the thresholds t, both of shape (thresholds,)."""

    thresholds: FloatArray
    excesses: FloatArray

    @classmethod
    def of(cls, shares: Sequence[float], factors: Sequence[float]) -> "TailBound":
        """Return the bound for yes/no questions.

        shares : P(yes) of each question, in (0, 1). factors : c of each question, above 0.
        """
        largest = max(factors)
        U, loss = np.maximum(_Y, 0), _LOSS / len(shares)
        for share, factor in zip(shares, factors, strict=True):
            odds = np.sqrt((1 - share) / share)
            scale = factor / largest
            U = np.maximum(
                _with_one_more(U, share, scale * odds, -scale / odds, loss),
                _with_one_more(U, share, -scale * odds, scale / odds, loss),
            )
        return cls(-_Y * largest, U * largest * _SAFE)

    def between(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return an upper bound of T over each interval [low, high] of P(S)."""
        # t·μ + U(−t) is linear in μ, so it is largest at an end.
        at_ends = np.maximum(
            self.thresholds * low[:, None],
            self.thresholds * high[:, None],
        )
        bounds: FloatArray = np.min(at_ends + self.excesses, axis=1)
        return bounds


def _with_one_more(U: FloatArray, share: float, yes: float, no: float, loss: float) -> FloatArray:
    """Return an upper bound of max over v of √(1−v)·E U((y + √v·X)/√(1−v)) at every y of the grid.

    yes, no : values of X, with probabilities share and 1 − share. loss : relative error allowed.
    """

    def mean(y: FloatArray, step: FloatArray, rest: FloatArray) -> FloatArray:
        step, rest = np.sqrt(step), np.sqrt(rest)
        value = share * _above(U, (y + step * yes) / rest)
        value += (1 - share) * _above(U, (y + step * no) / rest)
        return np.asarray(rest * value, dtype=np.float64)

    # Pairs of a y and an interval [low, high] of v.
    place, interval = (grid.reshape(-1) for grid in np.indices((len(_Y), len(_FIRST_ENDS) - 1)))
    low, high = _FIRST_ENDS[interval], _FIRST_ENDS[interval + 1]
    largest, above = U.copy(), np.empty(0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        np.maximum.at(largest, place, mean(_Y[place], middle, 1 - middle))
        # The mean rises with the step v and with the remainder 1 − v, so `high` bounds the step and
        # 1 − `low` the remainder.
        above = mean(_Y[place], high, 1 - low)
        open_ = above > largest[place] * (1 + loss) + 1e-12
        place, above = place[open_], above[open_]
        low, high, middle = low[open_], high[open_], middle[open_]
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        place, above = np.tile(place, 2), np.tile(above, 2)
    largest *= 1 + loss
    np.maximum.at(largest, place, above)
    return largest


def _above(U: FloatArray, y: FloatArray) -> FloatArray:
    """Return upper bounds of U at y: U is convex and rises, by at most 1 per unit of y."""
    place = np.clip((y - _Y[0]) / _STEP, 0, len(_Y) - 1)
    left = np.minimum(place.astype(np.intp), len(_Y) - 2)
    share = place - left
    above: FloatArray = U[left] * (1 - share) + U[left + 1] * share + np.maximum(y - _Y[-1], 0)
    return above
