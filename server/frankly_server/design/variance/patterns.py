# SPDX-License-Identifier: Apache-2.0
"""All 2^a columns of LDP of the answer, entries 1 and E, priced in blocks: half of the answers times the other half."""

from collections.abc import Iterator

import numpy as np
from scipy.special import xlogy

from frankly_server.design.linear import FloatArray
from frankly_server.design.variance.objective import Prices

MOST_ANSWERS = 22
_INNER = 11
_BLOCK = 512


def _patterns(count: int, ratio: float) -> FloatArray:
    """Return all columns over `count` answers, shape (2^count, count)."""
    bits = np.arange(2**count)[:, None] >> np.arange(count) & 1
    return np.where(bits == 1, ratio, 1.0)


def blocks(prices: Prices, ratio: float) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield (the largest worths, their columns v with p·v = 1): the best of every 2^11 patterns; all are looked at."""
    p = prices.objective.prior
    split = min(len(p), _INNER)
    inner, outer = _patterns(split, ratio), _patterns(len(p) - split, ratio)
    # |Zᵀv|² = |Yᵀv|² + 2b·Zᵀv − |b|² with Y = Z − p bᵀ; the middle Yᵀ1 = 0 keeps digits
    b = prices.Z.sum(axis=0)
    Y = prices.Z - np.outer(p, b)
    nu = prices.nu - 2 * prices.Z @ b + float(b @ b) * p
    inside, paid, mass = inner @ Y[:split], inner @ nu[:split], inner @ p[:split]
    for first in range(0, len(outer), _BLOCK):
        part = outer[first : first + _BLOCK]
        more, paid_more, mass_more = part @ Y[split:], part @ nu[split:], part @ p[split:]
        total = mass_more[:, None] + mass
        squares = np.sum(more**2, axis=1)[:, None] + np.sum(inside**2, axis=1) + 2 * more @ inside.T
        worth = squares / total**2 - (paid_more[:, None] + paid) / total
        if prices.objective.informative:
            # Σ p v ln v over entries E/total and 1/total
            chosen = (total - 1) / (ratio - 1) if ratio > 1 else np.zeros_like(total)
            worth += chosen * ratio * np.log(ratio) / total - xlogy(1.0, total)
        best = np.argmax(worth, axis=1)
        rows = np.arange(len(part))
        yield worth[rows, best], np.hstack([inner[best], part]) / total[rows, best][:, None]
