# SPDX-License-Identifier: Apache-2.0
"""Claims whose level is left open: the level that a mechanism with explicit parameters really needs, never below it."""

from dataclasses import replace
from fractions import Fraction

from frankly_protocol.audit import Claim, worst
from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms import Mechanism
from frankly_protocol.problems import Problem

from frankly_server.design.cones import Level

_MOST_BITS = 48


def is_open(claim: Claim) -> bool:
    """Tell whether a claim leaves its level, or for alip both, to the mechanism."""
    return claim.level is None and claim.low_level is None


def settled(mechanism: Mechanism, claim: Claim, name: str = "the mechanism") -> Claim:
    """Return the claim, its open level set to what the mechanism needs, as tight as whole numbers below 2^53 allow.

    Raises InvalidInput(mechanism_not_certified) where no finite level can be promised, and for dp: of the levels that
    go with a δ the verifier reads off δ, not the other way round.
    """
    if not is_open(claim):
        return claim
    try:
        found = worst(mechanism, replace(claim, level=(1, 1), low_level=(1, 1) if claim.notion == "alip" else None))
    except DocumentRejected as error:
        raise InvalidInput(Problem.MECHANISM_NOT_CERTIFIED, error.detail, "mechanism") from None
    needed = {side: _rounded_up(ratio) for side, ratio in found.needed.items() if ratio is not None}
    if not needed or claim.notion == "dp":
        words = f"{name} promises no finite level of {claim.notion}: ask for another notion, such as dpv"
        raise InvalidInput(Problem.MECHANISM_NOT_CERTIFIED, words, "mechanism")
    return replace(claim, level=needed.get("level"), low_level=needed.get("low_level"))


def _rounded_up(ratio: Fraction) -> Level:
    for bits in range(_MOST_BITS, -1, -1):
        p = -((-ratio.numerator << bits) // ratio.denominator)
        if p <= MAX_INT:
            return p, 1 << bits
    raise InvalidInput(Problem.MECHANISM_NOT_CERTIFIED, "the level needed is beyond what can be promised", "mechanism")
