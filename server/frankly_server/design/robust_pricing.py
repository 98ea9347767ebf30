# SPDX-License-Identifier: Apache-2.0
"""Pricing information under RLDP alone, where a column falls apart into one part for each secret (DESIGN §2).

Scale a column so that the least W_s is 1, at the secret `last`, and let v be the least among the others. It is in the
cone iff W_s ≥ v and U_s ≤ E for s ≠ last, W_last ≥ 1 and U_last ≤ E·v: for fixed (last, v) the parts are free of each
other, and columns worth most have v at one of finitely many turns and every part at a corner. What they are worth,
A/z − ln z with A = Σ (p·q ln q − λ·q) and z = Σ p·q, couples them through z only, and for every slope β

    worth ≤ −1 − β − ln(−Σ_s max_q (A_s + β z_s)).

Secrets are decided one after the other, the most frequent first; those left are bounded together. Proofs:
docs/maths/generation.md, claims 14 and 15.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frankly_server.design.cones import Cone
from frankly_server.design.limits import Limits
from frankly_server.design.linear import FloatArray
from frankly_server.design.robust_pricing_blocks import Corners, list_corners

IntArray = NDArray[np.int64]

_SLOPES = 24
_CHUNK = 1024
_MANY = 200
_UNDECIDED = -1
_SAFETY = 1e-10


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Columns decided for the first secrets in order; arrays of n.

    chosen : the corners taken, shape (n, decided). worth, mass : Σ A_s and Σ z_s of the decided. bound : what any
    completion is worth at most, as the slope shows.
    """

    turn: IntArray
    last: IntArray
    chosen: IntArray
    worth: FloatArray
    mass: FloatArray
    bound: FloatArray
    slope: IntArray

    @property
    def parts(self) -> tuple[NDArray[Any], ...]:
        return self.turn, self.last, self.chosen, self.worth, self.mass, self.bound, self.slope

    @property
    def decided(self) -> int:
        return int(self.chosen.shape[1])

    @property
    def undecided(self) -> bool:
        """Whether it is open for some which secret is the last, although the first secret is decided."""
        return self.decided > 0 and bool(np.any(self.last == _UNDECIDED))

    def __len__(self) -> int:
        return len(self.turn)

    def __getitem__(self, which: IntArray | NDArray[np.bool_] | slice) -> "_Nodes":
        return _Nodes(*(part[which] for part in self.parts))


class RobustPricing:
    """Columns worth most for given prices, found and bounded."""

    def __init__(self, corners: list[Corners], prior: FloatArray, *, diagonal: bool) -> None:
        """Take the prior p of the answers, shape (secrets · values,)."""
        self.corners, self.prior = corners, prior
        self.order = np.argsort(-prior.reshape(len(corners), -1).sum(axis=1), kind="stable")
        # with one threshold for all, the secrets are alike: any may be called the last
        self.first_lasts = [int(self.order[0])] if diagonal else [int(self.order[0]), _UNDECIDED]
        least, most = (sum(c.reach[side] for c in corners) for side in (0, 1))
        self.slopes = -1 - np.linspace(np.log(most), np.log(least), _SLOPES)

    def dearest(self, multipliers: FloatArray, tolerance: float, limits: Limits) -> tuple[FloatArray, float]:
        """Return (columns v worth more than `tolerance`, shape (n, a); a bound of what any column is worth).

        multipliers : λ, shape (a,), the price of v_x. The bound is `tolerance` where no column is worth more.
        """
        return _Search(self, multipliers, tolerance - _SAFETY).run(limits)

    def promising(self, multipliers: FloatArray, least: float) -> FloatArray:
        """Return columns v worth more than `least`, the dearest first, after a short look; shape (n, a)."""
        return _Search(self, multipliers, least).glance()


def of(cone: Cone, prior: FloatArray) -> RobustPricing | None:
    """Return the pricing of a cone that is RLDP alone and small enough, None for others."""
    if len(cone.claims) != 1 or cone.claims[0].notion != "rldp":
        return None
    corners = list_corners(cone.claims[0], prior)
    return RobustPricing(corners, prior, diagonal=cone.claims[0].diagonal) if corners is not None else None


@dataclass(frozen=True, slots=True)
class _Rest:
    """The best corners of the secrets left: Σ A and Σ z, by turn, last and slope, and who is best as the last.

    worth, mass : shape (turns, secrets + 1, slopes); the place −1 is for a last that is not decided. likeliest : the
    secret left that would be the last then, shape (turns, slopes).
    """

    worth: FloatArray
    mass: FloatArray
    likeliest: IntArray


class _Search:
    """One search, for given prices."""

    def __init__(self, pricing: RobustPricing, multipliers: FloatArray, tolerance: float) -> None:
        self.pricing, self.corners, self.order = pricing, pricing.corners, pricing.order
        self.slopes, self.tolerance, self.secrets = pricing.slopes, tolerance, len(pricing.corners)
        prices = multipliers.reshape(self.secrets, -1)
        self.worth = [
            np.where(c.present, c.entropy - c.points @ price, -np.inf)
            for c, price in zip(self.corners, prices, strict=True)
        ]
        best = [self._best(A, c.mass) for A, c in zip(self.worth, self.corners, strict=True)]
        self.best, self.best_worth, self.best_mass = (np.stack(part, axis=2) for part in zip(*best, strict=True))
        self._rests: dict[int, _Rest] = {}

    def _best(self, worth: FloatArray, mass: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return which corner is best, by role, turn and slope, with its A and z; shapes (2, turns, slopes)."""
        best = np.stack([np.argmax(worth + beta * mass, axis=-1) for beta in self.slopes], axis=-1)
        return best, np.take_along_axis(worth, best, axis=-1), np.take_along_axis(mass, best, axis=-1)

    def run(self, limits: Limits) -> tuple[FloatArray, float]:
        """Decide the first secret of all columns at once, and the others of the most promising columns first."""
        columns, top = np.empty((0, len(self.pricing.prior))), self.tolerance
        pending = [nodes for nodes in (self._roots(),) if len(nodes)]
        while pending and not len(columns) and not limits.out_of_time():
            nodes = pending.pop()
            if nodes.decided and len(nodes) > _CHUNK:
                pending.append(nodes[_CHUNK:])
                nodes = nodes[:_CHUNK]
            children = self._children(nodes)
            columns = self._columns(children)
            if children.decided < self.secrets:
                pending += [children] if len(children) else []
            else:
                top = max(top, float(np.max(children.bound, initial=top)))
        worst = max([top, *(float(np.max(nodes.bound)) for nodes in pending)])
        return columns, worst + _SAFETY

    def glance(self) -> FloatArray:
        """Decide the first secret alone, and complete the columns by what seems best."""
        roots = self._roots()
        return self._columns(self._children(roots)) if len(roots) else np.empty((0, len(self.pricing.prior)))

    def _roots(self) -> _Nodes:
        lasts = np.array(self.pricing.first_lasts)
        turns = self.best.shape[1]
        turn, last = np.repeat(np.arange(turns), len(lasts)), np.tile(lasts, turns)
        none = np.zeros(len(turn))
        return self._promising(turn, last, np.empty((len(turn), 0), dtype=np.int64), none, none)

    def _children(self, nodes: _Nodes) -> _Nodes:
        """Decide one more secret, or who is last; return what may be worth more, the most promising first."""
        made = []
        for i in range(0, len(nodes), _CHUNK):
            part = nodes[i : i + _CHUNK]
            made.append(self._with_last(part) if part.undecided else self._with_corner(part))
        whole = _Nodes(*(np.concatenate(column) for column in zip(*(m.parts for m in made), strict=True)))
        return whole[np.argsort(-whole.bound, kind="stable")]

    def _with_corner(self, nodes: _Nodes) -> _Nodes:
        s = int(self.order[nodes.decided])
        role = (nodes.last == s).astype(np.int64)
        more = self.worth[s][role, nodes.turn]
        parent, corner = np.nonzero(more > -np.inf)
        chosen = np.hstack([nodes.chosen[parent], corner[:, None]])
        worth = nodes.worth[parent] + more[parent, corner]
        mass = nodes.mass[parent] + self.corners[s].mass[role, nodes.turn][parent, corner]
        return self._promising(nodes.turn[parent], nodes.last[parent], chosen, worth, mass)

    def _with_last(self, nodes: _Nodes) -> _Nodes:
        """Try every secret but the first as the last where that is open."""
        others = self.order[1:]
        times = np.where(nodes.last == _UNDECIDED, len(others), 1)
        parent = np.repeat(np.arange(len(nodes)), times)
        place = np.arange(len(parent)) - np.repeat(np.cumsum(times) - times, times)
        last = np.where(nodes.last[parent] == _UNDECIDED, others[place], nodes.last[parent])
        n = nodes[parent]
        return self._promising(n.turn, last, n.chosen, n.worth, n.mass)

    def _promising(
        self, turn: IntArray, last: IntArray, chosen: IntArray, worth: FloatArray, mass: FloatArray
    ) -> _Nodes:
        """Bound what each choice can become, and keep those that may be worth more than the tolerance."""
        rest = self._rest(chosen.shape[1])
        D = worth[:, None] + self.slopes * mass[:, None] + (rest.worth + self.slopes * rest.mass)[turn, last]
        promise = np.where(D < 0, -D * np.exp(self.slopes), 0.0)
        slope = np.argmax(promise, axis=1)
        each = np.arange(len(turn))
        if chosen.shape[1] == self.secrets:
            bound = worth / mass - np.log(mass)
        else:
            bound = np.minimum(self._between(D, each, slope), self._between(D, each, slope - 1))
        nodes = _Nodes(turn, last, chosen, worth, mass, bound, slope)
        return nodes[bound > self.tolerance]

    def _between(self, D: FloatArray, each: IntArray, slope: IntArray) -> FloatArray:
        """Return the best bound with β from one slope to the next, where D, convex in β, lies below its secant."""
        low = np.clip(slope, 0, len(self.slopes) - 2)
        beta, step = self.slopes[low], self.slopes[low + 1] - self.slopes[low]
        start = D[each, low]
        rise = (D[each, low + 1] - start) / step
        with np.errstate(divide="ignore", invalid="ignore"):
            # −1 − β − ln(−D) is least where D = −rise
            at = np.where(rise > 0, np.clip(-1 - (start - rise * beta) / rise, beta, beta + step), beta)
            D_at = start + rise * (at - beta)
            return np.where(D_at < 0, -1 - at - np.log(-D_at), np.inf)

    def _rest(self, decided: int) -> _Rest:
        if decided not in self._rests:
            left = self.order[decided:]
            worth, mass = (self._totals(x, left) for x in (self.best_worth, self.best_mass))
            value = (worth + self.slopes * mass)[:, self.order[1:]] if self.secrets > 1 else worth
            likeliest = (
                self.order[1:][np.argmax(value, axis=1)] if self.secrets > 1 else np.zeros_like(self.best[0, :, 0])
            )
            for x in (worth, mass):
                x[:, _UNDECIDED] = np.take_along_axis(x, likeliest[:, None], axis=1)[:, 0]
            self._rests[decided] = _Rest(worth, mass, likeliest)
        return self._rests[decided]

    def _totals(self, x: FloatArray, left: IntArray) -> FloatArray:
        """Return sums over the secrets left for every last, shape (turns, secrets + 1, slopes), the last place open."""
        sums = np.repeat(x[0][:, left].sum(axis=1)[:, None], self.secrets + 1, axis=1)
        sums[:, left] += x[1][:, left] - x[0][:, left]
        return sums

    def _columns(self, nodes: _Nodes) -> FloatArray:
        """Complete each by the corners that its slope prefers; return those that are worth enough, shape (n, a)."""
        rest = self._rest(nodes.decided)
        z = nodes.mass + rest.mass[nodes.turn, nodes.last, nodes.slope]
        worth = (nodes.worth + rest.worth[nodes.turn, nodes.last, nodes.slope]) / z - np.log(z)
        kept = np.flatnonzero(worth > self.tolerance)
        kept = kept[np.argsort(-worth[kept], kind="stable")]
        _, first = np.unique(nodes.turn[kept] * (self.secrets + 1) + nodes.last[kept], return_index=True)
        kept = kept[np.sort(first)[:_MANY]]
        q = np.array([self._completed(nodes, int(i)) for i in kept]).reshape(-1, len(self.pricing.prior))
        return np.asarray(q / (q @ self.pricing.prior)[:, None], dtype=np.float64)

    def _completed(self, nodes: _Nodes, i: int) -> FloatArray:
        turn, last, slope = int(nodes.turn[i]), int(nodes.last[i]), int(nodes.slope[i])
        if last == _UNDECIDED:
            last = int(self._rest(nodes.decided).likeliest[turn, slope])
        chosen = dict(zip(self.order.tolist(), nodes.chosen[i].tolist(), strict=False))
        parts = []
        for s, c in enumerate(self.corners):
            role = int(s == last)
            parts.append(c.points[role, turn, chosen.get(s, self.best[role, turn, s, slope])])
        return np.concatenate(parts)
