# SPDX-License-Identifier: Apache-2.0
"""Base of a cone, {v in the cone : p·v = 1}, as a polytope for linear programmes (spec 1.6).

A column v of a mechanism is scaled to p·v = 1: v_x is the ratio of P(report | x) to P(report).
The solver uses t = σ∘v. With σ = p, t_x is the posterior P(x | y), which is in [0, 1].

Auxiliary variables replace the rows for pairs of answers (docs/maths/generation.md, claim 8).
ε-LDP of the answer is m ≤ v_x ≤ E·m with E = e^ε and one auxiliary variable m. RLDP is U_s ≤ E·W_s'
with U_s = Σ_u L_su v_su + (1 − Σ_u L_su)·M_s, W_s the same with m_s instead of M_s, and
m_s ≤ v_su ≤ M_s.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from frankly_protocol.audit import Claim

from frankly_design.notions.cones import Cone, rows_of
from frankly_design.notions.prior import Prior
from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import sparse
from frankly_design.tables.limits import Limits
from frankly_design.tables.linear import Polytope, Support

# With σ = p alone, entries of rare answers would be smaller than the solver's absolute tolerances.
_MIN_SCALE = 1e-6
# Relative widening of the tightened bounds; it covers float errors in the weak-duality sums.
_LOOSE = 1e-9
# Largest numbers of answers for which `variance` gets explicit rows, and for which lower bounds
# are tightened.
_MAX_ROW_ANSWERS, _MAX_LOWER_ANSWERS = 45, 64
_INFINITY = float("inf")


@dataclass
class _RowBuilder:
    """Builder of rows low ≤ r·(v, z) ≤ high; z are auxiliary variables, all ≥ 0."""

    answers: int
    entries: list[dict[int, float]] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    auxiliary: int = 0

    def add(self, entries: dict[int, float], low: float = 0.0, high: float = _INFINITY) -> None:
        self.entries.append(entries)
        self.low.append(low)
        self.high.append(high)

    def variable(self) -> int:
        self.auxiliary += 1
        return self.answers + self.auxiliary - 1


class ConeBase:
    """Polytope {v ≥ 0 : p·v = 1, v in the cone}. It is bounded and contains the constant column.

    answers : a.
    prior : p, shape (a,).
    scale : σ, shape (a,), positive; t = σ∘v.
    polytope : over t followed by the auxiliary variables, each with bounds `low` and `high`.
    corners : for each answer x, a column t with the largest t_x.

    Every method raises TimeExceeded once the search is overdue.
    """

    def __init__(self, cone: Cone, prior: Prior, limits: Limits | None = None) -> None:
        self.cone, self._limits = cone, limits or Limits()
        self.rays = None  # not listed here; `variance.column_base.Listed` has a list
        self.answers = a = cone.answers
        self.prior = prior.probabilities()
        self.scale = np.where(self.prior > 0, np.maximum(self.prior, _MIN_SCALE), 1.0 / a)
        rows = _RowBuilder(a)
        # p·v = 1; all other rows are homogeneous.
        rows.add({x: float(p) for x, p in enumerate(self.prior) if p}, 1.0, 1.0)
        for claim in cone.claims:
            _add_claim(rows, claim, prior)
        self.polytope = self._polytope(rows)
        self.corners = self._tighten()

    @property
    def size(self) -> int:
        """Number of variables of the polytope: answers and auxiliary variables."""
        return len(self.polytope.low)

    def support(self, gain: FloatArray, low: FloatArray, high: FloatArray) -> Support | None:
        """Maximise gain·t over the base within [low, high]; return None if that set is empty.

        gain, low, high : shape (answers,).

        The result contains a proven bound; its `x` and `reduced` have shape (answers,).
        """
        self._limits.require_search_time()
        auxiliary = self.size - self.answers
        if not auxiliary:
            return self.polytope.farthest(gain, low, high)
        c = np.concatenate([gain, np.zeros(auxiliary)])
        lows = np.concatenate([low, self.polytope.low[self.answers :]])
        highs = np.concatenate([high, self.polytope.high[self.answers :]])
        support = self.polytope.farthest(c, lows, highs)
        return support and Support(
            support.x[: self.answers], support.bound, support.reduced[: self.answers]
        )

    def narrowed(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return tighter bounds, shape (answers,), for the base's points within [low, high].

        Returns None if there are no such points.
        """
        others = self.polytope.low[self.answers :], self.polytope.high[self.answers :]
        both = self.polytope.narrowed(np.append(low, others[0]), np.append(high, others[1]))
        return both and (both[0][: self.answers], both[1][: self.answers])

    def vertex(self, gain: FloatArray) -> FloatArray:
        """Return a vertex t of the base, shape (answers,), that maximises gain·t."""
        self._limits.require_search_time()
        auxiliary = self.size - self.answers
        point = self.polytope.vertex(
            np.concatenate([gain, np.zeros(auxiliary)]) if auxiliary else gain
        )
        # If the solver fails on extreme numbers, use the constant column, a point of every base.
        return self.scale if point is None else point[: self.answers]

    def highest(self, c: FloatArray) -> float:
        """Return an upper bound of c·v over the base by duality; c of shape (answers,)."""
        support = self.support(c / self.scale, self.low, self.high)
        return float("inf") if support is None else support.bound

    def maximise(self, c: FloatArray) -> FloatArray:
        """Return a vertex v of the base, shape (answers,), that maximises c·v."""
        return self.vertex(c / self.scale) / self.scale

    def with_coordinates(self, L: FloatArray) -> tuple[Polytope, FloatArray]:
        """Return the polytope with extra variables L·v, L of shape (k, answers), and its scale."""
        rows = np.hstack([L / self.scale, np.zeros((len(L), self.size - self.answers))])
        low = np.array([-self.highest(-row) for row in L])
        high = np.array([self.highest(row) for row in L])
        return self.polytope.with_variables(rows, low, high), self.scale

    @cached_property
    def rows(self) -> FloatArray | None:
        """Rows of the cone, shape (m, answers), largest entry ±1; None for more than 45 answers."""
        # The number of rows grows with answers², see `Cone.rows`.
        if self.answers > _MAX_ROW_ANSWERS:
            return None
        return _scaled(self.cone.rows()).reshape(-1, self.answers)

    @cached_property
    def lifted(self) -> FloatArray | None:
        """Rows over v and k auxiliary variables, shape (m, answers + k); None beyond 45 answers."""
        return None if self.answers > _MAX_ROW_ANSWERS else self.lifted_rows()

    def lifted_rows(self) -> FloatArray:
        """Return the rows of `lifted` for any number of answers."""
        return _scaled(self.cone.lifted_rows())

    @property
    def ratio(self) -> float | None:
        """Ratio E = e^ε if the only claim is ε-LDP of the answer, else None."""
        only = self.cone.claims[0] if len(self.cone.claims) == 1 else None
        return _ratio(only.level) if only is not None and only.notion == "ldp" else None

    @property
    def low(self) -> FloatArray:
        """Lower bound of each t_x over the base, shape (answers,)."""
        return self.polytope.low[: self.answers]

    @property
    def high(self) -> FloatArray:
        """Upper bound of each t_x over the base, shape (answers,)."""
        return self.polytope.high[: self.answers]

    def _polytope(self, rows: _RowBuilder) -> Polytope:
        a, n = self.answers, self.answers + rows.auxiliary
        factor = np.concatenate([1 / self.scale, np.ones(rows.auxiliary)])
        where = [(i, j) for i, row in enumerate(rows.entries) for j in row]
        values = np.array([v for row in rows.entries for v in row.values()])
        i, j = np.array(where).T
        matrix = sparse.csc_array((values * factor[j], (i, j)), shape=(len(rows.entries), n))
        # p·v = 1 and v ≥ 0 give v_x ≤ 1/p_x, in t after scaling.
        loose = np.where(
            self.prior > 0, self.scale / np.where(self.prior > 0, self.prior, 1.0), _INFINITY
        )
        high = np.concatenate([loose, np.full(n - a, _INFINITY)])
        return Polytope(matrix, np.array(rows.low), np.array(rows.high), np.zeros(n), high)

    def _tighten(self) -> FloatArray:
        """Tighten the bounds of every variable to make all dual bounds finite; return corners.

        The bounds come from weak duality instead of the solver's vertices, whose tolerances would
        cut off rays if counts span many orders of magnitude. An auxiliary variable never needs to
        exceed the largest v_x, because it represents an entry or an average of entries. The corners
        are vertices with the largest t_x, one row for each x, shape (answers, answers); a row is
        left out if the numbers are too extreme for the solver.
        """
        a, polytope = self.answers, self.polytope
        units = np.eye(a, self.size)
        corners = []
        for unit in units:
            self._limits.require_search_time()
            corners.append(polytope.vertex(unit))
        high = polytope.high.copy()
        # If answer x has no mass, p·v = 1 does not bound v_x, but duality needs a finite (loose)
        # bound.
        for x, corner in enumerate(corners):
            if corner is not None and np.isinf(high[x]):
                high[x] = 2 * float(corner[x]) + self.scale[x]
        high[a:] = np.max(high[:a] / self.scale) * (1 + _LOOSE)
        polytope.high = high
        high, low = high.copy(), polytope.low.copy()
        for x, unit in enumerate(units):
            self._limits.require_search_time()
            upper = polytope.farthest(unit)
            if upper is not None:
                high[x] = np.fmin(
                    high[x], upper.bound * (1 + _LOOSE) + _LOOSE**2
                )  # fmin ignores nan
        # Tight lower bounds cost one more linear programme per answer, and 0 is always valid, so
        # they are computed only for few answers.
        for x, unit in enumerate(units if a <= _MAX_LOWER_ANSWERS else []):
            lower = polytope.farthest(-unit)
            if lower is not None:
                low[x] = np.fmax(low[x], -lower.bound * (1 - _LOOSE) - _LOOSE**2)
        high[a:] = np.max(high[:a] / self.scale) * (1 + _LOOSE)
        polytope.low, polytope.high = low, high
        return np.array([corner[:a] for corner in corners if corner is not None]).reshape(-1, a)


def _add_claim(rows: _RowBuilder, claim: Claim, prior: Prior) -> None:
    """Add the rows of one claim, as coefficients of v and the auxiliary variables."""
    if claim.notion == "ldp":
        _add_answer_ldp(rows, claim)
    elif claim.notion == "rldp":
        _add_robust(rows, claim)
    elif claim.notion in ("lip", "alip") and _same_answers(claim, prior):
        _add_two_sided(rows, claim)
    else:
        for row in rows_of(claim, rows.answers):
            # Entries of integer rows are products of large counts; the solver's absolute tolerances
            # need entries of about 1.
            size = sum(map(abs, row)) / 2
            rows.add({x: r / size for x, r in enumerate(row) if r})


def _add_answer_ldp(rows: _RowBuilder, claim: Claim) -> None:
    """Add m ≤ v_x ≤ E·m for all x, with the new variable m."""
    E = _ratio(claim.level)
    least = rows.variable()
    for x in range(rows.answers):
        rows.add({x: 1.0, least: -1.0})
        rows.add({x: -1.0, least: E})


def _add_two_sided(rows: _RowBuilder, claim: Claim) -> None:
    """Add 1/E_low ≤ P(y|s) ≤ E for every secret: P(y) = p·v = 1, so one row covers both sides."""
    low, high = (
        (claim.level, claim.level) if claim.notion == "lip" else (claim.low_level, claim.level)
    )
    for row in claim.joint or ():
        mass = sum(row)
        average = {x: n / mass for x, n in enumerate(row) if n}
        rows.add(
            average,
            0.0 if low is None else 1 / _ratio(low),
            _INFINITY if high is None else _ratio(high),
        )


def _same_answers(claim: Claim, prior: Prior) -> bool:
    """Return True if the claim's prior has exactly the design prior's shares of answers."""
    shares = [sum(column) for column in zip(*(claim.joint or ()), strict=True)]
    total, prior_total = sum(shares), prior.total
    return all(n * prior_total == m * total for n, m in zip(shares, prior.shares, strict=True))


def _add_robust(rows: _RowBuilder, claim: Claim) -> None:
    """Add U_s ≤ E·W_t for s ≠ t, with `diagonal` also for s = t (U and W: see the module)."""
    bounds, E = claim.lower_bounds or (), _ratio(claim.level)
    size = len(bounds[0])
    upper, lower = [], []
    for s, row in enumerate(bounds):
        block = range(s * size, (s + 1) * size)
        upper.append(_add_extreme(rows, block, row, side=1.0))
        lower.append(_add_extreme(rows, block, row, side=-1.0))
    if claim.diagonal:  # one common threshold: U_s ≤ t ≤ E·W_s for all s
        threshold = rows.variable()
        for U, W in zip(upper, lower, strict=True):
            rows.add({threshold: 1.0, U: -1.0})
            rows.add({W: E, threshold: -1.0})
        return
    for s, U in enumerate(upper):
        for t, W in enumerate(lower):
            if s != t:
                rows.add({W: E, U: -1.0})


def _add_extreme(
    rows: _RowBuilder, block: range, bounds: tuple[tuple[int, int], ...], side: float
) -> int:
    """Add a variable bounding the sup (side 1) or inf (side −1) of R·v over R ≥ L, ΣR = 1."""
    exact = [Fraction(n, d) for n, d in bounds]
    end, result = rows.variable(), rows.variable()
    for x in block:
        # `end` is M_s (side 1), at least each v_x of the block, or m_s (side −1), at most each.
        rows.add({end: side, x: -side})
    entries = {x: -side * float(L) for x, L in zip(block, exact, strict=True) if L}
    rows.add({result: side, end: -side * float(1 - sum(exact, Fraction(0))), **entries})
    return result


def _scaled(rows: Sequence[Sequence[int]]) -> FloatArray:
    """Return the rows, each scaled to a largest entry of ±1."""
    return np.array([[r / size for r in row] for row in rows for size in (max(map(abs, row)),)])


def _ratio(level: tuple[int, int] | None) -> float:
    return _INFINITY if level is None else level[0] / level[1]
