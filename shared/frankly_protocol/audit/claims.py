# SPDX-License-Identifier: Apache-2.0
"""What a publisher promises of a mechanism: one notion with its levels and the public data it rests on (ADR 0012)."""

from dataclasses import dataclass

NOTIONS = ("ldp", "secret-ldp", "lip")
PRIOR_BASED = ("secret-ldp", "lip")

Ratio = tuple[int, int]
Joint = tuple[tuple[int, ...], ...]
LowerBounds = tuple[tuple[Ratio, ...], ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """One notion that a mechanism is promised to keep; several notions at once are several claims.

    notion : one of NOTIONS.
    level : (p, q) with E = p/q ≥ 1, positive whole numbers below 2^53. alip: the level of P(y|s) ≤ E·P(y), None where
        that side is not promised. dpv: the bound α = p/q on P(sensitive|y), 0 < p ≤ q.
    joint : counts N[s][x], for secret-ldp, lip, alip, srlip and dpv.
    low_level : alip only: the level of P(y) ≤ E·P(y|s), None where that side is not promised.
    attributes : srlip only: how many values each attribute has; answers count row-major, the last attribute fastest.
    lower_bounds : rldp only: L[s][u] as ratios, each row summing to at most 1; answers are pairs (s, u), row-major.
    diagonal : rldp only: whether a secret is compared with itself too, as in the paper's Definition 3.
    sensitive : dpv only: the row of the secret that must not be inferred.
    """

    notion: str
    level: Ratio | None
    joint: Joint | None = None
    low_level: Ratio | None = None
    attributes: tuple[int, ...] | None = None
    lower_bounds: LowerBounds | None = None
    diagonal: bool = False
    sensitive: int | None = None
