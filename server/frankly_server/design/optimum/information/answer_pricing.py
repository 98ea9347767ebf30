# SPDX-License-Identifier: Apache-2.0
"""Pricing of columns for information under LDP of the answer alone.

The columns are known: entries 1 and E, scaled to p·v = 1. For the answers T with entry E,
P = p(T) and N = 1 + (E−1)P, a column is worth F/N with F = E ln E · P − N ln N − Σλ − (E−1)·λ(T).
Up to `MOST_ANSWERS` answers every T is priced. For more, λ(T) is at least m(P), the convex function
that takes answers in the order of λ_x/p_x and the last one in part. Then F is concave in P, F/N is
quasiconcave, and its maximum bounds the worth of every column (docs/maths/generation.md, claim 11).
"""

import numpy as np

from frankly_server.design.optimum.variance.objective import Objective, Prices
from frankly_server.design.optimum.variance.patterns import MOST_ANSWERS, blocks
from frankly_server.design.tables.linear import FloatArray

# Each ternary section keeps two thirds: (2/3)^120 < 1e-21 is below the resolution of floats.
_SECTIONS = 120
# rounding: added to every bound, so that float errors of the sums cannot make it too small
_SAFETY = 1e-12
_MAX_RETURNED = 40


def best_columns(
    prior: FloatArray, ratio: float, multipliers: FloatArray
) -> tuple[FloatArray, float]:
    """Return (best columns v, shape (n, a), best first; an upper bound of the worth of any column).

    Parameters
    ----------
    prior : p, shape (a,).
    ratio : E > 1.
    multipliers : λ, shape (a,), the price of v_x.

    No columns are returned beyond `MOST_ANSWERS` answers; the bound still holds.
    """
    if len(prior) > MOST_ANSWERS:
        return np.empty((0, len(prior))), _relaxed(prior, ratio, multipliers)
    # Without targets the objective of `variance` is the information alone.
    no_products = np.zeros((len(prior), 0))
    prices = Prices(Objective(no_products.T, prior, informative=True), no_products, multipliers)
    batches = list(blocks(prices, ratio))
    worth, V = np.concatenate([w for w, _ in batches]), np.vstack([v for _, v in batches])
    # A stable sort: the same request has to give the same design bit for bit.
    best = np.argsort(-worth, kind="stable")[:_MAX_RETURNED]
    return V[best], float(worth[best[0]]) + _SAFETY


def _relaxed(prior: FloatArray, ratio: float, multipliers: FloatArray) -> float:
    """Return the maximum of F/N with m(P) for λ(T), by ternary search on each segment of m."""
    free = prior <= 0  # an answer without mass leaves P unchanged: only a negative price adds it
    order = np.argsort(multipliers[~free] / prior[~free], kind="stable")
    p, price = prior[~free][order], multipliers[~free][order]
    base_cost = float(np.sum(np.minimum(multipliers[free], 0.0)))
    starts = np.concatenate([[0.0], np.cumsum(p)[:-1]])
    costs = base_cost + np.concatenate([[0.0], np.cumsum(price)[:-1]])
    total = float(np.sum(multipliers))

    def worth(share: FloatArray) -> FloatArray:
        P, cost = starts + share * p, costs + share * price
        N = 1 + (ratio - 1) * P
        F = ratio * np.log(ratio) * P - N * np.log(N) - total - (ratio - 1) * cost
        return np.asarray(F / N, dtype=np.float64)

    # m is linear between its knees, so F/N is quasiconcave on each segment: all are searched at once.
    low, high = np.zeros(len(p)), np.ones(len(p))
    for _ in range(_SECTIONS):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        rising = worth(left) < worth(right)
        low, high = np.where(rising, left, low), np.where(rising, high, right)
    largest = np.max([worth(np.zeros(len(p))), worth(np.ones(len(p))), worth(0.5 * (low + high))])
    return float(largest) + _SAFETY * (1 + abs(float(largest)))
