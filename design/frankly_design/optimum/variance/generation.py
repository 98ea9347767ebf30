# SPDX-License-Identifier: Apache-2.0
"""Column generation for the variance (spec 1.6).

(1) Start with columns in many directions. (2) The convex master programme finds the best mechanism
made of these columns, and the prices Z = A⁻¹Wᵀ and ν. (3) Pricing finds columns that are worth
more than their price ν·v. (4) Add these columns and repeat until there are none, or time is up.
Then ν, raised by the largest possible excess of a column, proves a bound.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.variance.column_base import ColumnBase
from frankly_design.optimum.variance.master import VarianceMaster, VarianceMasterOptimum, moments
from frankly_design.optimum.variance.objective import Objective
from frankly_design.optimum.variance.pricing import VariancePricer
from frankly_design.optimum.variance.proof import (
    VarianceCertificate,
    branched_certificate,
    exact_certificate,
    identity_certificate,
    relaxed_certificate,
)
from frankly_design.optimum.variance.reports import balanced
from frankly_design.tables.limits import Limits, TimeExceeded

NEGLIGIBLE = 1e-9
_ROW_ERROR = 1e-9
# Reports with a weight below this are dropped if the value allows it.
_RARE = 3e-5
_ROUNDS = 200
# Pricing stops at this share of the gap; the master, the reserve and rare reports use the rest.
_STOP = 0.25


@dataclass(frozen=True)
class VarianceOptimum:
    """Best mechanism found; report j is θ_j times column j.

    columns : shape (n, a), p·v = 1.
    theta : shape (n,), positive, Σ θ_j v_j = 1.
    value : value of the objective of this mechanism.
    bound : lower bound on the value of every mechanism, proved by `certificate`.
    """

    columns: FloatArray
    theta: FloatArray
    value: float
    bound: float
    certificate: VarianceCertificate


Problem = Callable[[VarianceMaster], VarianceMasterOptimum]
"""Programme over the current columns, such as `lambda master: master.solve(objective)`."""


def generate(
    base: ColumnBase, solve: Problem, limits: Limits, master: VarianceMaster, pricer: VariancePricer
) -> VarianceOptimum:
    """Minimise the objective of `solve` over all mechanisms of the cone.

    Parameters
    ----------
    master, pricer : new objects over the base, or those of an earlier problem to continue from.

    Returns
    -------
    VarianceOptimum. Usually value − bound is at most gap·scale, unless time ran out or the
    certificate is not `exact`.

    Raises
    ------
    InvalidInput(optimiser_limit) if the targets cannot be estimated, or the numbers are too
        extreme.
    """
    master.is_solved = False
    search = _Search(base, solve, limits, master, pricer, solve(master))
    master.is_solved = True
    # Once time is up, the search ends with the last solution.
    with suppress(TimeExceeded):
        search.run()
    solved = search.solved
    certificate = search.best or _better_bound(
        None, identity_certificate(base.prior, solved.prices.objective), solved.offset
    )
    # There may be more columns than at the last solution.
    theta = np.append(solved.theta, np.zeros(len(master.V) - len(solved.theta)))
    return _without_rare_reports(master.V, replace(solved, theta=theta), certificate, limits.gap)


@dataclass
class _Search:
    """Rounds of column generation.

    solved : last solution of the master programme. best : best bound of the variance so far, with
    its certificate.
    """

    base: ColumnBase
    solve: Problem
    limits: Limits
    master: VarianceMaster
    pricer: VariancePricer
    solved: VarianceMasterOptimum
    best: tuple[float, VarianceCertificate] | None = None

    def run(self) -> None:
        """Search until the gap is closed, no more columns are found, or time is up.

        Raises TimeExceeded, possibly in the middle of a step; `solved` and `best` are still valid.
        """
        if not self.pricer.exact:
            # The relaxation comes first, while there is time, because its bound does not need all
            # good columns.
            self._relax()
        for _ in range(_ROUNDS):
            if not self._improve():
                break
            self.solved = self.solve(self.master)
        is_final = self.pricer.exact or self.limits.out_of_time() or self._is_closed()
        if self.best is None or not is_final:
            self._relax()

    def _improve(self) -> bool:
        """Add columns that improve the mechanism; return False if there are none or time is up."""
        solved, limits, master = self.solved, self.limits, self.master
        used = master.V[solved.theta > NEGLIGIBLE]
        columns, largest_worth = self.pricer.price(solved.prices, used)
        if self.pricer.exact:
            self._keep(exact_certificate(solved.prices, largest_worth, self.pricer))
        limits.progress("variance", solved.value, np.nan if self.best is None else self.best[0])
        tolerance = _STOP * limits.gap * solved.scale
        if limits.out_of_time():
            return False
        if largest_worth > tolerance and master.add(columns):
            return True
        # A local search that finds no columns does not prove that there are none.
        if self.pricer.exact or self._is_closed():
            return False
        branched = branched_certificate(self.base, solved.prices, solved.scale, tolerance, limits)
        if branched is None:
            return False
        self._keep(branched[0])
        return bool(master.add(branched[1]))

    def _relax(self) -> None:
        A = moments(self.master.V, self.solved.theta)
        self._keep(relaxed_certificate(self.base, self.solved.prices, A, self.limits))

    def _keep(self, certificate: VarianceCertificate) -> None:
        self.best = _better_bound(self.best, certificate, self.solved.offset)

    def _is_closed(self) -> bool:
        gap = self.limits.gap * self.solved.scale
        return self.best is not None and self.solved.value - self.best[0] <= gap


def _better_bound(
    best: tuple[float, VarianceCertificate] | None, certificate: VarianceCertificate, offset: float
) -> tuple[float, VarianceCertificate]:
    bound = certificate.bound - offset
    return (bound, certificate) if best is None or bound > best[0] else best


def _without_rare_reports(
    V: FloatArray,
    solved: VarianceMasterOptimum,
    best: tuple[float, VarianceCertificate],
    gap: float,
) -> VarianceOptimum:
    """Return the optimum without rare reports, as far as the targets and the value allow.

    gap : as in `Limits`; up to a tenth of it may be lost.
    """
    objective, value = solved.prices.objective, solved.value + solved.offset
    for least in (_RARE, NEGLIGIBLE):
        used = solved.theta > least
        columns, theta = V[used], balanced(V[used], solved.theta[used])
        if _is_as_good(columns, theta, objective, value, min(_RARE, gap / 10)):
            return VarianceOptimum(columns, theta, solved.value, *best)
    used = solved.theta > 0
    return VarianceOptimum(V[used], balanced(V[used], solved.theta[used]), solved.value, *best)


def _is_as_good(
    columns: FloatArray, theta: FloatArray, objective: Objective, value: float, loss: float
) -> bool:
    """Return True if all targets are estimable and the value is at most `loss` (relative) above."""
    if theta.min() <= 0 or np.abs(theta @ columns - 1).max() > _ROW_ERROR:
        return False
    A, W = moments(columns, theta), objective.W
    Z, _, rank, _ = np.linalg.lstsq(A, W.T, rcond=1e-12)
    if np.linalg.matrix_rank(np.vstack([columns, W])) > rank:
        return False
    reached = float(np.sum(W.T * Z)) - float(theta @ objective.gains(columns))
    return reached <= value + loss * abs(value)
