# SPDX-License-Identifier: Apache-2.0
"""Column generation for the variance (DESIGN §2).

(1) start with columns in many directions (2) the convex master finds the best mechanism made of them, and with it
Z = A⁻¹Wᵀ and ν (3) pricing looks for columns worth more than ν charges, and adds them (4) until none is left, or time
is up: then ν, raised by what the dearest column may be worth, proves a bound.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from frankly_protocol import problems
from frankly_protocol.errors import InvalidInput

from frankly_server.design.interior import minimise_trace
from frankly_server.design.limits import Limits
from frankly_server.design.linear import FloatArray, lp
from frankly_server.design.variance.base import Base
from frankly_server.design.variance.dual import maximise_dual
from frankly_server.design.variance.objective import Objective, Prices
from frankly_server.design.variance.pricing import Pricer
from frankly_server.design.variance.proof import Certificate, proven, relaxed
from frankly_server.design.variance.reports import balanced
from frankly_server.design.variance.spread import directions

NEGLIGIBLE = 1e-9
_SAME = 1e-9
_RESERVED = 1e-7
_FRESH = 0.01
_INSIDE = 0.02
_MASTER_TOLERANCE = 1e-10
_ROUNDS = 200


@dataclass(frozen=True)
class Generated:
    """The best mechanism found: report j is θ_j times column j.

    columns : shape (n, a), p·v = 1. theta : shape (n,), positive, Σ θ_j v_j = 1. value : reached. bound : no
    mechanism has a smaller value, as `certificate` proves.
    """

    columns: FloatArray
    theta: FloatArray
    value: float
    bound: float
    certificate: Certificate


@dataclass(frozen=True)
class Solved:
    """The best mechanism over the present columns.

    value : what is reported, F less `offset`. prices : prove that no mechanism has a value below bound − `offset`.
    scale : what a relative gap is relative to.
    """

    theta: FloatArray
    value: float
    prices: Prices
    offset: float
    scale: float


class Master:
    """The columns found so far, each once, and the convex programme over them.

    Where the targets do not fix every direction A may become singular at the optimum. The dual is solved instead, and a
    share η = 1e-7 of a mechanism of full rank mixed in: f((1−η)A₁ + ηA₂) ≤ f(A₁)/(1−η), so this costs at most that
    share.
    """

    def __init__(self, base: Base, starts: FloatArray | None = None) -> None:
        self._base = base
        self.V = np.ones((1, base.answers))
        self._full: FloatArray | None = None
        spread, units = directions(0, 2 * base.answers, base.answers), np.eye(base.answers)
        self.add(np.array([base.maximise(c) for c in (*units, *-units, *spread)]))
        if starts is not None:
            self.add(starts)
        self._theta = self._centre = self._surround()

    def _surround(self) -> FloatArray:
        """Add columns until mechanisms exist that use all of them, well inside; return one, shape (n,).

        Maximise t with Σ (θ_j + t) v_j = 1, θ ≥ 0. Where t is tiny the dual λ has λ·v ≥ 0 on all columns, but not on 1,
        which lies inside the base: a column in direction −λ is missing.
        """
        for _ in range(10 * self._base.answers):
            n, together = len(self.V), self.V[1:].sum(axis=0)
            columns = np.vstack([self.V, together]).T.copy()
            found = lp(np.append(np.zeros(n), -1.0), columns, np.ones(self._base.answers))
            t = float(found.x[-1])
            if t * n > _INSIDE or not self.add(self._base.maximise(found.dual)[None]):
                if t <= 0:
                    break
                return np.asarray(0.5 * (found.x[:n] + np.append(0.0, np.full(n - 1, t))) + 0.5 * (np.arange(n) == 0))
        raise not_solved()

    def add(self, columns: FloatArray) -> int:
        """Add the columns that are new; return how many."""
        new: list[FloatArray] = []
        for v in columns:
            known = np.vstack([self.V, *new]) if new else self.V
            if np.min(np.max(np.abs(known - v), axis=1)) > _SAME * max(1.0, float(np.abs(v).max())):
                new.append(v[None])
        if new:
            self.V = np.vstack([self.V, *new])
        return len(new)

    def solve(self, objective: Objective) -> Solved:
        """Return the optimum over the present columns; its value is the variance, less the information if asked for.

        Raises InvalidInput(optimiser_limit) if the method does not converge, as where no mechanism of the cone lets all
        targets be estimated.
        """
        V, W, gains = self.V, objective.W, objective.gains(self.V)
        if np.linalg.matrix_rank(W) == self._base.answers:
            x, nu = self._least(W, -gains)
            theta = self.keep(x)
            Z = inverse_times(moments(V, theta), W)
        else:
            dual = maximise_dual(V, W, -gains)
            if not dual.converged:
                raise not_solved()
            theta = balanced(V, (1 - _RESERVED) * dual.x + self.reserved(_RESERVED))
            Z, nu = dual.Z, dual.nu
        offset = objective.constant()
        variance = float(np.sum(W.T * inverse_times(moments(V, theta), W))) - offset
        information = float(theta @ gains)
        scale = max(variance, information) if objective.informative else variance
        return Solved(theta, variance - information, Prices(objective, Z, nu), offset, scale)

    def _least(self, W: FloatArray, cost: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (θ, ν) of the optimum, found near the last one, or else from afresh.

        Columns are scaled to a largest entry of 1 at every answer: else entries differ by as much as shares do.
        """
        scale = 1 / np.max(self.V, axis=0)
        T = self.V * scale
        for start in (self.start(), None):
            found = minimise_trace(T, T.T.copy(), scale, W * scale, cost=cost, start=start, tolerance=_MASTER_TOLERANCE)
            if found.converged:
                return found.x, found.dual * scale
        raise not_solved()

    def start(self) -> FloatArray:
        """Return positive weights for a method to start from, shape (n,)."""
        return 0.5 * self._padded(self._theta) + 0.5 * self._padded(self._centre) + _FRESH / len(self.V)

    def keep(self, theta: FloatArray) -> FloatArray:
        """Remember these weights for the next start; return them with Σ θ_j v_j = 1 to the last digits."""
        self._theta = theta
        return balanced(self.V, theta)

    def reserved(self, share: float) -> FloatArray:
        """Return a share of a mechanism of full rank, shape (n,)."""
        return share * self._full_rank() if share else np.zeros(len(self.V))

    def _full_rank(self) -> FloatArray:
        if self._full is None:
            a = self._base.answers
            found = minimise_trace(self.V, self.V.T.copy(), np.ones(a), np.eye(a), tolerance=1e-2)
            if not found.converged:
                raise not_solved()
            self._full = balanced(self.V, found.x)
        return self._padded(self._full)

    def _padded(self, theta: FloatArray) -> FloatArray:
        """Return weights of earlier columns as weights of the present ones."""
        return np.append(theta, np.zeros(len(self.V) - len(theta)))


Problem = Callable[[Master], Solved]
"""What to solve over the present columns, such as `lambda master: master.solve(objective)`."""


def generate(base: Base, solve: Problem, limits: Limits, master: Master, pricer: Pricer) -> Generated:
    """Minimise over all mechanisms whose columns lie in the cone what `solve` minimises over the present columns.

    Parameters
    ----------
    master, pricer : new ones over the base, or those of an earlier problem to go on from.

    Returns
    -------
    Generated; value − bound is at most gap·scale unless time ran out or the certificate is not `exact`.

    Raises
    ------
    InvalidInput(optimiser_limit) where the targets cannot be estimated, or the numbers are too extreme.
    """
    best: tuple[float, Certificate] | None = None
    solved = solve(master)
    if not pricer.exact:  # first of all, while there is time: its bound does not depend on the columns
        best = _better(best, relaxed(base, solved.prices, moments(master.V, solved.theta), limits), solved.offset)
    for _ in range(_ROUNDS):
        columns, most = pricer.price(solved.prices, master.V[solved.theta > NEGLIGIBLE])
        if pricer.exact:
            best = _better(best, proven(solved.prices, most, pricer), solved.offset)
        limits.progress("variance", solved.value, np.nan if best is None else best[0])
        if most <= 0.5 * limits.gap * solved.scale or limits.out_of_time() or not master.add(columns):
            break
        solved = solve(master)
    if best is None or not (pricer.exact or limits.out_of_time()):
        best = _better(best, relaxed(base, solved.prices, moments(master.V, solved.theta), limits), solved.offset)
    return _finished(master.V, solved, best)


def _better(
    best: tuple[float, Certificate] | None, certificate: Certificate, offset: float
) -> tuple[float, Certificate]:
    other = certificate.bound - offset
    return (other, certificate) if best is None or other > best[0] else best


def _finished(V: FloatArray, solved: Solved, best: tuple[float, Certificate]) -> Generated:
    """Leave out reports that are hardly ever sent, unless the rest would not do."""
    kept = solved.theta > NEGLIGIBLE
    if np.linalg.matrix_rank(V[kept]) < np.linalg.matrix_rank(V):
        kept = solved.theta > 0
    return Generated(V[kept], balanced(V[kept], solved.theta[kept]), solved.value, *best)


def moments(V: FloatArray, theta: FloatArray) -> FloatArray:
    """Return A(θ) = Σ θ_j v_j v_jᵀ, shape (a, a)."""
    return np.asarray((V.T * theta) @ V, dtype=np.float64)


def inverse_times(A: FloatArray, W: FloatArray) -> FloatArray:
    """Return Z = A⁻¹Wᵀ, shape (a, t)."""
    return np.asarray(np.linalg.solve(A, W.T), dtype=np.float64)


def not_solved() -> InvalidInput:
    """Return the error for a programme whose method did not converge."""
    words = "the targets cannot be estimated under this notion, or the numbers are too extreme: use the mechanism grr"
    return InvalidInput(problems.Problem.OPTIMISER_LIMIT, words, "mechanism")
