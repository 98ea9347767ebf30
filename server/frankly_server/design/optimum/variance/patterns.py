# SPDX-License-Identifier: Apache-2.0
"""Pricing of all 2^a columns of LDP of the answer, each combined from two halves."""

from collections.abc import Iterator

import numpy as np

from frankly_server.design.optimum.variance.objective import Prices
from frankly_server.design.tables.linear import FloatArray
from frankly_server.lazy import special

# The number of patterns doubles with each answer; 2^22 are four million.
MOST_ANSWERS = 22
# Half of MOST_ANSWERS: either half has at most 2^11 patterns, and a batch of combinations fits into
# memory.
_INNER = 11
_BLOCK = 512


def _patterns(count: int, ratio: float) -> FloatArray:
    """Return all patterns of 1 and E over `count` answers, shape (2^count, count)."""
    bits = np.arange(2**count)[:, None] >> np.arange(count) & 1
    return np.where(bits == 1, ratio, 1.0)


def blocks(prices: Prices, ratio: float) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield (worths, columns v with p·v = 1) of the best pattern in each block of up to 2^11.

    All patterns are evaluated, so the largest of these worths is the largest on the base.
    """
    p = prices.objective.prior
    split = min(len(p), _INNER)
    inner, outer = _patterns(split, ratio), _patterns(len(p) - split, ratio)
    # |Zᵀv|² = |Yᵀv|² + 2b·Zᵀv − |b|² with Y = Z − p bᵀ. Centring (Yᵀ1 = 0) avoids cancellation of
    # large terms near the constant column.
    b = prices.Z.sum(axis=0)
    Y = prices.Z - np.outer(p, b)
    nu = prices.nu - 2 * prices.Z @ b + float(b @ b) * p
    inner_Y, inner_charge, inner_mass = inner @ Y[:split], inner @ nu[:split], inner @ p[:split]
    for start in range(0, len(outer), _BLOCK):
        batch = outer[start : start + _BLOCK]
        outer_Y, outer_charge, outer_mass = batch @ Y[split:], batch @ nu[split:], batch @ p[split:]
        total = outer_mass[:, None] + inner_mass
        squares = (
            np.sum(outer_Y**2, axis=1)[:, None]
            + np.sum(inner_Y**2, axis=1)
            + 2 * outer_Y @ inner_Y.T
        )
        worth = squares / total**2 - (outer_charge[:, None] + inner_charge) / total
        if prices.objective.informative:
            # Σ p v ln v over entries E/total and 1/total; high_mass is the prior of the entries E.
            high_mass = (total - 1) / (ratio - 1) if ratio > 1 else np.zeros_like(total)
            worth += high_mass * ratio * np.log(ratio) / total - special.xlogy(1.0, total)
        best = np.argmax(worth, axis=1)
        rows = np.arange(len(batch))
        yield worth[rows, best], np.hstack([inner[best], batch]) / total[rows, best][:, None]
