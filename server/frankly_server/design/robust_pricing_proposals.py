# SPDX-License-Identifier: Apache-2.0
"""Good columns under RLDP where secrets have too many values to list every corner (docs/maths/generation.md, claim 16).

As in `robust_pricing`, but for a few turns v only and, at each secret, for sets T of values that look dear: sorted by
how much more a value is worth at M than at m, per unit of its lower bound. Nothing is proved here.
"""

import numpy as np
from frankly_protocol.audit import Claim
from scipy.special import xlogy

from frankly_server.design.cones import Cone
from frankly_server.design.linear import FloatArray
from frankly_server.design.robust_pricing import RobustPricing
from frankly_server.design.robust_pricing_blocks import Block, Corners, blocks_of

_TURNS = 12
_SLOPES, _LOWEST = 3, 5
_TINY = 1e-9


class Proposals:
    """Columns worth more than asked, for given prices."""

    def __init__(self, claim: Claim, blocks: list[Block], prior: FloatArray) -> None:
        """Take the prior p of the answers, shape (secrets · values,)."""
        assert claim.level is not None  # noqa: S101
        self._ratio, self._blocks, self._prior = claim.level[0] / claim.level[1], blocks, prior
        self._diagonal = claim.diagonal
        self._turns = np.ones(1) if claim.diagonal else np.linspace(1.0, self._ratio, _TURNS)

    def columns(self, multipliers: FloatArray, least: float) -> FloatArray:
        """Return columns v that lie in the cone and are worth more than `least`, the dearest first, shape (n, a)."""
        shape = (len(self._blocks), -1)
        parts = zip(self._blocks, self._prior.reshape(shape), multipliers.reshape(shape), strict=True)
        corners = [self._corners(*part) for part in parts]
        return RobustPricing(corners, self._prior, diagonal=self._diagonal).promising(multipliers, least)

    def _corners(self, block: Block, p: FloatArray, prices: FloatArray) -> Corners:
        """Return corners for sets of values that look dear, for every turn and both roles."""
        one = np.ones_like(self._turns)
        least, most = np.concatenate([self._turns, one]), np.concatenate([one, self._turns]) * self._ratio
        m = least[:, None] * np.linspace(0.0, 1.0, _LOWEST)
        M = m + ((most - least) / block.free)[:, None]
        slopes = -1 - np.log(self._ratio) * np.linspace(0.0, 2.0, _SLOPES)
        worth = (p * (xlogy(M, M) - xlogy(m, m))[..., None])[:, :, None]  # roles and turns, m, slopes, values
        worth = worth - (prices - slopes[:, None] * p) * (M - m)[..., None, None]
        order = np.argsort(-worth / (block.lower + _TINY), axis=-1, kind="stable")
        rank = np.argsort(order, axis=-1, kind="stable").reshape(len(least), -1, 1, len(p))
        inside = (rank < np.arange(len(p) + 1)[:, None]).reshape(len(least), -1, len(p))
        return Corners.listed(*block.at(inside, least, most), p)


def of(cone: Cone, prior: FloatArray) -> Proposals | None:
    """Return the proposals for a cone that is RLDP alone, None for others."""
    if len(cone.claims) != 1 or cone.claims[0].notion != "rldp":
        return None
    blocks = blocks_of(cone.claims[0])
    return Proposals(cone.claims[0], blocks, prior) if blocks is not None else None
