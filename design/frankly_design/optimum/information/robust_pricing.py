# SPDX-License-Identifier: Apache-2.0
"""Pricing for information if RLDP is the only claim: one part of a column per secret (spec 1.6).

U_s and W_s are the largest and the smallest average of the part of secret s, see
`robust_pricing_blocks`. Scale a column to q whose least W_s is 1, at the secret `last`, and let v
be the least W_s of the others. The column is in the cone iff W_s ≥ v and U_s ≤ E for s ≠ last,
W_last ≥ 1 and U_last ≤ E·v. So for fixed (last, v) the parts are independent. In the best columns
v is one of finitely many values (breakpoints), and every part is a corner. Their worth
A/z − ln z, where A = Σ (p·q ln q − λ·q) and z = Σ p·q, couples the parts only through z, and for
every slope β

    worth ≤ −1 − β − ln(−Σ_s max_q (A_s + β z_s)).

Branch and bound fixes the parts of the secrets one by one, the most frequent secret first, and
bounds the undecided parts together. Proofs: docs/maths/generation.md, claims 14 and 15.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frankly_design.notions.cones import Cone
from frankly_design.numeric.arrays import FloatArray, IntArray
from frankly_design.optimum.information.robust_pricing_blocks import Corners, list_corners
from frankly_design.tables.limits import Limits

_SLOPES = 24  # more slopes give a better bound per node at proportional cost
# Nodes expanded at once: enough to make numpy fast, few enough to complete good columns early.
_CHUNK = 1024
_MAX_RETURNED = 200
_UNDECIDED = -1
# rounding: covers float errors of a few units in the last place, divided by a secret's
# f = 1 − Σ of its lower bounds, which is at least 1e-4
_SAFETY = 1e-10


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Partial columns, decided for the first secrets in order; every array has n rows.

    v_index : index of v.
    last : the secret of least W_s; −1 if it is undecided.
    chosen : index of the corner of each decided secret, shape (n, decided).
    worth, mass : Σ A_s and Σ z_s of the decided secrets.
    bound : upper bound of the worth of every completion.
    slope : index of the slope with the best bound.
    """

    v_index: IntArray
    last: IntArray
    chosen: IntArray
    worth: FloatArray
    mass: FloatArray
    bound: FloatArray
    slope: IntArray

    @property
    def parts(self) -> tuple[NDArray[Any], ...]:
        return self.v_index, self.last, self.chosen, self.worth, self.mass, self.bound, self.slope

    @property
    def decided(self) -> int:
        return int(self.chosen.shape[1])

    @property
    def undecided(self) -> bool:
        """True if the first secret is decided and `last` is undecided for some node."""
        return self.decided > 0 and bool(np.any(self.last == _UNDECIDED))

    def __len__(self) -> int:
        return len(self.v_index)

    def __getitem__(self, which: IntArray | NDArray[np.bool_] | slice) -> "_Nodes":
        return _Nodes(*(part[which] for part in self.parts))


class RobustPricing:
    """Search for the best columns at fixed prices, with a bound."""

    def __init__(self, corners: list[Corners], prior: FloatArray, *, diagonal: bool) -> None:
        """Create the pricing. prior : p of the answers, shape (secrets · values,)."""
        self.corners, self.prior = corners, prior
        self.order = np.argsort(-prior.reshape(len(corners), -1).sum(axis=1), kind="stable")
        # With one threshold for all secrets, v = 1, so the choice of the last secret is irrelevant.
        self.first_lasts = [int(self.order[0])] if diagonal else [int(self.order[0]), _UNDECIDED]
        least, most = (sum(c.reach[side] for c in corners) for side in (0, 1))
        # The bound is tight at β = −1 − ln z, and z is between these masses.
        self.slopes = -1 - np.linspace(np.log(most), np.log(least), _SLOPES)

    def best_columns(
        self, multipliers: FloatArray, tolerance: float, limits: Limits
    ) -> tuple[FloatArray, float]:
        """Return columns v worth more than `tolerance`, shape (n, a), and a bound of every worth.

        multipliers : λ, shape (a,); λ_x is the price of v_x.

        The bound is `tolerance` if no column is worth more.
        """
        return _CornerSearch(self, multipliers, tolerance - _SAFETY).run(limits)

    def promising(self, multipliers: FloatArray, least: float) -> FloatArray:
        """Return columns v worth more than `least` from a short search, shape (n, a)."""
        return _CornerSearch(self, multipliers, least).quick_columns()


def of(cone: Cone, prior: FloatArray) -> RobustPricing | None:
    """Return the pricing of a cone whose only claim is rldp, if it is small enough; else None."""
    if len(cone.claims) != 1 or cone.claims[0].notion != "rldp":
        return None
    corners = list_corners(cone.claims[0], prior)
    if corners is None:
        return None
    return RobustPricing(corners, prior, diagonal=cone.claims[0].diagonal)


@dataclass(frozen=True, slots=True)
class _Completions:
    """Sums over the best corners of the undecided secrets, by breakpoint, `last` and slope.

    worth, mass : Σ A and Σ z, shape (breakpoints, secrets + 1, slopes); index −1 of the second axis
    stands for an undecided `last`.
    likeliest : the best secret for an undecided `last`, shape (breakpoints, slopes).
    """

    worth: FloatArray
    mass: FloatArray
    likeliest: IntArray


class _CornerSearch:
    """Branch and bound over the corners of each secret, for fixed prices."""

    def __init__(self, pricing: RobustPricing, multipliers: FloatArray, tolerance: float) -> None:
        self.pricing, self.corners, self.order = pricing, pricing.corners, pricing.order
        self.slopes, self.tolerance, self.secrets = pricing.slopes, tolerance, len(pricing.corners)
        prices = multipliers.reshape(self.secrets, -1)
        self.worth = [
            np.where(c.present, c.entropy - c.points @ price, -np.inf)
            for c, price in zip(self.corners, prices, strict=True)
        ]
        best = [self._best(A, c.mass) for A, c in zip(self.worth, self.corners, strict=True)]
        stacked = (np.stack(arrays, axis=2) for arrays in zip(*best, strict=True))
        self.best, self.best_worth, self.best_mass = stacked
        self._completions: dict[int, _Completions] = {}

    def _best(self, worth: FloatArray, mass: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return (index, A, z) of the best corners, each of shape (2, breakpoints, slopes)."""
        best = np.stack([np.argmax(worth + beta * mass, axis=-1) for beta in self.slopes], axis=-1)
        return (
            best,
            np.take_along_axis(worth, best, axis=-1),
            np.take_along_axis(mass, best, axis=-1),
        )

    def run(self, limits: Limits) -> tuple[FloatArray, float]:
        """Return (columns, bound) by depth-first search in chunks, the largest bounds first."""
        columns, top = np.empty((0, len(self.pricing.prior))), self.tolerance
        pending = [nodes for nodes in (self._roots(),) if len(nodes)]
        while pending and not len(columns) and not limits.out_of_time():
            nodes = pending.pop()
            # Nodes are sorted by bound. Expanding a chunk at a time keeps the arrays small.
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

    def quick_columns(self) -> FloatArray:
        """Return the columns that have one secret decided and the best corners for the others."""
        roots = self._roots()
        if not len(roots):
            return np.empty((0, len(self.pricing.prior)))
        return self._columns(self._children(roots))

    def _roots(self) -> _Nodes:
        lasts = np.array(self.pricing.first_lasts)
        breakpoints = self.best.shape[1]
        v_index, last = np.repeat(np.arange(breakpoints), len(lasts)), np.tile(lasts, breakpoints)
        zeros = np.zeros(len(v_index))
        return self._promising(
            v_index, last, np.empty((len(v_index), 0), dtype=np.int64), zeros, zeros
        )

    def _children(self, nodes: _Nodes) -> _Nodes:
        """Decide one more secret's corner, or `last`; return open nodes, best bound first."""
        expanded = []
        for i in range(0, len(nodes), _CHUNK):
            chunk = nodes[i : i + _CHUNK]
            expanded.append(self._with_last(chunk) if chunk.undecided else self._with_corner(chunk))
        fields = zip(*(nodes.parts for nodes in expanded), strict=True)
        children = _Nodes(*(np.concatenate(arrays) for arrays in fields))
        return children[np.argsort(-children.bound, kind="stable")]

    def _with_corner(self, nodes: _Nodes) -> _Nodes:
        s = int(self.order[nodes.decided])
        role = (nodes.last == s).astype(np.int64)
        corner_worth = self.worth[s][role, nodes.v_index]
        parent, corner = np.nonzero(corner_worth > -np.inf)
        chosen = np.hstack([nodes.chosen[parent], corner[:, None]])
        worth = nodes.worth[parent] + corner_worth[parent, corner]
        mass = nodes.mass[parent] + self.corners[s].mass[role, nodes.v_index][parent, corner]
        return self._promising(nodes.v_index[parent], nodes.last[parent], chosen, worth, mass)

    def _with_last(self, nodes: _Nodes) -> _Nodes:
        """Decide `last` where it is undecided: one child for every secret except the first."""
        candidates = self.order[1:]
        times = np.where(nodes.last == _UNDECIDED, len(candidates), 1)
        parent = np.repeat(np.arange(len(nodes)), times)
        place = np.arange(len(parent)) - np.repeat(np.cumsum(times) - times, times)
        last = np.where(nodes.last[parent] == _UNDECIDED, candidates[place], nodes.last[parent])
        n = nodes[parent]
        return self._promising(n.v_index, last, n.chosen, n.worth, n.mass)

    def _promising(
        self,
        v_index: IntArray,
        last: IntArray,
        chosen: IntArray,
        worth: FloatArray,
        mass: FloatArray,
    ) -> _Nodes:
        """Return the nodes of these choices whose bound exceeds the tolerance."""
        completion = self._completion(chosen.shape[1])
        D = (
            worth[:, None]
            + self.slopes * mass[:, None]
            + (completion.worth + self.slopes * completion.mass)[v_index, last]
        )
        # −D·e^β is largest at the slope for which the bound −1 − β − ln(−D) is smallest.
        promise = np.where(D < 0, -D * np.exp(self.slopes), 0.0)
        slope = np.argmax(promise, axis=1)
        index = np.arange(len(v_index))
        if chosen.shape[1] == self.secrets:
            bound = worth / mass - np.log(mass)
        else:
            bound = np.minimum(self._between(D, index, slope), self._between(D, index, slope - 1))
        return _Nodes(v_index, last, chosen, worth, mass, bound, slope)[bound > self.tolerance]

    def _between(self, D: FloatArray, index: IntArray, slope: IntArray) -> FloatArray:
        """Return the best bound for β between two slopes, with a secant above the convex D."""
        low = np.clip(slope, 0, len(self.slopes) - 2)
        beta, step = self.slopes[low], self.slopes[low + 1] - self.slopes[low]
        start = D[index, low]
        rise = (D[index, low + 1] - start) / step
        with np.errstate(divide="ignore", invalid="ignore"):
            # −1 − β − ln(−D) is smallest where −D equals the secant's slope
            best_beta = np.where(
                rise > 0, np.clip(-1 - (start - rise * beta) / rise, beta, beta + step), beta
            )
            D_best = start + rise * (best_beta - beta)
            return np.where(D_best < 0, -1 - best_beta - np.log(-D_best), np.inf)

    def _completion(self, decided: int) -> _Completions:
        """Return the completions after `decided` secrets; each is computed once."""
        if decided not in self._completions:
            undecided = self.order[decided:]
            worth, mass = (self._totals(x, undecided) for x in (self.best_worth, self.best_mass))
            likeliest = np.zeros_like(self.best[0, :, 0])
            if self.secrets > 1:
                # Roots in which the first secret is `last` are separate, so that case is left out
                # here.
                value = (worth + self.slopes * mass)[:, self.order[1:]]
                likeliest = self.order[1:][np.argmax(value, axis=1)]
            for x in (worth, mass):
                x[:, _UNDECIDED] = np.take_along_axis(x, likeliest[:, None], axis=1)[:, 0]
            self._completions[decided] = _Completions(worth, mass, likeliest)
        return self._completions[decided]

    def _totals(self, x: FloatArray, undecided: IntArray) -> FloatArray:
        """Return sums over undecided secrets, shape (breakpoints, secrets + 1, slopes)."""
        sums = np.repeat(x[0][:, undecided].sum(axis=1)[:, None], self.secrets + 1, axis=1)
        sums[:, undecided] += x[1][:, undecided] - x[0][:, undecided]
        return sums

    def _columns(self, nodes: _Nodes) -> FloatArray:
        """Return columns worth more than the tolerance: nodes completed by the best corners.

        Shape (n, a).
        """
        completion = self._completion(nodes.decided)
        z = nodes.mass + completion.mass[nodes.v_index, nodes.last, nodes.slope]
        worth = (
            nodes.worth + completion.worth[nodes.v_index, nodes.last, nodes.slope]
        ) / z - np.log(z)
        selected = np.flatnonzero(worth > self.tolerance)
        selected = selected[np.argsort(-worth[selected], kind="stable")]
        # Only the best column for each breakpoint and `last`, so that the returned columns differ.
        _, first = np.unique(
            nodes.v_index[selected] * (self.secrets + 1) + nodes.last[selected], return_index=True
        )
        selected = selected[np.sort(first)[:_MAX_RETURNED]]
        completed = [self._completed(nodes, int(i)) for i in selected]
        q = np.array(completed).reshape(-1, len(self.pricing.prior))
        return np.asarray(q / (q @ self.pricing.prior)[:, None], dtype=np.float64)

    def _completed(self, nodes: _Nodes, i: int) -> FloatArray:
        v_index, last, slope = int(nodes.v_index[i]), int(nodes.last[i]), int(nodes.slope[i])
        if last == _UNDECIDED:
            last = int(self._completion(nodes.decided).likeliest[v_index, slope])
        chosen = dict(zip(self.order.tolist(), nodes.chosen[i].tolist(), strict=False))
        points = []
        for s, c in enumerate(self.corners):
            role = int(s == last)
            points.append(
                c.points[role, v_index, chosen.get(s, self.best[role, v_index, s, slope])]
            )
        return np.concatenate(points)
