# SPDX-License-Identifier: Apache-2.0
"""The base of a cone, {v in the cone : p·v = 1}, as a polytope that answers questions by linear programmes (DESIGN §2).

A column v of a mechanism scaled to p·v = 1 says how much likelier each answer makes a report than the average answer
does; t = σ∘v are the solver's coordinates. With σ = p they are the posterior P(x | y), so that all lie in [0, 1].

Small descriptions for large alphabets: ε-LDP of the answer is m ≤ v_x ≤ E·m with one more variable m; RLDP is
U_s ≤ E·W_s' with U_s = Σ_u L_su v_su + (1 − Σ_u L_su)·M_s and m_s ≤ v_su ≤ M_s, instead of a row per pair of answers.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from frankly_protocol.audit import Claim
from scipy import sparse

from frankly_server.design.cones import Cone, rows_of
from frankly_server.design.linear import FloatArray, Polytope, Support
from frankly_server.design.prior import Prior

_LEAST_SCALE = 1e-6
_LOOSE = 1e-9
_MOST_ROWED, _MOST_LOWERED = 45, 64
_INFINITY = float("inf")


@dataclass
class _Rows:
    """Rows low ≤ r·(v, z) ≤ high under construction; z are auxiliary variables, all ≥ 0."""

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


class Base:
    """{v ≥ 0 : p·v = 1, v in the cone}, non-empty (it holds the constant column) and bounded.

    answers : a. prior : p, shape (a,). scale : σ, shape (a,), positive; t = σ∘v. polytope : in t and the auxiliary
    variables behind it; its bounds `high` are the largest values that occur. corners : for each answer a column t that
    favours it most.
    """

    def __init__(self, cone: Cone, prior: Prior) -> None:
        self.cone = cone
        self.rays = None  # not listed: that is what `variance.base.Listed` is for
        self.answers = a = cone.answers
        self.prior = prior.probabilities()
        self.scale = np.where(self.prior > 0, np.maximum(self.prior, _LEAST_SCALE), 1.0 / a)
        rows = _Rows(a)
        rows.add({x: float(p) for x, p in enumerate(self.prior) if p}, 1.0, 1.0)
        for claim in cone.claims:
            _describe(rows, claim, prior)
        self.polytope = self._polytope(rows)
        self.corners = self._tighten()

    @property
    def size(self) -> int:
        """How many variables the polytope has: answers and auxiliary ones."""
        return len(self.polytope.low)

    def support(self, gain: FloatArray, low: FloatArray, high: FloatArray) -> Support | None:
        """Maximise gain·t over the part of the base with low ≤ t ≤ high, with a proof; None if there is no such point.

        All of shape (answers,); the result's `x` and `reduced` are those of t.
        """
        more = self.size - self.answers
        if not more:
            return self.polytope.farthest(gain, low, high)
        c = np.concatenate([gain, np.zeros(more)])
        lows = np.concatenate([low, self.polytope.low[self.answers :]])
        highs = np.concatenate([high, self.polytope.high[self.answers :]])
        found = self.polytope.farthest(c, lows, highs)
        return found and Support(found.x[: self.answers], found.bound, found.reduced[: self.answers])

    def vertex(self, gain: FloatArray) -> FloatArray:
        """Return a vertex t of the base, shape (answers,), that maximises gain·t."""
        more = self.size - self.answers
        found = self.polytope.vertex(np.concatenate([gain, np.zeros(more)]) if more else gain)
        # the constant column is always there, whatever the solver makes of extreme numbers
        return self.scale if found is None else found[: self.answers]

    def highest(self, c: FloatArray) -> float:
        """Return an upper bound of c·v over the base, shape (answers,), by duality."""
        found = self.support(c / self.scale, self.low, self.high)
        return float("inf") if found is None else found.bound

    def maximise(self, c: FloatArray) -> FloatArray:
        """Return a vertex v of the base, shape (answers,), that maximises c·v."""
        return self.vertex(c / self.scale) / self.scale

    @cached_property
    def rows(self) -> FloatArray | None:
        """The rows of the cone, shape (m, answers), each of size 1; None where that would be very many."""
        if self.answers > _MOST_ROWED:
            return None
        rows = self.cone.rows()
        return np.array([[r / size for r in row] for row in rows for size in (max(map(abs, row)),)]).reshape(
            -1, self.answers
        )

    @property
    def ratio(self) -> float | None:
        """E where the base is that of ε-LDP of the answer alone."""
        only = self.cone.claims[0] if len(self.cone.claims) == 1 else None
        return _ratio(only.level) if only is not None and only.notion == "ldp" else None

    @property
    def low(self) -> FloatArray:
        """The least value of each t_x in the base."""
        return self.polytope.low[: self.answers]

    @property
    def high(self) -> FloatArray:
        """The largest value of each t_x in the base."""
        return self.polytope.high[: self.answers]

    def _polytope(self, rows: _Rows) -> Polytope:
        a, n = self.answers, self.answers + rows.auxiliary
        factor = np.concatenate([1 / self.scale, np.ones(rows.auxiliary)])
        where = [(i, j) for i, row in enumerate(rows.entries) for j in row]
        values = np.array([v for row in rows.entries for v in row.values()])
        i, j = np.array(where).T
        matrix = sparse.csc_array((values * factor[j], (i, j)), shape=(len(rows.entries), n))
        loose = np.where(self.prior > 0, self.scale / np.where(self.prior > 0, self.prior, 1.0), _INFINITY)
        high = np.concatenate([loose, np.full(n - a, _INFINITY)])
        return Polytope(matrix, np.array(rows.low), np.array(rows.high), np.zeros(n), high)

    def _tighten(self) -> FloatArray:
        """Set the least and the largest value of each variable, so that every dual bound is finite.

        By weak duality, not from the vertices the solver finds: its tolerances would cut off rays where counts span
        many orders of magnitude. An auxiliary variable need never exceed the largest v_x: it stands for one of them or
        an average. Return the vertices where each t_x is largest, shape (answers, answers) unless the numbers are too
        extreme for some.
        """
        a, polytope = self.answers, self.polytope
        units = np.eye(a, self.size)
        corners = [polytope.vertex(unit) for unit in units]
        high = polytope.high.copy()
        for x, corner in enumerate(corners):  # duality needs some bound where there is no mass: a generous one
            if corner is not None and np.isinf(high[x]):
                high[x] = 2 * float(corner[x]) + self.scale[x]
        high[a:] = np.max(high[:a] / self.scale) * (1 + _LOOSE)
        polytope.high = high
        high, low = high.copy(), polytope.low.copy()
        for x, unit in enumerate(units):
            most = polytope.farthest(unit)
            if most is not None:
                high[x] = np.fmin(high[x], most.bound * (1 + _LOOSE) + _LOOSE**2)  # fmin: nan says nothing
        for x, unit in enumerate(units if a <= _MOST_LOWERED else []):
            least = polytope.farthest(-unit)
            if least is not None:
                low[x] = np.fmax(low[x], -least.bound * (1 - _LOOSE) - _LOOSE**2)
        high[a:] = np.max(high[:a] / self.scale) * (1 + _LOOSE)
        polytope.low, polytope.high = low, high
        return np.array([corner[:a] for corner in corners if corner is not None]).reshape(-1, a)


def _describe(rows: _Rows, claim: Claim, prior: Prior) -> None:
    """Add the rows of one claim, in v."""
    if claim.notion == "ldp":
        _answers_alike(rows, claim)
    elif claim.notion == "rldp":
        _robustly_alike(rows, claim)
    elif claim.notion in ("lip", "alip") and _same_answers(claim, prior):
        _near_average(rows, claim)
    else:
        for row in rows_of(claim, rows.answers):
            size = sum(map(abs, row)) / 2
            rows.add({x: r / size for x, r in enumerate(row) if r})


def _answers_alike(rows: _Rows, claim: Claim) -> None:
    E = _ratio(claim.level)
    least = rows.variable()
    for x in range(rows.answers):
        rows.add({x: 1.0, least: -1.0})
        rows.add({x: -1.0, least: E})


def _near_average(rows: _Rows, claim: Claim) -> None:
    """P(y) = 1 on the base, so both sides of a secret share one row: 1/E_low ≤ P(y|s) ≤ E."""
    low, high = (claim.level, claim.level) if claim.notion == "lip" else (claim.low_level, claim.level)
    for row in claim.joint or ():
        mass = sum(row)
        given = {x: n / mass for x, n in enumerate(row) if n}
        rows.add(given, 0.0 if low is None else 1 / _ratio(low), _INFINITY if high is None else _ratio(high))


def _same_answers(claim: Claim, prior: Prior) -> bool:
    """Tell whether the claim's prior has the same shares of answers as the design prior, exactly."""
    shares = [sum(column) for column in zip(*(claim.joint or ()), strict=True)]
    total, other = sum(shares), prior.total
    return all(n * other == m * total for n, m in zip(shares, prior.shares, strict=True))


def _robustly_alike(rows: _Rows, claim: Claim) -> None:
    bounds, E = claim.lower_bounds or (), _ratio(claim.level)
    size = len(bounds[0])
    upper, lower = [], []
    for s, row in enumerate(bounds):
        block = range(s * size, (s + 1) * size)
        upper.append(_extreme(rows, block, row, side=1.0))
        lower.append(_extreme(rows, block, row, side=-1.0))
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


def _extreme(rows: _Rows, block: range, bounds: tuple[tuple[int, int], ...], side: float) -> int:
    """Add variables for the sup (side 1) or inf (side −1) of R·v over R ≥ L, ΣR = 1; return the one that bounds it."""
    exact = [Fraction(n, d) for n, d in bounds]
    end, result = rows.variable(), rows.variable()
    for x in block:
        rows.add({end: side, x: -side})
    entries = {x: -side * float(L) for x, L in zip(block, exact, strict=True) if L}
    rows.add({result: side, end: -side * float(1 - sum(exact, Fraction(0))), **entries})
    return result


def _ratio(level: tuple[int, int] | None) -> float:
    return _INFINITY if level is None else level[0] / level[1]
