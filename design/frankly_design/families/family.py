# SPDX-License-Identifier: Apache-2.0
"""Request, result and calibration of the explicit families.

Every notion is closed under post-processing and under mixing a mechanism with a constant report.
The members of a family are numbered so that each member results from the previous one in this way.
Therefore a claim that holds for member t holds for all later members, and bisection with the exact
verifier finds the first member that satisfies all claims.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from frankly_protocol.audit import Claim, require_private
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, Mechanism
from frankly_protocol.problems import Problem

from frankly_design.families.needs import is_open, settle_level
from frankly_design.notions.cones import Level
from frankly_design.notions.declared.registry import notion_of
from frankly_design.notions.lift_criteria import Measure
from frankly_design.notions.prior import Prior
from frankly_design.tables.limits import Limits

# Weights are multiples of 2^-48, so every integer is below 2^53, and JSON parsers that use doubles
# read it exactly.
BITS = 48
REGIONS = ("honest", "whole")


@dataclass(frozen=True, slots=True)
class Explicit:
    """Explicit parameters, instead of a level or in addition to it.

    p00, p11 : probabilities of reporting answer 0 and answer 1 truthfully, in [0, 1]; warner and
        mangat use p00 alone.
    alpha : the family's own level in nats; see the docstring of the family.
    region : where `binary` looks for the optimum: honest (the truth is at least as likely as the
        other answer, R' of the Thesis) or whole (all (ε, δ)-DP mechanisms, R of the Thesis).
    lift_measure, lift_order : the measure that the watchdog's mechanisms bound; see
        `lift_criteria`.
    """

    p00: Fraction | None = None
    p11: Fraction | None = None
    alpha: Fraction | None = None
    region: str = "honest"
    lift_measure: Measure = "lift"
    lift_order: int = 2


@dataclass(frozen=True, slots=True)
class FamilyRequest:
    """Input of a family.

    name : name of the family.
    prior : prior over the mechanism's answers.
    claims : all of them must hold. A claim with an open level (None) gets the level that the
        mechanism needs; this requires explicit parameters.
    limits : the time limit applies to the search for a member that satisfies the claims.
    """

    name: str
    prior: Prior
    claims: tuple[Claim, ...]
    explicit: Explicit = field(default_factory=Explicit)
    limits: Limits = field(default_factory=Limits)

    @property
    def answers(self) -> int:
        """Number of answers of the mechanism."""
        return self.prior.answers


@dataclass(frozen=True, slots=True)
class Built:
    """Mechanism that satisfies its claims, none of which has an open level.

    parameters : figures of the family, for display only.
    eta : share of noise mixed in by rounding.
    """

    mechanism: Mechanism
    claims: tuple[Claim, ...]
    parameters: dict[str, Any]
    eta: Fraction = Fraction(0)


Family = Callable[[FamilyRequest], Built]


def certify(
    request: FamilyRequest,
    mechanism: Mechanism,
    parameters: dict[str, Any],
    eta: Fraction = Fraction(0),
) -> Built:
    """Set the open levels, and return the mechanism with its claims if it satisfies all of them.

    Raises InvalidInput(mechanism_not_certified) with the exact verifier's reason if it does not.
    """
    claims = tuple(settle_level(mechanism, claim, request.name) for claim in request.claims)
    try:
        require_private(mechanism, *claims)
    except DocumentRejected as error:
        raise claims_not_kept(request, error.detail) from None
    return Built(mechanism, claims, parameters, eta)


def calibrate(
    request: FamilyRequest,
    make: Callable[[int], Mechanism],
    low: int,
    high: int,
    guess: int | None = None,
) -> int:
    """Return the least t in [low, high] for which make(t) satisfies every claim.

    make : function that returns more private members for larger t.
    guess : expected t, such as a closed form. If it is right, three verifications are enough.

    Raises InvalidInput: mechanism_not_certified if even make(high) breaks a claim; field_missing if
    a level is open; TimeExceeded.
    """
    if any(map(is_open, request.claims)):
        raise InvalidInput(
            Problem.FIELD_MISSING,
            f"{request.name} is fitted to a level: give one for every notion, or the mechanism's own parameters",
            "epsilon",
        )
    broken = ""

    def keeps_claims(t: int) -> bool:
        nonlocal broken
        request.limits.require_time()
        try:
            require_private(make(t), *request.claims)
        except DocumentRejected as error:
            broken = error.detail
            return False
        return True

    if keeps_claims(low):
        return low
    # Bisection over 2^48 members verifies up to 48 mechanisms; a correct guess needs only two.
    if guess is not None and low < guess <= high:
        if not keeps_claims(guess):
            low = guess
        elif keeps_claims(guess - 1):
            high = guess - 1
        else:
            return guess
    # Invariant of the bisection: `low` breaks a claim, `high` satisfies all of them.
    if not keeps_claims(high):
        raise claims_not_kept(request, broken)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps_claims(middle) else (middle, high)
    return high


def claims_not_kept(request: FamilyRequest, detail: str) -> InvalidInput:
    """Return the error for a family that cannot satisfy the requested claims."""
    return InvalidInput(
        Problem.MECHANISM_NOT_CERTIFIED,
        f"{request.name} does not keep this ({detail}): ask for another level or notion, or the mechanism optimal",
        "mechanism",
    )


def unsupported(message: str, field: str = "mechanism") -> InvalidInput:
    """Return the error for a combination of options that is not supported."""
    return InvalidInput(Problem.UNSUPPORTED, message, field)


def least_level(claims: Sequence[Claim]) -> Level | None:
    """Return the smallest level of the claims that LDP at it implies; None if there is none."""
    levels = [
        level
        for claim in claims
        if notion_of(claim).is_implied
        for level in (claim.level, claim.low_level)
        if level is not None
    ]
    return min(levels, key=lambda level: Fraction(*level)) if levels else None


def table(rows: Sequence[Sequence[int]], bits: int = BITS) -> DenseMechanism:
    """Return the rows as a mechanism, without the reports that are never sent."""
    used = [y for y, column in enumerate(zip(*rows, strict=True)) if any(column)]
    return DenseMechanism(bits, tuple(tuple(row[y] for y in used) for row in rows))
