# SPDX-License-Identifier: Apache-2.0
"""Regret of a design prior: cost of a mechanism at equal shares, relative to the best known one.

An optimum is best at its design prior. If the truth differs, a mechanism made for that truth may
need fewer reports. The comparison is made at equal shares, for which closed forms are known.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

import numpy as np
from frankly_protocol.audit import Claim
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism

from frankly_server.design.api.decoded import total_variance
from frankly_server.design.families import FAMILIES, FamilyRequest
from frankly_server.design.notions.cones import Cone
from frankly_server.design.notions.prior import Prior
from frankly_server.design.optimum import solver
from frankly_server.design.tables.limits import Limits
from frankly_server.design.tables.quantise import quantise

PEERS: Final = ("grr", "subset-selection", "oue", "symmetric-unary")
LEAST_RATIO: Final = 1.02
"""Ratios up to this one are not reported: they would not change the plan of a survey."""
# Stands for the name of the better mechanism in the text shown to users.
_OPTIMUM: Final = "the optimum for equal shares"
_TIMES_RATIO: Final = 3
"""From this ratio on, the text says "n times as many"; below it, a percentage."""


@dataclass(frozen=True, slots=True)
class Regret:
    """Cost of a mechanism if all answers are equally common.

    ratio : its total variance of the shares over that of the best known mechanism with the same
        claims; above `LEAST_RATIO`.
    against : the name of that mechanism.
    """

    ratio: float
    against: str

    def to_json(self) -> dict[str, str]:
        """Return the regret in the form of JSON responses."""
        return {"at": "equal shares", "ratio": f"{self.ratio:.2f}", "against": self.against}

    def __str__(self) -> str:
        return in_words(self.to_json())


def in_words(regret: Mapping[str, str]) -> str:
    """Return the sentence for a `Regret.to_json` object."""
    ratio = Decimal(regret["ratio"])
    comparison = (
        f"{ratio:.1f} times as many reports as"
        if ratio >= _TIMES_RATIO
        else f"{100 * (ratio - 1):.0f}% more reports than"
    )
    return f"if all choices are equally common, this needs {comparison} {regret['against']}"


@lru_cache(maxsize=256)
def regret(
    mechanism: Mechanism,
    claims: tuple[Claim, ...],
    decoder_prior: tuple[int, ...],
) -> Regret | None:
    """Return the regret of a mechanism with its published decoder; None if it is small or unknown.

    claims : all promises of the mechanism, with levels. It is compared with the families of `PEERS`
        that keep them and, if a claim is neither ldp nor dp, with the optimum for equal shares, if
        the cone is small enough to list.
    decoder_prior : counts of the answers, as published.
    """
    even = np.full(mechanism.answers, 1 / mechanism.answers)
    variance = total_variance(mechanism, decoder_prior, even)
    uniform = (1,) * mechanism.answers
    peers = {
        name: total_variance(peer, uniform, even)
        for name, peer in _peers(claims, mechanism.answers)
    }
    if not peers or not np.isfinite(variance):
        return None
    against = min(peers, key=lambda name: peers[name])
    ratio = variance / peers[against]
    return Regret(ratio, against) if ratio > LEAST_RATIO else None


@lru_cache(maxsize=256)
def _peers(claims: tuple[Claim, ...], answers: int) -> tuple[tuple[str, Mechanism], ...]:
    """Return (name, mechanism) of all peers for equal shares that keep the claims."""
    even = Prior.from_rows([[1] * answers])
    peers: list[tuple[str, Mechanism]] = []
    for name in PEERS:
        try:
            peers.append((name, FAMILIES[name](FamilyRequest(name, even, claims)).mechanism))
        except InvalidInput:  # the family cannot keep these claims
            continue
    if any(claim.notion not in ("ldp", "dp") for claim in claims):
        optimum = _optimum(claims, even)
        peers += [] if optimum is None else [(_OPTIMUM, optimum)]
    return tuple(peers)


def _optimum(claims: tuple[Claim, ...], even: Prior) -> Mechanism | None:
    """Return the optimum for equal shares; None if there is none or its cone is not small.

    Under dp there is no cone, and if the raw answer is private, no mechanism is needed.
    """
    cone = Cone.of(claims, even.answers)
    if (
        any(claim.notion == "dp" for claim in claims)
        or cone.admits_identity()
        or not cone.is_small()
    ):
        return None
    try:
        best = solver.least_variance(
            cone, even, np.eye(even.answers), "total", Limits(), "auto"
        ).optimum
        return quantise(best.rows(even), claims, even.shares).mechanism
    except InvalidInput:
        return None
