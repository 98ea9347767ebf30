# SPDX-License-Identifier: Apache-2.0
"""Pricing information under LDP of the answer alone, where the columns are known: entries 1 and E, scaled to p·v = 1.

For the answers T with entry E, P = p(T) and N = 1 + (E−1)P, the column is worth F/N with
F = E ln E · P − N ln N − Σλ − (E−1)·λ(T). Up to 20 answers every T is looked at. Beyond, λ(T) is at least m(P), the
convex function that takes answers in the order of λ_x/p_x and the last one in part; then F is concave in P, F/N is
quasiconcave, and its maximum bounds what any column is worth.
"""

import numpy as np

from frankly_server.design.linear import FloatArray
from frankly_server.design.variance.objective import Objective, Prices
from frankly_server.design.variance.patterns import MOST_ANSWERS, blocks

_SECTIONS = 120
_SAFETY = 1e-12
_MANY = 40


def dearest(prior: FloatArray, ratio: float, multipliers: FloatArray) -> tuple[FloatArray, float]:
    """Return (columns v worth most, shape (n, a), dearest first; a bound of what any column is worth).

    Parameters
    ----------
    prior : p, shape (a,). ratio : E > 1. multipliers : λ, shape (a,), the price of v_x.
    """
    if len(prior) > MOST_ANSWERS:
        return np.empty((0, len(prior))), _relaxed(prior, ratio, multipliers)
    nothing = np.zeros((len(prior), 0))
    prices = Prices(Objective(nothing.T, prior, informative=True), nothing, multipliers)
    found = list(blocks(prices, ratio))
    worth, V = np.concatenate([w for w, _ in found]), np.vstack([v for _, v in found])
    best = np.argsort(-worth, kind="stable")[:_MANY]
    return V[best], float(worth[best[0]]) + _SAFETY


def _relaxed(prior: FloatArray, ratio: float, multipliers: FloatArray) -> float:
    """Maximise F/N with m(P) in place of λ(T), segment by segment."""
    free = prior <= 0  # an answer without mass is taken where that costs less than nothing
    order = np.argsort(multipliers[~free] / prior[~free], kind="stable")
    p, price = prior[~free][order], multipliers[~free][order]
    before = float(np.sum(np.minimum(multipliers[free], 0.0)))
    starts = np.concatenate([[0.0], np.cumsum(p)[:-1]])
    costs = before + np.concatenate([[0.0], np.cumsum(price)[:-1]])
    total = float(np.sum(multipliers))

    def worth(share: FloatArray) -> FloatArray:
        P, least = starts + share * p, costs + share * price
        N = 1 + (ratio - 1) * P
        F = ratio * np.log(ratio) * P - N * np.log(N) - total - (ratio - 1) * least
        return np.asarray(F / N, dtype=np.float64)

    low, high = np.zeros(len(p)), np.ones(len(p))
    for _ in range(_SECTIONS):
        one, other = low + (high - low) / 3, high - (high - low) / 3
        rising = worth(one) < worth(other)
        low, high = np.where(rising, one, low), np.where(rising, high, other)
    reached = np.max([worth(np.zeros(len(p))), worth(np.ones(len(p))), worth(0.5 * (low + high))])
    return float(reached) + _SAFETY * (1 + abs(float(reached)))
