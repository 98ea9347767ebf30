# SPDX-License-Identifier: Apache-2.0
"""Pricing of all 2^a columns under LDP of the answer, each combined from two halves."""

from collections.abc import Iterator

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special
from frankly_design.optimum.variance.objective import Prices

# The number of patterns doubles with each answer; 2^22 is four million.
MOST_ANSWERS = 22
# Up to this number all patterns are priced at once, even for one target.
FEW_ANSWERS = 12
# Half of MOST_ANSWERS: each half has at most 2^11 patterns, so a batch of combinations fits in
# memory.
_INNER = 11
_BLOCK = 512
# In practice the best worth improves in only two or three rounds.
_MOST_RISES = 50


def _patterns(count: int, ratio: float) -> FloatArray:
    """Return all patterns of 1 and E over `count` answers, shape (2^count, count)."""
    return np.where((np.arange(2**count)[:, None] >> np.arange(count) & 1) == 1, ratio, 1.0)


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


def of_one_target(prices: Prices, ratio: float) -> tuple[FloatArray, FloatArray]:
    """Return columns v for one target, including the best of all, shape (n, a), and their worths.

    A pattern v is worth more than τ iff for some b, Σ_x v_x (2b·z_x − b²p_x − ν_x − τp_x) > 0. For
    a fixed b the best pattern has E where the bracket is positive, and it changes only at the roots
    of the brackets. So the best of these patterns is worth more than τ if any pattern is. The
    search starts at τ = 0 and raises τ to the best worth found until no worth is larger
    (docs/maths/variance.md, claim 3).
    """
    p, nu, z = prices.objective.prior, prices.nu, prices.Z[:, 0]
    least, batches = 0.0, []
    for _ in range(_MOST_RISES):
        charged = nu + least * p
        # b²p − 2bz + charge = 0; answers without a real root never have entry E.
        spread = np.sqrt(np.maximum(z**2 - p * charged, 0.0))
        roots = np.unique(np.concatenate([(z - spread) / p, (z + spread) / p]))
        b = (roots[1:] + roots[:-1]) / 2
        inside = 2 * b[:, None] * z - b[:, None] ** 2 * p > charged
        U = np.where(inside, ratio, 1.0)
        V = U / (U @ p)[:, None]
        worth = prices.worth(V)
        # Keep only local maxima along b: patterns at neighbouring b are nearly the same.
        beside = np.concatenate([[-np.inf], worth, [-np.inf]])
        top = (worth >= beside[:-2]) & (worth >= beside[2:])
        batches.append((V[top], worth[top]))
        if float(worth.max()) <= least:
            break
        least = float(worth.max())
    columns, worths = (np.concatenate(arrays) for arrays in zip(*batches, strict=True))
    return columns, worths


def intervals(scores: FloatArray, prior: FloatArray, ratio: float) -> FloatArray:
    """Return the columns v with E inside or outside an interval of scores, shape (n, a).

    At an optimum for one target, z is often linear and ν quadratic in the score; these columns then
    contain the optimum.
    """
    a = len(scores)
    places = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
    low, high = np.triu_indices(a + 1, 1)
    inside = (places >= low[:, None]) & (places < high[:, None])
    sets = np.unique(np.vstack([inside, ~inside]), axis=0)
    sets = sets[sets.any(axis=1) & ~sets.all(axis=1)]
    U = np.where(sets, ratio, 1.0)
    return np.asarray(U / (U @ prior)[:, None], dtype=np.float64)
