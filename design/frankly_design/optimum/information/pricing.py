# SPDX-License-Identifier: Apache-2.0
"""Pricing: search for columns with large gain(t) − κ·t over the base, and a bound of the maximum.

Local search (`ascent`) finds columns. Then a method that depends on the cone bounds all columns:
patterns of entries for LDP of the answer (`answer_pricing`), one part per secret for RLDP
(`robust_pricing`), branch and bound for other cones (`branch`). The Hamming error needs only one
linear programme per answer.
"""

from dataclasses import dataclass, replace

import numpy as np

from frankly_design.notions.walk import LOOSER
from frankly_design.numeric.arrays import FloatArray
from frankly_design.optimum.information import branch, robust_pricing, robust_pricing_proposals
from frankly_design.optimum.information.answer_pricing import best_columns
from frankly_design.optimum.information.ascent import climb
from frankly_design.optimum.information.cone_base import ConeBase
from frankly_design.optimum.information.edge_search import EdgeSearch
from frankly_design.optimum.information.gains import Guessing, Information
from frankly_design.optimum.variance.objective import Objective
from frankly_design.optimum.variance.pricing import MOST_WORK, VertexList
from frankly_design.tables.limits import Limits
from frankly_design.tables.spread import directions, fractions

_FIRST_WORK = MOST_WORK // 100
"""Work limit for listing vertices before any search: about 0.3 s, less than most searches take."""
_BOXES_BEFORE_LIST, _BOXES_PER_STEP = 2000, 100
"""Number of branch-and-bound boxes, over all proofs, before the list of vertices is continued."""
_BOXES_BEFORE_EDGES = 500
"""Number of boxes, over all proofs, before local search also moves along edges."""
_WORK_PER_BOX, _WORK_PER_CEILED_BOX = 10**5, 10**6
"""Work limit of the list per additional box; a box takes about as long as 1.5·10^5 operations.
With several notions boxes prove little, so the list is preferred."""
_MOST_STARTS = 2  # starts of local search per round and answer


@dataclass(frozen=True, slots=True)
class PricedColumns:
    """Columns worth more than a tolerance, shape (n, a), and a bound of the worth of any column."""

    columns: FloatArray
    bound: float


@dataclass(frozen=True, slots=True)
class _Vertices:
    """Vertices v of a polytope around the base, shape (n, a), and bounds of their information."""

    V: FloatArray
    gains: FloatArray

    @classmethod
    def of(cls, base: ConeBase, V: FloatArray) -> "_Vertices":
        objective = Objective(np.empty((0, base.answers)), base.prior, informative=True)
        return cls(V, objective.gains(V, LOOSER))

    def best(self, multipliers: FloatArray, tolerance: float) -> tuple[FloatArray, float]:
        """Return the best columns worth more than `tolerance`, and the largest worth."""
        worth = self.gains - self.V @ multipliers
        order = np.argsort(-worth, kind="stable")[: _MOST_STARTS * self.V.shape[1]]
        better = order[worth[order] > tolerance]
        return np.maximum(self.V[better], 0.0), float(worth[order[0]])


class ColumnPricer:
    """Pricing over one base with one gain; deterministic for a given seed."""

    def __init__(
        self, base: ConeBase, gain: Information | Guessing, limits: Limits, seed: int
    ) -> None:
        self.base, self.gain = base, gain
        # Next index in the quasi-random sequence that determines directions and mixtures.
        self._sequence_index = seed
        informative = isinstance(gain, Information)
        self._robust = robust_pricing.of(base.cone, base.prior) if informative else None
        guide = informative and self._robust is None
        self._proposals = robust_pricing_proposals.of(base.cone, base.prior) if guide else None
        self._list = VertexList(base, limits) if guide and base.ratio is None else None
        self._vertices: _Vertices | None = None
        self._edges: EdgeSearch | None = None
        self._seed, self._boxes = seed, 0
        self._work_per_box = _WORK_PER_BOX if len(base.cone.claims) == 1 else _WORK_PER_CEILED_BOX
        self._list_within(_FIRST_WORK)

    def _list_within(self, work: int) -> None:
        """Use the list of vertices for all later proofs if it takes at most this much work."""
        V = None if self._list is None else self._list.within(work)
        if V is not None:
            self._vertices = _Vertices.of(self.base, V)

    def _listed(self) -> bool:
        """Count a box, and continue the list of vertices periodically; True if it is complete."""
        self._boxes += 1
        more = self._boxes - _BOXES_BEFORE_LIST
        if more > 0 and more % _BOXES_PER_STEP == 0:
            self._list_within(min(MOST_WORK, _FIRST_WORK + self._work_per_box * more))
        return self._vertices is not None

    @property
    def direct(self) -> bool:
        """True if `prove` searches the whole base for columns, so local search cannot add any."""
        return self._robust is not None or self._vertices is not None

    @property
    def guided(self) -> bool:
        """True if `proposals` can return columns."""
        return self._proposals is not None

    def proposals(self, prices: FloatArray, least: float) -> FloatArray:
        """Return columns worth more than `least`, suggested by the cone's structure, best first."""
        if self._proposals is None:
            return np.empty((0, self.base.answers))
        return self._proposals.columns(prices * self.base.scale, least) * self.base.scale

    def directions(self, prices: FloatArray, count: int) -> FloatArray:
        """Return vertices in evenly spread directions that avoid high prices, shape (count, a)."""
        a = self.base.answers
        spread, avoid = (
            directions(self._sequence_index, count, a),
            fractions(self._sequence_index, count, 1),
        )
        self._sequence_index += count
        return np.array(
            [
                self.base.vertex(c - 2 * share * prices)
                for c, share in zip(spread, avoid, strict=True)
            ]
        )

    def mixtures(self, T: FloatArray, count: int) -> FloatArray:
        """Return midpoints of columns of T as starts for local search, shape (count, a)."""
        pairs = (fractions(self._sequence_index, count, 2) * len(T)).astype(np.int64)
        self._sequence_index += count
        return np.asarray(0.5 * (T[pairs[:, 0]] + T[pairs[:, 1]]), dtype=np.float64)

    def search(
        self, prices: FloatArray, starts: FloatArray, least: float, limits: Limits
    ) -> FloatArray:
        """Return columns worth more than `least`, by local search from each start, shape (n, a)."""
        columns = []
        for start in starts:
            if limits.out_of_time():
                break
            t, worth = climb(self.base, self.gain, prices, start)
            if worth > least:
                columns.append(t)
        return np.array(columns).reshape(-1, self.base.answers)

    def along_edges(
        self, prices: FloatArray, used: FloatArray, least: float, limits: Limits
    ) -> FloatArray:
        """Return columns worth more than `least` near columns in use, if proofs have been long."""
        if self._edges is None and self._boxes > _BOXES_BEFORE_EDGES:
            self._edges = EdgeSearch.of(self.base, self._seed)
        if self._edges is None:
            return np.empty((0, self.base.answers))
        multipliers, scale = prices * self.base.scale, self.base.scale
        return self._edges.columns(multipliers, used / scale, least, limits) * scale

    def prove(
        self, prices: FloatArray, tolerance: float, limits: Limits, boxes: int
    ) -> PricedColumns:
        """Return columns worth more than `tolerance`, and a bound of the worth of any column.

        The search may stop early, with a larger bound, once it has found such columns, after
        `boxes` boxes of branch and bound, or at the limits.
        """
        if self._robust is not None:
            columns, bound = self._robust.best_columns(prices * self.base.scale, tolerance, limits)
            return PricedColumns(columns * self.base.scale, bound)
        if isinstance(self.gain, Information) and self.base.ratio is not None:
            columns, bound = best_columns(
                self.base.prior, self.base.ratio, prices * self.base.scale
            )
            # `best_columns` returns the best patterns even if their worth is below the tolerance.
            better = (
                self.gain.values(columns * self.base.scale) - (columns * self.base.scale) @ prices
                > tolerance
            )
            return PricedColumns(columns[better] * self.base.scale, bound)
        if isinstance(self.gain, Information):
            return self._prove_by_boxes(self.gain, prices, tolerance, limits, boxes)
        return self._prove_by_guess(prices, tolerance)

    def _prove_by_boxes(
        self, gain: Information, prices: FloatArray, tolerance: float, limits: Limits, boxes: int
    ) -> PricedColumns:
        """Use branch and bound until the list of vertices is complete, then the list."""
        if self._vertices is None:
            # `bound` polls the limits once per box.
            listing = replace(limits, out_of_time=lambda: self._listed() or limits.out_of_time())
            columns, bound = branch.bound(self.base, gain, prices, tolerance, listing, boxes)
            if len(columns) or bound <= tolerance or self._vertices is None:
                return PricedColumns(columns, bound)
        starts, bound = self._vertices.best(prices * self.base.scale, tolerance)
        return PricedColumns(
            self.search(prices, starts * self.base.scale, tolerance, limits), bound
        )

    def _prove_by_guess(self, prices: FloatArray, tolerance: float) -> PricedColumns:
        """Solve the pricing of `Guessing`: one linear programme for each answer as the guess."""
        columns, bound = [], -np.inf
        for x, weight in enumerate(self.base.prior / self.base.scale):
            gain_x = np.where(np.arange(self.base.answers) == x, weight, 0.0)
            support = self.base.support(gain_x - prices, self.base.low, self.base.high)
            if support is not None:
                bound = max(bound, support.bound)
                if support.bound > tolerance:
                    columns.append(self.base.vertex(gain_x - prices))
        return PricedColumns(np.array(columns).reshape(-1, self.base.answers), float(bound))
