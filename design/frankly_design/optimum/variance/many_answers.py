# SPDX-License-Identifier: Apache-2.0
"""Least variance under LDP of many answers: columns from random sets, then from flipped answers.

A column is the set of its answers with entry E. The bound over all columns (`pair_bound`) is nearly
attained by sets {x : X_x large} of a normal vector X whose covariance is the root of WᵀW in L²(p):
up to a factor, they have the moments that the relaxation requires. So the search starts with some
hundreds of these sets, solves the master programme, and adds sets of positive worth that flips of
single answers reach. It drops unused columns, because a document can contain only few reports.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.interior import TraceOptimum, minimise_trace
from frankly_design.optimum.variance.column_base import ColumnBase
from frankly_design.optimum.variance.generation import NEGLIGIBLE, VarianceOptimum
from frankly_design.optimum.variance.master import inverse_times, moments, not_solved
from frankly_design.optimum.variance.objective import Objective, Prices
from frankly_design.optimum.variance.pair_bound import MOST_ANSWERS as MOST_BOUNDED
from frankly_design.optimum.variance.pair_bound import certified
from frankly_design.optimum.variance.patterns import MOST_ANSWERS
from frankly_design.optimum.variance.proof import VarianceCertificate
from frankly_design.optimum.variance.reports import balanced
from frankly_design.tables.limits import Limits
from frankly_design.tables.spread import directions

MOST_SETS: Final = 900
"""Largest number of columns; a table has at most 4096."""
_RANDOM: Final = 800
_PER_ROUND: Final = 400
_STARTS: Final = 200
_ROUNDS: Final = 60
_FLIPS: Final = 300
# The search ends when a round gains less than this relative amount; 10^-3 would halve the time.
_LEAST_GAIN: Final = 5e-4
_TOLERANCE, _LAST_TOLERANCE = 1e-4, 1e-9
# Share of the starting weights that is spread over all columns, or goes to the new columns.
_FRESH, _NEW = 0.02, 0.3
_MEASURE_STEP: Final = 0.5  # distance between the logarithms of the measures of random sets

BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


def complete(W: FloatArray) -> FloatArray:
    """Return targets completed to full rank, with the same variances, by the sum of the shares.

    Every mechanism has A·p = 1, so the target (1, …, 1) has the variance 1·A⁻¹1 − 1 = 0.
    """
    a = W.shape[1]
    if np.linalg.matrix_rank(W) != a - 1:
        return W
    # Scaled like the other rows, so that the completed matrix is well conditioned.
    scale = float(np.sqrt(np.sum(W**2) / a / a))
    completed = np.vstack([W, np.full(a, scale)])
    return completed if np.linalg.matrix_rank(completed) == a else W


def applies(base: ColumnBase, objective: Objective) -> bool:
    """Return True for LDP of too many answers to price all patterns, with targets of full rank."""
    return (
        base.ratio is not None
        and base.ratio > 1
        and MOST_ANSWERS < base.answers <= MOST_BOUNDED
        and bool(base.prior.min() > 0)
        and np.linalg.matrix_rank(objective.W) == base.answers
    )


def optimum(base: ColumnBase, objective: Objective, limits: Limits) -> VarianceOptimum:
    """Return the best mechanism found, with the bound over all mechanisms.

    Raises InvalidInput(optimiser_limit) if the numbers are too extreme.
    """
    ratio, offset = base.ratio or 1.0, objective.constant()
    search = _SetSearch(objective, ratio)
    prices = certified(objective, ratio, limits.half_time)
    solved = search.solve(_TOLERANCE)
    for _ in range(_ROUNDS):
        bound = -np.inf if prices is None else prices.bound() - offset
        limits.progress("variance", solved.value - offset, bound)
        if solved.value - offset - bound <= limits.gap * (solved.value - offset):
            break
        if limits.out_of_time() or not search.add(search.better(solved), solved):
            break
        following = search.solve(_TOLERANCE)
        gained = solved.value - following.value
        solved = following
        if gained < _LEAST_GAIN * (solved.value - offset):
            break
    solved = search.solve(_LAST_TOLERANCE)
    columns, theta = search.reports(solved)
    value = float(np.sum(objective.W.T * inverse_times(moments(columns, theta), objective.W)))
    if prices is None:
        # These prices only prove that variances are non-negative.
        prices = Prices(objective, np.zeros((base.answers, len(objective.W))), base.prior)
    certificate = VarianceCertificate(prices, exact=False, route="pairs")
    return VarianceOptimum(
        columns, theta, value - offset, max(0.0, certificate.bound - offset), certificate
    )


@dataclass(frozen=True, slots=True)
class _Solved:
    """Optimum over the current sets: weights, tr(W A⁻¹Wᵀ), Z and ν."""

    theta: FloatArray
    value: float
    Z: FloatArray
    nu: FloatArray


class _SetSearch:
    """Sets of answers, shape (n, a), and the master programme over their columns."""

    def __init__(self, objective: Objective, ratio: float) -> None:
        self._objective, self._p, self._ratio = objective, objective.prior, ratio
        singles = np.eye(len(self._p), dtype=np.bool_)
        self._sets = np.unique(np.vstack([self._random(), singles]), axis=0)
        self._theta: FloatArray | None = None
        self._index = 0

    @property
    def columns(self) -> FloatArray:
        """Columns v of the sets, scaled to p·v = 1."""
        return self._scaled(self._sets)

    def solve(self, tolerance: float) -> _Solved:
        """Return the best weights of the current sets."""
        V, W = self.columns, self._objective.W
        scale = 1 / np.max(V, axis=0)
        T = V * scale
        n, solution = len(V), None
        # A warm start saves most steps, but it can be too close to the boundary to converge.
        for start in (self._start(n), None):
            solution = minimise_trace(
                T, T.T.copy(), scale, W * scale, start=start, tolerance=tolerance
            )
            if solution.converged:
                break
        if not isinstance(solution, TraceOptimum) or not solution.converged:
            raise not_solved()
        self._theta = solution.x
        Z = inverse_times(moments(V, solution.x), W)
        return _Solved(solution.x, float(np.sum(W.T * Z)), Z, solution.dual * scale)

    def better(self, solved: _Solved) -> BoolArray:
        """Return sets of positive worth, best first, that flips of single answers reach."""
        G = solved.Z @ solved.Z.T
        values, vectors = np.linalg.eigh(G)
        spread = directions(self._index, _STARTS, len(values)) * np.sqrt(np.maximum(values, 0))
        self._index += _STARTS
        used = self._sets[solved.theta > NEGLIGIBLE]
        # Sets in use are near the optimum; the other starts lead to different sets.
        starts = np.vstack([used, vectors.T > 0, vectors.T < 0, spread @ vectors.T > 0])
        sets, worth = self._climbed(starts, G, solved.nu)
        return sets[np.argsort(-worth, kind="stable")][: int(np.count_nonzero(worth > 0))]

    def add(self, sets: BoolArray, solved: _Solved) -> int:
        """Replace unused sets with new ones; return the number of new sets."""
        names = {subset.tobytes() for subset in self._sets}
        new = []
        for subset in sets:
            if subset.tobytes() not in names:
                names.add(subset.tobytes())
                new.append(subset)
        new = new[:_PER_ROUND]
        if new:
            used = np.argsort(-solved.theta, kind="stable")[: MOST_SETS - len(new)]
            used = used[solved.theta[used] > NEGLIGIBLE]
            self._sets = np.vstack([self._sets[used], new])
            self._theta = solved.theta[used]
        return len(new)

    def reports(self, solved: _Solved) -> tuple[FloatArray, FloatArray]:
        """Return (columns, θ) of the sets that are used."""
        V = self.columns
        used = solved.theta > NEGLIGIBLE
        theta = balanced(V[used], solved.theta[used])
        # Balancing few columns can make a weight negative; with all columns there is more freedom.
        if theta.min() <= 0:
            return V, balanced(V, solved.theta)
        return V[used], theta

    def _start(self, n: int) -> FloatArray | None:
        if self._theta is None:
            return None
        old = len(self._theta)
        weight = 1 - _NEW if old < n else 1.0
        new = np.full(n - old, _NEW / n)
        # All weights are positive, because an interior-point method cannot start on the boundary.
        return np.concatenate([weight * self._theta, new]) + _FRESH / n

    def _random(self) -> BoolArray:
        """Return the sets of the largest entries of random vectors, with several measures."""
        p, W, a = self._p, self._objective.W, len(self._p)
        _, values, vectors = np.linalg.svd((W - (W @ p)[:, None]) * np.sqrt(p))
        root = (np.sqrt(np.append(values, np.zeros(a))[:a, None]) * vectors) / np.sqrt(p)
        least = 1 / (1 + self._ratio)
        measures = np.geomspace(
            least, 0.5, max(1, int(np.ceil(np.log(0.5 / least) / _MEASURE_STEP)))
        )
        X = directions(0, _RANDOM // 2, a) @ root
        X = np.vstack([X, -X])
        order = np.argsort(-X, axis=1, kind="stable")
        measured = np.cumsum(p[order], axis=1)
        # The measures alternate, so that each occurs with many directions.
        target_measures = measures[np.arange(len(X)) % len(measures)]
        sizes = np.clip(
            np.argmin(np.abs(measured - target_measures[:, None]), axis=1) + 1, 1, a - 1
        )
        sets = np.zeros(X.shape, dtype=np.bool_)
        np.put_along_axis(sets, order, np.arange(a) < sizes[:, None], axis=1)
        return sets

    def _scaled(self, sets: BoolArray) -> FloatArray:
        v = np.where(sets, self._ratio, 1.0)
        return np.asarray(v / (v @ self._p)[:, None], dtype=np.float64)

    def _climbed(
        self, sets: BoolArray, G: FloatArray, nu: FloatArray
    ) -> tuple[BoolArray, FloatArray]:
        """Return the local optima, without duplicates, and their worth per unit of θ.

        In each step, every set flips the answer that increases v·Gv/(p·v) − ν·v the most.
        """
        sets, p = sets.copy(), self._p
        v = np.where(sets, self._ratio, 1.0)
        Gv = v @ G
        square, mass, price = np.sum(v * Gv, axis=1), v @ p, v @ nu
        for _ in range(_FLIPS):
            change = np.where(sets, 1 - self._ratio, self._ratio - 1)
            # The quadratic form after each flip, from Gv: a operations per set instead of a².
            squares = square[:, None] + 2 * change * Gv + change**2 * np.diag(G)
            masses = mass[:, None] + change * p
            worth = squares / masses - price[:, None] - change * nu
            best = np.argmax(worth, axis=1)
            # A flip must gain more than rounding errors; otherwise an answer could flip back and
            # forth.
            now = square / mass - price
            rising = np.flatnonzero(
                worth[np.arange(len(sets)), best] > now + 1e-10 * np.abs(square / mass)
            )
            if not len(rising):
                break
            x = best[rising]
            step = change[rising, x]
            square[rising], mass[rising] = squares[rising, x], masses[rising, x]
            price[rising] += step * nu[x]
            Gv[rising] += step[:, None] * G[x]
            v[rising, x] += step
            sets[rising, x] ^= True
        # Different starts often end at the same set.
        sets = np.unique(sets, axis=0)
        # Recomputed, because the running sums have accumulated rounding errors.
        V = self._scaled(sets)
        return sets, np.asarray(np.sum((V @ G) * V, axis=1) - V @ nu, dtype=np.float64)
