# SPDX-License-Identifier: Apache-2.0
"""Pricing: search for columns with a large gain(t) − κ·t over the base, and a bound of its maximum.

Local search (`ascent`) finds columns. Then a method that depends on the cone bounds all of them:
patterns of entries for LDP of the answer (`answer_pricing`), one part per secret for RLDP
(`robust_pricing`), branch and bound for other cones (`branch`). The Hamming error needs only a
linear programme per answer.
"""

from dataclasses import dataclass

import numpy as np

from frankly_server.design.notions.walk import LOOSER
from frankly_server.design.optimum.information import (
    branch,
    robust_pricing,
    robust_pricing_proposals,
)
from frankly_server.design.optimum.information.answer_pricing import best_columns
from frankly_server.design.optimum.information.ascent import climb
from frankly_server.design.optimum.information.cone_base import ConeBase
from frankly_server.design.optimum.information.gains import Guessing, Information
from frankly_server.design.optimum.variance.objective import Objective
from frankly_server.design.optimum.variance.pricing import MOST_WORK, base_vertices
from frankly_server.design.tables.limits import Limits
from frankly_server.design.tables.linear import FloatArray
from frankly_server.design.tables.spread import directions, fractions

_FIRST_WORK = MOST_WORK // 100
"""Work allowed for listing vertices before any search: about 0.3 s, less than most searches."""
_BOXES_BEFORE_LIST = 2000
"""Boxes of branch and bound in one proof before vertices are listed with all allowed work."""
_MOST_STARTS = 2  # starts of local search per round, per answer


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
    def of(cls, base: ConeBase, limits: Limits, work: int) -> "_Vertices | None":
        V = base_vertices(base, limits, work=work)
        if V is None:
            return None
        objective = Objective(np.empty((0, base.answers)), base.prior, informative=True)
        return cls(V, objective.gains(V, LOOSER))

    def best(self, multipliers: FloatArray, tolerance: float) -> tuple[FloatArray, float]:
        """Return the best of the columns worth more than `tolerance`, and the largest worth."""
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
        # The next index of the quasi-random sequence that directions and mixtures are taken from.
        self._sequence_index = seed
        informative = isinstance(gain, Information)
        self._robust = robust_pricing.of(base.cone, base.prior) if informative else None
        guide = informative and self._robust is None
        self._proposals = robust_pricing_proposals.of(base.cone, base.prior) if guide else None
        list_first = guide and base.ratio is None
        self._vertices = _Vertices.of(base, limits, _FIRST_WORK) if list_first else None
        self._may_list = True

    @property
    def direct(self) -> bool:
        """True if `prove` searches the whole base for columns, so that local search adds none."""
        return self._robust is not None or self._vertices is not None

    @property
    def guided(self) -> bool:
        """True if `proposals` can return columns."""
        return self._proposals is not None

    def proposals(self, prices: FloatArray, least: float) -> FloatArray:
        """Return columns worth more than `least` that the cone's structure suggests, best first."""
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
        self,
        prices: FloatArray,
        starts: FloatArray,
        least: float,
        limits: Limits,
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

    def prove(
        self,
        prices: FloatArray,
        tolerance: float,
        limits: Limits,
        boxes: int,
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
            # `best_columns` returns the best patterns even if they are not worth the tolerance.
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
        """Use branch and bound up to a number of boxes, then list all vertices if possible."""
        while self._vertices is None:
            most = _BOXES_BEFORE_LIST if self._may_list else boxes
            columns, bound = branch.bound(
                self.base, gain, prices, tolerance, limits, min(boxes, most)
            )
            if boxes <= most or len(columns) or bound <= tolerance or limits.out_of_time():
                return PricedColumns(columns, bound)
            self._may_list = False
            self._vertices = _Vertices.of(self.base, limits, MOST_WORK)
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
