# SPDX-License-Identifier: Apache-2.0
"""Column generation: the optimum of a sum over reports without listing the rays of the cone (DESIGN §2).

(1) start with good columns (2) the master programme finds the best mechanism made of them, and prices for the answers
(3) pricing finds columns worth more than they cost, first by local search (4) then by branch and bound, which in the
end proves that none is left: prices λ and a bound τ of what any column is worth prove the value ≤ Σλ + τ.
"""

from dataclasses import dataclass

import numpy as np

from frankly_server.design.base import Base
from frankly_server.design.gains import Guessing, Information
from frankly_server.design.limits import Limits
from frankly_server.design.linear import FloatArray, Master
from frankly_server.design.pricing import Pricer

_SAME = 1e-9
_FINER = 0.1
_LEAST_VALUE = 1e-3
_DIRECTIONS = 24
_FIRST_PENALTY, _RAISE = 5.0, 4.0
"""Prices of an answer stay within ± 5 nats times its mass at first; optimal prices nearly always are."""
_MARGIN = 1.25
_MISSING = 1e-9
_LOOK = 10
_CLIMBED = 4
_SMOOTHING, _FEW_ANSWERS = 0.8, 32
_SOME_BOXES, _ALL_BOXES = 200, 10**9


@dataclass(frozen=True, slots=True)
class Generated:
    """The best mechanism made of the columns found.

    columns : scaled to p·v = 1, shape (n, a); all that were generated. theta : shape (n,), how often each is expected.
    value : the objective. bound : what no mechanism of the cone exceeds. multipliers : λ, shape (a,), Σλ + worth of the
    best column = bound.
    """

    columns: FloatArray
    theta: FloatArray
    value: float
    bound: float
    multipliers: FloatArray


class _Columns:
    """The columns t found so far, each once, and the master programme over them."""

    def __init__(self, base: Base, gain: Information | Guessing) -> None:
        self._base, self._gain = base, gain
        self.T = np.empty((0, base.answers))
        # a penalty for each answer by its mass; an answer without any counts as one of the rarest
        self._weights = np.where(base.prior > 0, base.prior, np.min(base.prior[base.prior > 0]))
        self._dearest = _FIRST_PENALTY
        self._master = Master(np.ones(base.answers), self._dearest * self._weights)
        self.add(base.scale[None])  # the constant mechanism keeps every promise

    def add(self, T: FloatArray) -> int:
        """Add the columns that are new; return how many."""
        everything, known = np.vstack([self.T, T]), len(self.T)
        # columns that are the same have the same place on a line: few need be compared entry by entry
        place = everything @ np.linspace(0.5, 1.0, self._base.answers)

        def is_new(i: int) -> bool:
            close = everything[:i][np.abs(place[:i] - place[i]) <= self._base.answers * _SAME]
            return not np.any(np.max(np.abs(close - everything[i]), axis=1) <= _SAME)

        added = everything[[i for i in range(known, len(everything)) if is_new(i)]]
        if len(added):
            self._stay_bounded(float(np.max(self._gain.values(added))))
            self._master.add(added / self._base.scale, -self._gain.values(added))
            self.T = np.vstack([self.T, added])
        return len(added)

    def _stay_bounded(self, gain: float) -> None:
        """Keep penalties above every gain: else a column would pay for sending it without end."""
        if _MARGIN * gain > self._dearest:
            self._dearest = _MARGIN * gain
            self._master.penalise(np.maximum(self._master.penalty, self._dearest * self._weights))

    def solve(self) -> "_Solved":
        """Return the best mechanism made of the columns, and prices."""
        found = self._master.solve()
        return _Solved(found.x, -found.dual, float(found.x @ self._gain.values(self.T)), found.missing)

    def insist(self, missing: FloatArray | None = None) -> None:
        """Raise the penalty where something is missing; with no argument let nothing be missing any more."""
        more = np.inf if missing is None else np.where(np.abs(missing) > _MISSING, _RAISE, 1.0)
        self._master.penalise(self._master.penalty * more)


@dataclass(frozen=True, slots=True)
class _Solved:
    theta: FloatArray
    multipliers: FloatArray
    value: float
    missing: FloatArray

    @property
    def complete(self) -> bool:
        return bool(np.max(np.abs(self.missing)) <= _MISSING)


def generate(
    base: Base, gain: Information | Guessing, limits: Limits, starts: FloatArray | None = None, seed: int = 0
) -> Generated:
    """Maximise Σ_y θ_y gain(v_y) over all mechanisms whose columns lie in the cone.

    Parameters
    ----------
    starts : columns v known to lie in the cone, shape (k, a), such as those of an explicit mechanism.

    Returns
    -------
    Generated; `bound` − `value` is at most `limits.gap` × value unless time or memory ran out. Raises
    InvalidInput(optimiser_limit) where the numbers are too extreme.
    """
    columns, pricer = _Columns(base, gain), Pricer(base, gain, seed)
    _begin(columns, pricer, starts, limits)
    solved = columns.solve()
    proof, rounds = _Proof(gain.ceiling, np.maximum(solved.multipliers, 0)), 0
    while not limits.out_of_time():
        rounds += 1
        value = solved.value if solved.complete else float("nan")
        tolerance = 0.5 * limits.gap * min(max(solved.value, _LEAST_VALUE), 1.0)
        limits.progress("search", value, proof.bound)
        added = _propose(columns, pricer, solved, _FINER * tolerance, limits) if pricer.guided else 0
        if not added and not pricer.direct:
            added = _search(columns, pricer, solved, _FINER * tolerance, limits)
        stuck = not added
        if pricer.direct or (not added and solved.complete) or (added and rounds % _LOOK == 0):
            smooth = pricer.direct and base.answers > _FEW_ANSWERS
            asked = proof.near(solved.multipliers, base.prior) if smooth else solved.multipliers
            priced = pricer.prove(asked / base.scale, tolerance, limits, _SOME_BOXES if added else _ALL_BOXES)
            better = proof.improve(asked, max(0.0, priced.bound), base.prior)
            added += columns.add(priced.columns)
            # prices between two may find what is known to pay at neither: then those of the master itself are asked
            stuck = not added and not (smooth and len(priced.columns) and (better or proof.eased))
            proof.eased = bool(added) or not len(priced.columns)
            limits.progress("proof", value, proof.bound)
        if stuck and solved.complete:
            break
        if stuck:
            columns.insist(solved.missing)
        solved = columns.solve()
    columns.insist()
    solved = columns.solve()
    return Generated(
        columns.T / base.scale, solved.theta, solved.value, max(proof.bound, solved.value), proof.multipliers
    )


@dataclass
class _Proof:
    """The best bound so far and the prices λ that prove it, Σλ = bound. eased : whether to ask near them."""

    bound: float
    multipliers: FloatArray
    centred: bool = False
    eased: bool = True

    def near(self, multipliers: FloatArray, prior: FloatArray) -> FloatArray:
        """Return prices of the same total, most of the way to the best: the master's jump about while columns are few.

        (Smoothing of Wentges, 1997: columns found there pay at the master's prices too, or the bound gets better.)
        """
        if not self.centred or not self.eased:
            return multipliers
        lowered = self.multipliers - (self.bound - np.sum(multipliers)) * prior
        return _SMOOTHING * lowered + (1 - _SMOOTHING) * multipliers

    def improve(self, asked: FloatArray, worth: float, prior: FloatArray) -> bool:
        """Take prices at which no column is worth more than that; return whether the bound is better for it."""
        total = float(np.sum(asked)) + worth
        if total >= self.bound:
            return False
        self.bound, self.multipliers, self.centred = total, asked + worth * prior, True
        return True


def _propose(columns: _Columns, pricer: Pricer, solved: _Solved, least: float, limits: Limits) -> int:
    """Take the columns that the cone's structure shows, and climb from the dearest; return how many came."""
    prices = solved.multipliers / pricer.base.scale
    proposed = pricer.proposals(prices, least)
    return columns.add(np.vstack([pricer.search(prices, proposed[:_CLIMBED], least, limits), proposed]))


def _search(columns: _Columns, pricer: Pricer, solved: _Solved, least: float, limits: Limits) -> int:
    """Look for columns from those in use; return how many came.

    Where answers are many, from points between columns and in new directions too: where they are few, branch and bound
    finds what is missing sooner.
    """
    base, prices = pricer.base, solved.multipliers / pricer.base.scale
    used = columns.T[solved.theta > 1e-12]
    if base.answers <= _FEW_ANSWERS:
        return columns.add(pricer.search(prices, used, least, limits))
    few = min(base.answers, _DIRECTIONS)
    tried = np.vstack([used, pricer.mixtures(columns.T, base.answers), pricer.directions(prices, few)])
    return columns.add(pricer.search(prices, tried, least, limits))


def _begin(columns: _Columns, pricer: Pricer, starts: FloatArray | None, limits: Limits) -> None:
    """Add known columns, the columns that favour each answer most, and some in random directions."""
    base = pricer.base
    free = np.zeros(base.answers)
    if starts is not None:
        columns.add(starts * base.scale)
    corners = base.corners
    if pricer.direct or pricer.guided:
        columns.add(corners)
        return
    columns.add(pricer.search(free, corners, -np.inf, limits))
    columns.add(corners)
    few = min(2 * base.answers, 2 * _DIRECTIONS)
    columns.add(pricer.search(free, pricer.directions(free, few), -np.inf, limits))
