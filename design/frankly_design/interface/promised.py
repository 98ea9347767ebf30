# SPDX-License-Identifier: Apache-2.0
"""Verified claims in sentences, those of the notions' declarations."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from frankly_protocol.audit import Claim

from frankly_design.notions.declared.notion import Told
from frankly_design.notions.declared.registry import notion_of

Labels = Sequence[Any]


def sentences(claims: Sequence[Claim], secrets: Labels, priors: Collection[Any]) -> list[str]:
    """Return what claims promise: one sentence for each notion that is claimed under several priors.

    Where levels differ between the priors, because the design determined them, it has the largest. So
    have claims at the corners of boxes of counts. secrets : the labels of the secrets, as in
    `Design`. priors : the counts of the requested priors.
    """
    several = len({claim.joint for claim in claims} & set(priors)) > 1
    groups: dict[object, list[Claim]] = {}
    for place, claim in enumerate(claims):
        is_corner = claim.joint is not None and claim.joint not in priors
        key = (claim.notion, claim.sensitive) if several or is_corner else place
        groups.setdefault((key, is_corner), []).append(claim)
    told = Told(secrets, priors, several)
    weakest = map(_weakest, groups.values())
    return [notion_of(claim).sentence(claim, told) for claim in weakest]


def _weakest(claims: Sequence[Claim]) -> Claim:
    """Return a claim with the largest levels of the claims; no level is the largest."""
    first = claims[0]
    levels, lows = [one.level for one in claims], [one.low_level for one in claims]
    return replace(first, level=_largest(levels), low_level=_largest(lows))


def _largest(levels: Sequence[tuple[int, int] | None]) -> tuple[int, int] | None:
    known = [level for level in levels if level is not None]
    return max(known, key=lambda level: Fraction(*level)) if len(known) == len(levels) else None
