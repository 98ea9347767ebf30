# SPDX-License-Identifier: Apache-2.0
"""Regret of a design prior: cost at equal shares, relative to the best known mechanism.

An optimum is best at its design prior. If the truth differs, a mechanism designed for that truth
may need fewer reports. The comparison uses equal shares, for which closed forms are known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache, partial
from typing import Final

import numpy as np
from frankly_protocol.audit import Claim
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism

from frankly_design.engine.decoded import total_variance
from frankly_design.families import FAMILIES, FamilyRequest
from frankly_design.notions.cones import Cone, have_cone
from frankly_design.notions.interior import interior_table
from frankly_design.notions.prior import Prior
from frankly_design.optimum import solver
from frankly_design.tables.limits import Limits, TimeExceeded
from frankly_design.tables.quantise import quantise

PEERS: Final = ("grr", "subset-selection", "oue", "symmetric-unary")
LEAST_RATIO: Final = 1.02
"""Ratios up to this value are not reported, because they would not change a survey's plan."""
# Stands for the name of the better mechanism in the text shown to users.
_OPTIMUM: Final = "the optimum for equal shares"
_TIMES_RATIO: Final = 3
"""Ratios of at least this value are shown as "n times as many", smaller ones as a percentage."""


@dataclass(frozen=True, slots=True)
class Regret:
    """Cost of a mechanism if all answers are equally common.

    ratio : total variance of the shares divided by that of the best known mechanism with the same
    claims; greater than `LEAST_RATIO`.
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


def regret(
    mechanism: Mechanism,
    claims: tuple[Claim, ...],
    decoder_prior: tuple[int, ...],
    limits: Limits | None = None,
) -> Regret | None:
    """Return the regret of a mechanism with its published decoder; None if it is small or unknown.

    claims : all promises of the mechanism, with levels. The peers are the families of `PEERS` that
    satisfy these claims and, if a claim is neither ldp nor dp and the cone is small enough to list,
    the optimum for equal shares.
    decoder_prior : counts of the answers, as published.
    limits : if None, the search for the optimum at equal shares runs until it is certified.

    Raises TimeExceeded if time is up before all peers are computed.
    """
    return _regret(mechanism, claims, decoder_prior, _Timed(limits or Limits()))


@dataclass(frozen=True, slots=True)
class _Timed:
    """Limits that the cache key ignores: a result computed in time does not depend on them."""

    limits: Limits = field(compare=False)


@lru_cache(maxsize=256)
def _regret(
    mechanism: Mechanism, claims: tuple[Claim, ...], decoder_prior: tuple[int, ...], timed: _Timed
) -> Regret | None:
    even = np.full(mechanism.answers, 1 / mechanism.answers)
    variance = total_variance(mechanism, decoder_prior, even)
    uniform = (1,) * mechanism.answers
    peers = {
        name: total_variance(peer, uniform, even)
        for name, peer in _peers(claims, mechanism.answers, timed)
    }
    if not peers or not np.isfinite(variance):
        return None
    against = min(peers, key=lambda name: peers[name])
    ratio = variance / peers[against]
    return Regret(ratio, against) if ratio > LEAST_RATIO else None


@lru_cache(maxsize=256)
def _peers(
    claims: tuple[Claim, ...], answers: int, timed: _Timed
) -> tuple[tuple[str, Mechanism], ...]:
    """Return (name, mechanism) of all peers for equal shares that satisfy the claims."""
    even = Prior.from_rows([[1] * answers])
    peers: list[tuple[str, Mechanism]] = []
    for name in PEERS:
        try:
            asked = FamilyRequest(name, even, claims, limits=timed.limits)
            peers.append((name, FAMILIES[name](asked).mechanism))
        except TimeExceeded:
            raise
        except InvalidInput:  # the family cannot satisfy these claims
            continue
    if any(claim.notion not in ("ldp", "dp") for claim in claims):
        optimum = _optimum(claims, even, timed.limits)
        peers += [] if optimum is None else [(_OPTIMUM, optimum)]
    return tuple(peers)


def _optimum(claims: tuple[Claim, ...], even: Prior, limits: Limits) -> Mechanism | None:
    """Return the optimum for equal shares; None if there is none or its cone is too large.

    There is none under dp, which has no cone, or if the raw answer already satisfies the claims.
    """
    cone = Cone.of(claims, even.answers)
    if not have_cone(claims) or cone.admits_identity() or not cone.is_small():
        return None
    # This search may use the time reserved for finishing, because the main search is over.
    late = limits.overdue
    late_limits = Limits(out_of_time=late, half_time=late, search_overdue=late, overdue=late)
    try:
        best = solver.least_variance(
            cone, even, np.eye(even.answers), "total", late_limits, "auto"
        ).optimum
        limits.require_time()  # an unfinished search would understate the regret
        rows = best.rows(even)
        return quantise(
            rows,
            claims,
            even.shares,
            poll=limits.require_time,
            interior=partial(interior_table, cone),
        ).mechanism
    except TimeExceeded:
        raise
    except InvalidInput:
        return None
