# SPDX-License-Identifier: Apache-2.0
"""Pricing of columns for information if LDP of the answer is the only claim.

The columns are known: entries 1 and E = e^ε, scaled to p·v = 1 under the prior p. Let T be the
answers with entry E, P = p(T), N = 1 + (E−1)P, and λ_x the price of v_x. The column is worth F/N
with F = E ln E · P − N ln N − Σλ − (E−1)·λ(T). Up to `MOST_ANSWERS` answers every T is priced. With
more answers λ(T) is replaced by m(P), its minimum over sets of probability P that may contain a
fraction of the last answer (answers ordered by λ_x/p_x). m is convex, so F is concave in P, F/N is
quasiconcave, and its maximum bounds the worth of every column (docs/maths/generation.md, claim 11).
"""

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.variance.objective import Objective, Prices
from frankly_design.optimum.variance.patterns import MOST_ANSWERS, blocks

# Each ternary step keeps two thirds of the interval: (2/3)^120 < 1e-21, below float resolution.
_SECTIONS = 120
# rounding: added to every bound, so that float errors in sums cannot make it too small
_SAFETY = 1e-12
_MAX_RETURNED = 40


def best_columns(
    prior: FloatArray, ratio: float, multipliers: FloatArray
) -> tuple[FloatArray, float]:
    """Return (best columns, shape (n, a), best first; upper bound on the worth of any column).

    Parameters
    ----------
    prior : p, shape (a,).
    ratio : E > 1.
    multipliers : λ, shape (a,); λ_x is the price of v_x.

    For more than `MOST_ANSWERS` answers n = 0; the bound still holds.
    """
    if len(prior) > MOST_ANSWERS:
        return np.empty((0, len(prior))), _relaxed(prior, ratio, multipliers)
    # Without targets, `variance.objective` is the information alone.
    no_products = np.zeros((len(prior), 0))
    prices = Prices(Objective(no_products.T, prior, informative=True), no_products, multipliers)
    batches = list(blocks(prices, ratio))
    worth, V = np.concatenate([w for w, _ in batches]), np.vstack([v for _, v in batches])
    # Stable sort: the same request must give exactly the same design.
    best = np.argsort(-worth, kind="stable")[:_MAX_RETURNED]
    return V[best], float(worth[best[0]]) + _SAFETY


def _relaxed(prior: FloatArray, ratio: float, multipliers: FloatArray) -> float:
    """Return the maximum of F/N with m(P) for λ(T), by ternary search on each segment of m."""
    # An answer without mass does not change P, so T contains it iff its price is negative.
    free = prior <= 0
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

    # m is linear between its knees, and F/N is quasiconcave there; all segments are searched at
    # once.
    low, high = np.zeros(len(p)), np.ones(len(p))
    for _ in range(_SECTIONS):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        rising = worth(left) < worth(right)
        low, high = np.where(rising, left, low), np.where(rising, high, right)
    largest = np.max([worth(np.zeros(len(p))), worth(np.ones(len(p))), worth(0.5 * (low + high))])
    return float(largest) + _SAFETY * (1 + abs(float(largest)))
