# SPDX-License-Identifier: Apache-2.0
"""Column generation: the optimum of a sum over reports without listing rays (spec 1.6).

(1) Start with good columns. (2) The master programme finds the best mechanism made of these
columns, and prices λ of the answers. (3) Pricing finds columns with a positive worth, which is
their gain minus λ·v: first by local search, then by a method that bounds the worth of every column
and finally proves that no such column is left. If τ is that bound, no mechanism has a value above
Σλ + τ (docs/maths/generation.md, claim 2).
"""

from dataclasses import dataclass

import numpy as np

from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.information.cone_base import ConeBase
from frankly_design.optimum.information.gains import Guessing, Information
from frankly_design.optimum.information.pricing import ColumnPricer
from frankly_design.tables.limits import Limits
from frankly_design.tables.linear import MasterProgramme

# Columns this close are treated as equal: two of them would make the master ill-conditioned.
_SAME_COLUMN = 1e-9
# Local search returns columns worth more than this share of the proof's tolerance.
_SEARCH_SHARE = 0.1
# The gap is relative to the value, but for values near zero it must exceed float noise.
_LEAST_VALUE = 1e-3
_DIRECTIONS = 24
_FIRST_PENALTY, _PENALTY_FACTOR = 5.0, 4.0
"""The initial bound on an answer's price is ±5 nats times its mass, which optimal prices rarely
exceed. The bound grows by the factor for an answer that misses mass."""
# Penalties are raised to this multiple of the largest gain. With smaller penalties than the gain
# the master programme would be unbounded (docs/maths/generation.md, claim 7).
_MARGIN = 1.25
_MISSING_TOLERANCE = 1e-9
_PROOF_INTERVAL = 10  # rounds between proofs while new columns are found
_CLIMBED_PROPOSALS = 4  # proposals from which local search starts
# Weight of the best proof's prices in smoothed prices; and the largest number of answers for which
# neither smoothing nor extra starts of the local search help.
_SMOOTHING, _SMALL_ANSWERS = 0.8, 32
# Largest number of boxes of a proof: in a round that has found columns, and in other rounds.
_FEW_BOXES, _ALL_BOXES = 200, 10**9


@dataclass(frozen=True, slots=True)
class GeneratedMechanism:
    """Best mechanism made of the generated columns.

    columns : all generated columns, scaled to p·v = 1, shape (n, a).
    theta : shape (n,), the probability of each report under the prior.
    value : the objective.
    bound : upper bound over all mechanisms of the cone.
    multipliers : λ, shape (a,), of the best proof. Once pricing has proved a bound, Σλ = bound and
        λ·v ≥ gain(v) for every column.
    """

    columns: FloatArray
    theta: FloatArray
    value: float
    bound: float
    multipliers: FloatArray


class _ColumnPool:
    """Set of the columns t found so far, and the master programme over them."""

    def __init__(self, base: ConeBase, gain: Information | Guessing) -> None:
        self._base, self._gain = base, gain
        self.T = np.empty((0, base.answers))
        # Penalties are proportional to mass; an answer without mass gets the penalty of the rarest.
        self._weights = np.where(base.prior > 0, base.prior, np.min(base.prior[base.prior > 0]))
        self._penalty = _FIRST_PENALTY
        self._master = MasterProgramme(np.ones(base.answers), self._penalty * self._weights)
        self.add(base.scale[None])  # feasible: every cone contains the constant column

    def add(self, T: FloatArray) -> int:
        """Add the columns that are new; return their number."""
        candidates, known_count = np.vstack([self.T, T]), len(self.T)
        # Equal columns have equal projections onto a line, so few pairs need a full comparison.
        projection = candidates @ np.linspace(0.5, 1.0, self._base.answers)

        def is_new(i: int) -> bool:
            reach = self._base.answers * _SAME_COLUMN
            close = candidates[:i][np.abs(projection[:i] - projection[i]) <= reach]
            return not np.any(np.max(np.abs(close - candidates[i]), axis=1) <= _SAME_COLUMN)

        added = candidates[[i for i in range(known_count, len(candidates)) if is_new(i)]]
        if len(added):
            self._cover_gain(float(np.max(self._gain.values(added))))
            self._master.add(added / self._base.scale, -self._gain.values(added))
            self.T = np.vstack([self.T, added])
        return len(added)

    def _cover_gain(self, gain: float) -> None:
        """Raise penalties above `gain`; otherwise the master programme would be unbounded."""
        if _MARGIN * gain > self._penalty:
            self._penalty = _MARGIN * gain
            self._master.penalise(np.maximum(self._master.penalty, self._penalty * self._weights))

    def solve(self) -> "_MasterSolution":
        """Return the best mechanism that uses these columns, and the prices of the answers."""
        solution = self._master.solve()
        value = float(solution.x @ self._gain.values(self.T))
        return _MasterSolution(solution.x, -solution.dual, value, solution.missing)

    def raise_penalties(self, missing: FloatArray | None = None) -> None:
        """Raise the penalties of answers that miss mass; with None, forbid missing mass."""
        short = None if missing is None else np.abs(missing) > _MISSING_TOLERANCE
        factor = np.inf if short is None else np.where(short, _PENALTY_FACTOR, 1.0)
        self._master.penalise(self._master.penalty * factor)


@dataclass(frozen=True, slots=True)
class _MasterSolution:
    theta: FloatArray
    multipliers: FloatArray
    value: float
    missing: FloatArray

    @property
    def complete(self) -> bool:
        return bool(np.max(np.abs(self.missing)) <= _MISSING_TOLERANCE)


def generate(
    base: ConeBase,
    gain: Information | Guessing,
    limits: Limits,
    starts: FloatArray | None = None,
    seed: int = 0,
) -> GeneratedMechanism:
    """Maximise Σ_y θ_y gain(v_y) over all mechanisms whose columns lie in the cone.

    Parameters
    ----------
    starts : columns v in the cone, shape (k, a), such as those of an explicit mechanism.

    Returns
    -------
    GeneratedMechanism; `bound` − `value` is at most `limits.gap` times the value (taken as 0.001 if
    it is less, and as 1 if it is more) unless time or memory ran out. Raises
    InvalidInput(optimiser_limit) if the numbers are too extreme.
    """
    columns, pricer = _ColumnPool(base, gain), ColumnPricer(base, gain, limits, seed)
    _add_starts(columns, pricer, starts, limits)
    solved = columns.solve()
    proof, rounds = _first_proof(base, gain, solved), 0
    while not limits.out_of_time():
        rounds += 1
        # While mass is missing, the mixture is not a mechanism and has no value.
        value = solved.value if solved.complete else float("nan")
        # Half of the gap is reserved for rounding, because `certified` refers to the rounded
        # mechanism.
        tolerance = 0.5 * limits.gap * min(max(solved.value, _LEAST_VALUE), 1.0)
        limits.progress("search", value, proof.bound)
        added = (
            _propose(columns, pricer, solved, _SEARCH_SHARE * tolerance, limits)
            if pricer.guided
            else 0
        )
        if not added and not pricer.direct:
            added = _search(columns, pricer, solved, _SEARCH_SHARE * tolerance, limits)
        stuck = not added
        if (
            pricer.direct
            or (not added and solved.complete)
            or (added and rounds % _PROOF_INTERVAL == 0)
        ):
            smooth = pricer.direct and base.answers > _SMALL_ANSWERS
            prices = proof.near(solved.multipliers, base.prior) if smooth else solved.multipliers
            priced = pricer.prove(
                prices / base.scale, tolerance, limits, _FEW_BOXES if added else _ALL_BOXES
            )
            better = proof.improve(prices, max(0.0, priced.bound), base.prior)
            added += columns.add(priced.columns)
            # If smoothed prices lead only to known columns, the master's prices are tried next.
            stuck = not added and not (
                smooth and len(priced.columns) and (better or proof.smoothing)
            )
            proof.smoothing = bool(added) or not len(priced.columns)
            limits.progress("proof", value, proof.bound)
        if stuck and solved.complete:
            break
        if stuck:
            columns.raise_penalties(solved.missing)
        solved = columns.solve()
    columns.raise_penalties()
    solved = columns.solve()
    return GeneratedMechanism(
        columns.T / base.scale,
        solved.theta,
        solved.value,
        max(proof.bound, solved.value),
        proof.multipliers,
    )


def _first_proof(
    base: ConeBase, gain: Information | Guessing, solved: "_MasterSolution"
) -> "_Proof":
    """Return the bound on the information from the largest entry h_x of each answer.

    No column is worth more than Σ p_x·ln(h_x)·v_x (docs/maths/generation.md, claim 21).
    """
    multipliers = np.maximum(solved.multipliers, 0)
    if isinstance(gain, Information):
        by_entries = base.prior * np.log(np.maximum(base.high / base.scale, 1.0))
        if np.sum(by_entries) < gain.ceiling:
            return _Proof(float(np.sum(by_entries)), by_entries)
    return _Proof(gain.ceiling, multipliers)


@dataclass
class _Proof:
    """Best bound so far and the prices λ that prove it, Σλ = bound.

    centred : True once a proof has improved on the initial bound.
    smoothing : True if the next prices are to be smoothed.
    """

    bound: float
    multipliers: FloatArray
    centred: bool = False
    smoothing: bool = True

    def near(self, multipliers: FloatArray, prior: FloatArray) -> FloatArray:
        """Return smoothed prices between the master's and the best proof's (Wentges, 1997).

        The master's prices oscillate while there are few columns. If a column has a positive worth
        at smoothed prices, it has one at the master's prices too, or the bound improves
        (docs/maths/generation.md, claim 16).
        """
        if not self.centred or not self.smoothing:
            return multipliers
        lowered = self.multipliers - (self.bound - np.sum(multipliers)) * prior
        return _SMOOTHING * lowered + (1 - _SMOOTHING) * multipliers

    def improve(self, prices: FloatArray, worth: float, prior: FloatArray) -> bool:
        """Record prices at which no column is worth more than `worth`, if they improve the bound.

        Returns True if the bound improves.
        """
        total = float(np.sum(prices)) + worth
        if total >= self.bound:
            return False
        self.bound, self.multipliers, self.centred = total, prices + worth * prior, True
        return True


def _propose(
    columns: _ColumnPool,
    pricer: ColumnPricer,
    solved: _MasterSolution,
    least: float,
    limits: Limits,
) -> int:
    """Add columns suggested by the structure of the cone, and local optima near the best of them.

    Returns the number of new columns.
    """
    prices = solved.multipliers / pricer.base.scale
    proposed = pricer.proposals(prices, least)
    climbed = pricer.search(prices, proposed[:_CLIMBED_PROPOSALS], least, limits)
    return columns.add(np.vstack([climbed, proposed]))


def _search(
    columns: _ColumnPool,
    pricer: ColumnPricer,
    solved: _MasterSolution,
    least: float,
    limits: Limits,
) -> int:
    """Add columns found by local search from those in use; return the number of new ones.

    With many answers the search also starts between columns and in new directions. With few
    answers, branch and bound finds missing columns sooner.
    """
    base, prices = pricer.base, solved.multipliers / pricer.base.scale
    used = columns.T[solved.theta > 1e-12]
    added = columns.add(pricer.along_edges(prices, used, least, limits))
    if added:
        return added
    if base.answers <= _SMALL_ANSWERS:
        return columns.add(pricer.search(prices, used, least, limits))
    count = min(base.answers, _DIRECTIONS)
    starts = np.vstack(
        [used, pricer.mixtures(columns.T, base.answers), pricer.directions(prices, count)]
    )
    return columns.add(pricer.search(prices, starts, least, limits))


def _add_starts(
    columns: _ColumnPool, pricer: ColumnPricer, starts: FloatArray | None, limits: Limits
) -> None:
    """Add the starts, the corner of each answer and, if local search is in use, its results."""
    base = pricer.base
    no_prices = np.zeros(base.answers)
    if starts is not None:
        columns.add(starts * base.scale)
    corners = base.corners
    if pricer.direct or pricer.guided:
        columns.add(corners)
        return
    columns.add(pricer.search(no_prices, corners, -np.inf, limits))
    columns.add(corners)
    count = min(2 * base.answers, 2 * _DIRECTIONS)
    columns.add(pricer.search(no_prices, pricer.directions(no_prices, count), -np.inf, limits))
