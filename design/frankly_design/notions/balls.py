# SPDX-License-Identifier: Apache-2.0
"""Rényi balls around a point estimate P̂ of (S, U), and their distributions of U given a secret S.

The ball is F = {P : D_α(P̂‖P) ≤ B}. Its projection onto the distributions of U given S = s is the
ball of radius B_s around P̂(·|s) (Theorem 1). In that ball a set of values with estimated
probability ρ has probability at least `least(ρ)`  [Robust §3-4; erratum 9.6-9.9].

This module computes in floats, for display and for choosing the noise. `ball_bounds` computes the
proven bounds of a privacy claim.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from frankly_design.notions.quantile import chi_square_quantile
from frankly_design.notions.read_ball import Counts, read_beta, read_counts, read_order, read_size
from frankly_design.numeric.lazy import optimize

# With at most 20 values the spread is always exact; 2^20 sums take 8 MB.
MAX_SUBSETS = 2**20
# e^−690 ≈ 1e-300 is close to the smallest normal double.
_TINY = -690.0
_BISECTIONS = 64

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ball:
    """F = {P : D_α(P̂‖P) ≤ B} with P̂ = counts / Σcounts; built by `confidence_ball`.

    counts : N[s][u], secrets × values.
    order : α in [0.01, 100].
    threshold : c ≥ 0, the largest power divergence 2/(α(α−1))·(Σ P̂^α P^(1−α) − 1) in the ball (χ²
        for α = 2, 2·KL for α = 1), exact.
    """

    counts: Counts
    order: Fraction
    threshold: Fraction

    @property
    def moment(self) -> Fraction:
        """A = e^((α−1)B) = 1 + α(α−1)c/2.

        For α < 1 it may be 0 or negative: then B is infinite and F contains every distribution.
        """
        return 1 + self.order * (self.order - 1) * self.threshold / 2

    @property
    def radius(self) -> float:
        """B in nats; math.inf if every distribution is in the ball."""
        if self.order == 1:
            return float(self.threshold / 2)
        return math.log(self.moment) / float(self.order - 1) if self.moment > 0 else math.inf

    def conditional_radius(self, s: int, share: float = 1.0) -> float:
        """Return B_s in nats  [Theorem 1, as in erratum 9.7]; math.inf if s has no counts.

        share : in [0, 1], the fraction of the ball's radius that is spent on this secret, on the
        scale
            of e^((α−1)B/α) − 1 (of B for α = 1). Distributions for two secrets s ≠ t occur together
            in the ball if and only if each is in its ball for shares that sum to 1
            (docs/maths/robust.md, claim 16).
        """
        mass = sum(self.counts[s]) / sum(map(sum, self.counts))
        if not mass or self.radius == math.inf:
            return math.inf
        if self.order == 1:
            return share * self.radius / mass
        alpha = float(self.order)
        argument = share * math.expm1((alpha - 1) * self.radius / alpha) / mass
        return alpha / (alpha - 1) * math.log1p(argument) if argument > -1 else math.inf

    def conditional(self, s: int) -> Vector:
        """Return P̂(·|s), shape (values,); all zero if the secret has no counts."""
        mass = max(1, sum(self.counts[s]))
        return np.array([n / mass for n in self.counts[s]])

    def least(self, s: int) -> Vector:
        """Return L(u|s) = min R_u over the projection, for every u  [Props 1 (29), 2 (33)]."""
        return least(self.conditional(s), self.conditional_radius(s), float(self.order))

    def greatest(self, s: int) -> Vector:
        """Return max R_u over the projection, for every u; all 1 if the secret has no counts.

        The maximum is 1 minus the least probability of all other values together.
        """
        return 1 - least(1 - self.conditional(s), self.conditional_radius(s), float(self.order))

    def spread(self, s: int) -> float:
        """Return rad_s = max ‖R − P̂(·|s)‖₁ over the projection, in [0, 2].

        The result is exact up to rounding if the sets of values have at most 2^20 different
        probabilities, which holds for up to 20 values. Otherwise it is an upper bound, the maximum
        over all probabilities in [0, 1]: at most √(e^B_s − 1) for α = 2  [Proposition 1 (30);
        erratum 9.8-9.9].
        """
        radius, p, order = self.conditional_radius(s), self.conditional(s), float(self.order)
        if len(p) == 1:
            return 0.0
        if radius == math.inf:
            return 2.0

        def gain(sums: Vector) -> Vector:
            # The complement of a set of mass σ gains the probability that the set loses.
            return sums - least(sums, radius, order)

        # D is jointly quasi-convex, so the gain is concave in σ: among the masses of actual sets,
        # the best σ is next to the unrestricted maximiser.
        peak = float(
            optimize.minimize_scalar(
                lambda v: -float(gain(np.array([v]))[0]),
                bounds=(float(p[p > 0].min()), 1 - float(p.min())),
                method="bounded",
                options={"xatol": 1e-13},
            ).x
        )
        sums = subset_sums(self.counts[s])
        if sums is None:
            return min(2.0, 2 * float(gain(np.array([peak]))[0]) * (1 + 1e-9))  # rounding: up
        i = int(np.searchsorted(sums, peak))
        return 2 * float(np.max(gain(sums[max(0, i - 2) : i + 2])))


def confidence_ball(joint: Sequence[Sequence[int]], order: object, n: object, beta: object) -> Ball:
    """Return the ball; it contains the true distribution with probability → 1 − β as n grows.

    The power-divergence statistic 2n/(α(α−1))·(Σ P̂^α P^(1−α) − 1) tends to χ² with a−1 degrees of
    freedom for every α, where a is the number of cells. It is Pearson's statistic at α = 2 and the
    likelihood ratio at α = 1. The coverage 1 − β is asymptotic: with 240 cells, a nominal coverage
    of 0.95 was measured as 0.92 (erratum 9.6).

    Parameters
    ----------
    joint : counts N[s][u], two or more secrets, at most 256 cells.
    order : α in [0.01, 100], at most six decimals.
    n : number of people counted, 1 or more.
    beta : a plain decimal string strictly between 0 and 1.

    Raises InvalidInput naming prior.joint, robust.order, robust.n or robust.beta.
    """
    counts, alpha, size, risk = read_counts(joint), read_order(order), read_size(n), read_beta(beta)
    cells = len(counts) * len(counts[0])
    return Ball(counts, alpha, chi_square_quantile(cells - 1, risk) / size)


def least(p: Vector, radius: float, order: float) -> Vector:
    """Return p·ξ₋(p), the least probability in the ball of a set of estimated probability p.

    At the minimum the values inside the set keep their proportions, and so do those outside it.
    This reduces the problem to the ball around the two-valued distribution (p, 1−p) [Lemma 1, (27),
    (31)].
    """
    if radius == math.inf:
        return np.zeros_like(p)
    if radius <= 0:
        return p
    if order == 2:
        C = math.exp(radius)
        h = C - 1 + 2 * p
        # The smaller root is computed as p²/C divided by the larger root, because h − √(…) would
        # cancel for a small radius.
        root: Vector = np.sqrt(np.maximum(h**2 - 4 * C * p**2, 0))
        return 2 * p**2 / (h + root)
    if order == 0.5:
        # For α = ½ the divergence is a function of the angle between the vectors of square roots,
        # so there is a closed form.
        gap = math.exp(-radius)
        angle: Vector = np.maximum(np.sqrt(p * gap) - np.sqrt(np.maximum(1 - p, 0) * (1 - gap)), 0)
        return angle**2
    return _bracketed(p, radius, order)


def divergence(p: Vector, r: Vector, order: float) -> Vector:
    """Return D_α((p, 1−p) ‖ (r, 1−r))  [(21)] for r in (0, 1)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [(np.log(p), np.log(r)), (np.log1p(-p), np.log1p(-r))]
        if order == 1:
            return sum(
                (np.where(np.isfinite(u), np.exp(u) * (u - v), 0) for u, v in terms),
                np.zeros_like(p),
            )
        first, second = (
            np.where(np.isfinite(u), order * u + (1 - order) * v, -np.inf) for u, v in terms
        )
    return np.logaddexp(first, second) / (order - 1)


def subset_sums(counts: Sequence[int]) -> Vector | None:
    """Return the distinct positive probabilities of proper sets of values; None beyond 2^20."""
    sums = np.zeros(1, dtype=np.int64)
    for n in counts:
        # Both halves are already sorted, so NumPy's stable sort merges them in linear time.
        sums = np.sort(np.concatenate([sums, sums + n]), kind="stable")
        sums = sums[np.append(True, sums[1:] > sums[:-1])]
        if len(sums) > MAX_SUBSETS:
            return None
    total = sum(counts)
    # If a value has no counts, the set of all other values is a proper set of probability 1.
    inner = sums[(sums > 0) & (sums < total + (min(counts) == 0))]
    return inner / total


def _bracketed(p: Vector, radius: float, order: float) -> Vector:
    """Return `least` by bisection over log r: D increases as r decreases from p to 0."""
    # In logarithms, probabilities near 0 get the same relative precision as others.
    low, high = np.full_like(p, _TINY), np.log(np.maximum(p, math.exp(_TINY)))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        outside = divergence(p, np.exp(middle), order) > radius
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    return np.where((p > 0) & (low > _TINY), np.exp(low), 0.0)
