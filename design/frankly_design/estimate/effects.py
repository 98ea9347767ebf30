# SPDX-License-Identifier: Apache-2.0
"""Effect sizes of two independent estimates, and tests: Holm, equal ratios, distance from 0.

Intervals are computed from those of the two estimates (MOVER). They are approximate, and as
asymmetric as those of the estimates [Zou and Donner 2008; Donner and Zou 2012].
"""

import math
from collections.abc import Sequence

import numpy as np

from frankly_design.estimate.chernoff import Ends
from frankly_design.estimate.pooling import pseudo_inverse
from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special

_ANGLES, _HALVINGS = 720, 60  # grid and refinement of the search for a common ratio
_LEAST_MULTIPLIER = 1e-15


def two_sided(z: float) -> float:
    """Return P(|Z| ≥ |z|) of a standard normal Z."""
    return math.erfc(abs(z) / math.sqrt(2))


def equivalence(difference: float, se: float, margin: float) -> float:
    """Return the p-value of two one-sided tests that a difference is not within ±margin.

    The larger one of those of the hypotheses that it is at most −margin, and at least margin, by a normal
    approximation; it is at most α if and only if the interval of level 1 − 2α lies within ±margin
    [Schuirmann 1987].
    """
    # Of the two tests, that of the nearer limit has the larger p-value.
    return math.erfc((margin - abs(difference)) / se / math.sqrt(2)) / 2


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Return Holm's adjusted p-values of a family; None where a test has no p-value [Holm 1979].

    The i-th smallest of m p-values is multiplied by m − i + 1, and then raised to at least the
    previous adjusted value.
    """
    ranked = sorted((p, i) for i, p in enumerate(values) if p is not None)
    adjusted: list[float | None] = [None] * len(values)
    largest = 0.0
    for rank, (p, i) in enumerate(ranked):
        largest = max(largest, min(1.0, (len(ranked) - rank) * p))
        adjusted[i] = largest
    return adjusted


def ratio_ends(a: float, a_ends: Ends, b: float, b_ends: Ends) -> Ends | None:
    """Return the interval of a/b: all ρ ≥ 0 for which the MOVER interval of a − ρb contains 0.

    a, b : independent estimates of non-negative numbers, with their intervals.
    Returns None unless a > 0 and the interval of b is above 0, because the interval could otherwise
    be unbounded.
    """
    (a_low, a_high), (b_low, b_high) = a_ends, b_ends
    if a <= 0 or b_low <= 0:
        return None
    # The ends solve (a − ρb)² = d_a² + ρ²d_b² for the distances d of the ends from the estimates.
    product = a * b
    below = a_low * (2 * a - a_low)
    discriminant = product**2 - below * b_high * (2 * b - b_high)
    low = below / (product + math.sqrt(discriminant)) if discriminant >= 0 else 0.0
    above = a_high * (2 * a - a_high)
    leading = b_low * (2 * b - b_low)
    high = (product + math.sqrt(max(0.0, product**2 - above * leading))) / leading
    return max(0.0, low), high


def cohens_h(a: float, a_ends: Ends, b: float, b_ends: Ends) -> tuple[float, float, float]:
    """Return h = 2 asin √a − 2 asin √b of two independent shares, with its interval [Cohen 1988].

    Shares and ends outside [0, 1] are clipped to that range.
    """
    (u, u_low, u_high), (v, v_low, v_high) = (
        tuple(2 * math.asin(math.sqrt(min(max(x, 0.0), 1.0))) for x in (value, *ends))
        for value, ends in ((a, a_ends), (b, b_ends))
    )
    h = u - v
    return h, h - math.hypot(u - u_low, v_high - v), h + math.hypot(u_high - u, v - v_low)


def common_ratio(
    values: Sequence[FloatArray], covariances: Sequence[FloatArray]
) -> tuple[float, int] | None:
    """Return the statistic and the degrees of freedom of the test that ratios a/b are equal.

    T = min over ρ of Σ_g (a_g − ρb_g)²/var(a_g − ρb_g) is stochastically at most χ² with G − 1
    degrees of freedom, as in Fieller's interval of one ratio [Fieller 1954; Anderson and Rubin
    1949].

    values : (a, b) of each group, shape (2,). covariances : their covariances, shape (2, 2).
    Returns None for one group, or if a group has no variance.
    """
    if len(values) < 2 or any(np.trace(C) <= 0 for C in covariances):
        return None
    x, C = np.array(values), np.array(covariances)
    # Scaled to make the grid of angles equally fine for numerators and denominators.
    scale = np.sqrt(np.einsum("gii->i", C) + (x**2).sum(axis=0))
    x, C = x / scale, C / np.outer(scale, scale)

    def total(angles: FloatArray) -> FloatArray:
        v = np.stack([np.cos(angles), -np.sin(angles)])
        spread = np.einsum("ia,gij,ja->ga", v, C, v)
        squares = (x @ v) ** 2
        # A group without variance in a direction has no statistic there.
        terms = np.divide(squares, spread, out=np.full_like(squares, np.inf), where=spread > 0)
        return np.asarray(terms.sum(axis=0), dtype=np.float64)

    # ρ is the tangent of the angle, which covers denominators of 0. T can have several minima, so a
    # grid search precedes the refinement.
    step = math.pi / _ANGLES
    grid = np.arange(_ANGLES, dtype=np.float64) * step
    centre = float(grid[int(np.argmin(total(grid)))])
    for _ in range(_HALVINGS):
        points = np.asarray(centre + step * np.linspace(-1, 1, 9), dtype=np.float64)
        centre = float(points[int(np.argmin(total(points)))])
        step /= 2
    return float(total(np.array([centre]))[0]), len(values) - 1


def wald(vector: FloatArray, covariance: FloatArray) -> tuple[float, int] | None:
    """Return vᵀC⁺v and the rank of C, None if the rank is 0 [Wald 1943]."""
    # Scaled to unit variances, because the rank is determined relative to the largest eigenvalue.
    scale = np.sqrt(np.diagonal(covariance))
    scale = np.where(scale > 0, scale, 1.0)
    inverse, rank = pseudo_inverse(covariance / np.outer(scale, scale))
    v = vector / scale
    return (float(v @ inverse @ v), rank) if rank else None


def chi_squared(statistic: float, freedom: int) -> float:
    """Return the p-value of a statistic that is χ² distributed under the null hypothesis."""
    return float(special.chdtrc(freedom, statistic))


def length_ends(vector: FloatArray, covariance: FloatArray, level: float) -> Ends:
    """Return the least and the largest |v'| over all v' with (v' − v)ᵀC⁺(v' − v) ≤ the χ² quantile.

    The set of v' contains the true vector with probability `level`, so the interval contains the
    true length at least as often [Scheffé 1953]. It begins above 0 iff the Wald test rejects 0.

    vector : in the range of the covariance, up to rounding.
    """
    values, vectors = np.linalg.eigh(covariance)
    # Directions without variance have eigenvalues near 1e-16 times the largest, not exactly 0.
    used = values > 1e-11 * max(float(values.max(initial=0.0)), 1e-300)
    square = float(special.chdtri(int(used.sum()), 1 - level)) if used.any() else 0.0
    s, b = np.sqrt(values[used]), vectors[:, used].T @ vector
    if not square:
        return 0.0, 0.0
    # v' = b + s·u with |u|² ≤ square. Lagrange: u = s·b/(μ − s²), with μ < 0 for the least length
    # and μ > max s² for the largest one.
    contains_0 = float(np.sum((b / s) ** 2)) <= square
    low = 0.0 if contains_0 else _length_at(s, b, square, -1)
    return low, _length_at(s, b, square, 1)


def _length_at(s: FloatArray, b: FloatArray, square: float, side: int) -> float:
    """Return the length at the multiplier μ = max s² + m (side 1) or −m (side −1) with |u|² = square."""
    top = float(np.max(s**2))

    def step(m: float) -> FloatArray:
        gap = top + m - s**2 if side > 0 else -m - s**2
        return np.asarray(s * b / gap, dtype=np.float64)

    # Bisection of ln m, because m can lie many orders of magnitude below max s².
    low, high = math.log(_LEAST_MULTIPLIER * top), math.log(top) + 1
    # |u| decreases in m, so some m is large enough.
    while float(np.sum(step(math.exp(high)) ** 2)) > square:
        high += 1
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if np.sum(step(math.exp(middle)) ** 2) > square else (low, middle)
        )
    # At the upper end |u|² is at most `square`.
    u = step(math.exp(high))
    lengths = b + s * u
    # If b has no component along the longest axis, the remaining step goes along that axis.
    remaining = max(0.0, square - float(u @ u)) if side > 0 else 0.0
    return math.sqrt(float(lengths @ lengths) + top * remaining)
