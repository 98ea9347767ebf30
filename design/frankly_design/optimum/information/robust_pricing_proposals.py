# SPDX-License-Identifier: Apache-2.0
"""Proposals of columns under RLDP with many values (docs/maths/generation.md, claim 16).

The search is that of `robust_pricing`, but with few breakpoints v and few corners: for each secret,
values are sorted by (gain at M − gain at m)/lower bound, and only the leading sets T in that order
are used. The search proves no bound.
"""

import numpy as np
from frankly_protocol.audit import Claim

from frankly_design.notions.cones import Cone
from frankly_design.numeric.arrays import FloatArray
from frankly_design.numeric.lazy import special
from frankly_design.optimum.information.robust_pricing import RobustPricing
from frankly_design.optimum.information.robust_pricing_blocks import Corners, SecretBlock, blocks_of

# Numbers of breakpoints, slopes and values of m that are tried for every secret.
_BREAKPOINTS = 12
_SLOPES, _LOWEST = 3, 5
_TINY = 1e-9  # a lower bound of 0 would divide by zero


class Proposals:
    """Proposals of columns worth more than a threshold, for given prices."""

    def __init__(self, claim: Claim, blocks: list[SecretBlock], prior: FloatArray) -> None:
        """Create the search. prior : p of the answers, shape (secrets · values,)."""
        assert claim.level is not None  # noqa: S101
        self._ratio, self._blocks, self._prior = claim.level[0] / claim.level[1], blocks, prior
        self._diagonal = claim.diagonal
        self._breakpoints = (
            np.ones(1) if claim.diagonal else np.linspace(1.0, self._ratio, _BREAKPOINTS)
        )

    def columns(self, multipliers: FloatArray, least: float) -> FloatArray:
        """Return columns v of the cone worth more than `least`, best first, shape (n, a)."""
        shape = (len(self._blocks), -1)
        blocks = zip(
            self._blocks, self._prior.reshape(shape), multipliers.reshape(shape), strict=True
        )
        corners = [self._corners(*block) for block in blocks]
        return RobustPricing(corners, self._prior, diagonal=self._diagonal).promising(
            multipliers, least
        )

    def _corners(self, block: SecretBlock, p: FloatArray, prices: FloatArray) -> Corners:
        """Return one secret's corners for promising sets of values, every breakpoint and both roles."""
        ones = np.ones_like(self._breakpoints)
        lower_side, upper_side = (
            np.concatenate([self._breakpoints, ones]),
            np.concatenate([ones, self._breakpoints]) * self._ratio,
        )
        m = lower_side[:, None] * np.linspace(0.0, 1.0, _LOWEST)
        M = m + ((upper_side - lower_side) / block.free)[:, None]
        # Slopes β = −1 − ln z for scales z from 1 to E².
        slopes = -1 - np.log(self._ratio) * np.linspace(0.0, 2.0, _SLOPES)
        # Axes: roles and breakpoints, m, slopes, values.
        worth = (p * (special.xlogy(M, M) - special.xlogy(m, m))[..., None])[:, :, None]
        worth = worth - (prices - slopes[:, None] * p) * (M - m)[..., None, None]
        order = np.argsort(-worth / (block.lower + _TINY), axis=-1, kind="stable")
        rank = np.argsort(order, axis=-1, kind="stable").reshape(len(lower_side), -1, 1, len(p))
        inside = (rank < np.arange(len(p) + 1)[:, None]).reshape(len(lower_side), -1, len(p))
        return Corners.listed(*block.at(inside, lower_side, upper_side), p)


def of(cone: Cone, prior: FloatArray) -> Proposals | None:
    """Return the proposals for a cone whose only claim is rldp; None for other cones."""
    if len(cone.claims) != 1 or cone.claims[0].notion != "rldp":
        return None
    blocks = blocks_of(cone.claims[0])
    return Proposals(cone.claims[0], blocks, prior) if blocks is not None else None
