# SPDX-License-Identifier: Apache-2.0
"""Regret of a design prior: what a mechanism costs against the best one for equal shares, if shares are equal.

An optimum is best at its design prior. At another truth a mechanism that was not made for this prior may need fewer
reports; equal shares are the truth of which closed forms are known.
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

from frankly_server.design import solver
from frankly_server.design.cones import Cone
from frankly_server.design.decoded import total_variance
from frankly_server.design.families import FAMILIES, FamilyRequest
from frankly_server.design.limits import Limits
from frankly_server.design.prior import Prior
from frankly_server.design.quantise import quantise

PEERS: Final = ("grr", "subset-selection", "oue", "symmetric-unary")
LEAST_RATIO: Final = 1.02
"""A smaller ratio is none: it changes nobody's plan."""
_OPTIMUM: Final = "the optimum for equal shares"
_TIMES: Final = 3
"""From this ratio on words say how many times as many."""


@dataclass(frozen=True, slots=True)
class Regret:
    """Cost of a mechanism if all answers are equally common.

    ratio : its total variance of the shares over that of the best other mechanism known to keep the same claims, above
    `LEAST_RATIO`. against : that mechanism.
    """

    ratio: float
    against: str

    def to_json(self) -> dict[str, str]:
        """Return the regret as it stands in answers."""
        return {"at": "equal shares", "ratio": f"{self.ratio:.2f}", "against": self.against}

    def __str__(self) -> str:
        return in_words(self.to_json())


def in_words(regret: Mapping[str, str]) -> str:
    """Return in words what `Regret.to_json` holds."""
    ratio = Decimal(regret["ratio"])
    more = f"{ratio:.1f} times as many reports as" if ratio >= _TIMES else f"{100 * (ratio - 1):.0f}% more reports than"
    return f"if all choices are equally common, this needs {more} {regret['against']}"


@lru_cache(maxsize=256)
def regret(mechanism: Mechanism, claims: tuple[Claim, ...], decoder_prior: tuple[int, ...]) -> Regret | None:
    """Return what a mechanism with its published decoder costs at equal shares, or None where nothing is to be said.

    claims : all that it promises, levels settled; peers keep every one of them, as the exact verifier finds.
    decoder_prior : counts of the answers, as published. Where a notion rests on a prior, the optimum for equal shares
    is a peer too if all rays of its cone are listed in a moment.
    """
    even = np.full(mechanism.answers, 1 / mechanism.answers)
    own = total_variance(mechanism, decoder_prior, even)
    peers = {name: total_variance(peer, (1,) * mechanism.answers, even) for name, peer in _peers(claims, len(even))}
    if not peers or not np.isfinite(own):
        return None
    against = min(peers, key=lambda name: peers[name])
    ratio = own / peers[against]
    return Regret(ratio, against) if ratio > LEAST_RATIO else None


@lru_cache(maxsize=256)
def _peers(claims: tuple[Claim, ...], answers: int) -> tuple[tuple[str, Mechanism], ...]:
    """Return the mechanisms for equal shares that keep the claims, by name."""
    even = Prior.from_rows([[1] * answers])
    found: list[tuple[str, Mechanism]] = []
    for name in PEERS:
        try:
            found.append((name, FAMILIES[name](FamilyRequest(name, even, claims)).mechanism))
        except InvalidInput:  # the family does not keep these claims
            continue
    if any(claim.notion not in ("ldp", "dp") for claim in claims):
        optimum = _optimum(claims, even)
        found += [] if optimum is None else [(_OPTIMUM, optimum)]
    return tuple(found)


def _optimum(claims: tuple[Claim, ...], even: Prior) -> Mechanism | None:
    """Return the optimum for equal shares; None where it takes more than a moment, or does not exist."""
    cone = Cone(claims, even.answers)
    if any(claim.notion == "dp" for claim in claims) or cone.admits_identity() or not cone.is_small():
        return None
    try:
        best = solver.least_variance(cone, even, np.eye(even.answers), "total", Limits(), "auto").optimum
        return quantise(best.rows(even), claims, even.shares).mechanism
    except InvalidInput:
        return None
