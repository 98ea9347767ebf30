# SPDX-License-Identifier: Apache-2.0
"""Levels for claims with an open level: the least one that a mechanism satisfies, rounded up."""

from dataclasses import replace
from fractions import Fraction

from frankly_protocol.audit import Claim, worst
from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms import Mechanism
from frankly_protocol.problems import Problem

from frankly_design.notions.cones import Level
from frankly_design.notions.declared.registry import notion_of

_MAX_BITS = 48


def is_open(claim: Claim) -> bool:
    """Return True if a claim has no level (for alip, neither of its two levels)."""
    return claim.level is None and claim.low_level is None


def settle_level(mechanism: Mechanism, claim: Claim, name: str = "the mechanism") -> Claim:
    """Return the claim with its open level set to the least one that the mechanism satisfies.

    The level is as tight as a ratio of integers below 2^53 can be.

    Raises InvalidInput(mechanism_not_certified) if no finite level can be promised, and always for
    dp, because the verifier computes δ from a level but no level from δ.
    """
    if not is_open(claim):
        return claim
    notion = notion_of(claim)
    try:
        audit = worst(
            mechanism, replace(claim, level=(1, 1), low_level=(1, 1) if notion.has_sides else None)
        )
    except DocumentRejected as error:
        raise InvalidInput(Problem.MECHANISM_NOT_CERTIFIED, error.detail, "mechanism") from None
    needed_levels = {
        side: _round_up(ratio) for side, ratio in audit.needed.items() if ratio is not None
    }
    if not needed_levels or not notion.has_cone:
        raise InvalidInput(
            Problem.MECHANISM_NOT_CERTIFIED,
            f"{name} promises no finite level of {claim.notion}: ask for another notion, such as dpv",
            "mechanism",
        )
    return replace(
        claim, level=needed_levels.get("level"), low_level=needed_levels.get("low_level")
    )


def _round_up(ratio: Fraction) -> Level:
    # The largest denominator 2^bits whose numerator is below 2^53 gives the tightest level.
    for bits in range(_MAX_BITS, -1, -1):
        p = -((-ratio.numerator << bits) // ratio.denominator)
        if p <= MAX_INT:
            return p, 1 << bits
    raise InvalidInput(
        Problem.MECHANISM_NOT_CERTIFIED,
        "the mechanism needs a larger level than can be promised",
        "mechanism",
    )
