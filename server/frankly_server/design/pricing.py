# SPDX-License-Identifier: Apache-2.0
"""Pricing: the column worth most beyond its price, max over the base of gain(t) − κ·t, first found, then bounded.

A convex function has its maximum at a vertex: from any vertex, maximise the linearised function, and repeat until
nothing is gained. Branch and bound (`branch`) then proves that nothing better exists, or finds it.
"""

from dataclasses import dataclass

import numpy as np

from frankly_server.design import branch, robust_pricing, robust_pricing_proposals
from frankly_server.design.answer_pricing import dearest
from frankly_server.design.ascent import climb
from frankly_server.design.base import Base
from frankly_server.design.gains import Guessing, Information
from frankly_server.design.limits import Limits
from frankly_server.design.linear import FloatArray
from frankly_server.design.variance.spread import directions, fractions


@dataclass(frozen=True, slots=True)
class Priced:
    """What pricing found: columns worth more than asked, shape (n, a), and a bound of what any column is worth."""

    columns: FloatArray
    bound: float


class Pricer:
    """Pricing over one base with one gain, deterministic for its seed."""

    def __init__(self, base: Base, gain: Information | Guessing, seed: int) -> None:
        self.base, self.gain = base, gain
        self._used = seed
        informative = isinstance(gain, Information)
        self._robust = robust_pricing.of(base.cone, base.prior) if informative else None
        guide = informative and self._robust is None
        self._proposals = robust_pricing_proposals.of(base.cone, base.prior) if guide else None

    @property
    def direct(self) -> bool:
        """Whether `prove` itself looks for columns everywhere, so that local search has nothing to add."""
        return self._robust is not None

    @property
    def guided(self) -> bool:
        """Whether `proposals` knows where good columns are."""
        return self._proposals is not None

    def proposals(self, prices: FloatArray, least: float) -> FloatArray:
        """Return columns worth more than `least`, the dearest first, where the cone's structure shows some."""
        if self._proposals is None:
            return np.empty((0, self.base.answers))
        return self._proposals.columns(prices * self.base.scale, least) * self.base.scale

    def directions(self, prices: FloatArray, count: int) -> FloatArray:
        """Return vertices in evenly spread directions that avoid dear answers, shape (count, a)."""
        a = self.base.answers
        spread, avoid = directions(self._used, count, a), fractions(self._used, count, 1)
        self._used += count
        return np.array([self.base.vertex(c - 2 * share * prices) for c, share in zip(spread, avoid, strict=True)])

    def mixtures(self, T: FloatArray, count: int) -> FloatArray:
        """Return points halfway between columns of T, shape (count, a): new places to climb from, near good ones."""
        pairs = (fractions(self._used, count, 2) * len(T)).astype(np.int64)
        self._used += count
        return np.asarray(0.5 * (T[pairs[:, 0]] + T[pairs[:, 1]]), dtype=np.float64)

    def search(self, prices: FloatArray, starts: FloatArray, least: float, limits: Limits) -> FloatArray:
        """Return columns worth more than `least`, by local search from each start, shape (n, a)."""
        found = []
        for start in starts:
            if limits.out_of_time():
                break
            t, worth = climb(self.base, self.gain, prices, start)
            if worth > least:
                found.append(t)
        return np.array(found).reshape(-1, self.base.answers)

    def prove(self, prices: FloatArray, tolerance: float, limits: Limits, boxes: int) -> Priced:
        """Bound what any column is worth, down to `tolerance`; stop at columns worth more, or after so many boxes."""
        if self._robust is not None:
            columns, most = self._robust.dearest(prices * self.base.scale, tolerance, limits)
            return Priced(columns * self.base.scale, most)
        if isinstance(self.gain, Information) and self.base.ratio is not None:
            columns, most = dearest(self.base.prior, self.base.ratio, prices * self.base.scale)
            better = self.gain.values(columns * self.base.scale) - (columns * self.base.scale) @ prices > tolerance
            return Priced(columns[better] * self.base.scale, most)
        if isinstance(self.gain, Information):
            return Priced(*branch.bound(self.base, self.gain, prices, tolerance, limits, boxes))
        return self._prove_by_guess(prices, tolerance)

    def _prove_by_guess(self, prices: FloatArray, tolerance: float) -> Priced:
        """The best guess is one of the answers: a linear programme for each."""
        columns, bound = [], -np.inf
        for x, weight in enumerate(self.base.prior / self.base.scale):
            at_x = np.where(np.arange(self.base.answers) == x, weight, 0.0)
            found = self.base.support(at_x - prices, self.base.low, self.base.high)
            if found is not None:
                bound = max(bound, found.bound)
                if found.bound > tolerance:
                    columns.append(self.base.vertex(at_x - prices))
        return Priced(np.array(columns).reshape(-1, self.base.answers), float(bound))
